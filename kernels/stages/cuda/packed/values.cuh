// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile between device memory and the threads, a block of 32 each (docs/format.md, section 7.1). All
// go through rows of shared memory, one a block, so that threads next to each other access memory side by side.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "core/tile_shape.hpp"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// Where a block's row is in the arena. Every 16 rows lie 16 bytes further, so that neither neighbours along x nor along
// the other axes meet in the same banks.
template <int S, class Value>
__device__ __forceinline__ unsigned row_place(unsigned block) {
  return block * kRowBytes<Value> + (S == kChain ? 0 : block / 16 * 16);
}
template <class Value>
inline constexpr int kPackedArenaBytes = kArenaBytes<Value> + kThreads / 16 * 16;

template <int S, class Value>
__device__ __forceinline__ Value* packed_row(std::uint8_t* arena) {
  return reinterpret_cast<Value*>(arena + row_place<S, Value>(threadIdx.x));
}
template <int S, class Value>
__device__ __forceinline__ void read_packed_row(const std::uint8_t* arena, Value (&x)[32]) {
  const auto* from = reinterpret_cast<const uint4*>(arena + row_place<S, Value>(threadIdx.x));
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) reinterpret_cast<uint4*>(x)[i] = from[i];
}
template <int S, class Value>
__device__ __forceinline__ void write_packed_row(std::uint8_t* arena, const Value (&x)[32]) {
  auto* to = reinterpret_cast<uint4*>(arena + row_place<S, Value>(threadIdx.x));
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) to[i] = reinterpret_cast<const uint4*>(x)[i];
}

// A position of a tile in its rows: where it is in the arena.
template <int S, class Value>
__device__ __forceinline__ unsigned place_of(unsigned z, unsigned y, unsigned x) {
  using Tile = TileShape<S>;
  return row_place<S, Value>(Tile::block_of(z, y, x)) +
         Tile::position_of(z, y, x) * static_cast<unsigned>(sizeof(Value));
}

template <int S>
__device__ __forceinline__ bool is_whole(const TileBox& box) {
  using Tile = TileShape<S>;
  return box.inx == Tile::kX && box.iny == Tile::kY && box.inz == Tile::kZ;
}

// Index in the array of a position, or of the nearest inside.
template <int S>
__device__ __forceinline__ std::uint64_t clamped_index(const Grid& g, const TileBox& box, unsigned z, unsigned y,
                                                       unsigned x) {
  return box.first + (std::uint64_t{min(z, box.inz - 1)} * g.ny + min(y, box.iny - 1)) * g.nx + min(x, box.inx - 1);
}
template <int S>
__device__ __forceinline__ std::uint64_t clamped_index(const Grid& g, const TileBox& box, unsigned block, unsigned i) {
  using Tile = TileShape<S>;
  return clamped_index<S>(g, box, Tile::block_z(block) + i / (Tile::kBlockX * Tile::kBlockY),
                          Tile::block_y(block) + i / Tile::kBlockX % Tile::kBlockY,
                          Tile::block_x(block) + i % Tile::kBlockX);
}

// Calls visit(place, index) for the 16-byte pieces of a whole tile that this thread moves.
template <int S, class Value, class Visit>
__device__ __forceinline__ void for_tile_pieces(const Grid& g, const TileBox& box, Visit visit) {
  using Tile = TileShape<S>;
  constexpr unsigned kPer = 16 / sizeof(Value), kPieces = 4096 / kPer, kPerRow = Tile::kX / kPer;
#pragma unroll
  for (unsigned i = 0; i < kPieces / kThreads; ++i) {
    const unsigned piece = threadIdx.x + i * kThreads, row = piece / kPerRow, x = piece % kPerRow * kPer;
    const unsigned y = row % Tile::kY, z = row / Tile::kY;
    visit(place_of<S, Value>(z, y, x), box.first + (std::uint64_t{z} * g.ny + y) * g.nx + x);
  }
}

// All values of a tile into its rows, the edge repeated as padding. Behind it, await_loads() and a barrier.
template <int S, class Value>
__device__ __forceinline__ void load_packed(const Grid& g, const std::uint8_t* values, const TileBox& box, bool aligned,
                                            std::uint8_t* arena) {
  using Tile = TileShape<S>;
  const auto* from = reinterpret_cast<const Value*>(values);
  if (S != kColumns && aligned && is_whole<S>(box)) {
    if constexpr (S != kColumns) {
      for_tile_pieces<S, Value>(g, box, [&](unsigned place, std::uint64_t index) {
        __pipeline_memcpy_async(arena + place, from + index, 16);
      });
    }
    return;
  }
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < 4096; i += kThreads) {
    const unsigned x = i % Tile::kX, y = i / Tile::kX % Tile::kY, z = i / (Tile::kX * Tile::kY);
    __pipeline_memcpy_async(arena + place_of<S, Value>(z, y, x), from + clamped_index<S>(g, box, z, y, x),
                            sizeof(Value));
  }
}

// Rows back to memory, those of the values [start, stop).
template <int S, class Value>
__device__ __forceinline__ void store_packed(const Grid& g, const std::uint8_t* arena, const TileBox& box, bool aligned,
                                             std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  using Tile = TileShape<S>;
  auto* to = reinterpret_cast<Value*>(out);
  if (S != kColumns && aligned && is_whole<S>(box)) {
    if constexpr (S != kColumns) {
      for_tile_pieces<S, Value>(g, box, [&](unsigned place, std::uint64_t index) {
        __stcs(reinterpret_cast<uint4*>(to + (index - start)), *reinterpret_cast<const uint4*>(arena + place));
      });
    }
    return;
  }
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < 4096; i += kThreads) {
    const unsigned x = i % Tile::kX, y = i / Tile::kX % Tile::kY, z = i / (Tile::kX * Tile::kY);
    const std::uint64_t index = box.first + (std::uint64_t{z} * g.ny + y) * g.nx + x;
    if (x < box.inx && y < box.iny && z < box.inz && index >= start && index < stop)
      to[index - start] = *reinterpret_cast<const Value*>(arena + place_of<S, Value>(z, y, x));
  }
}

// Asks for the values of a tile to come to the L2 cache.
template <int S, class Value>
__device__ __forceinline__ void prefetch_packed(const Grid& g, const std::uint8_t* values, std::uint32_t tile) {
  using Tile = TileShape<S>;
  const TileBox box = tile_box<S>(g, tile);
  if (S != kColumns && !is_whole<S>(box)) return;
  if constexpr (S == kColumns) {
    if (g.nx > Tile::kX || box.iny < Tile::kY) return;
    for (unsigned at = 128 * threadIdx.x; at < Tile::kY * g.nx * sizeof(Value); at += 128 * kThreads)
      prefetch(values + box.first * sizeof(Value) + at);
  } else {
    constexpr unsigned kLine = 128 / sizeof(Value), kPerRow = (Tile::kX + kLine - 1) / kLine;
#pragma unroll
    for (unsigned line = threadIdx.x; line < 4096 / Tile::kX * kPerRow; line += kThreads) {
      const unsigned row = line / kPerRow, y = row % Tile::kY, z = row / Tile::kY;
      prefetch(values + (box.first + (std::uint64_t{z} * g.ny + y) * g.nx + line % kPerRow * kLine) * sizeof(Value));
    }
  }
}

}  // namespace pyfilter::cuda
