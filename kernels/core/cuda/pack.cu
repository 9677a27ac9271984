// SPDX-License-Identifier: BSD-3-Clause
// Packs the frames of a batch, so that one copy fetches them all (driver.hpp).
#include <algorithm>

#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "core/cuda/sizes.cuh"
#include "core/error_text.hpp"

namespace pyfilter {
namespace {

constexpr unsigned kPackThreads = 256;
constexpr std::size_t kMostPackBlocks = 64;  // thread blocks for one frame, at most

struct PackParams {
  const std::uint8_t* slots;
  std::uint64_t slot_bytes;
  const std::uint64_t *sizes, *ends;
  std::uint8_t* packed;
};

__global__ void __launch_bounds__(kPackThreads) pack_kernel(const __grid_constant__ PackParams job) {
  const std::uint64_t frame = blockIdx.y, words = (job.sizes[frame] + 15) / 16;
  const auto* const from = reinterpret_cast<const uint4*>(job.slots + frame * job.slot_bytes);
  auto* const to = reinterpret_cast<uint4*>(job.packed + job.ends[frame]) - words;
  for (std::uint64_t word = blockIdx.x * kPackThreads + threadIdx.x; word < words; word += gridDim.x * kPackThreads)
    to[word] = from[word];
}

}  // namespace

Status cuda_pack_frames(const void* slots, std::size_t slot_bytes, const std::uint64_t* sizes,
                        const std::uint64_t* ends, std::size_t count, void* packed, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  if (slot_bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(slots) % 16 != 0 ||
      reinterpret_cast<std::uintptr_t>(packed) % 16 != 0)
    return fail(Code::invalid_argument, "slots and packed frames must be at multiples of 16 bytes");
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::size_t>(slot_bytes / (16 * kPackThreads), 1, kMostPackBlocks));
  for (std::size_t first = 0; first < count; first += cuda::kMostOfLaunch) {
    const auto here = static_cast<unsigned>(std::min<std::size_t>(count - first, cuda::kMostOfLaunch));
    const PackParams job{static_cast<const std::uint8_t*>(slots) + first * slot_bytes, slot_bytes, sizes + first,
                         ends + first, static_cast<std::uint8_t*>(packed)};
    pack_kernel<<<dim3(blocks, here), kPackThreads, 0, static_cast<cudaStream_t>(stream)>>>(job);
    PYF_TRY(cuda::check(cudaGetLastError(), "launch of the packing kernel"));
  }
  return kOk;
}

}  // namespace pyfilter
