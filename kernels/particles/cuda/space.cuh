// SPDX-License-Identifier: BSD-3-Clause
// What a thread block has of a tile of particles while it encodes it: shared memory, and what all threads know.
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

}  // namespace pyfilter::cuda
