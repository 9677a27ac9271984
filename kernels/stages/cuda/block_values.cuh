// SPDX-License-Identifier: BSD-3-Clause
// Values of a tile between device memory and the threads, 32 values a thread (docs/format.md, section 4.1). 1-D tiles
// go through rows in shared memory, so all accesses are coalesced. The rows of 2-D and 3-D blocks are short runs, which
// neighbouring threads load and store side by side.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "stages/cuda/params.cuh"
#include "stages/cuda/prefetch.cuh"
#include "stages/difference.hpp"

namespace pyfilter::cuda {

// A row of shared memory holds a thread's 32 values; an odd number of 16-byte units avoids bank conflicts between
// quarter warps.
template <class Value>
inline constexpr int kRowBytes = (32 * static_cast<int>(sizeof(Value)) / 16 | 1) * 16;
template <class Value>
inline constexpr int kArenaBytes = (kThreads * kRowBytes<Value> > static_cast<int>(max_tile_bytes(sizeof(Value))) + 32
                                        ? kThreads * kRowBytes<Value>
                                        : static_cast<int>(max_tile_bytes(sizeof(Value))) + 32 + 15) /
                                   16 * 16;

template <class Value>
__device__ __forceinline__ Value* row_of(std::uint8_t* arena, int thread) {
  return reinterpret_cast<Value*>(arena + thread * kRowBytes<Value>);
}

template <class Value>
__device__ __forceinline__ void read_row(const std::uint8_t* arena, Value (&x)[32]) {
  const auto* from = reinterpret_cast<const uint4*>(arena + threadIdx.x * kRowBytes<Value>);
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) reinterpret_cast<uint4*>(x)[i] = from[i];
}

template <class Value>
__device__ __forceinline__ void write_row(std::uint8_t* arena, const Value (&x)[32]) {
  auto* to = reinterpret_cast<uint4*>(arena + threadIdx.x * kRowBytes<Value>);
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(Value)); ++i) to[i] = reinterpret_cast<const uint4*>(x)[i];
}

// A tile's values are pieces of 16 bytes, kRowPieces a row. `block`: a thread moves every 128th piece. `warp`: a lane
// moves every 32nd piece of its warp's rows, so that no warp waits for another. Chains of packed tiles are loaded and
// stored by warps (2 and 3 % faster). 1-D blocks are stored by warps, but loaded by blocks. Loading them by warps makes
// encoding 9 % slower: the warps' pieces of one step are not adjacent in memory.
enum class Mover { block, warp };
template <class Value>
inline constexpr unsigned kRowPieces = 32 * sizeof(Value) / 16;
template <Mover kMover>
inline constexpr unsigned kMovers = kMover == Mover::block ? kThreads : 32;
// A thread's first piece in the tile, its offset in the arena, and the distance to the next piece.
template <class Value, Mover kMover>
__device__ __forceinline__ unsigned first_piece() {
  return kMover == Mover::block ? threadIdx.x : threadIdx.x / 32 * 32 * kRowPieces<Value> + threadIdx.x % 32;
}
template <class Value, Mover kMover>
__device__ __forceinline__ unsigned first_offset() {
  return first_piece<Value, kMover>() / kRowPieces<Value> * kRowBytes<Value> + threadIdx.x % kRowPieces<Value> * 16;
}
template <class Value, Mover kMover>
inline constexpr int kPieceStep = static_cast<int>(kMovers<kMover> / kRowPieces<Value>) * kRowBytes<Value>;

// Loads 16 bytes of values. They go to shared memory through registers. A copy that bypasses registers (cp.async)
// requests a 32-byte sector from the L2 cache once for each sector of shared memory that it fills. Rows are an odd
// number of 16-byte units apart, so cp.async has 1.5 times the traffic for 1-D tiles, 3 times for 3-D tiles.
__device__ __forceinline__ uint4 load_piece(const void* at) {
  uint4 piece;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
               : "l"(at));
  return piece;
}

// Number of 16-byte pieces of a tile that a thread moves.
template <class Value>
inline constexpr int kThreadPieces = static_cast<int>(kTileValues * sizeof(Value)) / 16 / kThreads;

// Copies pieces from memory to shared memory: for_each(visit) calls visit(i, to, from) for each piece, i counting
// pieces.
template <class Value, bool kThroughRegisters, class ForEach>
__device__ __forceinline__ void copy_pieces(const ForEach& for_each) {
  if constexpr (kThroughRegisters) {
    uint4 pieces[kThreadPieces<Value>];
    for_each([&](unsigned i, std::uint8_t*, const std::uint8_t* from) { pieces[i] = load_piece(from); });
    for_each([&](unsigned i, std::uint8_t* to, const std::uint8_t*) { *reinterpret_cast<uint4*>(to) = pieces[i]; });
  } else {
    for_each([](unsigned, std::uint8_t* to, const std::uint8_t* from) { __pipeline_memcpy_async(to, from, 16); });
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
}
// 64-bit values bypass registers, since they would need too many: 1-D tiles would encode 2 % slower, 3-D tiles 10 %.
template <class Value>
inline constexpr bool kThroughRegisters = sizeof(Value) < 8;

// 1-D: loads all values of a tile into rows; the last value pads the last block.
template <class Value>
__device__ __forceinline__ void load_rows(const Grid& grid, const std::uint8_t* values, std::uint32_t tile,
                                          bool aligned, std::uint8_t* arena) {
  const std::uint64_t first = std::uint64_t{tile} * kTileValues, left = grid.values - first;
  const std::uint8_t* from = values + first * sizeof(Value);
  if (left >= kTileValues && aligned) {
    std::uint8_t* const to = arena + first_offset<Value, Mover::block>();
    from += 16 * threadIdx.x;
    copy_pieces<Value, kThroughRegisters<Value>>([&](auto visit) {
#pragma unroll
      for (int i = 0; i < kThreadPieces<Value>; ++i)
        visit(i, to + i * kPieceStep<Value, Mover::block>, from + i * 16 * kThreads);
    });
    return;
  }
  const int here = left < kTileValues ? static_cast<int>(left) : kTileValues, padded = (here + 31) / 32 * 32;
  for (int i = static_cast<int>(threadIdx.x); i < padded; i += kThreads)
    row_of<Value>(arena, i / 32)[i % 32] = reinterpret_cast<const Value*>(from)[i < here ? i : here - 1];
}

// 1-D: stores rows, limited to values [start, stop); each warp stores its own rows.
template <class Value>
__device__ __forceinline__ void store_rows(const std::uint8_t* arena, std::uint32_t tile, std::uint64_t start,
                                           std::uint64_t stop, std::uint8_t* out) {
  const std::uint64_t first = std::uint64_t{tile} * kTileValues;
  std::uint8_t* to = out + (first - start) * sizeof(Value);
  if (first >= start && first + kTileValues <= stop && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    arena += first_offset<Value, Mover::warp>();
    to += 16 * first_piece<Value, Mover::warp>();
#pragma unroll
    for (int i = 0; i < kThreadPieces<Value>; ++i)
      __stcs(reinterpret_cast<uint4*>(to + i * 16 * 32),
             *reinterpret_cast<const uint4*>(arena + i * kPieceStep<Value, Mover::warp>));
    return;
  }
  const int own = static_cast<int>(threadIdx.x / 32) * 1024;
  for (int i = own + static_cast<int>(threadIdx.x % 32); i < own + 1024; i += 32) {
    const std::uint64_t index = first + static_cast<unsigned>(i);
    if (index >= start && index < stop)
      reinterpret_cast<Value*>(out)[index - start] =
          reinterpret_cast<const Value*>(arena + i / 32 * kRowBytes<Value>)[i % 32];
  }
}

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

// 1-D: prefetches the values of a whole tile to the L2 cache.
template <class Value>
__device__ __forceinline__ void ask_for_rows(const Grid& grid, const std::uint8_t* values, std::uint32_t tile) {
  constexpr int kLines = static_cast<int>(kTileValues * sizeof(Value) / 128);
  const std::uint64_t first = std::uint64_t{tile} * kTileValues;
  if (first + kTileValues > grid.values) return;
#pragma unroll
  for (int line = static_cast<int>(threadIdx.x); line < kLines; line += kThreads)
    prefetch_line(values + first * sizeof(Value) + 128 * line);
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
  for_block_values<D, Value, 8>(
      grid, blocks, offsets,
      [&](unsigned, std::uint64_t index, unsigned offset, bool inside) {
        if (inside && index >= start && index < stop) to[index] = *reinterpret_cast<const Value*>(arena + offset);
      },
      [] {});
}

}  // namespace pyfilter::cuda
