// SPDX-License-Identifier: BSD-3-Clause
// Counts of the symbols, flags or codewords of a sample of tiles, from their residuals (count_tile() of
// lorenzo/cpu/encode.hpp). Integer counts do not depend on the order of threads.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/pairs.cuh"
#include "lorenzo/cuda/residuals.cuh"
#include "lorenzo/model.hpp"

namespace pyfilter::cuda {

// A thread block's counts, in shared memory.
struct CountSpace {
  std::uint32_t of[(kLevels + 1) * kSymbols];
  std::uint32_t flags[kFlagContexts][2], tiles;
  std::uint32_t codewords[kCodewords];
  std::uint32_t steps[kWarps], heads[kThreads];
};

template <class Code, int S>
__device__ __forceinline__ void count_residuals(const StreamParams& job, std::uint32_t chunk, std::uint32_t tile,
                                                CountSpace& space) {
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::size_t slot = std::size_t{chunk} * job.slots + tile;
  const TileNote& note = job.notes[slot];
  std::uint32_t coded = 0, before = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    const std::uint32_t bits = note.coded[w];
    coded += static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
    if (w == 0) before = 1 - (bits & 1);  // the slot starts with the first block, coded or not
  }
  if (thread == 0) ++space.tiles;
  const std::uint8_t* const from = job.residuals + slot * residual_slot(sizeof(Code));
  constexpr Neighbours kNear = make_neighbours<S>();
  const bool mine = thread < coded;
  Code z[32];
  if (mine) read_residuals(from, note.flags & kNoteWidth, thread + before, z);
  if (!is_rans(job.coder)) {
    if (!mine) {
#pragma unroll
      for (int i = 0; i < 32; ++i) z[i] = kDirectSymbols;
    }
    space.heads[thread] = z[0] < kDirectSymbols ? static_cast<std::uint32_t>(z[0]) : kDirectSymbols;
    __syncthreads();
    const Code next = thread + 1 < coded ? space.heads[thread + 1] : kDirectSymbols;
    const auto all_exist = [](std::uint32_t) { return true; };
    PairStep all;
    const std::uint32_t positions = pair_positions(z, next, all_exist);
    const PairStep within = steps_before(pair_step(positions), &all);
    if (lane == 0) space.steps[warp] = all;
    __syncthreads();
    PairStep step = kSameState;
    for (unsigned w = 0; w < warp; ++w) step = followed_by(step, space.steps[w]);
    step = followed_by(step, within);
    std::uint32_t state = step & 1;
    const std::uint32_t starts = mine ? codeword_starts(positions, state) : 0;
    visit_codewords_of(z, next, positions, starts,
                       [&](int, std::uint32_t codeword, bool) { atomicAdd(&space.codewords[codeword], 1); });
    __syncthreads();
    return;
  }
  if (mine) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t level = i == 0 ? kLevels : level_of(capped(z[kNear.first[i]]) + capped(z[kNear.second[i]]));
      atomicAdd(&space.of[level * kSymbols + symbol_of(z[i])], 1);
    }
  }
  const TileBox box = box_of<S>(job.base.grid, tile);
  const bool present = is_present<S>(box, thread);
  const auto presents = static_cast<std::uint32_t>(__syncthreads_count(present ? 1 : 0));
  if (coded > kMostListed && coded != presents && present) {
    const bool is_coded = (note.coded[warp] >> lane & 1) != 0;
    const bool has_before = thread % 4 != 0 && is_present<S>(box, thread - 1);
    const std::uint32_t context = flag_context(has_before, has_before && (note.coded[warp] >> (lane - 1) & 1) != 0);
    atomicAdd(&space.flags[context][is_coded ? 1 : 0], 1);
  }
}

template <class Code, int S>
__global__ void __launch_bounds__(kThreads) count_kernel(const __grid_constant__ StreamParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<CountSpace*>(shared_memory);
  const std::uint32_t chunk = blockIdx.y;
  if (!takes_part(job.base.plans[chunk], S)) return;
  const TileSample sample(job.base.tiles);
  if (blockIdx.x >= sample.count) return;
  auto* const words = reinterpret_cast<std::uint32_t*>(&space);
  for (unsigned i = threadIdx.x; i < sizeof space / 4; i += kThreads) words[i] = 0;
  __syncthreads();
  for (std::uint64_t i = blockIdx.x; i < sample.count; i += gridDim.x)
    count_residuals<Code, S>(job, chunk, static_cast<std::uint32_t>(sample.tile(i)), space);
  __syncthreads();
  SymbolCounts& total = job.counts[chunk];
  const auto add = [](std::uint32_t* to, std::uint32_t count) {
    if (count != 0) atomicAdd(to, count);
  };
  for (unsigned i = threadIdx.x; i < (kLevels + 1) * kSymbols && is_rans(job.coder); i += kThreads)
    add(&total.of[i], space.of[i]);
  for (unsigned i = threadIdx.x; i < kCodewords && !is_rans(job.coder); i += kThreads)
    add(&total.codewords[i], space.codewords[i]);
  if (threadIdx.x < kFlagContexts * 2) add(&total.flags[0][0] + threadIdx.x, (&space.flags[0][0])[threadIdx.x]);
  if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(&total.tiles), space.tiles);
}

}  // namespace pyfilter::cuda
