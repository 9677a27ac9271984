// SPDX-License-Identifier: BSD-3-Clause
// Sums through a tile (docs/format.md, section 7.3) by one warp: it takes the tile's 128 blocks in four runs of 32.
// packed/differences.cuh is the same for four warps. The carry from run to run stays in registers.
#pragma once

#include <cstdint>

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

// The rows of a chain's run in shared memory, a block each.
template <class Value>
inline constexpr int kRunBytes = 32 * kRowBytes<Value>;
template <class Value>
__device__ __forceinline__ std::uint8_t* run_row(std::uint8_t* rows, unsigned block) {
  return rows + block % 32 * kRowBytes<Value>;
}
template <class T>
__device__ __forceinline__ void write_row_at(std::uint8_t* row, const T (&x)[32]) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(T)); ++i)
    reinterpret_cast<uint4*>(row)[i] = reinterpret_cast<const uint4*>(x)[i];
}
template <class T>
__device__ __forceinline__ void read_row_at(const std::uint8_t* row, T (&x)[32]) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(T)); ++i)
    reinterpret_cast<uint4*>(x)[i] = reinterpret_cast<const uint4*>(row)[i];
}

// Stores the rows of run `run` of a chain's tile, limited to values [start, stop).
template <class Value>
__device__ __forceinline__ void store_run(const std::uint8_t* rows, const TileBox& box, int run, bool aligned,
                                          std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  const unsigned lane = threadIdx.x % 32, x0 = 1024 * static_cast<unsigned>(run);
  auto* const to = reinterpret_cast<Value*>(out);
  if (aligned && is_whole<kChain>(box)) {
    constexpr unsigned kPerRow = 32 * sizeof(Value) / 16, kRows = 32 / kPerRow;
    const std::uint8_t* const from = rows + lane / kPerRow * kRowBytes<Value> + lane % kPerRow * 16;
    auto* const first = reinterpret_cast<uint4*>(to + (box.first + x0 - start)) + lane;
#pragma unroll
    for (unsigned i = 0; i < kPerRow; ++i)
      __stcs(first + 32 * i, *reinterpret_cast<const uint4*>(from + i * kRows * kRowBytes<Value>));
    return;
  }
#pragma unroll 1
  for (unsigned block = 0; block < 32; ++block) {
    const unsigned x = x0 + 32 * block + lane;
    const std::uint64_t index = box.first + x;
    if (x < box.inx && index >= start && index < stop)
      to[index - start] = reinterpret_cast<const Value*>(rows + block * kRowBytes<Value>)[lane];
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
