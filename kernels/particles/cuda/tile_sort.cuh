// SPDX-License-Identifier: BSD-3-Clause
// Sorts a tile's particles by key, stably, by a block of threads. The highest bits of keys select cells; particles are
// counted into cells and moved to them. If cells are small, each particle counts the particles before it in its cell.
// Threads take particles in memory order, so neighbours read the same cells. If cells are larger, warps sort windows of
// 256 words (windows.cuh). A cell larger than a window is first split by further key bits into as many cells as it has
// particles. If that fails, CUB's radix sort is used. All ways give the same order.
#pragma once

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/windows.cuh"
#include "particles/key.hpp"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

inline constexpr int kSortDigit = 4;  // bits of a key for each pass of the radix sort
using TileSort = cub::BlockRadixSort<std::uint32_t, kTileThreads, kItems, std::uint32_t, kSortDigit>;

inline constexpr unsigned kFirstDigit = 12;                  // key bits that select the first cells
inline constexpr std::uint32_t kCells = 2 * kTileParticles;  // of the second level
// The most pairs of particles in a common cell, over the tile, for which particles count those before them.
inline constexpr std::uint32_t kFewPairs = kTileParticles * 5 / 2;
// The most particles of a cell then: an entry holds the cell's start in the bits that the open key bits leave. A
// particle moves only within its cell.
inline constexpr std::uint32_t kMostSharing = 448;
static_assert(kMostSharing + kGroup < kTileThreads);
__device__ __forceinline__ std::uint32_t most_sharing(unsigned left) {
  return min(kMostSharing, (1u << (19 - left)) - 28);
}

// Words of a level's cells, one a cell. Each thread has the same number of consecutive cells, followed by four padding
// words: it loads four words at a time without bank conflicts. The first padding word has the end of the last cell.
template <int kLevel>
inline constexpr int kCellWords = (kLevel == 0 ? 1 << kFirstDigit : static_cast<int>(kCells)) / kTileThreads;
inline constexpr std::uint32_t kCellTableWords = kTileThreads * (kCellWords<1> + 4);

struct SortExchange {
  std::uint32_t sums[kTileWarps], pairs[kTileWarps], most[kTileWarps];
  std::uint32_t borders[kTileWarps];  // cells that cross the borders of windows, for merge_borders()
};

// Cells of a level in shared memory, named by their word index.
template <int kLevel>
struct CellTable {
  static constexpr int kWords = kCellWords<kLevel>;
  std::uint32_t* words;

  __device__ __forceinline__ static std::uint32_t word_index(std::uint32_t cell) { return cell + cell / kWords * 4; }
  __device__ __forceinline__ uint4* own() const { return reinterpret_cast<uint4*>(words + threadIdx.x * (kWords + 4)); }
  __device__ __forceinline__ void clear() const {
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) own()[i] = make_uint4(0, 0, 0, 0);
  }
  // Counts a particle; returns the earlier count.
  __device__ __forceinline__ std::uint32_t add(std::uint32_t word) const { return atomicAdd(words + word, 1u); }
  // The first particle of a cell, once starts are known; of the next cell, or the end.
  __device__ __forceinline__ std::uint32_t start(std::uint32_t word) const { return words[word]; }
  __device__ __forceinline__ std::uint32_t end(std::uint32_t word) const { return words[word + 1]; }

  // The cell with particles on both sides of `border`: its start, and its end in the high half; 0: none. kSeekers lanes
  // search together, one cell each; all lanes of the warp call it.
  static constexpr unsigned kSeekers = 16;
  __device__ __forceinline__ std::uint32_t around(std::uint32_t border) const {
    constexpr std::uint32_t kAll = kWords * kTileThreads;
    const unsigned seeker = threadIdx.x % kSeekers, others = threadIdx.x % 32 - seeker;
    std::uint32_t cell = 0;  // the last cell that starts at or before the border
#pragma unroll
    for (std::uint32_t range = kAll; range > 1; range = (range + kSeekers - 1) / kSeekers) {
      const std::uint32_t step = (range + kSeekers - 1) / kSeekers;
      const bool upto = seeker * step < range && start(word_index(cell + seeker * step)) <= border;
      const std::uint32_t found = __ballot_sync(kAllLanes, upto) >> others & ((1u << kSeekers) - 1);
      cell += (static_cast<std::uint32_t>(__popc(static_cast<int>(found))) - 1) * step;
    }
    const std::uint32_t first = start(word_index(cell));
    return first < border ? first | end(word_index(cell)) << 16 : 0;
  }

  // Turns counts into starts; reduces `pairs` and `most`, a thread's counts of particles that share a cell, to all
  // threads' sum and maximum. Two barriers, and one is needed before.
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

// The word of a particle's cell, or the cell's start, and the number of particles counted before it.
struct Celled {
  std::uint32_t word;

  __device__ __forceinline__ static Celled make(std::uint32_t at, std::uint32_t rank) { return {at | rank << 16}; }
  __device__ __forceinline__ std::uint32_t at() const { return word & 0xFFFF; }
  __device__ __forceinline__ std::uint32_t rank() const { return word >> 16; }
};
static_assert(kCellTableWords <= 1u << 16);

// Statistics of shared cells.
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

// Moves particles into new cells, by `left` key bits that the first cells leave open.
__device__ __forceinline__ void split_cells(const std::uint32_t (&keys)[kItems], unsigned left,
                                            Celled (&celled)[kItems], std::uint32_t* table, SortExchange& exchange,
                                            Sharing& sharing) {
  const CellTable<0> before = {table};
  const CellTable<1> cells = {table};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t word = celled[k].at(), start = before.start(word), count = before.end(word) - start;
    const unsigned bits = min(left, static_cast<unsigned>(bit_width(count - 1)));
    const std::uint32_t number = keys[k] >> (left - bits) & ((1u << bits) - 1);
    // fewer than two cells for each particle of the old cell
    celled[k].word = cells.word_index(2 * start + number);
  }
  __syncthreads();
  cells.clear();
  __syncthreads();
  sharing = {};
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t word = celled[k].word, rank = cells.add(word);
    celled[k] = Celled::make(word, rank);
    sharing.add(rank);
  }
  __syncthreads();
  cells.find_starts(exchange, sharing.pairs, sharing.most);
}

// The methods of sorting particles within cells.
enum class CellOrder { counted, windows, none };

// Finds the cells of a thread's particles of a whole tile: each cell's start, and the count before each particle. Keys
// have `left` open bits. For windows: each particle's destination, and its cell's start in the window. `table` has
// kCellTableWords, zeroed. Needs a barrier before.
__device__ __forceinline__ CellOrder find_cells(const std::uint32_t (&keys)[kItems], unsigned left,
                                                std::uint32_t* table, SortExchange& exchange,
                                                Celled (&celled)[kItems]) {
  const CellTable<0> first = {table};
  Sharing sharing;
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const std::uint32_t word = first.word_index(keys[k] >> left), rank = first.add(word);
    celled[k] = Celled::make(word, rank);
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

// Words of particles in their cells: the low bits of the cell's start, the open key bits, the position. Words of the
// same or nearby cells compare like their particles, by their difference.
struct Entries {
  static constexpr unsigned kPositionBits = 12;
  static_assert(1u << kPositionBits == kTileParticles && kPositionBits + kMostKeyBits - kFirstDigit <= 24);
  unsigned left, cell;  // number of open bits; bit where a cell's start begins

  __device__ __forceinline__ explicit Entries(unsigned open) : left(open), cell(kPositionBits + open) {}
  __device__ __forceinline__ std::uint32_t make(std::uint32_t start, std::uint32_t key, std::uint32_t position) const {
    return start << cell | (key & ((1u << left) - 1)) << kPositionBits | position;
  }
  __device__ __forceinline__ std::uint32_t open(std::uint32_t entry) const {
    return entry >> kPositionBits & ((1u << left) - 1);
  }
  __device__ __forceinline__ static std::uint32_t position(std::uint32_t entry) { return entry & (kTileParticles - 1); }
  // The start of the cell of an entry at index `at`.
  __device__ __forceinline__ std::uint32_t start(std::uint32_t entry, std::uint32_t at) const {
    return at - ((at - (entry >> cell)) & (~0u >> cell));
  }
  __device__ __forceinline__ bool together(std::uint32_t a, std::uint32_t b) const { return (a ^ b) < 1u << cell; }
  // An entry behind the last one, of no cell.
  __device__ __forceinline__ std::uint32_t end() const { return kTileParticles << cell; }
};

// Calls put(k, entry, rank) for a thread's entries, in the order of cells; `rank`: the particle's final position. Four
// entries equal to end() follow the last.
template <class Put>
__device__ __forceinline__ void place_entries(const std::uint32_t* entries, const Entries& as, const Put& put) {
  constexpr int kAhead = 2;  // particles whose cells are loaded together
  std::uint32_t own[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) own[k] = entries[position_of(k)];
#pragma unroll
  for (int from = 0; from < kItems; from += kAhead) {
    std::uint32_t ranks[kAhead];
    const uint4* fours[kAhead];
    uint4 first[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      ranks[j] = as.start(own[from + j], position_of(from + j)) / 4 * 4;
      fours[j] = reinterpret_cast<const uint4*>(entries + ranks[j]);
      first[j] = *fours[j];
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::uint32_t mine = own[from + j];
      uint4 e = first[j];
      for (;;) {
        ranks[j] += (e.x - mine) >> 31;
        ranks[j] += (e.y - mine) >> 31;
        ranks[j] += (e.z - mine) >> 31;
        ranks[j] += (e.w - mine) >> 31;
        if (!as.together(e.w, mine)) break;
        e = *++fours[j];
      }
      put(from + j, mine, ranks[j]);
    }
  }
}

}  // namespace pyfilter::cuda
