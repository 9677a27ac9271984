// SPDX-License-Identifier: BSD-3-Clause
// Particles of a tile into the order of their keys, equal ones in the order that they have, by a block of threads. Keys
// are counted into cells by their highest bits, cells that have many once more into as many cells as particles; then
// each particle counts those of its cell that come before it. Where many keys are equal CUB's radix sort takes over.
// Any way gives the one order that there is.
#pragma once

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

#include "particles/key.hpp"
#include "stages/cuda/particles/codes.cuh"
#include "stages/cuda/particles/rows.cuh"

namespace pyfilter::cuda {

inline constexpr int kSortDigit = 4;  // bits of a key that a pass of the radix sort takes
using TileSort = cub::BlockRadixSort<std::uint32_t, kTileThreads, kItems, std::uint32_t, kSortDigit>;

inline constexpr unsigned kFirstDigit = 12;                  // bits that the first cells take
inline constexpr std::uint32_t kCells = 2 * kTileParticles;  // of 16 bits, those of the second level
// Pairs that share a cell, for all particles, from which on cells are split, and from which on they are not worth it.
inline constexpr std::uint32_t kSplitPairs = kTileParticles * 5 / 2, kMostPairs = kTileParticles * 16;
inline constexpr std::uint32_t kMostSharing = 100;  // in a cell: entries note where it starts in 8 bits

// Words of the cells of one level. Each thread has as many words of them in a row, and four more between these and the
// next thread's, so that it takes them four at a time without bank conflicts; the first of these has the end of the
// last cell.
template <int kLevel>
inline constexpr int kCellWords = (kLevel == 0 ? 1 << kFirstDigit : static_cast<int>(kCells)) / 2 / kTileThreads;
inline constexpr std::uint32_t kCellTableWords = kTileThreads * (kCellWords<1> + 4);

struct SortExchange {
  std::uint32_t sums[kTileWarps], pairs[kTileWarps], most[kTileWarps];
};

// Cells of a level in shared memory. They are named by where they are, in halves of words.
template <int kLevel>
struct CellTable {
  std::uint32_t* words;

  __device__ __forceinline__ static std::uint32_t place_of(std::uint32_t cell) {
    return cell + cell / (2 * kCellWords<kLevel>)*8;
  }
  __device__ __forceinline__ void clear() const {
    auto* const all = reinterpret_cast<uint4*>(words);
    for (std::uint32_t i = threadIdx.x; i < kTileThreads * (kCellWords<kLevel> + 4) / 4; i += kTileThreads)
      all[i] = make_uint4(0, 0, 0, 0);
  }
  // Counts a particle; returns how many were there before.
  __device__ __forceinline__ std::uint32_t add(std::uint32_t place) const {
    const unsigned half = place % 2 * 16;
    return atomicAdd(words + place / 2, 1u << half) >> half & 0xFFFF;
  }
  // The first particle of a cell, once they are known; of the next cell, or the end.
  __device__ __forceinline__ std::uint32_t start(std::uint32_t place) const {
    return reinterpret_cast<const std::uint16_t*>(words)[place];
  }
  __device__ __forceinline__ std::uint32_t end(std::uint32_t place) const { return start(place + 1); }

  // Counts become starts; `pairs` and `most`, what a thread has seen of particles that share a cell, become all
  // threads' sum and maximum. Two barriers, and one before is needed.
  __device__ __forceinline__ void find_starts(SortExchange& exchange, std::uint32_t& pairs, std::uint32_t& most) const {
    constexpr int kWords = kCellWords<kLevel>;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto* const own = reinterpret_cast<uint4*>(words + threadIdx.x * (kWords + 4));
    std::uint32_t counts[kWords], sum = 0;
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 four = own[i];
      counts[4 * i] = four.x;
      counts[4 * i + 1] = four.y;
      counts[4 * i + 2] = four.z;
      counts[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) sum += counts[i];  // halves by themselves: no more than all particles
    sum = (sum & 0xFFFF) + (sum >> 16);
    const std::uint32_t upto = sum_upto(sum), pairs_of_warp = warp_sum(pairs), most_of_warp = warp_max_u(most);
    if (lane == 31) {
      exchange.sums[warp] = upto;
      exchange.pairs[warp] = pairs_of_warp;
      exchange.most[warp] = most_of_warp;
    }
    __syncthreads();
    std::uint32_t before = upto - sum;
    pairs = 0;
    most = 0;
#pragma unroll
    for (unsigned w = 0; w < kTileWarps; ++w) {
      before += w < warp ? exchange.sums[w] : 0;
      pairs += exchange.pairs[w];
      most = max(most, exchange.most[w]);
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const std::uint32_t low = counts[i] & 0xFFFF, high = counts[i] >> 16;
      counts[i] = before | (before + low) << 16;
      before += low + high;
    }
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i)
      own[i] = make_uint4(counts[4 * i], counts[4 * i + 1], counts[4 * i + 2], counts[4 * i + 3]);
    words[threadIdx.x * (kWords + 4) + kWords] = before;
    __syncthreads();
  }
};

// The place of a particle's cell, its bits that have not been used, and how many it found in the cell, in a word; in
// the end the place that it has in the order.
struct Celled {
  std::uint32_t word;

  __device__ __forceinline__ static Celled make(std::uint32_t place, unsigned left) { return {place | left << 14}; }
  __device__ __forceinline__ void set_rank(std::uint32_t rank) { word |= rank << 18; }
  __device__ __forceinline__ std::uint32_t place() const { return word & 0x3FFF; }
  __device__ __forceinline__ unsigned left() const { return word >> 14 & 0xF; }
  __device__ __forceinline__ std::uint32_t rank() const { return word >> 18; }
};
static_assert(2 * kCellTableWords <= 1u << 14 && kTileParticles <= 1u << 14 && kMostKeyBits - kFirstDigit < 16);

// What particles see of sharing.
struct Sharing {
  std::uint32_t pairs = 0, most = 0;

  __device__ __forceinline__ void add(std::uint32_t rank) {
    pairs += rank;
    most = max(most, rank);
  }
  __device__ __forceinline__ bool below(std::uint32_t pairs_wanted) const {
    return pairs <= pairs_wanted && most < kMostSharing;
  }
};

// Splits the first cells.
__device__ __forceinline__ void split_cells(const std::uint32_t (&keys)[kItems], Celled (&celled)[kItems],
                                            std::uint32_t* table, SortExchange& exchange, Sharing& sharing) {
  const CellTable<0> before = {table};
  const CellTable<1> cells = {table};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t place = celled[k].place(), start = before.start(place), count = before.end(place) - start;
    const unsigned left = celled[k].left(), bits = min(left, static_cast<unsigned>(bit_width(count - 1)));
    const std::uint32_t number = keys[k] >> (left - bits) & ((1u << bits) - 1);
    // less than two for each particle of the cell
    celled[k] = Celled::make(cells.place_of(2 * start + number), left - bits);
  }
  __syncthreads();
  cells.clear();
  __syncthreads();
  sharing = {};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t rank = cells.add(celled[k].place());
    celled[k].set_rank(rank);
    sharing.add(rank);
  }
  __syncthreads();
  cells.find_starts(exchange, sharing.pairs, sharing.most);
}

// Entries: the low bits of a cell's start, the bits of a key that the cell leaves open, the particle. Gives each
// particle its place.
__device__ __forceinline__ void place_in_cells(const std::uint32_t (&keys)[kItems], Celled (&celled)[kItems],
                                               const std::uint32_t* table, std::uint32_t* entries) {
  const auto* const starts = reinterpret_cast<const std::uint16_t*>(table);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t start = starts[celled[k].place()], open = keys[k] & ((1u << celled[k].left()) - 1);
    entries[start + celled[k].rank()] = start << 24 | open << 12 | position_of(k);
    celled[k].word = start | open << 12;
  }
  __syncthreads();
  const auto* const fours = reinterpret_cast<const uint4*>(entries);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t start = celled[k].word & 0xFFF,
                        own = start << 24 | (celled[k].word & 0xFFF000) | position_of(k);
    std::uint32_t four = start / 4, place = 4 * four;
    bool more = true;
    while (more) {
      const uint4 e = fours[four++];
      // starts of entries that are compared differ by less than 128, so differences say which is less
      place += (e.x - own) >> 31;
      place += (e.y - own) >> 31;
      place += (e.z - own) >> 31;
      place += (e.w - own) >> 31;
      more = (e.w ^ own) >> 24 == 0 && four < kTileParticles / 4;
    }
    celled[k].word = place;
  }
}

// Places of a thread's particles, all of a whole tile, in the order of keys of so many bits; false where a radix sort
// is better. `table` has kCellTableWords, cleared for the first level, `entries` kTileParticles. Needs a barrier
// before.
__device__ __forceinline__ bool find_places(const std::uint32_t (&keys)[kItems], unsigned bits, std::uint32_t* table,
                                            std::uint32_t* entries, SortExchange& exchange, Celled (&places)[kItems]) {
  const CellTable<0> first = {table};
  const unsigned left = bits - min(bits, kFirstDigit);
  Sharing sharing;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    places[k] = Celled::make(first.place_of(keys[k] >> left), left);
    const std::uint32_t rank = first.add(places[k].place());
    places[k].set_rank(rank);
    sharing.add(rank);
  }
  __syncthreads();
  first.find_starts(exchange, sharing.pairs, sharing.most);
  if (left != 0 && !sharing.below(kSplitPairs)) split_cells(keys, places, table, exchange, sharing);
  if (!sharing.below(kMostPairs)) return false;
  place_in_cells(keys, places, table, entries);
  return true;
}

}  // namespace pyfilter::cuda
