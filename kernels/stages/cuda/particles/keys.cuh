// SPDX-License-Identifier: BSD-3-Clause
// The keys of a tile as a sequence or two (docs/format.md, section 12.3): by all threads of a block.
#pragma once

#include <cstdint>

#include "particles/head.hpp"
#include "stages/cuda/particles/rows.cuh"
#include "stages/cuda/particles/sequence.cuh"

namespace pyfilter::cuda {

struct KeyExchanges {
  std::uint32_t changes[kTileWarps];
  SequenceExchange plain, gaps, counts;
};
struct KeySpace {
  std::uint32_t* rows;        // keys (word_of()); what is written takes their place
  std::uint32_t* gaps;        // of runs (word_of())
  std::uint16_t* run_starts;  // where runs start
  KeyExchanges& exchanges;
};
static_assert(kMostKeyBits * kThreads + kUnaryWords + 64 < kTileParticles);  // no more than keys take

struct KeyWriter {
  KeySpace space;
  std::uint32_t ordinary, runs = 0;
  // of differences, or of gaps and counts
  ThreadSequence first = {}, second = {};
  SequenceSums of_first, of_second;
  bool by_runs = false, tried_runs = false;

  __device__ __forceinline__ KeyWriter(const KeySpace& given, std::uint32_t particles)
      : space(given), ordinary(particles) {}

  // Differences of neighbouring keys; returns how many are not 0.
  __device__ __forceinline__ std::uint32_t take_keys(std::uint32_t (&numbers)[kItems]) const {
    const int here = numbers_here(ordinary);
    std::uint32_t before = threadIdx.x != 0 && here != 0 ? space.rows[word_of(first_number() - 1)] : 0, changes = 0;
    take_words(space.rows, numbers);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t key = numbers[i];
      numbers[i] = i < here ? key - before : 0;
      changes += numbers[i] != 0 ? 1 : 0;
      before = key;
    }
    return changes;
  }
  // What find_runs() noted.
  __device__ __forceinline__ void take_gaps(std::uint32_t (&numbers)[kItems]) const {
    if (is_idle(runs)) return;
    const int here = numbers_here(runs);
    take_words(space.gaps, numbers);
#pragma unroll
    for (int i = 0; i < kItems; ++i) numbers[i] = i < here ? numbers[i] : 0;
  }
  __device__ __forceinline__ void take_counts(std::uint32_t (&numbers)[kItems]) const {
    if (is_idle(runs)) return;
    const int here = numbers_here(runs);
    const std::uint16_t* const own = space.run_starts + first_number();
    const uint4 starts = *reinterpret_cast<const uint4*>(own);
    const std::uint32_t pairs[] = {starts.x, starts.y, starts.z, starts.w};
    // where the run behind the last one starts, if there is one
    const std::uint32_t end = first_number() + kItems < runs ? own[kItems] : ordinary;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const auto start_of = [&](int j) { return j % 2 == 0 ? pairs[j / 2] & 0xFFFF : pairs[j / 2] >> 16; };
      const std::uint32_t next = i + 1 < kItems ? (i + 1 < here ? start_of((i + 1) % kItems) : ordinary) : end;
      numbers[i] = i < here ? next - start_of(i) - 1 : 0;
    }
  }
  // Notes gaps between distinct keys, and where their runs start, from the differences of keys; `before` runs start
  // among those of threads before this one.
  __device__ __forceinline__ void find_runs(const std::uint32_t (&numbers)[kItems], std::uint32_t before) const {
    std::uint32_t run = before;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t at = first_number() + static_cast<unsigned>(i);
      const bool first = i == 0 && threadIdx.x == 0;
      std::uint16_t* const start = space.run_starts + run;  // made before it is known whether there is one: no branch
      std::uint32_t* const gap = space.gaps + word_of(run);
      const bool starts = numbers[i] != 0 || first;
      if (starts) *start = static_cast<std::uint16_t>(at);
      if (starts) *gap = numbers[i] - (first ? 0 : 1);
      run += starts ? 1 : 0;
    }
  }
  // Whether runs are spread (particles/head.hpp).
  __device__ __forceinline__ bool are_spread() const {
    static_assert(kSpread == 32 * kItems);  // particles of a warp
    const unsigned lane = threadIdx.x % 32;
    return !__any_sync(kAllLanes, lane < kTileWarps && space.exchanges.changes[lane % kTileWarps] > kSpreadRuns);
  }
  // Decides how; returns the words that keys take. `numbers` are differences then, if no runs were tried. kAlone: the
  // tile is sorted alone.
  template <bool kAlone>
  __device__ __forceinline__ std::uint32_t plan(std::uint32_t (&numbers)[kItems]) {
    KeyExchanges& exchanges = space.exchanges;
    std::uint32_t changes = take_keys(numbers);
    if (threadIdx.x == 0 && numbers[0] == 0) ++changes;  // the first particle starts a run
    const std::uint32_t changes_of_warp = warp_sum(changes);
    if (threadIdx.x % 32 == 0) exchanges.changes[threadIdx.x / 32] = changes_of_warp;
    __syncthreads();
    runs = all_warps(exchanges.changes);
    tried_runs = may_have_runs(ordinary, runs);
    const std::uint32_t last = space.rows[word_of(ordinary - 1)];
    const bool surely = surely_runs(ordinary, runs, last) ||
                        (kAlone && surely_spread_runs(ordinary, runs, last) && are_spread()),
               tries_plain = !surely;
    if (tried_runs) find_runs(numbers, warps_before(exchanges.changes) + sum_upto(changes) - changes);
    SequenceBegin begin = {};
    if (tries_plain) begin = begin_plan(numbers, ordinary, exchanges.plain);
    __syncthreads();
    std::uint32_t words = ~0u;
    if (tries_plain) {
      first = end_plan(begin, exchanges.plain);
      of_first = exchanges.plain.all();
      words = of_first.size(ordinary).words();
    }
    if (!tried_runs) return words;
    take_gaps(numbers);
    begin = begin_plan(numbers, runs, exchanges.gaps);
    take_counts(numbers);
    const SequenceBegin begin_counts = begin_plan(numbers, runs, exchanges.counts);
    __syncthreads();
    const SequenceSums of_gaps = exchanges.gaps.all();
    of_second = exchanges.counts.all();
    const std::uint32_t with_runs = 1 + of_gaps.size(runs).words() + of_second.size(runs).words();
    by_runs = words > with_runs;
    if (!by_runs) return words;
    first = end_plan(begin, exchanges.gaps);
    second = end_plan(begin_counts, exchanges.counts);
    of_first = of_gaps;
    return with_runs;
  }
  // Puts what was planned into the place of the keys, which nothing is read from any more but here. It is there behind
  // a barrier.
  __device__ __forceinline__ void write(std::uint32_t (&numbers)[kItems]) const {
    if (by_runs) {
      const SequenceSize size = of_first.size(runs), counts_size = of_second.size(runs);
      std::uint32_t* const behind = space.rows + 1 + size.words();
      if (threadIdx.x == 0) space.rows[0] = runs;
      start_sequence(size, space.exchanges.gaps, space.rows + 1);
      start_sequence(counts_size, space.exchanges.counts, behind);
      take_gaps(numbers);
      write_planes(numbers, first, size, space.rows + 1);
      __syncthreads();
      write_unary(numbers, first, size, space.rows + 1);
      take_counts(numbers);
      write_planes(numbers, second, counts_size, behind);
      write_unary(numbers, second, counts_size, behind);
    } else {
      const SequenceSize size = of_first.size(ordinary);
      if (tried_runs) {
        take_keys(numbers);
        __syncthreads();
      }
      start_sequence(size, space.exchanges.plain, space.rows);
      write_planes(numbers, first, size, space.rows);
      __syncthreads();
      write_unary(numbers, first, size, space.rows);
    }
  }
};

}  // namespace pyfilter::cuda
