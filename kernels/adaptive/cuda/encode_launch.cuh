// SPDX-License-Identifier: BSD-3-Clause
// Launchers of the kernels that encode chunks, for values of a type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "adaptive/cuda/code_tiles.cuh"
#include "adaptive/cuda/folds.cuh"
#include "adaptive/cuda/place_units.cuh"
#include "adaptive/cuda/settle.cuh"
#include "adaptive/cuda/train.cuh"
#include "adaptive/cuda/write_units.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T>
struct TileCoding {
  struct Choice {
    void (*kernel)(const AdaptiveEncode, std::uint32_t);
    std::size_t shared;
  };
  static Choice choose(TileKind kind, TilePlace place) {
    return with_unit_kernel(kind, place, [](auto kernel) {
      using Kernel = decltype(kernel);
      return Choice{&code_tiles_kernel<T, Kernel::mode, Kernel::refines>, ring_bytes<Kernel::mode>()};
    });
  }
};

template <class T>
cudaError_t resident_encoders(const AdaptiveEncode& job, std::uint32_t* training, std::uint32_t* coding) {
  std::uint32_t rating = 0;
  PYF_CUDA_TRY(
      resident_blocks(&train_adaptive_kernel<T>, static_cast<int>(kTrainThreads), sizeof(TrainShared), training));
  PYF_CUDA_TRY(resident_blocks(&rate_axes_kernel<T>, static_cast<int>(kTrainThreads), sizeof(TrainShared), &rating));
  *coding = 1;
  for (std::uint32_t i = 0; i < job.orders; ++i)
    for (const TilePlace place : kPlaces) {
      std::uint32_t blocks = 0;
      const auto chosen = TileCoding<T>::choose(job.order[i].kind, place);
      PYF_CUDA_TRY(resident_blocks(chosen.kernel, kCodingThreads, chosen.shared, &blocks));
      *coding = std::max(*coding, blocks);
    }
  return cudaSuccess;
}

template <class T>
cudaError_t launch_encoding(const AdaptiveEncode& job, std::uint32_t training, std::uint32_t coding,
                            cudaStream_t stream) {
  for (std::uint32_t i = 0; job.orders > 1 && i < job.orders; ++i) {
    rate_axes_kernel<T><<<training, kTrainThreads, sizeof(TrainShared), stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
  }
  choose_axes_kernel<<<(job.part_count() + kTrainThreads - 1) / kTrainThreads, kTrainThreads, 0, stream>>>(job);
  PYF_CUDA_TRY(cudaGetLastError());
  for (std::uint32_t i = 0; i < job.orders; ++i) {
    const EncodeOrder& order = job.order[i];
    train_adaptive_kernel<T><<<training, kTrainThreads, sizeof(TrainShared), stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
    PYF_CUDA_TRY(cudaMemsetAsync(order.next_tile, 0, std::size(kPlaces) * sizeof *order.next_tile, stream));
    for (const TilePlace place : kPlaces) {
      const auto chosen = TileCoding<T>::choose(order.kind, place);
      auto* const kernel = chosen.kernel;
      kernel<<<coding, kCodingThreads, chosen.shared, stream>>>(job, i);
      PYF_CUDA_TRY(cudaGetLastError());
    }
    make_tables_kernel<<<training, kTrainThreads, 0, stream>>>(job, i);
    PYF_CUDA_TRY(cudaGetLastError());
  }
  const std::uint64_t units = std::uint64_t{job.part_count()} * job.most_tiles;
  write_units_kernel<<<static_cast<unsigned>((units + kWriteWarps - 1) / kWriteWarps), 32 * kWriteWarps, 0, stream>>>(
      job);
  PYF_CUDA_TRY(cudaGetLastError());
  measure_parts_kernel<<<job.part_count(), kPlaceThreads, 0, stream>>>(job);
  PYF_CUDA_TRY(cudaGetLastError());
  place_units_kernel<<<static_cast<unsigned>(units), kPlaceThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T>
inline constexpr AdaptiveEncoders kAdaptiveEncodersOf{&launch_find_folds<T>, &launch_settling<T>, &resident_encoders<T>,
                                                      &launch_encoding<T>};

}  // namespace pyfilter::cuda
