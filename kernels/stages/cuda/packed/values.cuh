// SPDX-License-Identifier: BSD-3-Clause
// Values of a packed tile between device memory and the threads, a block of 32 each (docs/format.md, section 7.1). All
// go through rows of shared memory, one a block, so that neighbouring threads access neighbouring memory.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "core/tile_shape.hpp"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// The arena offset of a block's row. Every 16 rows are followed by 16 bytes, so that neighbours along any axis avoid
// each other's banks.
template <int S, class Value>
__device__ __forceinline__ unsigned row_offset(unsigned block) {
  return block * kRowBytes<Value> + (S == kChain ? 0 : block / 16 * 16);
}
template <class Value>
inline constexpr int kPackedArenaBytes = kArenaBytes<Value> + kThreads / 16 * 16;

template <int S, class Value>
__device__ __forceinline__ Value* packed_row(std::uint8_t* arena) {
  return reinterpret_cast<Value*>(arena + row_offset<S, Value>(threadIdx.x));
}
template <int S, class Value>
__device__ __forceinline__ void read_packed_row(const std::uint8_t* arena, Value (&x)[32]) {
  const auto* from = reinterpret_cast<const uint4*>(arena + row_offset<S, Value>(threadIdx.x));
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) reinterpret_cast<uint4*>(x)[i] = from[i];
}
template <int S, class Value>
__device__ __forceinline__ void write_packed_row(std::uint8_t* arena, const Value (&x)[32]) {
  auto* to = reinterpret_cast<uint4*>(arena + row_offset<S, Value>(threadIdx.x));
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) to[i] = reinterpret_cast<const uint4*>(x)[i];
}

// The arena offset of a position of the tile.
template <int S, class Value>
__device__ __forceinline__ unsigned arena_offset(unsigned z, unsigned y, unsigned x) {
  using Tile = TileShape<S>;
  return row_offset<S, Value>(Tile::block_of(z, y, x)) +
         Tile::position_of(z, y, x) * static_cast<unsigned>(sizeof(Value));
}

// tile_box() of a launch's tile.
template <int S>
__device__ __forceinline__ TileBox box_of(const LaunchGrid& g, std::uint32_t tile) {
  using Tile = TileShape<S>;
  if constexpr (S == kChain) {
    return tile_box<S>(g, tile);
  } else {
    const Quotient row = divide(tile, g.by_gx), slab = divide(row.quotient, g.by_gy);
    const Quotient outer = S == kVolume ? divide(slab.quotient, g.by_gz) : Quotient{slab.quotient, 0};
    const std::uint64_t x = std::uint64_t{row.remainder} * Tile::kX, y = std::uint64_t{slab.remainder} * Tile::kY,
                        z = std::uint64_t{outer.remainder} * Tile::kZ;
    const auto inside = [](std::uint64_t left, std::uint32_t side) {
      return left < side ? static_cast<std::uint32_t>(left) : side;
    };
    return {((outer.quotient * g.nz + z) * g.ny + y) * g.nx + x, S == kVolume ? inside(g.nz - z, Tile::kZ) : 1,
            inside(g.ny - y, Tile::kY), inside(g.nx - x, Tile::kX)};
  }
}

template <int S>
__device__ __forceinline__ bool is_whole(const TileBox& box) {
  using Tile = TileShape<S>;
  return box.inx == Tile::kX && box.iny == Tile::kY && box.inz == Tile::kZ;
}
template <int S>
__device__ __forceinline__ bool is_whole_tile(const Grid& g, std::uint32_t tile, const TileBox& box) {
  return S == kChain ? (std::uint64_t{tile} + 1) * 4096 <= g.values : is_whole<S>(box);
}

// Index in the array of a position, or of the nearest position inside.
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

// Calls visit(i, offset, index) for the 16-byte pieces of a whole tile that this thread moves, i counting pieces. The
// pieces of a chain are in the rows of the thread's warp.
template <int S, class Value, class Visit>
__device__ __forceinline__ void for_tile_pieces(const Grid& g, const TileBox& box, Visit visit) {
  using Tile = TileShape<S>;
  constexpr unsigned kPer = 16 / sizeof(Value), kSteps = kThreadPieces<Value>, kPerRow = Tile::kX / kPer;
  // of this thread's first piece; the others are whole rows further, and after a full slab in the next one
  constexpr unsigned kRowStep = kThreads / kPerRow;
  const unsigned thread = threadIdx.x % kThreads, row0 = thread / kPerRow,
                 x = S == kChain ? first_piece<Value, Mover::warp>() * kPer : thread % kPerRow * kPer;
  const std::uint64_t from = box.first + (S == kChain ? 0 : row0 * g.nx) + x;
  // a thread's pieces are whole blocks, rows of blocks or slabs apart, so arena offsets add up
  const unsigned offset = S == kChain ? arena_offset<S, Value>(0, 0, x) : arena_offset<S, Value>(0, row0, x);
  const std::uint64_t row_step = S == kChain ? 0 : kRowStep * g.nx, slab = g.nx * g.ny;
#pragma unroll
  for (unsigned i = 0; i < kSteps; ++i) {
    if constexpr (S == kChain) {
      visit(i, offset + arena_offset<S, Value>(0, 0, i * 32 * kPer), from + i * 32 * kPer);
    } else {
      constexpr unsigned kPerSlab = Tile::kY / kRowStep;  // steps
      const unsigned y = i % kPerSlab * kRowStep, z = i / kPerSlab;
      visit(i, offset + arena_offset<S, Value>(z, y, 0), from + i % kPerSlab * row_step + z * slab);
    }
  }
}

// Calls visit(i, offset, index, inside) for the positions that this thread moves one by one. Neighbouring threads take
// neighbours along x, whatever their alignment. i: counts the values of a batch. index: in the array, or of the nearest
// position inside. inside: whether the position is inside; always if the tile is whole. Calls flush() after every
// batch.
inline constexpr unsigned kBatch = 8;
template <int S, class Value, bool kWhole, class Visit, class Flush>
__device__ __forceinline__ void for_tile_values(const Grid& g, const TileBox& box, Visit visit, Flush flush) {
  using Tile = TileShape<S>;
  constexpr unsigned kRowStep = S == kChain ? 1 : kThreads / Tile::kX, kPerSlab = Tile::kY / kRowStep;
  const unsigned x = S == kChain ? threadIdx.x / 32 * 1024 + threadIdx.x % 32 : threadIdx.x % Tile::kX,
                 row0 = S == kChain ? 0 : threadIdx.x % kThreads / Tile::kX;
  // a thread's positions are whole blocks, rows of blocks or slabs apart, so arena offsets add up
  const unsigned offset = arena_offset<S, Value>(0, row0, x);
  const std::uint64_t slab = g.nx * g.ny, column = box.first + (kWhole ? x : min(x, box.inx - 1)),
                      first = column + (kWhole ? row0 : min(row0, box.iny - 1)) * g.nx, row_step = kRowStep * g.nx;
  // of the next value, in tiles that are not whole
  std::uint64_t index = first, slab_first = first;
#pragma unroll(kWhole&& S != kVolume ? 32 : 8)  // volumes: all at once would take too many registers
  for (unsigned i = 0; i < 4096 / kThreads; ++i) {
    if constexpr (S == kChain) {
      const unsigned to = offset + arena_offset<S, Value>(0, 0, i * 32);
      if constexpr (kWhole)
        visit(i % kBatch, to, first + i * 32, true);
      else
        visit(i % kBatch, to, box.first + min(x + i * 32, box.inx - 1), x + i * 32 < box.inx);
    } else {
      const unsigned steps = i % kPerSlab, y = row0 + steps * kRowStep, z = i / kPerSlab,
                     to = offset + arena_offset<S, Value>(z, steps * kRowStep, 0);
      if constexpr (kWhole) {
        visit(i % kBatch, to, first + steps * row_step + z * slab, true);
      } else {
        visit(i % kBatch, to, index, x < box.inx && y < box.iny && z < box.inz);
        // on to the next row, or to the next slab's first, up to the last one inside
        if (steps + 1 < kPerSlab) {
          index += std::uint64_t{min(y + kRowStep, box.iny - 1) - min(y, box.iny - 1)} * g.nx;
        } else {
          slab_first += z + 1 < box.inz ? slab : 0;
          index = slab_first;
        }
      }
    }
    if (i % kBatch == kBatch - 1) flush();
  }
}

// A barrier between threads that move each other's values: values of chains stay within their warp.
template <int S>
__device__ __forceinline__ void await_values() {
  if constexpr (S == kChain)
    __syncwarp();
  else
    __syncthreads();
}

// Loads all values of a tile into its rows, the edge repeated as padding; by pieces if the tile is whole and its rows
// aligned. await_values() must follow.
template <int S, class Value>
__device__ __forceinline__ void load_packed(const Grid& g, const std::uint8_t* values, const TileBox& box,
                                            bool by_pieces, std::uint8_t* arena) {
  const auto* from = reinterpret_cast<const Value*>(values);
  if (S != kColumns && by_pieces) {
    if constexpr (S != kColumns) {
      copy_pieces<Value, kThroughRegisters<Value>>([&](auto visit) {
        for_tile_pieces<S, Value>(g, box, [&](unsigned i, unsigned offset, std::uint64_t index) {
          visit(i, arena + offset, values + index * sizeof(Value));
        });
      });
    }
    return;
  }
  Value batch[kBatch];
  unsigned to[kBatch];
  const auto load = [&](unsigned i, unsigned offset, std::uint64_t index, bool) {
    batch[i] = from[index];
    to[i] = offset;
  };
  const auto flush = [&] {
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i) *reinterpret_cast<Value*>(arena + to[i]) = batch[i];
  };
  if (is_whole<S>(box))
    for_tile_values<S, Value, true>(g, box, load, flush);
  else
    for_tile_values<S, Value, false>(g, box, load, flush);
}

// Stores rows, limited to values [start, stop). await_values() must precede.
template <int S, class Value>
__device__ __forceinline__ void store_packed(const Grid& g, const std::uint8_t* arena, const TileBox& box, bool aligned,
                                             std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  auto* to = reinterpret_cast<Value*>(out);
  if (S != kColumns && aligned && is_whole<S>(box)) {
    if constexpr (S != kColumns) {
      for_tile_pieces<S, Value>(g, box, [&](unsigned, unsigned offset, std::uint64_t index) {
        __stcs(reinterpret_cast<uint4*>(to + (index - start)), *reinterpret_cast<const uint4*>(arena + offset));
      });
    }
    return;
  }
  to -= start;
  const auto value = [&](unsigned offset) { return *reinterpret_cast<const Value*>(arena + offset); };
  const bool all_wanted = start == 0 && stop >= g.values;
  // volumes: their rows are short, and stores that come faster miss more half-written sectors in the L2 cache
  if (S != kVolume && is_whole<S>(box) && all_wanted) {
    for_tile_values<S, Value, true>(
        g, box, [&](unsigned, unsigned offset, std::uint64_t index, bool) { to[index] = value(offset); }, [] {});
    return;
  }
  if (S == kPlane && all_wanted) {
    for_tile_values<S, Value, false>(
        g, box,
        [&](unsigned, unsigned offset, std::uint64_t index, bool inside) {
          if (inside) to[index] = value(offset);
        },
        [] {});
    return;
  }
  for_tile_values<S, Value, false>(
      g, box,
      [&](unsigned, unsigned offset, std::uint64_t index, bool inside) {
        if (inside && index >= start && index < stop) to[index] = value(offset);
      },
      [] {});
}

// Prefetches the values of a tile to the L2 cache.
template <int S, class Value>
__device__ __forceinline__ void prefetch_packed(const Grid& g, const std::uint8_t* values, const TileBox& box,
                                                bool whole) {
  using Tile = TileShape<S>;
  if (S != kColumns && !whole) return;
  const std::uint8_t* const from = values + box.first * sizeof(Value);
  if constexpr (S == kColumns) {
    if (g.nx > Tile::kX || box.iny < Tile::kY) return;
    for (unsigned at = 128 * threadIdx.x; at < Tile::kY * g.nx * sizeof(Value); at += 128 * kThreads)
      prefetch_line(from + at);
  } else {
    constexpr unsigned kLine = 128 / sizeof(Value), kPerRow = (Tile::kX + kLine - 1) / kLine,
                       kLines = 4096 / Tile::kX * kPerRow;
#pragma unroll
    for (unsigned first = 0; first < kLines; first += kThreads) {
      const unsigned line = first + threadIdx.x % kThreads;
      if (kLines % kThreads != 0 && line >= kLines) break;
      const unsigned row = line / kPerRow, y = row % Tile::kY, z = row / Tile::kY;
      prefetch_line(from + ((S == kVolume ? z * g.ny : 0) + y) * g.nx * sizeof(Value) + line % kPerRow * 128);
    }
  }
}

}  // namespace pyfilter::cuda
