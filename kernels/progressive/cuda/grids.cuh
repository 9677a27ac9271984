// SPDX-License-Identifier: BSD-3-Clause
// Grids of a level, and the offsets of coefficients in the slots of tiles (docs/format.md, section 13.1). A block has
// `across` threads along rows or pieces of rows, and the others over rows, which are numbered through the whole grid.
#pragma once

#include <cstdint>

#include "progressive/cuda/params.cuh"
#include "progressive/layout.hpp"
#include "progressive/tile.hpp"
#include "progressive/transform.hpp"

namespace pyfilter::cuda {

inline constexpr int kGridThreads = 256;

// A block's share of rows of a given length. A thread takes at least `each` / 2 values of a long row: computing the
// row's parameters costs more than one value.
struct RowBlocks : RowShare {
  static constexpr std::uint32_t kMost = 32 * kGridThreads;
  std::uint32_t blocks = 0;  // for all rows

  RowBlocks(std::uint64_t rows, std::uint64_t row, std::uint32_t each = 8) {
    while (across < kGridThreads && each * across <= row) across *= 2;
    const std::uint64_t at_once = kGridThreads / across;
    if (row > 2 * kMost) {
      piece = kMost;
      pieces = static_cast<std::uint32_t>((row + kMost - 1) / kMost);
    }
    blocks = static_cast<std::uint32_t>((rows + at_once - 1) / at_once * pieces);
  }
};

// A thread's share of a row in such a launch: values from `x` on to `end`, every `step`.
struct RowPart {
  std::uint32_t row, x, end, step;

  // `each` values at a time.
  __device__ __forceinline__ RowPart(const RowShare& share, std::uint32_t length, std::uint32_t each = 1) {
    const std::uint32_t piece = blockIdx.x % share.pieces, first = piece == 0 ? 0 : piece * share.piece;
    row = blockIdx.x / share.pieces * (kGridThreads / share.across) + threadIdx.x / share.across;
    x = first + each * (threadIdx.x % share.across);
    end = length - first > share.piece ? first + share.piece : length;
    step = each * share.across;
  }
};

// Slot offsets of the coefficients of a unit's rows.
struct UnitOffsets {
  const ProgressiveUnit& unit;
  bool merged;
  TileForm form;

  __device__ __forceinline__ explicit UnitOffsets(const ProgressiveUnit& u)
      : unit(u), merged(u.tiled.z != u.shape.z || u.tiled.y != u.shape.y || u.tiled.x != u.shape.x), form(form_of(u)) {}

  // Of (z, y, x) in tiled coordinates.
  __device__ __forceinline__ std::uint64_t tiled_offset(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    const auto gx = static_cast<std::uint32_t>(unit.grid.x), gy = static_cast<std::uint32_t>(unit.grid.y);
    std::uint32_t tile, at;
    if (form == TileForm::line) {
      tile = x / 4096;
      at = x % 4096;
    } else if (form == TileForm::plane) {
      tile = y / 128 * gx + x / 32;
      at = y % 128 * 32 + x % 32;
    } else {
      tile = (z / 8 * gy + y / 16) * gx + x / 32;
      at = z % 8 * 512 + y % 16 * 32 + x % 32;
    }
    return std::uint64_t{tile} * kSlotValues + at;
  }
  // Of a coefficient of the unit.
  __device__ __forceinline__ std::uint64_t offset(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    if (!merged) return tiled_offset(z, y, x);
    const auto sy = static_cast<std::uint32_t>(unit.shape.y), sx = static_cast<std::uint32_t>(unit.shape.x);
    const std::uint32_t all = (z * sy + y) * sx + x;  // below 2^31: a chunk has less than 2^33 bytes
    if (form == TileForm::line) return tiled_offset(0, 0, all);
    const auto tx = static_cast<std::uint32_t>(unit.tiled.x), ty = static_cast<std::uint32_t>(unit.tiled.y);
    return tiled_offset(all / tx / ty, all / tx % ty, all % tx);
  }
};

// The same along a row of a unit: offset(x).
struct CoefficientRow {
  const UnitOffsets& offsets;
  std::uint32_t z, y;
  std::uint64_t first;

  __device__ __forceinline__ CoefficientRow(const UnitOffsets& of, std::uint32_t at_z, std::uint32_t at_y)
      : offsets(of), z(at_z), y(at_y), first(of.merged ? 0 : of.tiled_offset(at_z, at_y, 0)) {}
  __device__ __forceinline__ std::uint64_t offset(std::uint32_t x) const {
    if (offsets.merged) return offsets.offset(z, y, x);
    const std::uint32_t tile = offsets.form == TileForm::line ? x : (x / 32 * kSlotValues) | x % 32;
    return first + tile;
  }
};

}  // namespace pyfilter::cuda
