// SPDX-License-Identifier: BSD-3-Clause
// Chunks with special values (docs/format.md, section 13.7): the sentinel, integers of ordinary values, and a bit for
// each special value of each grid. The CPU's scan_values(), count_kinds() and fill_integers().
#pragma once

#include <cstdint>
#include <limits>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/cuda/scan.cuh"
#include "progressive/scan.hpp"

namespace pyfilter::cuda {

// A thread a chunk: chunks with special values are encoded now, all others are done.
static __global__ void __launch_bounds__(32) begin_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  if (threadIdx.x != 0) return;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  const bool here = note.outcome == Outcome::special;
  job.heads[blockIdx.y].dead = here ? 0 : 1;
  note.outcome = here ? Outcome::progressive : Outcome::elsewhere;
  note.low = std::numeric_limits<long long>::max();
  note.high = std::numeric_limits<long long>::min();
  note.clashing = note.missing = note.verbatim = 0;
}

// A thread a chunk. Without a finite fill value, or one that nobody declared, the sentinel is the fill value if a value
// is it, else the first value that is not finite.
template <class T>
__global__ void __launch_bounds__(32) name_sentinel_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Code = typename FloatTraits<T>::Code;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (threadIdx.x != 0 || job.heads[blockIdx.y].dead != 0 || note.has_sentinel != 0) return;
  note.has_sentinel = 1;
  note.sentinel = note.fill_seen != 0 ? static_cast<Code>(job.fill)
                                      : std::uint64_t{std::bit_cast<Code>(chunk_values<T>(job)[note.first_odd])};
}

// A warp takes 128 values at a time: integers of ordinary values, kMissing for all others, and their bits.
template <class T>
__global__ void __launch_bounds__(kScanThreads)
    quantise_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  using Int = typename ProgressiveTraits<T>::Int;
  using Code = typename FloatTraits<T>::Code;
  constexpr std::uint32_t kWords = 4;
  EncodeNote& note = *job.notes.of(blockIdx.y);
  if (job.heads[blockIdx.y].dead != 0) return;
  ValueScan scan;
  scan.has_sentinel = note.has_sentinel != 0;
  scan.sentinel = note.sentinel;
  scan.largest = static_cast<double>(std::bit_cast<T>(static_cast<Code>(note.largest)));
  const KindOf<T> kinds(scan, note.exponent);
  const IntegerOf<T> integer(note.exponent);
  const T* const values = chunk_values<T>(job);
  Int* const out = reinterpret_cast<Int*>(job.grids.of(blockIdx.y)) + job.grid_at[0];
  std::uint32_t *const special = job.special.of(blockIdx.y) + job.grid_at[0] / 32, *const missing =
                                                                                       job.missing.of(blockIdx.y);
  Int low = std::numeric_limits<Int>::max(), high = std::numeric_limits<Int>::min();
  std::uint32_t found_missing = 0, found_special = 0;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (kScanThreads / 32),
                      parts = (job.count + 32 * kWords - 1) / (32 * kWords);
  for (std::uint64_t part = std::uint64_t{blockIdx.x} * (kScanThreads / 32) + threadIdx.x / 32; part < parts;
       part += warps) {
    const std::uint64_t first = part * 32 * kWords + lane;
    T value[kWords];
#pragma unroll
    for (std::uint32_t w = 0; w < kWords; ++w) value[w] = first + 32 * w < job.count ? values[first + 32 * w] : T{0};
#pragma unroll
    for (std::uint32_t w = 0; w < kWords; ++w) {
      const std::uint64_t i = first + 32 * w;
      const bool there = i < job.count;
      const bool is_missing = kinds.is_missing(value[w]),
                 is_special = kinds.in_reach ? kinds(value[w]) != kPlain : kinds.is_missing_or_verbatim(value[w]);
      const Int q = integer(value[w]);
      if (there) out[i] = is_special ? kMissing<Int> : q;
      const bool plain = there && !is_special;
      low = plain && q < low ? q : low;
      high = plain && q > high ? q : high;
      const std::uint32_t odd = __ballot_sync(kAllLanes, there && is_special),
                          none = __ballot_sync(kAllLanes, there && is_missing);
      found_special += static_cast<std::uint32_t>(__popc(static_cast<int>(odd)));
      found_missing += static_cast<std::uint32_t>(__popc(static_cast<int>(none)));
      if (lane == 0 && there) {
        special[i / 32] = odd;
        missing[i / 32] = none;
      }
    }
  }
  low = warp_combined(low, [](Int a, Int b) { return a < b ? a : b; });
  high = warp_combined(high, [](Int a, Int b) { return a > b ? a : b; });
  if (lane != 0) return;
  if (low <= high) {
    atomicMin(&note.low, static_cast<long long>(low));
    atomicMax(&note.high, static_cast<long long>(high));
  }
  if (found_missing != 0) atomicAdd(&note.missing, static_cast<unsigned long long>(found_missing));
  if (found_special != found_missing)
    atomicAdd(&note.verbatim, static_cast<unsigned long long>(found_special - found_missing));
}

// The bits of grids 1 and above, a warp for each word.
static __global__ void __launch_bounds__(kScanThreads)
    coarsen_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  if (job.heads[blockIdx.y].dead != 0) return;
  const ProgressiveLayout& layout = job.shared->layout;
  std::uint32_t* const special = job.special.of(blockIdx.y);
  const std::uint32_t* const finest = special + job.grid_at[0] / 32;
  const Extents whole = layout.grids[0];
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (kScanThreads / 32);
  for (int level = 1; level < layout.levels; ++level) {
    const Extents g = layout.grids[level];
    const std::uint64_t count = g.count();
    std::uint32_t* const to = special + job.grid_at[level] / 32;
    for (std::uint64_t word = std::uint64_t{blockIdx.x} * (kScanThreads / 32) + threadIdx.x / 32; 32 * word < count;
         word += warps) {
      const std::uint64_t i = 32 * word + lane;
      bool odd = false;
      if (i < count) {
        const std::uint64_t row = i / g.x, x = i % g.x, z = row / g.y, y = row % g.y,
                            at = ((z << level) * whole.y + (y << level)) * whole.x + (x << level);
        odd = (finest[at / 32] >> (at % 32) & 1) != 0;
      }
      const std::uint32_t bits = __ballot_sync(kAllLanes, odd);
      if (lane == 0) to[word] = bits;
    }
  }
}

}  // namespace pyfilter::cuda
