// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: sorting chunks, and frames from tiles.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "stages/cuda/launch.cuh"
#include "stages/cuda/particles/place.cuh"

namespace pyfilter::cuda {

cudaError_t sort_particles(std::uint32_t* const (&keys)[2], std::uint32_t* const (&entries)[2], std::uint64_t count,
                           std::uint32_t chunks, void* memory, std::size_t* memory_bytes, int* which,
                           cudaStream_t stream) {
  cub::DoubleBuffer<std::uint32_t> key_buffer(keys[0], keys[1]), entry_buffer(entries[0], entries[1]);
  const int bits = static_cast<int>(kMostKeyBits) + 1 + bit_width(chunks - 1);
  PYF_CUDA_TRY(
      cub::DeviceRadixSort::SortPairs(memory, *memory_bytes, key_buffer, entry_buffer, count, 0, bits, stream));
  *which = entry_buffer.selector;
  return cudaSuccess;
}

cudaError_t place_particles(const ParticleParams& job, double share, cudaStream_t stream) {
  place_particles_kernel<<<job.base.chunks, kPlaceThreads, 0, stream>>>(job, share);
  PYF_CUDA_TRY(cudaGetLastError());
  copy_slots_kernel<<<static_cast<unsigned>(job.all_tiles()), kSlotThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

cudaError_t take_compared(const ComparedParams& job, std::uint32_t chunks, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(job.run_bytes / 4 / (16 * kSlotThreads), 1, 8));
  take_compared_kernel<<<dim3(job.runs * blocks, chunks), kSlotThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
