// SPDX-License-Identifier: BSD-3-Clause
// The first half of encoding a packed tile: values from memory to quantised codes in registers, a block of 32 for each
// thread. Special values are sorted out on the way.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/packed/differences.cuh"
#include "stages/cuda/packed/special.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/tile_values.cuh"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

// Values -> biased codes; true if one may be a misfit. Chains detect codes out of reach later, by their width.
template <int S, bool kHasSentinel, class T>
__device__ __forceinline__ bool quantise_all(const Quantizer<T>& p, const T (&x)[32],
                                             typename FloatTraits<T>::Code (&c)[32]) {
  bool misfit = false;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const T t = magic_form(p, x[i]), decoded = decoded_value(p.step, t);
    misfit = misfit | !keeps_bound(p, x[i], decoded);
    if constexpr (S != kChain) misfit = misfit | !in_reach(p, x[i]);
    if constexpr (kHasSentinel) misfit = misfit | (x[i] == p.sentinel) | (decoded == p.sentinel);
    c[i] = std::bit_cast<typename FloatTraits<T>::Code>(t);
  }
  return misfit;
}

// Chains and columns: differences within the block, in place, except the first. Returns the last code.
template <int S, class Code>
__device__ __forceinline__ Code difference_block(Code (&c)[32], bool differences) {
  const Code last = c[31];
  if constexpr (S == kColumns || (S == kChain && sizeof(Code) == 4)) {
    const Code taken = S == kColumns || differences ? 1 : 0;  // a multiplication and an addition instead of a branch
#pragma unroll
    for (int i = 31; i > 0; --i) c[i] -= taken * c[i - 1];
  } else if constexpr (S == kChain) {
    if (differences) {
#pragma unroll
      for (int i = 31; i > 0; --i) c[i] -= c[i - 1];
    }
  }
  return last;
}

// Whether all codes of a chain's block are in reach, by its differences. The reach is 2^(f - 1) quanta (f: bits of the
// fraction). A first code of f - 4 bits as a residual and 31 steps of f - 7 bits stay below 2^(f - 5) + 2^(f - 3).
template <class Map>
__device__ __forceinline__ bool surely_in_reach(const Spread<typename Map::Code>& rest, typename Map::Code first) {
  using Code = typename Map::Code;
  constexpr int kFraction = FloatTraits<typename Map::Value>::kFractionBits;
  return (rest.bits() >> (kFraction - 8) | zigzag(static_cast<Code>(first - Map::kBias)) >> (kFraction - 4)) == 0;
}

// Loads a tile. c: codes of this thread's block (chains and columns: differenced within it); `last`: its last code; the
// tile's faces go to shared memory. All threads take part; afterwards the arena is free. Returns true in all threads if
// one has special values.
template <class Map, int S, class Space>
__device__ __forceinline__ bool packed_codes(const EncodeParams& job, const ChunkPlan& plan, const std::uint8_t* values,
                                             const TileBox& box, bool whole, bool valid, Space& space,
                                             typename Map::Code (&c)[32], typename Map::Code& last,
                                             Spread<typename Map::Code>& rest, PackedNotes& notes) {
  using Value = typename Map::Value;
  constexpr bool kLogarithms = (Map::kMasks & kMaskNegative) != 0;
  const ReadyQuantizer<Map> ready(plan);  // issued before the values: both loads overlap
  load_packed<S, Value>(job.grid, values, box, whole && job.aligned, space.arena);
  await_values<S>();
  const bool differences = S != kChain || plan.predictor >> 16 != 0;
  const auto finish = [&] {
    show_face<S>(c, space.faces);
    last = difference_block<S>(c, differences);
    if constexpr (S == kChain) rest = spread_of_rest(c);
  };
  const auto sort_specials = [&] {
    bool any = false;
    if constexpr (Map::kHasSpecial) {
      PackedNotes found;  // a local, so that the caller's needs no address
      any = note_packed_specials<Map, S>(plan, valid, space.arena, space.sort, space.masks, found);
      notes = found;
      read_packed_row<S>(space.arena, c);
      __syncthreads();
      finish();
      __syncthreads();
    }
    return any;
  };
  if constexpr (kLogarithms) {
    return sort_specials();
  } else if constexpr (!Map::kHasSpecial) {
    Value x[32];
    read_packed_row<S>(space.arena, x);
#pragma unroll
    for (int i = 0; i < 32; ++i) c[i] = Map::encode_biased(x[i]);
    finish();
    __syncthreads();
    return false;
  } else {
    Value x[32];
    read_packed_row<S>(space.arena, x);
    const Quantizer<Value>& p = ready.quantizer;
    bool misfit = p.has_sentinel ? quantise_all<S, true>(p, x, c) : quantise_all<S, false>(p, x, c);
    finish();
    if constexpr (S == kChain) {
      if (__any_sync(kAllLanes, !differences || !surely_in_reach<Map>(rest, c[0]))) {
        const Value* const row = packed_row<S, Value>(space.arena);
        for (int i = 0; i < 32; ++i) misfit = misfit || !in_reach(p, row[i]);
      }
    }
    if (__syncthreads_or(misfit ? 1 : 0) == 0) return false;
    return sort_specials();
  }
}

}  // namespace pyfilter::cuda
