// SPDX-License-Identifier: BSD-3-Clause
// The keys of a tile as a sequence or two (docs/format.md, section 12.3): by all threads of a block.
#pragma once

#include <cstdint>

#include "particles/head.hpp"
#include "stages/cuda/particles/rows.cuh"
#include "stages/cuda/particles/sequence.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kMostRuns = kTileParticles - kTileParticles / 4;  // that are worth a try

struct KeyExchanges {
  std::uint32_t changes[kTileWarps];
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

  // Differences of neighbouring keys; returns how many are not 0.
  __device__ __forceinline__ std::uint32_t take_keys(std::uint32_t (&numbers)[kItems]) const {
    const std::uint32_t* const row = space.rows + row_index(first_number());
    const int here = numbers_here(ordinary);
    std::uint32_t before = threadIdx.x != 0 && here != 0 ? row[threadIdx.x % kParts != 0 ? -1 : -2] : 0, changes = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t key = row[i];
      numbers[i] = i < here ? key - before : 0;
      changes += numbers[i] != 0 ? 1 : 0;
      before = key;
    }
    return changes;
  }
  // The key that a run has.
  __device__ __forceinline__ std::uint32_t run_key(std::uint32_t start) const { return space.rows[row_index(start)]; }
  __device__ __forceinline__ void take_gaps(std::uint32_t (&numbers)[kItems]) const {
    const std::uint16_t* const row = space.run_starts + row_index(first_number());
    const int here = numbers_here(runs);
    std::uint32_t before = threadIdx.x != 0 && here != 0 ? run_key(row[threadIdx.x % kParts != 0 ? -1 : -2]) : ~0u;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t key = i < here ? run_key(row[i]) : 0;
      numbers[i] = i < here ? key - before - 1 : 0;
      before = key;
    }
  }
  __device__ __forceinline__ void take_counts(std::uint32_t (&numbers)[kItems]) const {
    const int here = numbers_here(runs);
    const auto start_of = [&](std::uint32_t run) { return space.run_starts[row_index(run)]; };
    std::uint32_t start = here != 0 ? start_of(first_number()) : 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t run = first_number() + static_cast<unsigned>(i),
                          next = run + 1 < runs ? start_of(run + 1) : ordinary;
      numbers[i] = i < here ? next - start - 1 : 0;
      start = next;
    }
  }
  // Notes where runs start; `before` of them start among the numbers of threads before this one.
  __device__ __forceinline__ void find_runs(const std::uint32_t (&numbers)[kItems], std::uint32_t before) const {
    std::uint32_t run = before;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const std::uint32_t at = first_number() + static_cast<unsigned>(i);
      if ((numbers[i] == 0 && at != 0) || at >= ordinary) continue;
      space.run_starts[row_index(run)] = static_cast<std::uint16_t>(at);
      ++run;
    }
  }
  // Decides how; returns the words that keys take. `numbers` are differences then, if no runs were tried.
  __device__ __forceinline__ std::uint32_t plan(std::uint32_t (&numbers)[kItems]) {
    std::uint32_t changes = take_keys(numbers);
    if (threadIdx.x == 0 && numbers[0] == 0) ++changes;  // the first particle starts a run
    const std::uint32_t changes_of_warp = warp_sum(changes);
    if (threadIdx.x % 32 == 0) space.exchanges.changes[threadIdx.x / 32] = changes_of_warp;
    plain = plan_numbers(numbers, ordinary, space.exchanges.plain);  // a barrier
    const std::uint32_t words = space.exchanges.plain.size(ordinary).words();
    runs = all_warps(space.exchanges.changes);
    if (!may_have_runs(ordinary, runs)) return words;
    tried_runs = true;
    find_runs(numbers, warps_before(space.exchanges.changes) + sum_upto(changes) - changes);
    __syncthreads();
    take_gaps(numbers);
    gaps = plan_numbers(numbers, runs, space.exchanges.gaps);
    take_counts(numbers);
    counts = plan_numbers(numbers, runs, space.exchanges.counts);
    const std::uint32_t with_runs =
        1 + space.exchanges.gaps.size(runs).words() + space.exchanges.counts.size(runs).words();
    by_runs = words > with_runs;
    return by_runs ? with_runs : words;
  }
  // Puts what was planned into the place of the keys.
  __device__ __forceinline__ void write(std::uint32_t (&numbers)[kItems]) const {
    if (!by_runs) {
      if (tried_runs) {
        take_keys(numbers);
        __syncthreads();
      }
      write_numbers(numbers, plain, ordinary, space.exchanges.plain, space.rows);
      return;
    }
    take_gaps(numbers);
    __syncthreads();
    if (threadIdx.x == 0) space.rows[0] = runs;
    write_numbers(numbers, gaps, runs, space.exchanges.gaps, space.rows + 1);
    take_counts(numbers);
    write_numbers(numbers, counts, runs, space.exchanges.counts,
                  space.rows + 1 + space.exchanges.gaps.size(runs).words());
  }
};

}  // namespace pyfilter::cuda
