// SPDX-License-Identifier: BSD-3-Clause
// The first pass over a stream of bins (docs/format.md, sections 15.3 and 15.4) by the warps of a unit: the difference
// of each value, its symbol, its level and the rest of it. A warp loads the numbers of some steps before it adds them.
// A difference along stride 1 takes the lane before, others take another number from memory.
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_params.cuh"
#include "lossless/cuda/unit_space.cuh"
#include "lossless/train/number_values.hpp"
#include "lossless/train/runs.hpp"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

// Strides of differences: how many are 1, and the others. `sets`: two to the number of the others.
struct StrideSets {
  std::uint32_t ones = 0, sets = 1, other[kMostTaken] = {};

  __device__ __forceinline__ explicit StrideSets(const BinnedParts& model) {
#pragma unroll
    for (std::uint32_t k = 0; k < kMostTaken; ++k) {
      if (k >= model.strides) break;
      const std::uint32_t stride = model.stride[k];
      ones += stride == 1 ? 1 : 0;
      if (stride == 1) continue;
      if (sets == 1) other[0] = stride;
      if (sets == 2) other[1] = stride;
      if (sets == 4) other[2] = stride;
      sets *= 2;
    }
  }
  // No stride, or one of 1.
  __device__ __forceinline__ explicit StrideSets(bool one) : ones(one ? 1 : 0) {}
  // The sum of the strides in a set.
  __device__ __forceinline__ std::uint32_t sum(std::uint32_t set) const {
    std::uint32_t sum = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kMostTaken; ++k) sum += (set >> k & 1) != 0 ? other[k] : 0;
    return sum;
  }
};
static_assert(kMostTaken == 3 && kMostSets == 8);

// What differences are made of: bit patterns of floats or of integers, or numbers.
enum class Source { floats, integers, numbers };

// Where a part of a stream is, and what becomes of it.
template <class U>
struct FoundBins {
  std::uint32_t begin, end;  // of the part
  U* rest;                   // the offset in the bin, or the number itself where no bin has it
  std::uint16_t* symbols;
  std::uint8_t* levels;  // or nullptr
};

// Stores symbols, levels and what is left of a part of a stream: differences of `from`, which has numbers of `count`
// values. The stream begins at value `skipped`. Called by a warp.
template <Source kSource, std::uint32_t kSets, bool Quick, bool kZigzags, class X, class U>
__device__ __forceinline__ void find_bins_of(const X* from, std::uint32_t count, std::uint32_t skipped,
                                             const StrideSets& strides, const NumberMap& given,
                                             const FoundBins<U>& to) {
  constexpr std::uint32_t kWords = kSets * static_cast<std::uint32_t>(sizeof(U) / 4),
                          kSteps = kWords <= 4   ? 4
                                   : kWords <= 8 ? 2
                                                 : 1;  // whose numbers are loaded together
  const std::uint32_t lane = threadIdx.x % 32, width = given.width, longest = strides.sum(kSets - 1);
  NumberMap map;  // what is known of the source need not be asked for each number
  map.is_float = kSource == Source::floats;
  map.is_unsigned = given.is_unsigned;
  map.width = width;
  // lane 0 has what lane 31 had in the step before, of differences along this many ones
  U carry[kMostTaken] = {};
  const auto some_steps = [&]<bool kInside>(std::uint32_t at) {
    X held[kSteps][kSets];
#pragma unroll
    for (std::uint32_t set = 0; set < kSets; ++set) {
      const std::uint32_t first = skipped + at - strides.sum(set) + lane;  // wraps before the first value
      const X* const own = from + first;
#pragma unroll
      for (std::uint32_t k = 0; k < kSteps; ++k) {
        if constexpr (kInside)
          held[k][set] = own[32 * k];
        else
          held[k][set] = first + 32 * k < count ? from[first + 32 * k] : X{0};
      }
    }
    U difference[kSteps];
#pragma unroll
    for (std::uint32_t k = 0; k < kSteps; ++k) {
      difference[k] = 0;
#pragma unroll
      for (std::uint32_t set = 0; set < kSets; ++set) {
        const bool there = kInside || skipped + at - strides.sum(set) + lane + 32 * k < count;
        U number = static_cast<U>(held[k][set]);
        if constexpr (kSource != Source::numbers) number = there ? ordered(map, number) : U{0};
        difference[k] = is_subtracted(set) ? difference[k] - number : difference[k] + number;
      }
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kMostTaken; ++i) {
      if (i >= strides.ones) break;
#pragma unroll
      for (std::uint32_t k = 0; k < kSteps; ++k) {
        const U turned = __shfl_sync(kAllLanes, difference[k], lane + 31);  // the lane is taken modulo 32
        difference[k] -= lane == 0 ? carry[i] : turned;
        carry[i] = turned;
      }
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kSteps; ++k) {
      const std::uint32_t i = at + 32 * k + lane;
      const U whole = kSource == Source::floats ? difference[k] : wrapped(width, difference[k]),
              number = to_bin_order<U>(kZigzags, width, whole);
      const auto found = unit_space<U>().bins.search.template find<Quick, kZigzags>(number);
      if (!kInside && i - to.begin >= to.end - to.begin) continue;
      to.rest[i] = found.offset;
      to.symbols[i] = static_cast<std::uint16_t>(found.symbol);
      if (to.levels != nullptr) to.levels[i] = unit_space<U>().bins.of_symbol[found.symbol].level;
    }
  };
  // differences along ones need the lanes before the first
  std::uint32_t at = to.begin - (strides.ones != 0 ? 32 : 0);
#pragma unroll 1
  for (std::uint32_t left = to.end - at; static_cast<std::int32_t>(left) > 0; at += 32 * kSteps, left -= 32 * kSteps) {
    if (at - to.begin < to.end - to.begin && 32 * kSteps <= left && skipped + at >= longest)
      some_steps.template operator()<true>(at);
    else
      some_steps.template operator()<false>(at);
  }
  __syncwarp();
}

}  // namespace pyfilter::cuda
