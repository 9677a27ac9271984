// SPDX-License-Identifier: BSD-3-Clause
// Particles on the GPU: sorting of chunks, and copies of tiles to frames.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "particles/cuda/place.cuh"
#include "stages/cuda/launch.cuh"

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

cudaError_t place_particles(const ParticleParams& job, cudaStream_t stream) {
  return launch_behind(place_particles_kernel, job.base.chunks, kPlaceThreads, 0, stream, job);
}

cudaError_t move_particles(const ParticleParams& job, cudaStream_t stream) {
  return launch_behind(copy_slots_kernel, static_cast<unsigned>(job.all_tiles()), kSlotThreads, 0, stream, job);
}

cudaError_t note_bounds(const ParticleParams& job, double* bounds, cudaStream_t stream) {
  note_bounds_kernel<<<(job.base.chunks + kSlotThreads - 1) / kSlotThreads, kSlotThreads, 0, stream>>>(job, bounds);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
