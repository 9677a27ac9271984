// SPDX-License-Identifier: BSD-3-Clause
// Huffman codewords of a tile's coded blocks, each for one residual or two (docs/format.md, section 8.7), by threads
// that hold a block each. Whether a residual starts a codeword depends on all residuals before it, but through one bit
// only. So a thread follows its block for both values of the bit, and a scan selects the right result.
#pragma once

#include <cstdint>

#include "lorenzo/huffman.hpp"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// The transition of a block: bit s is the state after the block if the state before it is s. State 1: the next residual
// is the second of a started codeword.
using PairStep = std::uint32_t;
inline constexpr PairStep kSameState = 2;
__device__ __forceinline__ PairStep followed_by(PairStep a, PairStep b) {
  return (b >> (a & 1) & 1) | (b >> (a >> 1 & 1) & 1) << 1;
}
// The composed transitions of all lanes before this one, and of all lanes.
__device__ __forceinline__ PairStep steps_before(PairStep own, PairStep* all) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  PairStep upto = own;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const PairStep before = __shfl_up_sync(kAllLanes, upto, d);
    if (lane >= d) upto = followed_by(before, upto);
  }
  *all = __shfl_sync(kAllLanes, upto, 31);
  const PairStep before = __shfl_up_sync(kAllLanes, upto, 1);
  return lane > 0 ? before : kSameState;
}

// symbol_of(), branch-free for most residuals.
template <class Code>
__device__ __forceinline__ std::uint32_t symbol_of_code(Code residual) {
  if constexpr (sizeof(Code) == 8)
    if ((residual >> 32) != 0) return symbol_of(residual);
  return symbol_of_word(static_cast<std::uint32_t>(residual));
}

// The residuals of a block that can be the first of a pair. `next`: the first residual of the next block, or a value
// too large for a pair; exists(c): whether a pair has a codeword.
template <class Code, class Exists>
__device__ __forceinline__ std::uint32_t pair_positions(const Code (&z)[32], Code next, const Exists& exists) {
  std::uint32_t positions = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const Code here = z[i], behind = i < 31 ? z[i + 1] : next;
    const std::uint32_t both = kPairs + (static_cast<std::uint32_t>(16 * here + behind) & 255);
    positions |= ((here | behind) < kDirectSymbols && exists(both) ? 1u : 0u) << i;
  }
  return positions;
}
// The residuals that start a codeword. `state`: the state before the block, replaced by the state after it.
__device__ __forceinline__ std::uint32_t codeword_starts(std::uint32_t positions, std::uint32_t& state) {
  std::uint32_t starts = 0, here = 1 - state;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    starts |= here << i;
    here = 1 ^ (here & positions >> i);
  }
  state = 1 - (here & 1);
  return starts;
}
__device__ __forceinline__ PairStep pair_step(std::uint32_t positions) {
  std::uint32_t from_0 = 0, from_1 = 1;
  codeword_starts(positions, from_0);
  codeword_starts(positions, from_1);
  return from_0 | from_1 << 1;
}
// Calls visit(i, codeword, pair) for the codewords that start in a block.
template <class Code, class Visit>
__device__ __forceinline__ void visit_codewords_of(const Code (&z)[32], Code next, std::uint32_t positions,
                                                   std::uint32_t starts, const Visit& visit) {
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const Code here = z[i], behind = i < 31 ? z[i + 1] : next;
    const bool pair = (positions >> i & 1) != 0;
    if ((starts >> i & 1) != 0)
      visit(i, pair ? kPairs + static_cast<std::uint32_t>(16 * here + behind) : symbol_of_code(here), pair);
  }
}

}  // namespace pyfilter::cuda
