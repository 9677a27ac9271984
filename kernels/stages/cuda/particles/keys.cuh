// SPDX-License-Identifier: BSD-3-Clause
// The keys of a tile as a sequence or two (docs/format.md, section 12.3): by the first kThreads threads of a block.
#pragma once

#include <cstdint>

#include "particles/head.hpp"
#include "stages/cuda/particles/rows.cuh"
#include "stages/cuda/particles/sequence.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kMostRuns = kTileParticles - kTileParticles / 4;  // that are worth a try

struct KeyExchanges {
  Exchange changes;
  SequenceExchange plain, gaps, counts;
};
struct KeySpace {
  std::uint32_t* rows;        // keys (rows.cuh); what is written takes their place
  std::uint16_t* run_starts;  // room for kMostRuns, as rows
  KeyExchanges& exchanges;
};
static_assert(kMostKeyBits * kThreads + kUnaryWords + 64 < kRowWords);  // a sequence takes no more than its keys

struct KeyWriter {
  KeySpace space;
  std::uint32_t ordinary, runs = 0;
  ThreadSequence plain, gaps, counts;
  bool by_runs = false, tried_runs = false;

  __device__ __forceinline__ KeyWriter(const KeySpace& given, std::uint32_t particles)
      : space(given), ordinary(particles) {}

  __device__ __forceinline__ static std::uint32_t here(std::uint32_t count) {
    return min(count - min(count, threadIdx.x * kGroup), kGroup);
  }
  // Differences of neighbouring keys; returns how many are not 0.
  __device__ __forceinline__ std::uint32_t take_keys(std::uint32_t (&numbers)[32]) const {
    const std::uint32_t* const row = space.rows + threadIdx.x * kRow;
    const std::uint32_t count = here(ordinary);
    std::uint32_t before = threadIdx.x != 0 && count != 0 ? row[-2] : 0, changes = 0;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint32_t key = row[i];
      numbers[i] = i < count ? key - before : 0;
      changes += numbers[i] != 0 ? 1 : 0;
      before = key;
    }
    return changes;
  }
  // The key that a run has.
  __device__ __forceinline__ std::uint32_t run_key(std::uint32_t start) const { return space.rows[row_index(start)]; }
  __device__ __forceinline__ void take_gaps(std::uint32_t (&numbers)[32]) const {
    const std::uint16_t* const row = space.run_starts + threadIdx.x * kRow;
    const std::uint32_t count = here(runs);
    std::uint32_t before = threadIdx.x != 0 && count != 0 ? run_key(row[-2]) : ~0u;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint32_t key = i < count ? run_key(row[i]) : 0;
      numbers[i] = i < count ? key - before - 1 : 0;
      before = key;
    }
  }
  __device__ __forceinline__ void take_counts(std::uint32_t (&numbers)[32]) const {
    const std::uint16_t* const row = space.run_starts + threadIdx.x * kRow;
    const std::uint32_t count = here(runs), first = threadIdx.x * kGroup;
    std::uint32_t start = count != 0 ? row[0] : 0;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      const bool last = first + i + 1 >= runs;
      const std::uint32_t next = i >= count || last ? ordinary : i == 31 ? row[kRow] : row[i + 1];
      numbers[i] = i < count ? next - start - 1 : 0;
      start = next;
    }
  }
  // Notes where runs start; `before` of them start in the groups of other threads before this one.
  __device__ __forceinline__ void find_runs(const std::uint32_t (&numbers)[32], std::uint32_t before) const {
    std::uint32_t run = before;
#pragma unroll
    for (unsigned i = 0; i < 32; ++i) {
      if (numbers[i] == 0 && (threadIdx.x != 0 || i != 0)) continue;
      if (threadIdx.x * kGroup + i >= ordinary) continue;
      space.run_starts[row_index(run)] = static_cast<std::uint16_t>(threadIdx.x * kGroup + i);
      ++run;
    }
  }
  // Decides how; returns the words that keys take. `numbers` are differences then, if no runs were tried.
  __device__ __forceinline__ std::uint32_t plan(std::uint32_t (&numbers)[32]) {
    const std::uint32_t first_key = space.rows[0], warp = threadIdx.x / 32;
    std::uint32_t changes = take_keys(numbers);
    if (threadIdx.x == 0 && first_key == 0) ++changes;  // the first particle starts a run
    const std::uint32_t changes_of_warp = warp_sum(changes);
    if (threadIdx.x % 32 == 0) space.exchanges.changes[warp] = changes_of_warp;
    plain = plan_numbers(numbers, ordinary, space.exchanges.plain);  // a barrier
    const std::uint32_t words = plain.size.words();
    std::uint32_t before = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      before += w < warp ? space.exchanges.changes[w] : 0;
      runs += space.exchanges.changes[w];
    }
    if (!may_have_runs(ordinary, runs)) return words;
    tried_runs = true;
    find_runs(numbers, before + sum_upto(changes) - changes);
    group_barrier();
    take_gaps(numbers);
    gaps = plan_numbers(numbers, runs, space.exchanges.gaps);
    take_counts(numbers);
    counts = plan_numbers(numbers, runs, space.exchanges.counts);
    const std::uint32_t with_runs = 1 + gaps.size.words() + counts.size.words();
    by_runs = words > with_runs;
    return by_runs ? with_runs : words;
  }
  // Puts what was planned into the place of the keys.
  __device__ __forceinline__ void write(std::uint32_t (&numbers)[32]) const {
    if (!by_runs) {
      if (tried_runs) {
        take_keys(numbers);
        group_barrier();
      }
      write_numbers(numbers, plain, space.rows);
      return;
    }
    take_gaps(numbers);
    group_barrier();
    if (threadIdx.x == 0) space.rows[0] = runs;
    write_numbers(numbers, gaps, space.rows + 1);
    take_counts(numbers);
    write_numbers(numbers, counts, space.rows + 1 + gaps.size.words());
  }
};

}  // namespace pyfilter::cuda
