// SPDX-License-Identifier: BSD-3-Clause
// A thread block's data of a tile of particles during encoding: shared memory, and facts known to all threads.
#pragma once

#include <cstdint>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/keys.cuh"
#include "particles/cuda/move.cuh"
#include "particles/cuda/plain.cuh"
#include "particles/cuda/tile_sort.cuh"

namespace pyfilter::cuda {

template <class Code, int D>
struct BlockSpace {
  union {
    struct {
      union {
        alignas(16) std::uint32_t offsets[kTileParticles];  // of all axes together, by word_of()
        std::uint16_t sources[kTileParticles];              // or the index in the tile of the particle at each position
      };
      union {
        struct {
          alignas(16) std::uint32_t rows[kTileParticles];  // keys, by word_of(); then the encoded sequences
          union {
            alignas(16) std::uint32_t run_starts[kRunWords];
            std::uint16_t moved[kTileParticles];  // earlier: the rank of each particle
          };
        };
        std::uint32_t carried[kTileParticles];  // earlier: data sorted together with the entries
        typename TileSort::TempStorage radix;
        std::uint32_t blocked[kTileParticles + kTileParticles / kItems];  // keys, with a padding word between threads
      };
    };
    alignas(16) std::uint32_t cells[kCellTableWords];  // earlier than all these
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
  // of a possible plain tile: whether it is plain, whether all values surely keep the bound, whether zero has a code
  bool plain, sure, zero;
  PlainKeys<D> plain_keys;
  HeldEnds ends[kTileWarps];
  MovedTile moved_tile;
  union {
    alignas(16) std::uint32_t entries[kTileParticles + 4];  // tile_sort.cuh
    alignas(16) std::uint32_t run_steps[kRunWords];         // later, by word_of()
  };
};

// Facts about a tile, known to all threads.
template <class Code, int D>
struct PreparedTile {
  TileFrame<Code, D> frame;
  std::uint32_t ordinary = 0, specials = 0, tail = 0;
  bool ordered = true;  // special particles last, keys ascending
  bool offsets =
      false;  // space.offsets has the offsets of all ordinary particles; else space.sources has their indices
};

// Whether the offsets of all axes fit a word.
template <class Code, int D>
__device__ __forceinline__ bool have_words(const TileFrame<Code, D>& frame) {
  return frame.planes(frame.layout.shift) <= 32;
}

}  // namespace pyfilter::cuda
