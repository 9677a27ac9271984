// SPDX-License-Identifier: BSD-3-Clause
// Preparing a plain tile (plain.cuh), sorted or in its given order. Also, for any tile with known keys and offsets:
// whether its last particles are a tail.
#pragma once

#include <cstdint>

#include "particles/cuda/cell_sort.cuh"
#include "particles/cuda/space.cuh"

namespace pyfilter::cuda {

// Whether zero has a code within the extent.
template <class Code, int D>
__device__ __forceinline__ bool has_zero(const TileFrame<Code, D>& frame) {
  using S = std::make_signed_t<Code>;
  bool inside = true;
#pragma unroll
  for (int d = 0; d < D; ++d)
    inside = inside && static_cast<S>(frame.origin[d]) <= 0 &&
             (frame.width[d] >= 8 * sizeof(Code) || (0 - frame.origin[d]) >> frame.width[d] == 0);
  return inside;
}
// Whether the last particles of a sorted tile may be a tail; all are ordinary and have one word of offsets. Equal
// particles have equal codes, and the code of zero is known. `zero`: has_zero().
template <class Code, int D, class Space>
__device__ __forceinline__ bool may_have_tail(const TileFrame<Code, D>& frame, bool zero, const Space& space) {
  const std::uint32_t last = word_of(kTileParticles - 1), other = word_of(kTileParticles - kGroup);
  if (space.rows[last] == space.rows[other]) return true;
  if (!zero) return false;
  const Code none[D] = {};
  const KeyMaker<Code, D, 16> maker(frame);
  return space.rows[last] == maker.key(none) &&
         (frame.planes(frame.layout.shift) == 0 || space.offsets[last] == maker.offsets(none));
}

// Whether they are a tail, by their values; last_at(i): the index in the tile of the i-th of them.
template <int D, class Source, class LastAt>
__device__ __forceinline__ bool has_tail(const Source& source, const LastAt& last_at) {
  using T = typename Source::Value;
  const T* const end = source.at(last_at(kGroup - 1));
  return is_zero<T, D>(end) ||
         __all_sync(kAllLanes, same_bits<T, D>(source.at(last_at(threadIdx.x % kGroup)), end)) != 0;
}
// The same for sorted particles.
template <int D, class Source, class Space>
__device__ __forceinline__ bool sorted_have_tail(const Source& source, const Space& space) {
  return has_tail<D>(source, [&](std::uint32_t i) -> std::uint32_t { return space.last[i]; });
}
// A whole tile sorted by cells: false if it has a tail, with the order in space.sources.
template <class Code, int D, class Source, class Space>
__device__ __forceinline__ bool end_sorted(CellOrder order, const TileFrame<Code, D>& frame, bool zero,
                                           const Source& source, Space& space) {
  if (!may_have_tail(frame, zero, space)) return true;
  if (order == CellOrder::windows) find_last(space);
  if (!sorted_have_tail<D>(source, space)) return true;
  __syncthreads();
  find_sources(order, frame.layout.bits(), space);
  return false;
}

enum class Sorted { yes, with_tail, no };

// Writes keys and offsets of a plain tile in its given order; false if it has a tail.
template <int D, class T, class Source, class Space>
__device__ __forceinline__ bool take_order(const std::uint32_t (&keys)[kItems], const std::uint32_t (&offsets)[kItems],
                                           const Source& source, Space& space,
                                           PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Positions = NeighbourPositions<T>;
  __syncthreads();  // they overwrite the tables
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t at = word_of(Positions::of(k));
    space.rows[at] = keys[k];
    space.offsets[at] = offsets[k];
  }
  __syncthreads();
  if (may_have_tail(space.frame, space.zero, space) &&
      has_tail<D>(source, [](std::uint32_t i) { return kTileParticles - kGroup + i; }))
    return false;
  bool falls = false;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t at = Positions::of(k);
    if (k % Positions::kNeighbours != 0)
      falls = falls || keys[k] < keys[k - 1];
    else
      falls = falls || (at != 0 && keys[k] < space.rows[word_of(at - 1)]);
  }
  tile.frame = space.frame;
  tile.ordered = __syncthreads_or(falls ? 1 : 0) == 0;
  return true;
}

// Prepares a plain tile; kSorts: sorts it, else keeps its order. Two warps compute the results that all threads share.
template <bool kSorts, int D, class T, class Source, class Space>
__device__ __forceinline__ Sorted sort_plain_tile(const Quantizer<T>& p, const Source& source,
                                                  const HeldValues<T, D>& values, Space& space,
                                                  PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Code = typename FloatTraits<T>::Code;
  if (p.has_sentinel || (kSorts ? source.sorted : source.count) != kTileParticles) return Sorted::no;
  auto* const words = reinterpret_cast<std::uint32_t*>(&space);
  const KeyTables tables = {{static_cast<std::uint32_t>(space.entries - words),
                             static_cast<std::uint32_t>(space.second_table - words),
                             static_cast<std::uint32_t>(space.third_table - words)}};
  const HeldCodes<T, D> codes(p, source, values);
  codes.share(space.ends);
  if (kSorts && threadIdx.x < 64) CellTable<0>{space.cells}.clear();
  __syncthreads();
  if (threadIdx.x >= 64) {
    if (kSorts) CellTable<0>{space.cells}.clear();
  } else {
    TileFrame<Code, D> frame;
    Extent<Code> extents[D];
    const bool fits = find_extents<T, D>(space.ends, extents);
    if (threadIdx.x < 32) {
      frame.take(extents);
      if (threadIdx.x == 0) {
        space.plain =
            fits && have_words(frame) && KeyTables::suit(frame.layout) && frame.layout.shift <= kMostTableShift;
        space.frame = frame;
        space.plain_keys = PlainKeys<D>(frame, HeldCodes<T, D>::kZero, tables);
      }
    } else if (threadIdx.x == 32) {
      frame.take_extents(extents);
      space.sure = surely_fit<D>(p, extents);
      space.zero = has_zero(frame);
    }
  }
  __syncthreads();
  if (!space.plain) return Sorted::no;
  const PlainKeys<D> with = space.plain_keys;
  tables.template make<D>(with.three, with.two, with.one, words);
  bool fits = true;
  if (!space.sure) {
#pragma unroll 2
    for (int k = 0; k < kItems; ++k) {
      const T* const at = source.at(NeighbourPositions<T>::of(k));
      Code q;
#pragma unroll
      for (int d = 0; d < D; ++d) fits = code_in_reach(p, at[d], q) & fits;
    }
  }
  if (__syncthreads_or(fits ? 0 : 1) != 0) return Sorted::no;
  std::uint32_t keys[kItems], offsets[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) with.take(codes.q[k], words, keys[k], offsets[k]);
  if constexpr (!kSorts) return take_order<D, T>(keys, offsets, source, space, tile) ? Sorted::yes : Sorted::no;
  if (with.bits == 0)
    __syncthreads();  // no counting pass runs, so a barrier is needed before the tables' memory is reused
  const CellOrder order = sort_by_cells<NeighbourPositions<T>>(keys, offsets, with.bits, with.planes, space);
  if (order == CellOrder::none) return Sorted::no;
  tile.frame = space.frame;
  return end_sorted(order, space.frame, space.zero, source, space) ? Sorted::yes : Sorted::with_tail;
}

}  // namespace pyfilter::cuda
