// SPDX-License-Identifier: BSD-3-Clause
// Counts of the symbols, flags or codewords of a sample of tiles, from their residuals (count_tile() of
// lorenzo/cpu/encode.hpp). Integer counts do not depend on the order of threads.
#pragma once

#include <cstdint>
#include <utility>

#include "lorenzo/cuda/pairs.cuh"
#include "lorenzo/cuda/residuals.cuh"
#include "lorenzo/cuda/round_residuals.cuh"
#include "lorenzo/model.hpp"

namespace pyfilter::cuda {

// A thread block's counts, in shared memory: of symbols that residuals of this width can have.
template <class Code>
struct CountSpace {
  static constexpr std::uint32_t kHere = symbols_of_width(8 * sizeof(Code));
  std::uint32_t of[(kLevels + 1) * kHere];
  std::uint32_t flags[kFlagContexts][2], tiles;
  std::uint32_t codewords[kCodewords];
  std::uint32_t steps[kWarps], heads[kThreads];
};

// Adds a block's symbols, by the level of their neighbours.
template <int S, std::uint32_t kWidth, class Code>
__device__ __forceinline__ void count_symbols(const RoundResiduals<kWidth, 32, Code>& z, CountSpace<Code>& space) {
  constexpr Neighbours kNear = make_neighbours<S>();
  constexpr bool kSmall = kWidth != kNoteWide;
  const auto small = [](Code residual) { return kSmall ? static_cast<std::uint32_t>(residual) : capped(residual); };
  const auto count = [&]<int kAt>() {
    const Code own = z.template at<kAt>();
    std::uint32_t level = kLevels, symbol;
    if constexpr (kAt != 0)
      level = level_of(small(z.template at<kNear.first[kAt]>()) + small(z.template at<kNear.second[kAt]>()));
    if constexpr (kSmall)
      symbol = symbol_of_small(static_cast<std::uint32_t>(own));
    else
      symbol = symbol_of(own);
    atomicAdd(&space.of[level * CountSpace<Code>::kHere + symbol], 1);
  };
  [&]<int... kAt>(std::integer_sequence<int, kAt...>) {
    (count.template operator()<kAt>(), ...);
  }(std::make_integer_sequence<int, 32>{});
}

// Adds the codewords of a tile's blocks, one a thread: number `index` of the tile's slot.
template <class Code>
__device__ __forceinline__ void count_codewords(const std::uint8_t* slot, std::uint32_t width, std::uint32_t index,
                                                std::uint32_t coded, CountSpace<Code>& space) {
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const bool mine = thread < coded;
  Code z[32];
  if (mine) {
    read_residuals(slot, width, index, z);
  } else {
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
}

template <class Code, int S, bool kRans>
__device__ __forceinline__ void count_residuals(const StreamParams& job, std::uint32_t chunk, std::uint32_t tile,
                                                CountSpace<Code>& space) {
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
  const std::uint32_t width = note.flags & kNoteWidth, index = thread + before;
  if constexpr (!kRans) return count_codewords(from, width, index, coded, space);
  if (thread < coded) {
    const auto count = [&]<std::uint32_t kWidth>() {
      RoundResiduals<kWidth, 32, Code> z(from, index, true);
#pragma unroll
      for (int four = 0; four < 8; ++four) z.load(four, four);
      count_symbols<S>(z, space);
    };
    if (width == kNoteBytes)
      count.template operator()<kNoteBytes>();
    else if (width == kNoteHalves)
      count.template operator()<kNoteHalves>();
    else
      count.template operator()<kNoteWide>();
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

// Thread blocks of a multiprocessor: few registers leave space for the residuals of other tiles.
template <class Code, bool kRans>
inline constexpr int kCountBlocks = kRans && sizeof(Code) == 4 ? 8 : 4;

template <class Code, int S, bool kRans>
__global__ void __launch_bounds__(kThreads, kCountBlocks<Code, kRans>)
    count_kernel(const __grid_constant__ StreamParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<CountSpace<Code>*>(shared_memory);
  constexpr std::uint32_t kHere = CountSpace<Code>::kHere;
  const std::uint32_t chunk = blockIdx.y;
  if (!takes_part(job.base.plans[chunk], S)) return;
  const TileSample sample(job.base.tiles);
  if (blockIdx.x >= sample.count) return;
  auto* const words = reinterpret_cast<std::uint32_t*>(&space);
  for (unsigned i = threadIdx.x; i < sizeof space / 4; i += kThreads) words[i] = 0;
  __syncthreads();
  for (std::uint64_t i = blockIdx.x; i < sample.count; i += gridDim.x)
    count_residuals<Code, S, kRans>(job, chunk, static_cast<std::uint32_t>(sample.tile(i)), space);
  __syncthreads();
  SymbolCounts& total = job.counts[chunk];
  const auto add = [](std::uint32_t* to, std::uint32_t count) {
    if (count != 0) atomicAdd(to, count);
  };
  for (unsigned i = threadIdx.x; i < (kLevels + 1) * kHere && kRans; i += kThreads)
    add(&total.of[i / kHere * kSymbols + i % kHere], space.of[i]);
  for (unsigned i = threadIdx.x; i < kCodewords && !kRans; i += kThreads) add(&total.codewords[i], space.codewords[i]);
  if (threadIdx.x < kFlagContexts * 2) add(&total.flags[0][0] + threadIdx.x, (&space.flags[0][0])[threadIdx.x]);
  if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(&total.tiles), space.tiles);
}

}  // namespace pyfilter::cuda
