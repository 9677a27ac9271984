// SPDX-License-Identifier: BSD-3-Clause
// Values of 2-D and 3-D blocks between device memory and the threads, 32 values a thread (docs/format.md, section 4.1).
// Their rows are short runs, which neighbouring threads load and store side by side. row_values.cuh has 1-D tiles.
#pragma once

#include <cstdint>

#include "stages/cuda/row_values.cuh"

namespace pyfilter::cuda {

// 2-D and 3-D blocks whose rows have at least 16 bytes also go through shared memory: neighbouring threads then access
// the same rows.
template <int D, class Value>
inline constexpr bool kStaged = D == 1 || kRowValues<D> * sizeof(Value) >= 16;

// This thread's half of a 2-D or 3-D block: its start, and the block's extent inside the array.
template <int D>
struct HalfBlock {
  static constexpr int L = kRowValues<D>, kRows = 32 / L;  // rows of a half block
  std::uint64_t first, row_stride, slab_stride;
  int columns, rows, slabs, half;

  __device__ HalfBlock(const LaunchGrid& grid, std::uint32_t block, int half_) : half(half_) {
    const Quotient column = divide(block, grid.by_gx), plane = divide(column.quotient, grid.by_gy);
    const Quotient outer = D == 3 ? divide(plane.quotient, grid.by_gz) : Quotient{plane.quotient, 0};
    const std::uint64_t z0 = std::uint64_t{outer.remainder} * L, y0 = std::uint64_t{plane.remainder} * L,
                        x0 = std::uint64_t{column.remainder} * L;
    row_stride = grid.nx;
    slab_stride = grid.nx * grid.ny;
    first = (outer.quotient * grid.nz + z0) * slab_stride + y0 * row_stride + x0;
    columns = static_cast<int>(grid.nx - x0 < L ? grid.nx - x0 : L);
    rows = static_cast<int>(grid.ny - y0 < L ? grid.ny - y0 : L);
    slabs = D == 3 ? static_cast<int>(grid.nz - z0 < L ? grid.nz - z0 : L) : 1;
  }
  // Row and slab of row `r` of this half block.
  __device__ int row(int r) const { return D == 2 ? half * kRows + r : r % L; }
  __device__ int slab(int r) const { return D == 2 ? 0 : half * (kRows / L) + r / L; }
  __device__ bool inside(int r) const { return row(r) < rows && slab(r) < slabs; }
  // The index of a row's first value; rows outside the array repeat the last row inside.
  __device__ std::uint64_t row_at(int r) const {
    const int y = row(r) < rows ? row(r) : rows - 1, z = slab(r) < slabs ? slab(r) : slabs - 1;
    return first + static_cast<unsigned>(z) * slab_stride + static_cast<unsigned>(y) * row_stride;
  }
  __device__ std::uint64_t value_at(int i) const {
    const int x = i % L < columns ? i % L : columns - 1;
    return row_at(i / L) + static_cast<unsigned>(x);
  }
};

// Copies a row of L values in as few accesses as its alignment allows.
template <int kBytes, class To, class From>
__device__ __forceinline__ void copy_row(To* to, const From* from) {
  if constexpr (kBytes >= 16) {
#pragma unroll
    for (int i = 0; i < kBytes / 16; ++i) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  } else if constexpr (kBytes == 8) {
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
  } else {
    *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
  }
}

template <int D, class Value>
__device__ __forceinline__ void load_half(const HalfBlock<D>& block, const std::uint8_t* values, bool aligned,
                                          Value (&x)[32]) {
  constexpr int L = kRowValues<D>;
  const auto* from = reinterpret_cast<const Value*>(values);
  if (aligned && block.columns == L) {
#pragma unroll
    for (int r = 0; r < 32 / L; ++r) copy_row<L* static_cast<int>(sizeof(Value))>(x + r * L, from + block.row_at(r));
    return;
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) x[i] = from[block.value_at(i)];
}

template <int D, class Value>
__device__ __forceinline__ void store_half(const HalfBlock<D>& block, const Value (&x)[32], bool aligned,
                                           std::uint64_t start, std::uint64_t stop, std::uint8_t* out) {
  constexpr int L = kRowValues<D>;
  auto* to = reinterpret_cast<Value*>(out);
  if (aligned && block.columns == L) {
#pragma unroll
    for (int r = 0; r < 32 / L; ++r)
      if (block.inside(r)) copy_row<L* static_cast<int>(sizeof(Value))>(to + block.row_at(r), x + r * L);
    return;
  }
#pragma unroll
  for (int r = 0; r < 32 / L; ++r) {
    const std::uint64_t row = block.row_at(r);
#pragma unroll
    for (int c = 0; c < L; ++c) {
      const std::uint64_t index = row + static_cast<unsigned>(c);
      if (block.inside(r) && c < block.columns && index >= start && index < stop) to[index - start] = x[r * L + c];
    }
  }
}

// Offsets of a tile's blocks and their extents inside the array; in shared memory.
struct BlockOffsets {
  std::uint64_t first[kTileBlocks<2>];
  uchar4 inside[kTileBlocks<2>];  // columns, rows, slabs
  int whole[2];                   // whether all blocks of a warp have whole rows

  __device__ __forceinline__ bool all_whole() const { return whole[0] != 0 && whole[1] != 0; }
};

// Computed by the first two warps; a barrier must follow.
template <int D>
__device__ __forceinline__ void find_block_offsets(const LaunchGrid& grid, std::uint32_t tile, std::uint32_t all_blocks,
                                                   BlockOffsets& offsets) {
  if (threadIdx.x >= kTileBlocks<D>) return;
  const std::uint32_t number = tile * kTileBlocks<D> + threadIdx.x;
  const HalfBlock<D> block(grid, min(number, all_blocks - 1), 0);
  offsets.first[threadIdx.x] = block.first;
  offsets.inside[threadIdx.x] =
      make_uchar4(static_cast<unsigned char>(block.columns), static_cast<unsigned char>(block.rows),
                  static_cast<unsigned char>(block.slabs), 0);
  const int whole = __all_sync(0xFFFFFFFFu, block.columns == kRowValues<D>);
  if (threadIdx.x % 32 == 0) offsets.whole[threadIdx.x / 32] = whole;
}

// Prefetches the values of blocks, by the warps of find_block_offsets() right after it: neighbouring blocks share lines
// of 128 bytes, and each thread takes rows.
template <int D, class Value>
__device__ __forceinline__ void prefetch_blocks(const Grid& grid, const std::uint8_t* values,
                                                const BlockOffsets& offsets) {
  constexpr unsigned L = kRowValues<D>, kSharing = 128 / (L * sizeof(Value));
  if (threadIdx.x >= kTileBlocks<D>) return;
  const unsigned sharer = threadIdx.x % kSharing, leader = threadIdx.x - sharer;
  __syncwarp();
  const uchar4 inside = offsets.inside[leader];
  const std::uint8_t* const from = values + offsets.first[leader] * sizeof(Value);
  const std::uint64_t row_bytes = grid.nx * sizeof(Value), slab_bytes = grid.ny * row_bytes;
#pragma unroll
  for (unsigned i = 0; i < 64 / L / kSharing; ++i) {
    const unsigned row = i * kSharing + sharer, y = D == 2 ? row : row % L, z = D == 2 ? 0 : row / L;
    if (y < inside.y && z < inside.z) prefetch_line(from + z * slab_bytes + y * row_bytes);
  }
}

// Calls visit(i, at, offset, inside) for each 16-byte piece of the tile's blocks that this thread moves. i: counts
// pieces. at: offset in memory, in bytes from the first value. offset: in the arena. inside: whether the row is inside
// the array; otherwise it repeats the last row inside.
template <int D, class Value, int kUnroll, class Visit>
__device__ __forceinline__ void for_pieces(const Grid& grid, int blocks, const BlockOffsets& offsets, Visit visit) {
  constexpr unsigned L = kRowValues<D>, kRows = 32 / L, kPer = 16 / sizeof(Value), kPieces = L / kPer;
  // Threads take the pieces of a block's row, then those of the next blocks, then the next row. Blocks lie an even
  // number of 16-byte units apart in the arena. A quarter warp that takes one piece or four of each block would have
  // bank conflicts; it takes two rows of half as many blocks.
  constexpr unsigned kBlocks = kTileBlocks<D>, kRowStep = kPieces == 2 ? 1 : 2, kStep = kThreads / kPieces / kRowStep;
  constexpr unsigned kGroups = kBlocks / kStep, kQuarter = 8 / kPieces / kRowStep;  // blocks of a quarter warp
  static_assert(kGroups * kStep == kBlocks && kQuarter * kPieces * kRowStep == 8);
  static_assert(L % kRowStep == 0 && kRows % kRowStep == 0);  // makes all offsets but a row's first constant
  const unsigned k = threadIdx.x % kPieces, b0 = threadIdx.x / 8 * kQuarter + threadIdx.x / kPieces % kQuarter,
                 row0 = threadIdx.x / (kPieces * kQuarter) % kRowStep;
  const std::uint64_t row_bytes = grid.nx * sizeof(Value), slab_bytes = grid.ny * row_bytes;
#pragma unroll
  for (unsigned group = 0; group < kGroups; ++group) {
    const unsigned b = b0 + group * kStep;
    if (b >= static_cast<unsigned>(blocks)) continue;
    const uchar4 inside = offsets.inside[b];
    const std::uint64_t first = offsets.first[b] * sizeof(Value) + 16 * k;
    const unsigned offset = 2 * b * kRowBytes<Value> + row0 * L * sizeof(Value) + 16 * k;
#pragma unroll kUnroll
    for (unsigned i = 0; i < 64 / L / kRowStep; ++i) {
      const unsigned row = i * kRowStep;
      const unsigned y = (D == 2 ? row : row % L) + row0, z = D == 2 ? 0 : row / L;
      const unsigned y_in = min(y, inside.y - 1u), z_in = D == 2 ? 0 : min(z, inside.z - 1u);
      visit(group * (64 / L / kRowStep) + i, first + y_in * row_bytes + z_in * slab_bytes,
            static_cast<int>(offset + row / kRows * kRowBytes<Value> + row % kRows * L * sizeof(Value)),
            y == y_in && z == z_in);
    }
  }
}

// Calls visit(i, index, offset, inside) for the values that this thread moves one by one. Neighbouring threads take
// neighbours along the rows of the array, whatever their alignment. i: counts values. index: in the array, or the
// nearest one inside. offset: in the arena. inside: whether the value is inside the array. Calls flush() after every
// kBatch values.
template <int D, class Value, unsigned kBatch, class Visit, class Flush>
__device__ __forceinline__ void for_block_values(const Grid& grid, int blocks, const BlockOffsets& offsets, Visit visit,
                                                 Flush flush) {
  constexpr unsigned L = kRowValues<D>, kRows = 32 / L, kStep = kThreads / L, kGroups = kTileBlocks<D> / kStep;
  static_assert(kGroups * kStep == kTileBlocks<D> && 64 / L % kBatch == 0);
  const unsigned c = threadIdx.x % L;
  const std::uint64_t slab = grid.nx * grid.ny;
#pragma unroll 1
  for (unsigned b = threadIdx.x / L; b < static_cast<unsigned>(blocks); b += kStep) {
    const uchar4 inside = offsets.inside[b];
    const std::uint64_t first = offsets.first[b] + min(c, inside.x - 1u);
    const unsigned offset = 2 * b * kRowBytes<Value> + c * sizeof(Value);
#pragma unroll
    for (unsigned batch = 0; batch < 64 / L; batch += kBatch) {
#pragma unroll
      for (unsigned i = 0; i < kBatch; ++i) {
        const unsigned row = batch + i, y = D == 2 ? row : row % L, z = D == 2 ? 0 : row / L;
        const unsigned y_in = min(y, inside.y - 1u), z_in = D == 2 ? 0 : min(z, inside.z - 1u);
        visit(i, first + y_in * grid.nx + z_in * slab,
              offset + static_cast<unsigned>(row / kRows * kRowBytes<Value> + row % kRows * L * sizeof(Value)),
              c < inside.x && y == y_in && z == z_in);
      }
      flush();
    }
  }
}

template <int D, class Value>
__device__ __forceinline__ void load_blocks(const Grid& grid, const std::uint8_t* values, int blocks, bool whole,
                                            const BlockOffsets& offsets, std::uint8_t* arena) {
  if (whole) {
    copy_pieces<Value, kThroughRegisters<Value>>([&](auto visit) {
      // blocks beyond the last one have the last one's offset
      for_pieces<D, Value, 8>(grid, kTileBlocks<D>, offsets, [&](unsigned i, std::uint64_t at, int offset, bool) {
        visit(i, arena + offset, values + at);
      });
    });
    return;
  }
  const auto* const from = reinterpret_cast<const Value*>(values);
  constexpr unsigned kBatch = 8;
  Value batch[kBatch];
  unsigned to[kBatch];
  for_block_values<D, Value, kBatch>(
      grid, blocks, offsets,
      [&](unsigned i, std::uint64_t index, unsigned offset, bool) {
        batch[i] = from[index];
        to[i] = offset;
      },
      [&] {
#pragma unroll
        for (unsigned i = 0; i < kBatch; ++i) *reinterpret_cast<Value*>(arena + to[i]) = batch[i];
      });
}

template <int D, class Value>
__device__ __forceinline__ void store_blocks(const Grid& grid, const std::uint8_t* arena, int blocks, bool whole,
                                             const BlockOffsets& offsets, std::uint64_t start, std::uint64_t stop,
                                             std::uint8_t* out) {
  if (whole) {
    for_pieces<D, Value, 8>(grid, blocks, offsets, [&](unsigned, std::uint64_t at, int offset, bool inside) {
      if (inside) __stcs(reinterpret_cast<uint4*>(out + at), *reinterpret_cast<const uint4*>(arena + offset));
    });
    return;
  }
  auto* const to = reinterpret_cast<Value*>(out) - start;
  const auto value = [&](unsigned offset) { return *reinterpret_cast<const Value*>(arena + offset); };
  if (start == 0 && stop >= grid.values) {
    for_block_values<D, Value, 8>(
        grid, blocks, offsets,
        [&](unsigned, std::uint64_t index, unsigned offset, bool inside) {
          if (inside) to[index] = value(offset);
        },
        [] {});
    return;
  }
  for_block_values<D, Value, 8>(
      grid, blocks, offsets,
      [&](unsigned, std::uint64_t index, unsigned offset, bool inside) {
        if (inside && index >= start && index < stop) to[index] = value(offset);
      },
      [] {});
}

}  // namespace pyfilter::cuda
