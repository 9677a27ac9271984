// SPDX-License-Identifier: BSD-3-Clause
// Particles of a tile into the order of their keys, equal ones in the order that they have, by a block of threads. Keys
// are counted into cells by their highest bits, and particles go to their cells. Where cells have few, each counts
// those that come before it; threads take them as they lie there, so that neighbours look at the same cells. Where they
// have many, warps sort what lies in their windows (windows.cuh); cells that are larger than a window are counted once
// more before, into as many cells as they have particles. Where that does not help CUB's radix sort takes over. Any
// way gives the one order that there is.
#pragma once

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/windows.cuh"
#include "particles/key.hpp"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

inline constexpr int kSortDigit = 4;  // bits of a key that a pass of the radix sort takes
using TileSort = cub::BlockRadixSort<std::uint32_t, kTileThreads, kItems, std::uint32_t, kSortDigit>;

inline constexpr unsigned kFirstDigit = 12;                  // bits that the first cells take
inline constexpr std::uint32_t kCells = 2 * kTileParticles;  // of the second level
// Pairs that share a cell, for all particles, up to which particles count those before them.
inline constexpr std::uint32_t kFewPairs = kTileParticles * 5 / 2;
// In a cell then, where the first cells leave so many bits of keys open: entries note where it starts in those that are
// left. No particle is moved further than within its cell.
inline constexpr std::uint32_t kMostSharing = 448;
static_assert(kMostSharing + kGroup < kTileThreads);
__device__ __forceinline__ std::uint32_t most_sharing(unsigned left) {
  return min(kMostSharing, (1u << (19 - left)) - 28);
}

// Words of the cells of one level, a cell in each. Each thread has as many in a row, and four more between these and
// the next thread's, so that it takes them four at a time without bank conflicts; the first of these has the end of the
// last cell.
template <int kLevel>
inline constexpr int kCellWords = (kLevel == 0 ? 1 << kFirstDigit : static_cast<int>(kCells)) / kTileThreads;
inline constexpr std::uint32_t kCellTableWords = kTileThreads * (kCellWords<1> + 4);

struct SortExchange {
  std::uint32_t sums[kTileWarps], pairs[kTileWarps], most[kTileWarps];
  std::uint32_t borders[kTileWarps];  // cells across the borders of windows, as merge_borders() takes them
};

// Cells of a level in shared memory. They are named by where they are.
template <int kLevel>
struct CellTable {
  static constexpr int kWords = kCellWords<kLevel>;
  std::uint32_t* words;

  __device__ __forceinline__ static std::uint32_t place_of(std::uint32_t cell) { return cell + cell / kWords * 4; }
  __device__ __forceinline__ uint4* own() const { return reinterpret_cast<uint4*>(words + threadIdx.x * (kWords + 4)); }
  __device__ __forceinline__ void clear() const {
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) own()[i] = make_uint4(0, 0, 0, 0);
  }
  // Counts a particle; returns how many were there before.
  __device__ __forceinline__ std::uint32_t add(std::uint32_t place) const { return atomicAdd(words + place, 1u); }
  // The first particle of a cell, once they are known; of the next cell, or the end.
  __device__ __forceinline__ std::uint32_t start(std::uint32_t place) const { return words[place]; }
  __device__ __forceinline__ std::uint32_t end(std::uint32_t place) const { return words[place + 1]; }

  // The cell that has particles both before `border` and from there on: where it starts, and its end in the high half;
  // 0 for none. By kSeekers lanes together, each of which looks at a cell at a time, and all lanes of the warp.
  static constexpr unsigned kSeekers = 16;
  __device__ __forceinline__ std::uint32_t around(std::uint32_t border) const {
    constexpr std::uint32_t kAll = kWords * kTileThreads;
    const unsigned seeker = threadIdx.x % kSeekers, others = threadIdx.x % 32 - seeker;
    std::uint32_t cell = 0;  // the last that does not start behind the border
#pragma unroll
    for (std::uint32_t range = kAll; range > 1; range = (range + kSeekers - 1) / kSeekers) {
      const std::uint32_t step = (range + kSeekers - 1) / kSeekers;
      const bool upto = seeker * step < range && start(place_of(cell + seeker * step)) <= border;
      const std::uint32_t found = __ballot_sync(kAllLanes, upto) >> others & ((1u << kSeekers) - 1);
      cell += (static_cast<std::uint32_t>(__popc(static_cast<int>(found))) - 1) * step;
    }
    const std::uint32_t first = start(place_of(cell));
    return first < border ? first | end(place_of(cell)) << 16 : 0;
  }

  // Counts become starts; `pairs` and `most`, what a thread has seen of particles that share a cell, become all
  // threads' sum and maximum. Two barriers, and one before is needed.
  __device__ __forceinline__ void find_starts(SortExchange& exchange, std::uint32_t& pairs, std::uint32_t& most) const {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    std::uint32_t counts[kWords], sum = 0;
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 four = own()[i];
      counts[4 * i] = four.x;
      counts[4 * i + 1] = four.y;
      counts[4 * i + 2] = four.z;
      counts[4 * i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) sum += counts[i];
    const std::uint32_t upto = sum_upto(sum), pairs_of_warp = warp_sum(pairs), most_of_warp = warp_max_u(most);
    if (lane == 31) {
      exchange.sums[warp] = upto;
      exchange.pairs[warp] = pairs_of_warp;
      exchange.most[warp] = most_of_warp;
    }
    __syncthreads();
    std::uint32_t before = upto - sum + warps_before(exchange.sums);
    pairs = all_warps(exchange.pairs);
    most = warp_max_u(exchange.most[lane % kTileWarps]);
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const std::uint32_t count = counts[i];
      counts[i] = before;
      before += count;
    }
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i)
      own()[i] = make_uint4(counts[4 * i], counts[4 * i + 1], counts[4 * i + 2], counts[4 * i + 3]);
    words[threadIdx.x * (kWords + 4) + kWords] = before;
    __syncthreads();
  }
};

// Where a particle's cell is, or where the cell starts, and how many it found there.
struct Celled {
  std::uint32_t word;

  __device__ __forceinline__ static Celled make(std::uint32_t at, std::uint32_t rank) { return {at | rank << 16}; }
  __device__ __forceinline__ std::uint32_t at() const { return word & 0xFFFF; }
  __device__ __forceinline__ std::uint32_t rank() const { return word >> 16; }
};
static_assert(kCellTableWords <= 1u << 16);

// What particles see of sharing.
struct Sharing {
  std::uint32_t pairs = 0, most = 0;

  __device__ __forceinline__ void add(std::uint32_t rank) {
    pairs += rank;
    most = max(most, rank);
  }
  __device__ __forceinline__ bool below(std::uint32_t pairs_wanted, std::uint32_t sharing) const {
    return pairs <= pairs_wanted && most < sharing;
  }
};

// Particles into new cells, by bits of their keys which the first cells leave open: so many.
__device__ __forceinline__ void split_cells(const std::uint32_t (&keys)[kItems], unsigned left,
                                            Celled (&celled)[kItems], std::uint32_t* table, SortExchange& exchange,
                                            Sharing& sharing) {
  const CellTable<0> before = {table};
  const CellTable<1> cells = {table};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t place = celled[k].at(), start = before.start(place), count = before.end(place) - start;
    const unsigned bits = min(left, static_cast<unsigned>(bit_width(count - 1)));
    const std::uint32_t number = keys[k] >> (left - bits) & ((1u << bits) - 1);
    // less than two for each particle of the cell
    celled[k].word = cells.place_of(2 * start + number);
  }
  __syncthreads();
  cells.clear();
  __syncthreads();
  sharing = {};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t place = celled[k].word, rank = cells.add(place);
    celled[k] = Celled::make(place, rank);
    sharing.add(rank);
  }
  __syncthreads();
  cells.find_starts(exchange, sharing.pairs, sharing.most);
}

// How particles come into order in their cells.
enum class CellOrder { counted, windows, none };

// The cells of a thread's particles, all of a whole tile, by keys that leave so many bits open: where each starts, and
// how many a particle found there; for windows, where each particle goes, and where its cell starts in the window.
// `table` has kCellTableWords, cleared. Needs a barrier before.
__device__ __forceinline__ CellOrder find_cells(const std::uint32_t (&keys)[kItems], unsigned left,
                                                std::uint32_t* table, SortExchange& exchange,
                                                Celled (&celled)[kItems]) {
  const CellTable<0> first = {table};
  Sharing sharing;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t place = first.place_of(keys[k] >> left), rank = first.add(place);
    celled[k] = Celled::make(place, rank);
    sharing.add(rank);
  }
  __syncthreads();
  first.find_starts(exchange, sharing.pairs, sharing.most);
  if (sharing.below(kFewPairs, most_sharing(left))) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) celled[k] = Celled::make(first.start(celled[k].at()), celled[k].rank());
    return CellOrder::counted;
  }
  const auto place_in = [&](const auto& cells) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const std::uint32_t start = cells.start(celled[k].at()), at = start + celled[k].rank();
      celled[k] = Celled::make(at, max(start, at / kWindow * kWindow));
    }
    const unsigned seekers = cells.kSeekers;
    if (threadIdx.x < kTileWarps * seekers) {
      const unsigned window = threadIdx.x / seekers;
      const std::uint32_t cell = cells.around(window * kWindow);
      if (threadIdx.x % seekers == 0) exchange.borders[window] = cell;
    }
  };
  if (sharing.most < kWindow) {
    place_in(first);
  } else {
    if (left == 0) return CellOrder::none;
    split_cells(keys, left, celled, table, exchange, sharing);
    if (sharing.most >= kWindow) return CellOrder::none;
    place_in(CellTable<1>{table});
  }
  return CellOrder::windows;
}

// Words of particles in their cells: the low bits of where the cell starts, the bits of the key that the first cells
// leave open, the position. Those of a cell, and of cells near each other, compare as their particles do, by their
// difference.
struct Entries {
  static constexpr unsigned kPositionBits = 12;
  static_assert(1u << kPositionBits == kTileParticles && kPositionBits + kMostKeyBits - kFirstDigit <= 24);
  unsigned left, cell;  // bits that are open; where a cell's start is

  __device__ __forceinline__ explicit Entries(unsigned open) : left(open), cell(kPositionBits + open) {}
  __device__ __forceinline__ std::uint32_t make(std::uint32_t start, std::uint32_t key, std::uint32_t position) const {
    return start << cell | (key & ((1u << left) - 1)) << kPositionBits | position;
  }
  __device__ __forceinline__ std::uint32_t open(std::uint32_t entry) const {
    return entry >> kPositionBits & ((1u << left) - 1);
  }
  __device__ __forceinline__ static std::uint32_t position(std::uint32_t entry) { return entry & (kTileParticles - 1); }
  // Where the cell starts of an entry that lies at `at`.
  __device__ __forceinline__ std::uint32_t start(std::uint32_t entry, std::uint32_t at) const {
    return at - ((at - (entry >> cell)) & (~0u >> cell));
  }
  __device__ __forceinline__ bool together(std::uint32_t a, std::uint32_t b) const { return (a ^ b) < 1u << cell; }
  // An entry of no cell, behind the last.
  __device__ __forceinline__ std::uint32_t end() const { return kTileParticles << cell; }
};

// Calls put(k, entry, place) for the particles of a thread's positions, as they lie in their cells; `place` is where
// they come. There are four entries as end() behind the last.
template <class Put>
__device__ __forceinline__ void place_entries(const std::uint32_t* entries, const Entries& as, const Put& put) {
  constexpr int kAhead = 2;  // particles whose cells are asked for together
  std::uint32_t own[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) own[k] = entries[position_of(k)];
#pragma unroll
  for (int from = 0; from < kItems; from += kAhead) {
    std::uint32_t places[kAhead];
    const uint4* fours[kAhead];
    uint4 first[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      places[j] = as.start(own[from + j], position_of(from + j)) / 4 * 4;
      fours[j] = reinterpret_cast<const uint4*>(entries + places[j]);
      first[j] = *fours[j];
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::uint32_t mine = own[from + j];
      uint4 e = first[j];
      for (;;) {
        places[j] += (e.x - mine) >> 31;
        places[j] += (e.y - mine) >> 31;
        places[j] += (e.z - mine) >> 31;
        places[j] += (e.w - mine) >> 31;
        if (!as.together(e.w, mine)) break;
        e = *++fours[j];
      }
      put(from + j, mine, places[j]);
    }
  }
}

}  // namespace pyfilter::cuda
