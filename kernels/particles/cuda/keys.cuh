// SPDX-License-Identifier: BSD-3-Clause
// The keys of a tile as one or two sequences (docs/format.md, section 12.3), by all threads of a block.
#pragma once

#include <cstdint>

#include "particles/cuda/sequence.cuh"
#include "particles/head.hpp"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

// The most runs that a plan tries (may_have_runs()), and padding of a warp's numbers.
inline constexpr std::uint32_t kRunWords = kTileParticles / 4 * 3 + 32 * kItems;
// Gaps have fewer low bits than kMostGapLow, since a group's sum is below the sum of all, 2^24. Counts have fewer than
// kMostCountLow, since they sum to less than a tile's particles. Both fit one word as bits.
inline constexpr unsigned kMostGapLow = 20, kMostCountLow = 8;
static_assert(kMostKeyBits - 5 < kMostGapLow && (kTileParticles / kGroup) >> (kMostCountLow - 1) == 1 &&
              kMostGapLow + kMostCountLow <= 32);

struct KeyExchanges {
  std::uint32_t changes[kTileWarps], lows[kTileWarps], run_lows[kTileWarps];
  SequenceExchange plain, gaps, counts;
};
struct KeySpace {
  std::uint32_t* rows;        // keys (word_of()); overwritten by the encoded sequences
  std::uint32_t* run_steps;   // of runs (word_of()): distance from the previous key
  std::uint32_t* run_starts;  // of runs (word_of()): first particle
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

  // Differences of neighbouring keys, the first one from `none`; returns the number that is not 0.
  __device__ __forceinline__ std::uint32_t take_keys(std::uint32_t none, std::uint32_t (&numbers)[kItems]) const {
    std::uint32_t before = threadIdx.x != 0 ? space.rows[word_of(first_number() - 1)] : none, changes = 0;
    take_words(space.rows, numbers);
    const auto subtract = [&](int here) {
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const std::uint32_t key = numbers[i];
        numbers[i] = i < here ? key - before : 0;
        changes += numbers[i] != 0 ? 1 : 0;
        before = key;
      }
    };
    if (ordinary == kTileParticles)
      subtract(kItems);
    else
      subtract(numbers_here(ordinary));
    return changes;
  }
  // Records the start of each run and its distance from the previous key, from the keys' differences; `before`: runs
  // that start in earlier threads. Pads with empty runs, as many as a warp has numbers.
  __device__ __forceinline__ void find_runs(const std::uint32_t (&numbers)[kItems], std::uint32_t before) const {
    std::uint32_t run = before;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t word = word_of(run);
      const bool starts = numbers[i] != 0;
      if (starts) space.run_steps[word] = numbers[i];
      if (starts) space.run_starts[word] = first_number() + static_cast<unsigned>(i);
      run += starts ? 1 : 0;
    }
    if (threadIdx.x < 32 * kItems) {
      const std::uint32_t word = word_of(runs + threadIdx.x);
      space.run_steps[word] = 1;
      space.run_starts[word] = ordinary + threadIdx.x;
    }
  }
  // Loads the gaps that find_runs() recorded.
  __device__ __forceinline__ void take_gaps(std::uint32_t (&numbers)[kItems]) const {
    if (is_idle(runs)) return;
    take_words(space.run_steps, numbers);
#pragma unroll
    for (int i = 0; i < kItems; ++i) numbers[i] -= 1;
  }
  __device__ __forceinline__ void take_counts(std::uint32_t (&numbers)[kItems]) const {
    if (is_idle(runs)) return;
    take_words(space.run_starts, numbers);
    const std::uint32_t end = space.run_starts[word_of(first_number() + kItems)];
#pragma unroll
    for (int i = 0; i < kItems; ++i) numbers[i] = (i + 1 < kItems ? numbers[(i + 1) % kItems] : end) - numbers[i] - 1;
  }
  // Whether runs are spread (particles/head.hpp), from the `changes` of a warp in each lane.
  __device__ __forceinline__ static bool are_spread(std::uint32_t changes) {
    static_assert(kSpread == 32 * kItems);  // particles of a warp
    return !__any_sync(kAllLanes, changes > kSpreadRuns);
  }
  // Chooses differences or runs; returns the words of the keys. `numbers` are differences then, if no runs were tried.
  // kAlone: the tile is sorted by itself.
  template <bool kAlone>
  __device__ __forceinline__ std::uint32_t plan(std::uint32_t (&numbers)[kItems]) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    KeyExchanges& exchanges = space.exchanges;
    // the first key always starts a run
    const std::uint32_t changes = take_keys(~0u, numbers), upto = sum_upto(changes);
    if (lane == 31) exchanges.changes[warp] = upto;
    __syncthreads();
    const std::uint32_t of_warp = lane < kTileWarps ? exchanges.changes[lane] : 0;
    runs = warp_sum(of_warp);
    tried_runs = may_have_runs(ordinary, runs);
    const std::uint32_t last = space.rows[word_of(ordinary - 1)];
    const bool surely = surely_runs(ordinary, runs, last) ||
                        (kAlone && surely_spread_runs(ordinary, runs, last) && are_spread(of_warp)),
               tries_plain = !surely;
    if (tried_runs) find_runs(numbers, warp_sum(lane < warp ? of_warp : 0) + upto - changes);
    SequenceBegin begin = {};
    if (tries_plain) {
      if (threadIdx.x == 0) --numbers[0];
      begin = begin_plan(numbers, ordinary, exchanges.plain);
      const std::uint32_t lows = or_of_lanes(begin.lows);
      if (lane == 0) exchanges.lows[warp] = lows;
    }
    __syncthreads();
    std::uint32_t words = ~0u;
    if (tries_plain) {
      first = end_plan(begin, exchanges.plain);
      of_first = {all_warps(exchanges.plain.sums), or_of_lanes(exchanges.lows[lane % kTileWarps])};
      words = of_first.size(ordinary).words();
    }
    if (!tried_runs) return words;
    take_gaps(numbers);
    begin = begin_plan(numbers, runs, exchanges.gaps);
    take_counts(numbers);
    const SequenceBegin begin_counts = begin_plan(numbers, runs, exchanges.counts);
    const std::uint32_t own_lows = or_of_lanes(begin.lows | begin_counts.lows << kMostGapLow);
    if (lane == 0) exchanges.run_lows[warp] = own_lows;
    __syncthreads();
    const std::uint32_t lows = or_of_lanes(exchanges.run_lows[lane % kTileWarps]);
    const SequenceSums of_gaps = {all_warps(exchanges.gaps.sums), lows & ((1u << kMostGapLow) - 1)};
    of_second = {all_warps(exchanges.counts.sums), lows >> kMostGapLow};
    const std::uint32_t with_runs = 1 + of_gaps.size(runs).words() + of_second.size(runs).words();
    by_runs = words > with_runs;
    if (!by_runs) return words;
    first = end_plan(begin, exchanges.gaps);
    second = end_plan(begin_counts, exchanges.counts);
    of_first = of_gaps;
    return with_runs;
  }
  // Overwrites the keys (this is their last reader) with the planned sequences, which are complete after a barrier.
  // Calls meanwhile() after another barrier.
  template <class Meanwhile>
  __device__ __forceinline__ void write(std::uint32_t (&numbers)[kItems], const Meanwhile& meanwhile) const {
    if (by_runs) {
      const SequenceSize size = of_first.size(runs), counts_size = of_second.size(runs);
      std::uint32_t* const behind = space.rows + 1 + size.words();
      if (threadIdx.x == 0) space.rows[0] = runs;
      start_sequence(size, space.exchanges.gaps, space.rows + 1);
      start_sequence(counts_size, space.exchanges.counts, behind);
      take_gaps(numbers);
      write_planes<kMostGapLow>(numbers, first, size, space.rows + 1);
      __syncthreads();
      meanwhile();
      write_unary(numbers, first, size, space.rows + 1);
      take_counts(numbers);
      write_planes<kMostCountLow>(numbers, second, counts_size, behind);
      write_unary(numbers, second, counts_size, behind);
    } else {
      const SequenceSize size = of_first.size(ordinary);
      if (tried_runs) {
        take_keys(0, numbers);
        __syncthreads();
      }
      start_sequence(size, space.exchanges.plain, space.rows);
      write_planes<kMostGapLow>(numbers, first, size, space.rows);
      __syncthreads();
      meanwhile();
      write_unary(numbers, first, size, space.rows);
    }
  }
};

}  // namespace pyfilter::cuda
