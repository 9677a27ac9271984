// SPDX-License-Identifier: BSD-3-Clause
// Puts a tile's particles into the order for encoding: sorts movable particles by keys in their own extent, and finds
// the tail and special particles. Shared memory gets keys and offsets, or the particles' indices in memory. On the CPU:
// particles/cpu/order.hpp, and CodedTile of particles/cpu/encode.hpp.
#pragma once

#include <cstdint>

#include "particles/cuda/cell_sort.cuh"
#include "particles/cuda/codes.cuh"
#include "particles/cuda/plain_tile.cuh"
#include "particles/cuda/space.cuh"
#include "particles/cuda/tile_sort.cuh"
#include "particles/key.hpp"

namespace pyfilter::cuda {

// The key of particles that stay at their position, behind all others.
inline constexpr std::uint32_t kStayingKey = 2 * static_cast<std::uint32_t>(kLastKey) - 1;

// CUB's sort: `keys` and `sources` become those of this thread's positions.
template <class Space>
__device__ __forceinline__ void sort_by_digits(std::uint32_t (&keys)[kItems], std::uint32_t (&sources)[kItems],
                                               unsigned bits, Space& space) {
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.blocked[position_of(k) + position_of(k) / kItems] = keys[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    sources[k] = threadIdx.x * kItems + static_cast<unsigned>(k);
    keys[k] = space.blocked[threadIdx.x * (kItems + 1) + static_cast<unsigned>(k)];
  }
  __syncthreads();
  TileSort(space.radix).SortBlockedToStriped(keys, sources, 0, static_cast<int>(bits));
  __syncthreads();
}

// Sorts a tile. Returns false if its codes must be computed again, with the order in space.sources.
template <int D, class T, class Source, class Space>
__device__ __forceinline__ bool sort_tile(const Quantizer<T>& p, const Source& source, Space& space,
                                          PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Code = typename FloatTraits<T>::Code;
  std::uint32_t keys[kItems], offsets[kItems];
  CellTable<0>{space.cells}.clear();
  bool simple = source.sorted == kTileParticles;  // all facts are known before sorting
  {
    ThreadCodes<T, D> codes;
    CodeSummary<Code, D> summary;
    code_items<D>(p, source, source.sorted, [](int k) { return position_of(k); }, codes);
    summarise(codes, source.sorted, space.summary, summary);
    tile.frame.take(summary.extents);
    simple = simple && summary.specials == 0 && have_words(tile.frame);
    with_keys(tile.frame, [&](const auto& maker) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        keys[k] = maker.key(codes.q[k]);
        offsets[k] = maker.offsets(codes.q[k]);
      }
    });
    if (!simple) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if ((codes.special >> k & 1) != 0) keys[k] = static_cast<std::uint32_t>(kLastKey);
        if (position_of(k) >= source.sorted) keys[k] = kStayingKey;
      }
    }
  }
  const unsigned planes = tile.frame.planes(tile.frame.layout.shift);
  const bool has_offsets = planes != 0;
  if (simple) {
    const CellOrder order = sort_by_cells<TurnPositions>(keys, offsets, tile.frame.layout.bits(), planes, space);
    if (order != CellOrder::none) return end_sorted(order, tile.frame, has_zero(tile.frame), source, space);
  }
  // offsets wait in shared memory that the sort does not use
  if (simple && has_offsets) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) space.offsets[position_of(k)] = offsets[k];
  }
  std::uint32_t sources[kItems];
  sort_by_digits(keys, sources, simple ? tile.frame.layout.bits() : kMostKeyBits + 1, space);
  if (simple) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) space.rows[word_of(position_of(k))] = keys[k];
    if (has_offsets) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) offsets[k] = space.offsets[sources[k]];
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kItems; ++k) space.offsets[word_of(position_of(k))] = offsets[k];
    }
    __syncthreads();
    if (!may_have_tail(tile.frame, has_zero(tile.frame), space)) return true;
#pragma unroll
    for (int k = 0; k < kItems; ++k) note_last(position_of(k), sources[k], space.last);
    __syncthreads();
    if (!sorted_have_tail<D>(source, space)) return true;
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.sources[position_of(k)] = static_cast<std::uint16_t>(sources[k]);
  __syncthreads();
  return false;
}

// Codes of a tile in its order. kSorts: the order is in space.sources.
template <bool kSorts, int D, class T, class Source, class Space>
__device__ __forceinline__ void code_tile(const Quantizer<T>& p, const Source& source, Space& space,
                                          PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Code = typename FloatTraits<T>::Code;
  const auto source_at = [&](std::uint32_t at) -> std::uint32_t { return kSorts ? space.sources[at] : at; };
  tile.tail = find_tail<D>(source, source_at, space.summary);
  const std::uint32_t limit = source.count - tile.tail;
  ThreadCodes<T, D> codes;
  CodeSummary<Code, D> summary;
  code_items<D>(p, source, limit, [&](int k) { return source_at(position_of(k)); }, codes);
  summarise(codes, limit, space.summary, summary);
  tile.specials = summary.specials;
  tile.ordinary = limit - summary.specials;
  tile.ordered = summary.specials == 0 || summary.first_special == tile.ordinary;
  tile.frame = {};
  if (!tile.ordered || tile.ordinary == 0) return;
  tile.frame.take(summary.extents);
  std::uint32_t keys[kItems], offsets[kItems];
  with_keys(tile.frame, [&](const auto& maker) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      keys[k] = maker.key(codes.q[k]);
      offsets[k] = maker.offsets(codes.q[k]);
    }
  });
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.rows[word_of(position_of(k))] = keys[k];
  __syncthreads();
  bool falls = false;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t at = position_of(k);
    falls = falls || (at != 0 && at < tile.ordinary && keys[k] < space.rows[word_of(at - 1)]);
  }
  tile.ordered = __syncthreads_or(falls ? 1 : 0) == 0;
  tile.offsets = !kSorts && tile.ordered && have_words(tile.frame);
  if (tile.offsets) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const std::uint32_t at = position_of(k);
      space.offsets[word_of(at)] = at < tile.ordinary ? offsets[k] : 0;
    }
    __syncthreads();
  }
}

// Codes a tile of any kind. kSorts: sorts it first; `sorts` false: the order is already in space.sources.
template <bool kSorts, int D, class T, class Source, class Space>
__device__ __forceinline__ void prepare_any(const Quantizer<T>& p, const Source& source, bool sorts, Space& space,
                                            PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  if constexpr (kSorts) {
    if (sorts && sort_tile<D>(p, source, space, tile)) {
      tile.ordinary = kTileParticles;
      tile.offsets = true;
      return;
    }
  }
  code_tile<kSorts, D>(p, source, space, tile);
}
// prepare_any() as a call, so that its registers and code do not burden plain tiles.
template <bool kSorts, int D, class T, class Source, class Space>
__device__ __noinline__ void prepare_apart(const Quantizer<T>& p, const Source& source, bool sorts, Space& space,
                                           PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  prepare_any<kSorts, D>(p, source, sorts, space, tile);
}

// kHeld: `values` are the thread's first values of a whole tile.
template <bool kSorts, bool kHeld, int D, class T, class Source, class Space>
__device__ __forceinline__ void prepare_tile(const Quantizer<T>& p, const Source& source,
                                             const HeldValues<T, D>& values, Space& space,
                                             PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  if constexpr (!kHeld) {
    prepare_any<kSorts, D>(p, source, true, space, tile);
  } else {
    const Sorted sorted = sort_plain_tile<kSorts, D>(p, source, values, space, tile);
    if (sorted == Sorted::yes) {
      tile.ordinary = kTileParticles;
      tile.offsets = tile.ordered;
      return;
    }
    PreparedTile<typename FloatTraits<T>::Code, D> any;
    __syncthreads();
    prepare_apart<kSorts, D>(Quantizer<T>(p), Source(source), sorted == Sorted::no, space, any);
    tile = any;
  }
}

}  // namespace pyfilter::cuda
