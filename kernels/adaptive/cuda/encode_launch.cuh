// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that encode chunks, for values of a type.
#pragma once

#include <cstdint>

#include "adaptive/cuda/place_units.cuh"
#include "adaptive/cuda/settle.cuh"
#include "adaptive/cuda/train.cuh"
#include "adaptive/cuda/write_units.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

inline constexpr std::size_t kCodeShared = kCodeWarps * sizeof(TileMemory);

template <class T>
cudaError_t resident_encoders(std::uint32_t* training, std::uint32_t* coding) {
  PYF_CUDA_TRY(
      resident_blocks(&train_adaptive_kernel<T>, static_cast<int>(kTrainThreads), sizeof(TrainShared), training));
  return resident_blocks(&code_tiles_kernel<T>, static_cast<int>(32 * kCodeWarps), kCodeShared, coding);
}

template <class T>
cudaError_t launch_encoding(const AdaptiveEncode& job, std::uint32_t training, std::uint32_t coding,
                            cudaStream_t stream) {
  for (std::uint32_t i = 0; i < job.orders; ++i) {
    const EncodeOrder& order = job.order[i];
    train_adaptive_kernel<T><<<training, kTrainThreads, sizeof(TrainShared), stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
    PYF_CUDA_TRY(cudaMemsetAsync(order.next_tile, 0, sizeof *order.next_tile, stream));
    code_tiles_kernel<T><<<coding, 32 * kCodeWarps, kCodeShared, stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
    make_tables_kernel<<<training, kTrainThreads, 0, stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
  }
  const std::uint64_t units = std::uint64_t{job.chunk_count} * job.most_units;
  write_units_kernel<<<static_cast<unsigned>((units + kWriteWarps - 1) / kWriteWarps), 32 * kWriteWarps, 0, stream>>>(
      job);
  PYF_CUDA_TRY(cudaGetLastError());
  place_units_kernel<<<static_cast<unsigned>(units), kPlaceThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T>
inline constexpr AdaptiveEncoders kAdaptiveEncodersOf{&launch_settling<T>, &resident_encoders<T>, &launch_encoding<T>};

}  // namespace pyfilter::cuda
