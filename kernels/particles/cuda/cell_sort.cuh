// SPDX-License-Identifier: BSD-3-Clause
// Sorts keys and offsets of a whole tile in shared memory by cells (tile_sort.cuh has the algorithm).
#pragma once

#include <cstdint>

#include "particles/cuda/plain.cuh"
#include "particles/cuda/tile_sort.cuh"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

__device__ __forceinline__ void note_last(std::uint32_t position, std::uint32_t particle,
                                          std::uint16_t (&last)[kGroup]) {
  if (position >= kTileParticles - kGroup)
    last[position - (kTileParticles - kGroup)] = static_cast<std::uint16_t>(particle);
}

// The rank of each particle of a thread.
template <class Positions>
__device__ __forceinline__ void take_ranks(const std::uint16_t* moved, std::uint32_t (&ranks)[kItems]) {
  if constexpr (std::is_same_v<Positions, TurnPositions>) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) ranks[k] = moved[Positions::of(k)];
  } else {
    constexpr int kEach = Positions::kNeighbours;
    static_assert(kEach % 2 == 0);
#pragma unroll
    for (int k = 0; k < kItems; k += kEach) {
      struct alignas(2 * kEach) Pairs {
        std::uint32_t of[kEach / 2];
      };
      const Pairs pairs = *reinterpret_cast<const Pairs*>(moved + Positions::of(k));
#pragma unroll
      for (int j = 0; j < kEach; j += 2) {
        ranks[k + j] = pairs.of[j / 2] & 0xFFFF;
        ranks[k + j + 1] = pairs.of[j / 2] >> 16;
      }
    }
  }
}

// Counting: each particle counts the particles before it in its cell.
template <class Positions, class Space>
__device__ __forceinline__ void sort_by_counting(const std::uint32_t (&keys)[kItems],
                                                 const std::uint32_t (&offsets)[kItems], const Celled (&celled)[kItems],
                                                 const Entries& as, unsigned planes, Space& space) {
  const unsigned left = as.left;
  const bool carried = planes <= 32 - kFirstDigit;  // the key's word also holds the offsets
  __syncthreads();
  if (threadIdx.x < 4) space.entries[kTileParticles + threadIdx.x] = as.end();
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t start = celled[k].at(), at = start + celled[k].rank();
    space.entries[at] = as.make(start, keys[k], Positions::of(k));
    space.carried[at] = keys[k] >> left | (carried ? offsets[k] << kFirstDigit : 0);
  }
  __syncthreads();
  std::uint32_t with[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) with[k] = space.carried[position_of(k)];
  __syncthreads();
  place_entries(space.entries, as, [&](int k, std::uint32_t entry, std::uint32_t rank) {
    const std::uint32_t at = word_of(rank);
    space.rows[at] = (with[k] & ((1u << kFirstDigit) - 1)) << left | as.open(entry);
    if (carried)
      space.offsets[at] = with[k] >> kFirstDigit;
    else
      space.moved[Entries::position(entry)] = static_cast<std::uint16_t>(rank);
    // a particle moves only within its cell
    if (k == kItems - 1) note_last(rank, Entries::position(entry), space.last);
  });
  __syncthreads();
  if (carried) return;
  std::uint32_t ranks[kItems];
  take_ranks<Positions>(space.moved, ranks);
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.offsets[word_of(ranks[k])] = offsets[k];
  __syncthreads();
}

// Sorting by windows: warps sort windows of 256; space.moved then has all ranks.
template <class Positions, class Space>
__device__ __forceinline__ void sort_by_windows(const std::uint32_t (&keys)[kItems],
                                                const std::uint32_t (&offsets)[kItems], const Celled (&celled)[kItems],
                                                const Entries& as, unsigned planes, Space& space) {
#pragma unroll
  for (int k = 0; k < kItems; ++k) space.entries[celled[k].at()] = as.make(celled[k].rank(), keys[k], Positions::of(k));
  __syncthreads();
  const auto note = [&](std::uint32_t entry, std::uint32_t rank) {
    space.moved[Entries::position(entry)] = static_cast<std::uint16_t>(rank);
  };
  sort_window(space.entries, note);
  __syncthreads();
  merge_borders(space.entries, space.sort.borders, (1u << as.cell) - 1, note);
  __syncthreads();
  std::uint32_t ranks[kItems];
  take_ranks<Positions>(space.moved, ranks);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t at = word_of(ranks[k]);
    space.rows[at] = keys[k];
    if (planes != 0) space.offsets[at] = offsets[k];
  }
  __syncthreads();
}
// Sets space.last after sorting by windows, when it is needed. Ends with a barrier.
template <class Space>
__device__ __forceinline__ void find_last(Space& space) {
#pragma unroll
  for (int k = 0; k < kItems; ++k) note_last(space.moved[position_of(k)], position_of(k), space.last);
  __syncthreads();
}

// Sorts keys and offsets of a whole tile into space.rows and space.offsets, for offsets of `planes` planes, and sets
// space.last unless sorted by windows. CellOrder::none: a radix sort is better. Positions: the thread's particles.
// Needs a barrier before, ends with one.
template <class Positions, class Space>
__device__ __forceinline__ CellOrder sort_by_cells(const std::uint32_t (&keys)[kItems],
                                                   const std::uint32_t (&offsets)[kItems], unsigned bits,
                                                   unsigned planes, Space& space) {
  if (bits == 0) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      space.moved[Positions::of(k)] = static_cast<std::uint16_t>(Positions::of(k));
      space.rows[word_of(Positions::of(k))] = 0;
      space.offsets[word_of(Positions::of(k))] = offsets[k];
    }
    __syncthreads();
    return CellOrder::windows;
  }
  const Entries as(bits - min(bits, kFirstDigit));
  Celled celled[kItems];
  const CellOrder order = find_cells(keys, as.left, space.cells, space.sort, celled);
  if (order == CellOrder::counted)
    sort_by_counting<Positions>(keys, offsets, celled, as, planes, space);
  else if (order == CellOrder::windows)
    sort_by_windows<Positions>(keys, offsets, celled, as, planes, space);
  return order;
}

// Writes the particle at each rank of such a sorted tile to space.sources, replacing its contents. Needs a barrier
// before, ends with one.
template <class Space>
__device__ __forceinline__ void find_sources(CellOrder order, unsigned bits, Space& space) {
  if (order == CellOrder::windows) {
#pragma unroll
    for (int k = 0; k < kItems; ++k)
      space.sources[space.moved[position_of(k)]] = static_cast<std::uint16_t>(position_of(k));
  } else {
    place_entries(space.entries, Entries(bits - min(bits, kFirstDigit)),
                  [&](int, std::uint32_t entry, std::uint32_t rank) {
                    space.sources[rank] = static_cast<std::uint16_t>(Entries::position(entry));
                  });
  }
  __syncthreads();
}

}  // namespace pyfilter::cuda
