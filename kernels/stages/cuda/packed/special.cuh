// SPDX-License-Identifier: BSD-3-Clause
// Special values of packed tiles, by the threads that hold their blocks (stages/packed/encode.hpp has the rules).
#pragma once

#include <cstdint>

#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/special.cuh"
#include "stages/logarithm.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/special.hpp"

namespace pyfilter::cuda {

// Special values of a thread's block, and of its tile (flags of the head).
struct PackedNotes {
  std::uint32_t masks = 0, verbatim_count = 0;  // for its descriptor
  std::uint32_t residual = 0;                   // of its mask of missing values
  std::uint32_t tile_flags = 0;
};

// Masks that wait for their offset: NaN, verbatim, zeros, negative values.
template <class Map>
inline constexpr int kDescribedMasks = !Map::kHasSpecial                ? 1
                                       : (Map::kMasks & kMaskZero) != 0 ? 4
                                                                        : 2;
template <class Map>
struct PackedMaskSpace {
  std::uint32_t masks[kDescribedMasks<Map>][Map::kHasSpecial ? kThreads : 1];
};

// Data that threads exchange about their blocks.
struct SortSpace {
  std::uint32_t unseen[kThreads], missing[kThreads], filled[kWarps], costs[kWarps];
};

// The sorted special values of a block, whose codes are then in their positions.
struct SortedBlock {
  std::uint32_t missing = 0, nan = 0, verbatim = 0, zero = 0, negative = 0;
  __device__ __forceinline__ std::uint32_t unseen() const { return missing | nan | verbatim | zero; }
};
template <class T>
__device__ __forceinline__ SortedBlock sort_packed(const Quantizer<T>& p, T* row) {
  const Specials s = sort_values(p, row);
  return {s.sentinel, s.nan, s.verbatim, 0, 0};
}
template <class T>
__device__ __forceinline__ SortedBlock sort_packed(const LogQuantizer<T>& p, T* row) {
  using Code = typename FloatTraits<T>::Code;
  SortedBlock s;
#pragma unroll 1
  for (int i = 0; i < 32; ++i) {
    const T x = row[i];
    const Code bits = std::bit_cast<Code>(x), q = log_code(p, x);
    const std::uint32_t bit = 1u << i;
    if (p.has_sentinel && bits == p.sentinel_bits)
      s.missing |= bit;
    else if (x == 0)
      s.zero |= bit;
    else if (bits == FloatTraits<T>::kQuietNan)
      s.nan |= bit;
    else if (!log_fits(p, x, q))
      s.verbatim |= bit;
    if (is_negative(x)) s.negative |= bit;
    reinterpret_cast<Code*>(row)[i] = q;
  }
  s.negative &= ~(s.missing | s.nan | s.verbatim);
  return s;
}

// The arena offset of position `i` of a line of the tile.
template <int S, class Value>
__device__ __forceinline__ unsigned line_offset(int line, int i) {
  const auto l = static_cast<unsigned>(line), at = static_cast<unsigned>(i);
  if constexpr (S == kChain || S == kColumns)
    return row_offset<S, Value>(l) + at * static_cast<unsigned>(sizeof(Value));
  else
    return arena_offset<S, Value>(l / TileShape<S>::kY, l % TileShape<S>::kY, at);
}

// fill_lines() of stages/packed/encode.hpp, one thread a line; `none` is the biased code 0.
template <int S, class Value>
__device__ __noinline__ void fill_packed_lines(std::uint8_t* arena, SortSpace& space,
                                               typename FloatTraits<Value>::Code none) {
  using Code = typename FloatTraits<Value>::Code;
  using Lines = TileLines<S>;
  constexpr int kLength = Lines::kLength;
  const int line = static_cast<int>(threadIdx.x);
  const auto code = [&](int of, int i) -> Code& {
    return *reinterpret_cast<Code*>(arena + line_offset<S, Value>(of, i));
  };
  std::uint64_t seen = 0;
  if (line < Lines::kCount) {
    seen =
        ~line_bits<S>([&](std::uint32_t b) { return space.unseen[b]; }, line) & (~std::uint64_t{0} >> (64 - kLength));
    if (seen != 0 && seen != ~std::uint64_t{0} >> (64 - kLength)) {
      Code last = code(line, __ffsll(static_cast<long long>(seen)) - 1);
#pragma unroll 1
      for (int i = 0; i < kLength; ++i) {
        if ((seen >> i & 1) != 0)
          last = code(line, i);
        else
          code(line, i) = last;
      }
    }
  }
  const std::uint32_t filled = __ballot_sync(kAllLanes, seen != 0);
  if (threadIdx.x % 32 == 0) space.filled[threadIdx.x / 32] = filled;
  __syncthreads();
  if (line >= Lines::kCount || seen != 0) return;
  const int source = line_source<S>(space.filled, line);
#pragma unroll 1
  for (int i = 0; i < kLength; ++i)
    code(line, i) = source < 0                    ? none
                    : S == kPlane || S == kVolume ? code(source, i)
                                                  : code(source, source < line ? kLength - 1 : 0);
}

// The residual of this thread's mask of missing values, and the head's flags for these masks: predict_masks() of
// stages/packed/encode.hpp.
template <int S>
__device__ __noinline__ void predict_packed_masks(bool valid, SortSpace& space, PackedNotes& notes) {
  const int b = static_cast<int>(threadIdx.x), above = block_above<S>(b), before = block_before<S>(b);
  const auto mask = [&](int block) { return block < 0 ? 0u : space.missing[block]; };
  const std::uint32_t here = mask(b);
  const std::uint32_t residual =
      mask_residual<S>(here, mask(above), mask(before), above < 0 || before < 0 ? 0u : mask(block_before<S>(above)));
  const auto cost = [valid](std::uint32_t bits) {
    return valid && bits != 0 ? 2 + static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(bits)))) : 0u;
  };
  const std::uint32_t costs = warp_sum(cost(residual) | cost(here) << 16);
  if (threadIdx.x % 32 == 0) space.costs[threadIdx.x / 32] = costs;
  if (__syncthreads_and(!valid || here == kAllLanes ? 1 : 0) != 0) {
    notes.tile_flags |= kPackedAllMissing;
    return;
  }
  std::uint32_t all = 0;
  for (int w = 0; w < kWarps; ++w) all += space.costs[w];
  if (all == 0) return;
  const bool plain = all >> 16 < (all & 0xFFFF);
  notes.tile_flags |= kPackedMissing | (plain ? kPackedPlainMasks : 0);
  notes.residual = valid ? (plain ? here : residual) : 0;
}

// Sorts out the special values of a tile; the repaired codes are in the arena's rows afterwards. Called by all threads
// of the block after a barrier. False if there are none.
template <class Map, int S>
__device__ __noinline__ bool note_packed_specials(const ChunkPlan& plan, bool valid, std::uint8_t* arena,
                                                  SortSpace& space, PackedMaskSpace<Map>& masks, PackedNotes& notes) {
  using Value = typename Map::Value;
  using Quantiser = decltype(Map::quantizer);
  constexpr bool kSigns = (Map::kMasks & kMaskNegative) != 0;
  const unsigned thread = threadIdx.x;
  // absent blocks take part, too: other blocks use their codes
  SortedBlock block = sort_packed(plan.ready_as<Quantiser>(), packed_row<S, Value>(arena));
  space.unseen[thread] = block.unseen();
  space.missing[thread] = block.missing;
  if (__syncthreads_or(block.unseen() != 0 || (kSigns && block.negative != 0) ? 1 : 0) == 0) return false;
  fill_packed_lines<S, Value>(arena, space, Map::kBias);
  predict_packed_masks<S>(valid, space, notes);
  if constexpr (kSigns) {
    const std::uint32_t signs = ~(block.missing | block.nan | block.verbatim);
    const int negative = __syncthreads_count(valid && block.negative != 0 ? 1 : 0),
              other = __syncthreads_count(valid && (~block.negative & signs) != 0 ? 1 : 0);
    if (negative > other && (notes.tile_flags & kPackedAllMissing) == 0) {
      notes.tile_flags |= kPackedNegative;
      block.negative = ~block.negative & signs;
    }
    masks.masks[2][thread] = block.zero;
    masks.masks[3][thread] = block.negative;
  }
  masks.masks[0][thread] = block.nan;
  masks.masks[1][thread] = block.verbatim;
  notes.masks = (block.nan != 0 ? kMaskNan : 0) | (block.verbatim != 0 ? kMaskVerbatim : 0) |
                (block.zero != 0 ? kMaskZero : 0) | (block.negative != 0 ? kMaskNegative : 0);
  if (!valid) notes.masks = 0;
  notes.verbatim_count = static_cast<std::uint32_t>(__popc(static_cast<int>(block.verbatim)));
  return true;
}

// Writes the words in front of a block's planes: masks and verbatim values. Returns the address of the planes.
template <class Map, int S>
__device__ __noinline__ std::uint32_t* write_packed_special(const EncodeParams& job, const std::uint8_t* values,
                                                            TileBox box, const PackedMaskSpace<Map>& masks,
                                                            std::uint32_t* to) {
  using Value = typename Map::Value;
  constexpr int kValueWords = sizeof(Value) / 4;
  for (int m = 0; m < kDescribedMasks<Map>; ++m)
    if (masks.masks[m][threadIdx.x] != 0) *to++ = masks.masks[m][threadIdx.x];
  for (std::uint32_t rest = masks.masks[1][threadIdx.x]; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(__ffs(static_cast<int>(rest)) - 1);
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + clamped_index<S>(job.grid, box, threadIdx.x, i) *
                                                                           sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) *to++ = from[w];
  }
  return to;
}

// Writes the mask section of a tile, up to byte `end`. From byte `at` on it has a byte for each block with a residual;
// this block is number `own` of `count`. Groups of four bits follow; this block's begin with group `first_group`.
// Called by all threads.
static __device__ __noinline__ void write_mask_section(std::uint32_t residual, std::uint32_t at, std::uint32_t own,
                                                       std::uint32_t count, std::uint32_t first_group,
                                                       std::uint32_t end, std::uint32_t* tile_words) {
  const std::uint32_t groups_at = at + count;
  for (std::uint32_t w = groups_at / 4 + threadIdx.x; w < (end + 3) / 4; w += kThreads) tile_words[w] = 0;
  __syncthreads();
  std::uint32_t rest = nibbles_of(residual);
  const std::uint32_t used = rest;
  std::uint64_t groups = 0;
  for (int n = 0; rest != 0; rest &= rest - 1, n += 4)
    groups |= static_cast<std::uint64_t>(residual >> 4 * (__ffs(static_cast<int>(rest)) - 1) & 15) << n;
  const std::uint32_t bit = 8 * groups_at + 4 * first_group;
  groups <<= bit % 32;
  if (static_cast<std::uint32_t>(groups) != 0) atomicOr(tile_words + bit / 32, static_cast<std::uint32_t>(groups));
  if (groups >> 32 != 0) atomicOr(tile_words + bit / 32 + 1, static_cast<std::uint32_t>(groups >> 32));
  __syncthreads();
  if (residual != 0) reinterpret_cast<std::uint8_t*>(tile_words)[at + own] = static_cast<std::uint8_t>(used);
}

// A verbatim tile: the values of this thread's block, number `index` of the present ones.
template <int S, class Value>
__device__ __noinline__ void write_verbatim_block(const EncodeParams& job, const std::uint8_t* values, TileBox box,
                                                  std::uint32_t index, std::uint32_t* words) {
  constexpr int kValueWords = sizeof(Value) / 4;
  std::uint32_t* to = words + index * 32 * kValueWords;
  for (unsigned i = 0; i < 32; ++i) {
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + clamped_index<S>(job.grid, box, threadIdx.x, i) *
                                                                           sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) *to++ = from[w];
  }
}

}  // namespace pyfilter::cuda
