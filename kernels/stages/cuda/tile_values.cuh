// SPDX-License-Identifier: BSD-3-Clause
// The first half of encoding a tile: values from memory to quantised, differenced, zigzag residuals in registers.
// Special values are sorted out on the way.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/special.cuh"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

// Values -> biased codes; true if one may be a misfit. Codes out of reach are detected later, by their width.
template <int D, bool kHasSentinel, class T>
__device__ __forceinline__ bool quantise(const Quantizer<T>& p, const T (&x)[32],
                                         typename FloatTraits<T>::Code (&c)[32]) {
  // 1-D: four independent results shorten the dependency chain (2 % faster; with 2-D and 3-D blocks 1 % slower)
  constexpr int kAnswers = D == 1 ? 4 : 1;
  bool misfits[kAnswers] = {};
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    bool& misfit = misfits[i % kAnswers];
    const T t = magic_form(p, x[i]), decoded = decoded_value(p.step, t);
    misfit = misfit | !keeps_bound(p, x[i], decoded);  // branch-free: no value waits for the previous one
    if constexpr (kHasSentinel) misfit = misfit | (x[i] == p.sentinel) | (decoded == p.sentinel);
    c[i] = std::bit_cast<typename FloatTraits<T>::Code>(t);
  }
  for (int i = 1; i < kAnswers; ++i) misfits[0] = misfits[0] | misfits[i];
  return misfits[0];
}

// A value is in reach if its code is a sum of residuals of at most this many bits. The first residual may have five
// bits more. The reach is 2^(f - 1) quanta (f: bits of the fraction): 2^(f - 3) + 63 * 2^(f - 8) is less.
template <class Code>
inline constexpr int kReachBits = (sizeof(Code) == 4 ? 23 : 52) - 7;

// A thread's 32 values as differences.
template <class Code>
struct Residuals {
  Code d[32];
  int rest;    // planes of the residuals, except the block's first
  Code first;  // the block's first residual, in the threads of half 0
};

template <class Map, int D, class Fetch>
__device__ __forceinline__ void finish_residuals(std::uint8_t mode, int half, const Fetch& fetch,
                                                 Residuals<typename Map::Code>& r) {
  using Code = typename Map::Code;
  make_residuals<Map, D>(mode != 2, half, r.d, fetch);
  Spread<Code> rest = spread_of_rest(r.d);
  if constexpr (D > 1) rest.add(half != 0 ? r.d[0] : 0);
  r.rest = rest.planes();
  r.first = zigzag(r.d[0]);
  if constexpr (D > 1) r.rest = max(r.rest, __shfl_xor_sync(kAllLanes, r.rest, 1));
}

// Calls visit(i, item) for the items of half 0's arena row that half 1 needs (half 0: for its own).
template <int D, class Item, class Visit>
__device__ __forceinline__ void for_crossing(const std::uint8_t* arena, const Visit& visit) {
  constexpr int kPer = 16 / static_cast<int>(sizeof(Item));
  const auto* const row = reinterpret_cast<const uint4*>(arena + (threadIdx.x & ~1u) * kRowBytes<Item>);
#pragma unroll
  for (int piece = 0; piece < kCrossing<D> / kPer; ++piece) {
    const uint4 four = row[(32 - kCrossing<D>) / kPer + piece];
#pragma unroll
    for (int i = 0; i < kPer; ++i) visit(piece * kPer + i, reinterpret_cast<const Item(&)[kPer]>(four)[i]);
  }
}

// make_residuals' `fetch` from rows of values: half 1 also quantises half 0's last row or slab, which is cheaper than
// passing the codes. If such a value has no code (a NaN, say), half 0 detects it.
template <int D, class T>
struct QuantisedAgain {
  const std::uint8_t* arena;
  T inverse_step, magic;  // zeros for half 0: all codes are then 0
  __device__ __forceinline__ QuantisedAgain(const std::uint8_t* arena_, const Quantizer<T>& p, int half)
      : arena(arena_),
        inverse_step(half != 0 ? p.inverse_step : T{0}),
        magic(half != 0 ? FloatTraits<T>::kMagic : T{0}) {}
  template <class Code>
  __device__ __forceinline__ void operator()(const Code (&)[32], Code (&last)[kCrossing<D>]) const {
    for_crossing<D, T>(arena, [&](int i, T x) { last[i] = std::bit_cast<Code>(fused(x, inverse_step, magic)); });
  }
};

// The same from rows of codes.
template <int D>
struct StoredCodes {
  const std::uint8_t* arena;
  int half;
  template <class Code>
  __device__ __forceinline__ void operator()(const Code (&)[32], Code (&last)[kCrossing<D>]) const {
    for_crossing<D, Code>(arena, [&](int i, Code code) { last[i] = half != 0 ? code : 0; });
  }
};

// The quantiser of a chunk in registers; empty for a bit-exact map.
template <class Map, bool kQuantises = Map::kHasSpecial>
struct ReadyQuantizer {
  decltype(Map::quantizer) quantizer;
  __device__ __forceinline__ explicit ReadyQuantizer(const ChunkPlan& plan)
      : quantizer(plan.ready_as<decltype(Map::quantizer)>()) {}
};
template <class Map>
struct ReadyQuantizer<Map, false> {
  __device__ __forceinline__ explicit ReadyQuantizer(const ChunkPlan&) {}
};

// Loads this thread's values. All threads of the block take part; each thread's values are in its arena row afterwards.
template <int D, class Value, class Space>
__device__ __forceinline__ void load_values(const EncodeParams& job, const std::uint8_t* values, std::uint32_t tile,
                                            int blocks, bool valid, int parity, Space& space, Value (&x)[32]) {
  if constexpr (D == 1) {
    load_rows<Value>(job.grid, values, tile, job.aligned, space.arena);
  } else if constexpr (kStaged<D, Value>) {
    load_blocks<D, Value>(job.grid, values, blocks, space.offsets[parity].all_whole() && job.aligned,
                          space.offsets[parity], space.arena);
  } else {
    const std::uint32_t block = tile * kTileBlocks<D> + threadIdx.x / 2;
    if (valid) {
      load_half(HalfBlock<D>(job.grid, block, static_cast<int>(threadIdx.x % 2)), values, job.aligned, x);
    } else {
#pragma unroll
      for (int i = 0; i < 32; ++i) x[i] = 0;
    }
    __syncthreads();  // all threads know the tile
    return;
  }
  __syncthreads();
  read_row(space.arena, x);
}

// Loads and quantises this thread's values. All threads of the block take part.
template <class Map, int D, class Space>
__device__ __forceinline__ Specials encode_values(const EncodeParams& job, const ChunkPlan* plan,
                                                  const std::uint8_t* values, std::uint32_t tile, int blocks,
                                                  bool valid, int parity, Space& space,
                                                  Residuals<typename Map::Code>& r) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const int half = D == 1 ? 0 : static_cast<int>(threadIdx.x % 2);
  Specials special;
  Value x[32];
  const ReadyQuantizer<Map> ready(*plan);  // issued before the values: both loads overlap
  load_values<D>(job, values, tile, blocks, valid, parity, space, x);
  if constexpr (!Map::kHasSpecial) {
#pragma unroll
    for (int i = 0; i < 32; ++i) r.d[i] = Map::encode_biased(x[i]);
    finish_residuals<Map, D>(0, half, ShuffledCodes<D>{half}, r);
  } else {
    const Quantizer<Value>& p = ready.quantizer;
    Value* const row = row_of<Value>(space.arena, static_cast<int>(threadIdx.x));
    bool misfit = p.has_sentinel ? quantise<D, true>(p, x, r.d) : quantise<D, false>(p, x, r.d);
    if constexpr (kStaged<D, Value>)
      finish_residuals<Map, D>(job.mode, half, QuantisedAgain<D, Value>(space.arena, p, half), r);
    else
      finish_residuals<Map, D>(job.mode, half, ShuffledCodes<D>{half}, r);
    const bool wide = r.rest > kReachBits<Code> || r.first >> (kReachBits<Code> + (job.mode == 2 ? 0 : 5)) != 0;
    if (__any_sync(kAllLanes, valid && wide)) {
      for (int i = 0; i < 32 && valid; ++i) misfit = misfit || !in_reach(p, row[i]);
    }
    if (__any_sync(kAllLanes, valid && misfit)) {
      __syncwarp();  // half 1 has read half 0's row
      special = note_specials<D, Value>(*plan, half, valid, row);
      __syncwarp();  // half 0's row is codes now
      read_row(space.arena, r.d);
      finish_residuals<Map, D>(job.mode, half, StoredCodes<D>{space.arena, half}, r);
    }
  }
  return special;
}

}  // namespace pyfilter::cuda
