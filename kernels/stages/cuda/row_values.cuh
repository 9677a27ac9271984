// SPDX-License-Identifier: BSD-3-Clause
// Rows of shared memory, one for each thread's 32 values of a tile, and 1-D tiles between them and device memory
// (docs/format.md, section 4.1). All accesses are coalesced. block_values.cuh has 2-D and 3-D blocks.
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

}  // namespace pyfilter::cuda
