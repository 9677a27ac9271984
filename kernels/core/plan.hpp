// SPDX-License-Identifier: BSD-3-Clause
// Plan: what the tiles of a chunk need to know, derived from a header or a request once; rooms and stages derive plans
// with more in them. TileCoder: a codec's functions on tiles, for one CPU level. The driver of threads (cpu_driver.cpp)
// knows codecs only through these. A unit is what a directory entry is of: a tile or, where tiles share a stream, some.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/grid.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Largest tile: rates, descriptors, outlier bytes, words; and what vector stores may overwrite behind it.
constexpr std::size_t max_tile_bytes(std::size_t value_bytes) { return 4096 * value_bytes + 128 * (1 + 2 + 8) + 4; }
inline constexpr std::size_t kMaxTileBytes = max_tile_bytes(8);
inline constexpr std::size_t kTileSlackBytes = 64;
// Scratch memory that one thread needs to encode a tile.
inline constexpr std::size_t kScratchBytes = std::size_t{192} << 10;

struct Plan {
  Dtype dtype = Dtype::none;
  bool pointwise = false;  // the bound is relative to each value, the step one of log2 |x|
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;
  double bound = 0.0, step = 0.0;
  Grid grid;
  std::uint32_t unit_tiles = 1;               // tiles of a unit
  std::size_t unit_bytes = kMaxTileBytes;     // the largest unit, but for the slack
  std::size_t scratch_bytes = kScratchBytes;  // that a thread needs to encode a unit

  std::uint64_t units() const { return grid.tiles / unit_tiles + (grid.tiles % unit_tiles != 0 ? 1 : 0); }
};

// What a header says of every codec's tiles; grids and the rest are the rooms'.
inline void read_plan(const FrameInfo& info, Plan& plan) {
  plan.dtype = info.dtype;
  plan.pointwise = info.pointwise;
  plan.has_sentinel = info.has_sentinel;
  plan.sentinel = info.sentinel;
  plan.bound = info.bound;
  plan.step = info.step;
}

// Sizes of a unit in the directory: bytes, a multiple of 4, and whether it is uniform.
struct EncodedTile {
  std::uint32_t bytes = 0;
  bool uniform = false;
};

struct TileCoder {
  // Encodes a unit of the chunk at `values` into `out` (plan.unit_bytes + kTileSlackBytes at least).
  EncodedTile (*encode)(const Plan& plan, const void* values, std::uint64_t unit, void* scratch, std::uint8_t* out);
  // Decodes a unit of `bytes` bytes and stores those of its values whose index is in [start, stop) at
  // out[index - start].
  Status (*decode)(const Plan& plan, const std::uint8_t* unit_bytes, std::size_t bytes, bool uniform,
                   std::uint64_t unit, std::uint64_t start, std::uint64_t stop, void* out);
};

// A frame's step, as chosen from a deterministic sample of the chunk (stages/sample.hpp).
struct StepChoice {
  bool quantise = false;  // false: the bound is too tight for this dtype and data, store bit-exact
  double bound = 0.0;     // the bound rounded down to the dtype
  double step = 0.0;
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;
};

}  // namespace pyfilter
