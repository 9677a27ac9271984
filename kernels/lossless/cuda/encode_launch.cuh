// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that encode with effort "ratio", for values of a width.
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_units.cuh"
#include "lossless/cuda/place_units.cuh"
#include "lossless/cuda/train.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T>
cudaError_t resident_training(std::uint32_t* blocks) {
  return resident_blocks(&train_bins_kernel<T>, static_cast<int>(kTrainThreads), 0, blocks);
}

template <class T>
cudaError_t launch_training(const BinnedEncode& job, std::uint32_t blocks, cudaStream_t stream) {
  PYF_CUDA_TRY(fill_logs(job.logs, stream));
  train_bins_kernel<T><<<blocks, kTrainThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_units(const BinnedEncode& job, cudaStream_t stream) {
  const std::uint32_t groups = (job.most_parts + kUnitWarps - 1) / kUnitWarps;
  auto* const kernel = &encode_units_kernel<T>;
  kernel<<<job.chunk_count*(groups + 1), 32 * kUnitWarps, sizeof(UnitSpace<NumberOf<T>>), stream>>>(job);
  PYF_CUDA_TRY(cudaGetLastError());
  auto* const place = &place_units_kernel<T>;
  place<<<job.chunk_count * job.most_units, kPlaceThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T>
inline constexpr BinnedEncoders kBinnedEncodersOf{sizeof(TrainSpace<NumberOf<T>>),
                                                  sizeof(TrainedChunk<NumberOf<T>>),
                                                  sizeof(NumberOf<T>),
                                                  &resident_training<T>,
                                                  &launch_training<T>,
                                                  &launch_units<T>};

}  // namespace pyfilter::cuda
