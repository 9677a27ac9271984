// SPDX-License-Identifier: BSD-3-Clause
// A tile of particles in the order that it is encoded in (particles/order.hpp and CodedTile of particles/encode.hpp do
// the same on the CPU): its particles sorted by the keys of their own extent, where they may be moved, with tail and
// special particles found. Keys and offsets, or where the particles are in memory, come to shared memory.
#pragma once

#include <cstdint>

#include "particles/key.hpp"
#include "stages/cuda/particles/cell_sort.cuh"
#include "stages/cuda/particles/codes.cuh"
#include "stages/cuda/particles/keys.cuh"
#include "stages/cuda/particles/move.cuh"
#include "stages/cuda/particles/plain.cuh"
#include "stages/cuda/particles/tile_sort.cuh"

namespace pyfilter::cuda {

// Of particles that stay where they are, behind all others.
inline constexpr std::uint32_t kStayingKey = 2 * static_cast<std::uint32_t>(kLastKey) - 1;

template <class Code, int D>
struct BlockSpace {
  union {
    struct {
      union {
        alignas(16) std::uint32_t offsets[kTileParticles];  // of all axes together, as word_of() says
        std::uint16_t places[kTileParticles];               // or where the particle at a position is in the tile
      };
      union {
        struct {
          alignas(16) std::uint32_t rows[kTileParticles];  // keys, likewise; then what they become
          union {
            alignas(16) std::uint32_t run_starts[kRunWords];
            std::uint16_t moved[kTileParticles];  // before: where each particle comes
          };
        };
        std::uint32_t carried[kTileParticles];  // before: what goes with an entry of the sort
        typename TileSort::TempStorage radix;
        std::uint32_t blocked[kTileParticles + kTileParticles / kItems];  // keys, with a word between those of threads
      };
    };
    alignas(16) std::uint32_t cells[kCellTableWords];  // before all these
    struct {
      std::uint32_t first_cells[kTileThreads * (kCellWords<0> + 4)];
      std::uint32_t second_table[1u << kTableLevels], third_table[1u << kMostKeyBits / 3];  // KeyTables
    };
  };
  SummarySpace<Code, D> summary;
};

template <class Code, int D>
struct SortingSpace : BlockSpace<Code, D> {
  SortExchange sort;
  KeyExchanges keys;
  std::uint16_t last[kGroup];  // particles at the last positions
  TileFrame<Code, D> frame;
  // of what may be a plain tile: whether it is one, whether no value can be beyond the bound, whether zero has a code
  bool plain, sure, zero;
  PlainKeys<D> plain_keys;
  HeldEnds ends[kTileWarps];
  MovedTile moved_tile;
  union {
    alignas(16) std::uint32_t entries[kTileParticles + 4];  // tile_sort.cuh
    alignas(16) std::uint32_t run_steps[kRunWords];         // then, as word_of() says
  };
};

// What all threads know of a tile.
template <class Code, int D>
struct PreparedTile {
  TileFrame<Code, D> frame;
  std::uint32_t ordinary = 0, specials = 0, tail = 0;
  bool ordered = true;   // special particles last, keys rising
  bool offsets = false;  // space.offsets has those of all ordinary particles; else space.places are there
};

// Whether the offsets of all axes fit a word.
template <class Code, int D>
__device__ __forceinline__ bool have_words(const TileFrame<Code, D>& frame) {
  return frame.planes(frame.layout.shift) <= 32;
}

// CUB's sort: `keys` and `places` become those at this thread's positions.
template <class Space>
__device__ __forceinline__ void sort_by_digits(std::uint32_t (&keys)[kItems], std::uint32_t (&places)[kItems],
                                               unsigned bits, Space& space) {
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.blocked[position_of(k) + position_of(k) / kItems] = keys[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    places[k] = threadIdx.x * kItems + static_cast<unsigned>(k);
    keys[k] = space.blocked[threadIdx.x * (kItems + 1) + static_cast<unsigned>(k)];
  }
  __syncthreads();
  TileSort(space.radix).SortBlockedToStriped(keys, places, 0, static_cast<int>(bits));
  __syncthreads();
}

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
// Whether the last particles of a sorted tile, all of them ordinary with words of offsets, may be a tail: if they are
// equal, so are their codes, and zero has a code that is known. `zero`: has_zero().
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

// Whether they are one, by their values.
template <int D, class Source, class Space>
__device__ __forceinline__ bool has_tail(const Source& source, const Space& space) {
  using T = typename Source::Value;
  const T* const end = source.at(space.last[kGroup - 1]);
  return is_zero<T, D>(end) ||
         __all_sync(kAllLanes, same_bits<T, D>(source.at(space.last[threadIdx.x % kGroup]), end)) != 0;
}
// A whole tile that has been sorted by cells: false where it has a tail, with places in space.places.
template <class Code, int D, class Source, class Space>
__device__ __forceinline__ bool end_sorted(CellOrder order, const TileFrame<Code, D>& frame, bool zero,
                                           const Source& source, Space& space) {
  if (!may_have_tail(frame, zero, space)) return true;
  if (order == CellOrder::windows) find_last(space);
  if (!has_tail<D>(source, space)) return true;
  __syncthreads();
  find_places(order, frame.layout.bits(), space);
  return false;
}

enum class Sorted { yes, with_tail, no };

// Puts the keys and offsets of a plain tile where the order that it has needs them; false where it has a tail.
template <int D, class T, class Source, class Space>
__device__ __forceinline__ bool take_order(const std::uint32_t (&keys)[kItems], const std::uint32_t (&offsets)[kItems],
                                           const Source& source, Space& space,
                                           PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Positions = NeighbourPositions<T>;
  __syncthreads();  // they take the place of tables
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t at = word_of(Positions::of(k));
    space.rows[at] = keys[k];
    space.offsets[at] = offsets[k];
  }
  __syncthreads();
  if (may_have_tail(space.frame, space.zero, space)) {
    const T* const end = source.at(kTileParticles - 1);
    const T* const other = source.at(kTileParticles - kGroup + threadIdx.x % kGroup);
    if (is_zero<T, D>(end) || __all_sync(kAllLanes, same_bits<T, D>(other, end)) != 0) return false;
  }
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

// Sorts what is a plain tile; kSorts: else it keeps its order. What is the same for all threads two warps work out for
// all.
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
  if (with.bits == 0) __syncthreads();  // nothing is counted then, which would part tables from what takes their place
  const CellOrder order = sort_by_cells<NeighbourPositions<T>>(keys, offsets, with.bits, with.planes, space);
  if (order == CellOrder::none) return Sorted::no;
  tile.frame = space.frame;
  return end_sorted(order, space.frame, space.zero, source, space) ? Sorted::yes : Sorted::with_tail;
}

// Sorts a tile. Returns false where its codes have to be taken again, with places then in space.places.
template <int D, class T, class Source, class Space>
__device__ __forceinline__ bool sort_tile(const Quantizer<T>& p, const Source& source, Space& space,
                                          PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Code = typename FloatTraits<T>::Code;
  std::uint32_t keys[kItems], offsets[kItems];
  CellTable<0>{space.cells}.clear();
  bool simple = source.sorted == kTileParticles;  // all that is known of the tile is known before it is sorted
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
  // offsets wait in shared memory, which sorting leaves alone
  if (simple && has_offsets) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) space.offsets[position_of(k)] = offsets[k];
  }
  std::uint32_t places[kItems];
  sort_by_digits(keys, places, simple ? tile.frame.layout.bits() : kMostKeyBits + 1, space);
  if (simple) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) space.rows[word_of(position_of(k))] = keys[k];
    if (has_offsets) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) offsets[k] = space.offsets[places[k]];
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kItems; ++k) space.offsets[word_of(position_of(k))] = offsets[k];
    }
    __syncthreads();
    if (!may_have_tail(tile.frame, has_zero(tile.frame), space)) return true;
#pragma unroll
    for (int k = 0; k < kItems; ++k) note_last(position_of(k), places[k], space.last);
    __syncthreads();
    if (!has_tail<D>(source, space)) return true;
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.places[position_of(k)] = static_cast<std::uint16_t>(places[k]);
  __syncthreads();
  return false;
}

// Codes of a tile in the order that it has. kSorts: space.places say which.
template <bool kSorts, int D, class T, class Source, class Space>
__device__ __forceinline__ void code_tile(const Quantizer<T>& p, const Source& source, Space& space,
                                          PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  using Code = typename FloatTraits<T>::Code;
  const auto place_at = [&](std::uint32_t at) -> std::uint32_t { return kSorts ? space.places[at] : at; };
  tile.tail = find_tail<D>(source, place_at, space.summary);
  const std::uint32_t limit = source.count - tile.tail;
  ThreadCodes<T, D> codes;
  CodeSummary<Code, D> summary;
  code_items<D>(p, source, limit, [&](int k) { return place_at(position_of(k)); }, codes);
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

// Sorts and codes a tile of any kind.
template <int D, class T, class Source, class Space>
__device__ __forceinline__ void prepare_any(const Quantizer<T>& p, const Source& source, bool sorts, Space& space,
                                            PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  if (sorts && sort_tile<D>(p, source, space, tile)) {
    tile.ordinary = kTileParticles;
    tile.offsets = true;
    return;
  }
  code_tile<true, D>(p, source, space, tile);
}
// The same apart, so that its registers and its code are not those of all tiles.
template <int D, class T, class Source, class Space>
__device__ __noinline__ void prepare_apart(const Quantizer<T>& p, const Source& source, bool sorts, Space& space,
                                           PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  prepare_any<D>(p, source, sorts, space, tile);
}

// The same for a tile in the order that it has.
template <int D, class T, class Source, class Space>
__device__ __noinline__ void code_apart(const Quantizer<T>& p, const Source& source, Space& space,
                                        PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  code_tile<false, D>(p, source, space, tile);
}

// kHeld: `values` are the first ones of a whole tile.
template <bool kSorts, bool kHeld, int D, class T, class Source, class Space>
__device__ __forceinline__ void prepare_tile(const Quantizer<T>& p, const Source& source,
                                             const HeldValues<T, D>& values, Space& space,
                                             PreparedTile<typename FloatTraits<T>::Code, D>& tile) {
  if constexpr (!kHeld && !kSorts) {
    code_tile<false, D>(p, source, space, tile);
  } else if constexpr (!kHeld) {
    prepare_any<D>(p, source, true, space, tile);
  } else {
    const Sorted sorted = sort_plain_tile<kSorts, D>(p, source, values, space, tile);
    if (sorted == Sorted::yes) {
      tile.ordinary = kTileParticles;
      tile.offsets = tile.ordered;
      return;
    }
    PreparedTile<typename FloatTraits<T>::Code, D> any;
    __syncthreads();
    if constexpr (kSorts)
      prepare_apart<D>(Quantizer<T>(p), Source(source), sorted == Sorted::no, space, any);
    else
      code_apart<D>(Quantizer<T>(p), Source(source), space, any);
    tile = any;
  }
}

}  // namespace pyfilter::cuda
