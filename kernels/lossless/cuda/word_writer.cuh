// SPDX-License-Identifier: BSD-3-Clause
// The words of a stream of bins (docs/format.md, section 15.4), written backwards by a warp with a thread for each
// lane.
#pragma once

#include <cstdint>

#include "lossless/cuda/unit_space.cuh"
#include "stages/cuda/lane_coder.cuh"
#include "stages/cuda/loaded.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

// Replaces the `coded` symbols of a stream by its words, downwards from the end, and writes the states that its lanes
// end with. Returns the number of words. Called by a warp; the tables of symbols are in unit_space().
template <class U>
__device__ __forceinline__ std::uint32_t write_words(std::uint16_t* symbols, std::uint32_t coded,
                                                     std::uint32_t* states) {
  constexpr std::uint32_t kAhead = 4;  // the symbols of so many steps are loaded before they are coded
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint16_t* const behind = symbols + coded;
  LaneCoder coder{kLowestState, 0};
  const auto step = [&](std::uint32_t symbol, bool active) {
    const CodedEntry entry = unit_space<U>().bins.entries[symbol];
    __syncwarp();  // the symbols that words replace have been read
    coder.spill_from(behind, active ? entry.frequency() << (kStateBits - kBinTableBits) : ~0u);
    coder.x = active ? entry.coded(coder.x) : coder.x;
  };
  std::uint32_t steps = coded / 32;  // in which all lanes take part
  if (32 * steps != coded) {
    const bool active = 32 * steps + lane < coded;
    step(active ? symbols[32 * steps + lane] : 0, active);
  }
  std::uint32_t next[kAhead] = {};
  const auto load = [&](std::uint32_t left) {
#pragma unroll
    for (std::uint32_t k = 0; k < kAhead; ++k)
      if (k < left) next[k] = symbols[32 * (left - 1 - k) + lane];
  };
  load(steps);
#pragma unroll 1
  for (; steps >= kAhead; steps -= kAhead) {
    std::uint32_t own[kAhead];
    use_from_here(next);
#pragma unroll
    for (std::uint32_t k = 0; k < kAhead; ++k) own[k] = next[k];
    load(steps - kAhead);
#pragma unroll
    for (std::uint32_t k = 0; k < kAhead; ++k) step(own[k], true);
  }
#pragma unroll
  for (std::uint32_t k = 0; k + 1 < kAhead; ++k)
    if (k < steps) step(next[k], true);
  states[lane] = coder.x;
  return static_cast<std::uint32_t>(coder.written);
}

}  // namespace pyfilter::cuda
