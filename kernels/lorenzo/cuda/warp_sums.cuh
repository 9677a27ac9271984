// SPDX-License-Identifier: BSD-3-Clause
// Sums through a tile (docs/format.md, section 7.3) by one warp: it takes the tile's 128 blocks in four runs of 32.
// packed/differences.cuh is the same for four warps. The carry from run to run stays in registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "stages/cuda/packed/differences.cuh"
#include "stages/cuda/packed/values.cuh"

namespace pyfilter::cuda {

// Sums of earlier runs' faces.
template <int S, class Code>
struct RunFaces {
  Code sum[kFaceCodes<S>];
};

// Differences of run `run` -> codes, in place. The tile's first difference includes the code before it.
template <int S, class Code>
__device__ __forceinline__ void run_sums(int order, int run, Code (&c)[32], RunFaces<S, Code>& faces) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  constexpr int kRow = 32 / kFaceCodes<S>;
  Code before[kFaceCodes<S>];
  if constexpr (S == kChain || S == kColumns) {
    const Code shown = __shfl_sync(kAllLanes, c[0], 0);  // columns: the first code of the row
    axis_sums<1, 32, 32, 1, 1, true>(c, true, [](int) { return 0; }, before);
    before[0] += faces.sum[0];
    faces.sum[0] = S == kChain ? __shfl_sync(kAllLanes, c[31] + before[0], 31) : faces.sum[0] + shown;
  } else {
    lane_sums<S>(order, run == 0 && lane < 16, c, before);
#pragma unroll
    for (int k = 0; k < kFaceCodes<S>; ++k) {
      const Code shown = __shfl_sync(kAllLanes, c[face_position<S>(k)] + before[k], 16 + lane % 16);
      before[k] += faces.sum[k];
      faces.sum[k] += shown;
    }
  }
#pragma unroll
  for (int k = 0; k < kFaceCodes<S>; ++k)
#pragma unroll
    for (int x = 0; x < kRow; ++x) c[k * kRow + x] += before[k];
}

// A run's rows in shared memory, a block each: a lane's own row, and the address of a position of the tile.
template <class Value>
inline constexpr int kRunBytes = 32 * kRowBytes<Value> + 2 * 16;
template <int S, class Value>
__device__ __forceinline__ std::uint8_t* run_row(std::uint8_t* rows, unsigned block) {
  return rows + row_offset<S, Value>(block % 32);
}
template <int S, class Value, class T>
__device__ __forceinline__ void write_run_row(std::uint8_t* rows, unsigned block, const T (&x)[32]) {
  auto* const to = reinterpret_cast<uint4*>(run_row<S, Value>(rows, block));
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(T)); ++i) to[i] = reinterpret_cast<const uint4*>(x)[i];
}
template <class T>
__device__ __forceinline__ void read_row_at(const std::uint8_t* row, T (&x)[32]) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(T)); ++i)
    reinterpret_cast<uint4*>(x)[i] = reinterpret_cast<const uint4*>(row)[i];
}

// Whether all values of a box are among [start, stop).
template <int S>
__device__ __forceinline__ bool is_inside(const Grid& g, const TileBox& box, std::uint64_t start, std::uint64_t stop) {
  const std::uint64_t last_plane = TileShape<S>::kZ == 1 ? 0 : box.inz - 1;
  return box.first >= start && box.first + (last_plane * g.ny + box.iny - 1) * g.nx + box.inx <= stop;
}

// Stores the rows of a run of a plane or volume whose first column is x0. Each lane stores `kPer` neighbouring values
// at a time; they do not cross the end of a row. `to`: where the tile's first value goes.
template <int S, unsigned kPer, class Value>
__device__ __forceinline__ void store_run_rows(const Grid& g, std::uint8_t* rows, const TileBox& box, unsigned x0,
                                               Value* to) {
  using Tile = TileShape<S>;
  using Piece = std::conditional_t<kPer == 1, Value, uint4>;
  constexpr unsigned kPerRow = Tile::kX / 4 / kPer, kRows = 32 / kPerRow, kOfY = kRows < Tile::kY ? kRows : Tile::kY,
                     kOfZ = kRows / kOfY;
  const unsigned lane = threadIdx.x % 32, row = lane / kPerRow, x = x0 + lane % kPerRow * kPer;
  if (x >= box.inx) return;
  Value* plane = to + (std::uint64_t{row / kOfY} * g.ny + row % kOfY) * g.nx + x;
  const std::uint64_t next_row = kOfY * g.nx, next_plane = kOfZ * (g.ny * g.nx);
#pragma unroll 2
  for (unsigned i = 0; i < Tile::kZ / kOfZ; ++i, plane += next_plane) {
    const unsigned z = row / kOfY + kOfZ * i;
    if (z >= box.inz) break;
    Value* at = plane;
#pragma unroll 8
    for (unsigned k = 0; k < Tile::kY / kOfY; ++k, at += next_row) {
      const unsigned y = row % kOfY + kOfY * k;
      if (y >= box.iny) continue;
      *reinterpret_cast<Piece*>(at) =
          *reinterpret_cast<const Piece*>(run_row<S, Value>(rows, Tile::block_of(z, y, x)) +
                                          Tile::position_of(z, y, x) * static_cast<unsigned>(sizeof(Value)));
    }
  }
}

// Stores the rows of run `run` of a tile, limited to values [start, stop).
template <int S, class Value>
__device__ __forceinline__ void store_run(const Grid& g, std::uint8_t* rows, const TileBox& box, int run, bool aligned,
                                          std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  using Tile = TileShape<S>;
  const unsigned lane = threadIdx.x % 32, x0 = static_cast<unsigned>(run) * (Tile::kX / 4);
  constexpr unsigned kWide = Tile::kX / 4, kPer = 16 / sizeof(Value);
  auto* const to = reinterpret_cast<Value*>(out);
  if constexpr (S == kChain) {
    if (aligned && is_whole<S>(box)) {  // rows are contiguous, and so are the blocks
      constexpr unsigned kPerRow = 32 / kPer, kRows = 32 / kPerRow;
      const std::uint8_t* const from = rows + lane / kPerRow * kRowBytes<Value> + lane % kPerRow * 16;
      auto* const first = reinterpret_cast<uint4*>(to + (box.first + x0 - start)) + lane;
#pragma unroll
      for (unsigned i = 0; i < kPerRow; ++i)
        __stcs(first + 32 * i, *reinterpret_cast<const uint4*>(from + i * kRows * kRowBytes<Value>));
      return;
    }
  } else if constexpr (S == kColumns) {
    if (is_inside<S>(g, box, start, stop)) {
      // a run is a column of blocks, a row a block: a lane's position is the same in all
      if (x0 >= box.inx) return;
      const std::uint8_t* const from = rows + lane * sizeof(Value);
      Value* const first = to + (box.first + x0 - start + lane * g.nx);
      const std::uint64_t step = 32 * g.nx;
      if (box.iny == Tile::kY) {
#pragma unroll
        for (unsigned block = 0; block < 32; ++block)
          first[block * step] = *reinterpret_cast<const Value*>(from + row_offset<S, Value>(block));
      } else {
#pragma unroll 1
        for (unsigned block = 0; 32 * block + lane < box.iny; ++block)
          first[block * step] = *reinterpret_cast<const Value*>(from + row_offset<S, Value>(block));
      }
      return;
    }
  } else {
    if (aligned && is_whole<S>(box)) {
      constexpr unsigned kPerRow = kWide / kPer, kPieces = 1024 / kPer;
#pragma unroll
      for (unsigned i = 0; i < kPieces / 32; ++i) {
        const unsigned piece = 32 * i + lane, x = x0 + piece % kPerRow * kPer, row = piece / kPerRow,
                       y = row % Tile::kY, z = row / Tile::kY;
        const std::uint8_t* const from =
            run_row<S, Value>(rows, Tile::block_of(z, y, x)) + Tile::position_of(z, y, x) * sizeof(Value);
        const std::uint64_t index = box.first + (std::uint64_t{z} * g.ny + y) * g.nx + x;
        __stcs(reinterpret_cast<uint4*>(to + (index - start)), *reinterpret_cast<const uint4*>(from));
      }
      return;
    }
    if (is_inside<S>(g, box, start, stop)) {
      if (aligned)
        store_run_rows<S, kPer>(g, rows, box, x0, to + (box.first - start));
      else
        store_run_rows<S, 1>(g, rows, box, x0, to + (box.first - start));
      return;
    }
  }
#pragma unroll 1
  for (unsigned i = lane; i < 1024; i += 32) {
    const unsigned x = x0 + i % kWide, row = i / kWide, y = row % Tile::kY, z = row / Tile::kY;
    if (x >= box.inx || y >= box.iny || z >= box.inz) continue;
    const std::uint64_t index = box.first + (std::uint64_t{z} * g.ny + y) * g.nx + x;
    if (index < start || index >= stop) continue;
    to[index - start] = *reinterpret_cast<const Value*>(run_row<S, Value>(rows, Tile::block_of(z, y, x)) +
                                                        Tile::position_of(z, y, x) * sizeof(Value));
  }
}

// Stores a block from its thread's registers, limited to values [start, stop).
template <int S, class Value>
__device__ __forceinline__ void store_block(const Grid& g, const Value (&v)[32], const TileBox& box, unsigned block,
                                            bool aligned, std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  using Tile = TileShape<S>;
  constexpr unsigned kPer = 16 / sizeof(Value);
  auto* const to = reinterpret_cast<Value*>(out);
  const unsigned x0 = Tile::block_x(block), y0 = Tile::block_y(block), z0 = Tile::block_z(block);
  if constexpr (S != kColumns) {
    if (aligned && is_whole<S>(box)) {
      const std::uint64_t first = box.first + (std::uint64_t{z0} * g.ny + y0) * g.nx + x0 - start;
#pragma unroll
      for (unsigned i = 0; i < 32; i += kPer) {
        const unsigned x = i % Tile::kBlockX, y = i / Tile::kBlockX % Tile::kBlockY,
                       z = i / (Tile::kBlockX * Tile::kBlockY);
        __stcs(reinterpret_cast<uint4*>(to + first + (z * g.ny + y) * g.nx + x),
               *reinterpret_cast<const uint4*>(v + i));
      }
      return;
    }
  }
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned x = x0 + i % Tile::kBlockX, y = y0 + i / Tile::kBlockX % Tile::kBlockY,
                   z = z0 + i / (Tile::kBlockX * Tile::kBlockY);
    const std::uint64_t index = box.first + (std::uint64_t{z} * g.ny + y) * g.nx + x;
    if (x < box.inx && y < box.iny && z < box.inz && index >= start && index < stop) to[index - start] = v[i];
  }
}

}  // namespace pyfilter::cuda
