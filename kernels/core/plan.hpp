// SPDX-License-Identifier: BSD-3-Clause
// Plan: data that the tiles of a chunk need, derived once from a header or a request; codecs and stages derive larger
// plans from it. TileCoder: a codec's functions on tiles, for one CPU level. cpu_driver.cpp knows codecs only through
// these two. A unit is a tile or, where tiles share a stream, a group of tiles; each has one directory entry.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/grid.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Size of the largest tile: rates, descriptors, exception bytes, words. kTileSlackBytes: vector stores may write so
// many bytes beyond its end.
constexpr std::size_t max_tile_bytes(std::size_t value_bytes) { return 4096 * value_bytes + 128 * (1 + 2 + 8) + 4; }
inline constexpr std::size_t kMaxTileBytes = max_tile_bytes(8);
inline constexpr std::size_t kTileSlackBytes = 64;
// Scratch memory that one thread needs to encode a tile.
inline constexpr std::size_t kScratchBytes = std::size_t{192} << 10;

struct Plan {
  Dtype dtype = Dtype::none;
  bool pointwise = false;  // the bound is relative to each value, the step is of log2 |x|
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;
  double bound = 0.0, step = 0.0;
  Grid grid;
  std::uint32_t unit_tiles = 1;               // tiles of a unit
  std::size_t unit_bytes = kMaxTileBytes;     // size of the largest unit, without the slack
  std::size_t scratch_bytes = kScratchBytes;  // scratch memory of a thread that encodes a unit

  std::uint64_t units() const { return grid.tiles / unit_tiles + (grid.tiles % unit_tiles != 0 ? 1 : 0); }
};

// Copies the header's fields that all codecs share; each codec adds its grid and the rest.
inline void read_plan(const FrameInfo& info, Plan& plan) {
  plan.dtype = info.dtype;
  plan.pointwise = info.pointwise;
  plan.has_sentinel = info.has_sentinel;
  plan.sentinel = info.sentinel;
  plan.bound = info.bound;
  plan.step = info.step;
}

// A unit's entry in the directory: its bytes, a multiple of 4, and whether it is uniform.
struct EncodedTile {
  std::uint32_t bytes = 0;
  bool uniform = false;
};

struct TileCoder {
  // Encodes a unit of the chunk at `values` into `out` (plan.unit_bytes + kTileSlackBytes at least).
  EncodedTile (*encode)(const Plan& plan, const void* values, std::uint64_t unit, void* scratch, std::uint8_t* out);
  // Decodes a unit of `bytes` bytes. Stores each value whose index is in [start, stop) at out[index - start].
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
