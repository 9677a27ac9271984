// SPDX-License-Identifier: BSD-3-Clause
// Special values of progressive frames (docs/format.md, section 13.7), written after the last pass.
#pragma once

#include <cstdint>

#include "progressive/cuda/params.cuh"
#include "progressive/values.hpp"

namespace pyfilter::cuda {

// Whether a value is missing.
__device__ __forceinline__ bool is_missing(const SpecialDecode& job, const SpecialNote& note, std::uint64_t i) {
  if (note.mask_at == 0) return note.missing != 0;
  const std::uint64_t row = i / job.row, x = i % job.row;
  return (job.mask.of(blockIdx.y)[row * job.words + x / 32] >> (x % 32) & 1) != 0;
}

// Missing values of the requested grid. A warp takes 32 words of the mask of the finest grid, or 32 values of a coarser
// one.
template <class T>
__global__ void __launch_bounds__(kMaskThreads) put_missing_kernel(const __grid_constant__ SpecialDecode job) {
  using Code = typename FloatTraits<T>::Code;
  const SpecialNote& note = *job.notes.of(blockIdx.y);
  if (job.job.heads[blockIdx.y].dead != 0 || note.missing == 0) return;
  const ProgressiveLayout& layout = job.job.shared->layout;
  const Extents g = layout.grids[job.job.level], whole = layout.grids[0];
  const ProgressiveFrame& frame = job.job.frames[blockIdx.y];
  auto* const out = reinterpret_cast<Code*>(frame.out);
  const auto sentinel = static_cast<Code>(frame.sentinel);
  const std::uint64_t stride = std::uint64_t{gridDim.x} * kMaskThreads,
                      thread = std::uint64_t{blockIdx.x} * kMaskThreads + threadIdx.x;
  if (job.job.level == 0 && note.mask_at != 0) {
    const unsigned lane = threadIdx.x % 32;
    const std::uint64_t first_word = job.start / job.row * job.words,
                        last_word = min(((job.stop + job.row - 1) / job.row), std::uint64_t{job.rows}) * job.words;
    const std::uint32_t* const mask = job.mask.of(blockIdx.y);
    for (std::uint64_t part = first_word + (thread - lane); part < last_word; part += stride) {
      const std::uint32_t own = part + lane < last_word ? mask[part + lane] : 0;
      for (std::uint32_t left = __ballot_sync(kAllLanes, own != 0); left != 0; left &= left - 1) {
        const int from = __ffs(static_cast<int>(left)) - 1;
        const std::uint32_t bits = __shfl_sync(kAllLanes, own, from);
        const std::uint64_t word = part + static_cast<unsigned>(from), row = word / job.words,
                            at = row * job.row + 32 * (word - row * job.words) + lane;
        if ((bits >> lane & 1) != 0 && at >= job.start && at < job.stop) out[at - job.start] = sentinel;
      }
    }
    return;
  }
  for (std::uint64_t i = job.start + thread; i < job.stop; i += stride) {
    const std::uint64_t x = i % g.x, row = i / g.x, y = row % g.y, z = row / g.y;
    const int l = job.job.level;
    if (is_missing(job, note, ((z << l) * whole.y + (y << l)) * whole.x + (x << l))) out[i - job.start] = sentinel;
  }
}

// A thread a frame: the verbatim values, whose positions depend on each other; and the check of the section's counts.
template <class T>
__global__ void __launch_bounds__(32) put_verbatim_kernel(const __grid_constant__ SpecialDecode job) {
  FrameHead& head = job.job.heads[blockIdx.y];
  const SpecialNote& note = *job.notes.of(blockIdx.y);
  if (threadIdx.x != 0 || head.dead != 0 || head.head.special_bytes == 0) return;
  const ProgressiveFrame& frame = job.job.frames[blockIdx.y];
  if (note.mask_at != 0 && note.found != note.missing) return damage(frame, head);
  const ProgressiveLayout& layout = job.job.shared->layout;
  const Extents g = layout.grids[job.job.level], whole = layout.grids[0];
  const std::uint64_t every = (std::uint64_t{1} << job.job.level) - 1;
  const std::uint8_t *value = frame.payload + note.verbatim_at, *const end = frame.payload + head.head.specials_at +
                                                                             head.head.special_bytes;
  auto* const out = reinterpret_cast<T*>(frame.out);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < note.verbatim; ++i) {
    std::uint64_t gap;
    value = take_varint(value, end, &gap);
    if (value == nullptr || gap >= job.count - next || end - value < static_cast<std::ptrdiff_t>(sizeof(T)))
      return damage(frame, head);
    next += gap;
    if (note.missing != 0 && is_missing(job, note, next)) return damage(frame, head);
    const std::uint64_t x = next % whole.x, y = next / whole.x % whole.y, z = next / whole.x / whole.y;
    if (((x | y | z) & every) == 0) {
      const int l = job.job.level;
      const std::uint64_t at = ((z >> l) * g.y + (y >> l)) * g.x + (x >> l);
      T bits;
      memcpy(&bits, value, sizeof bits);
      if (at >= job.start && at < job.stop) out[at - job.start] = bits;
    }
    ++next;
    value += sizeof(T);
  }
  if (value != end) damage(frame, head);
}

}  // namespace pyfilter::cuda
