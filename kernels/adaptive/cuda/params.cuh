// SPDX-License-Identifier: BSD-3-Clause
// Parameters of decoding on a GPU: the job from the host, and the results of the first kernel for each frame.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "adaptive/layout.hpp"
#include "adaptive/model.hpp"
#include "adaptive/plan.hpp"
#include "adaptive/tables.hpp"
#include "core/cuda/codec.cuh"

namespace pyfilter::cuda {

inline constexpr std::size_t kPayloadHead = 8;  // the offset
inline constexpr std::uint32_t kSlotsOfTable = 1u << kTableBits;

// A part of a frame whose model has been read. `good` is 0 if the part is damaged.
struct OpenPart {
  std::uint32_t good;
  std::uint32_t units, unit_log2;
  DecodeFrame directory;  // the frame from the part's directory on, up to the part's end
  AdaptiveGrid grid;
  double offset;
  AdaptiveModel model;
};

// Where the tiles of a model are decoded and coded: in rings of steps in shared memory; the first pass so, and refining
// passes in global memory; or all in global memory.
enum class TilePlace : std::uint32_t { rings = 0, refined = 1, flat = 2 };
inline constexpr TilePlace kPlaces[] = {TilePlace::rings, TilePlace::refined, TilePlace::flat};
inline constexpr std::uint32_t kPlaceCount = 3, kTileKinds = 3;
__host__ __device__ constexpr std::uint32_t tile_kind_index(TileKind kind) {
  return static_cast<std::uint32_t>(kind) - 1;
}
// Cells of shorter planes would be needed in a ring before they are written.
inline constexpr std::uint32_t kLeastRingColumns = 16;
__host__ __device__ inline TilePlace place_of(const AdaptiveGrid& grid, std::uint32_t levels) {
  if (grid.kind == TileKind::volume && grid.nx / grid.gx >> levels < kLeastRingColumns) return TilePlace::flat;
  // halves of one column (foresee.cuh)
  if (grid.kind == TileKind::plane && levels != 0 && grid.nx / grid.gx <= 4ull << (levels - 1)) return TilePlace::flat;
  return levels != 0 ? TilePlace::refined : TilePlace::rings;
}
// Whether some model's tiles are there.
inline bool is_place_of(const AdaptiveGrid& grid, TilePlace place) {
  for (std::uint32_t levels = 0; levels <= kMostLevels; ++levels)
    if (place_of(grid, levels) == place) return true;
  return false;
}

// Global memory of a warp, for the largest tile of a grid.
struct ScratchShape {
  std::uint32_t wave_floats = 0, cells = 0, masks = 0;

  __host__ __device__ std::size_t bytes() const {
    return (4 * (2 * std::size_t{wave_floats} + 2 * std::size_t{cells} + masks) + cells + 255) / 256 * 256;
  }
};
struct UnitScratch {
  static constexpr std::uint32_t kMaskMargin = 128;

  float *values, *sizes, *dense_values, *dense_sizes;
  std::uint32_t* masks;  // masks of steps, after kMaskMargin words for earlier steps
  std::uint8_t* kinds;

  PYF_LANES UnitScratch in(std::uint8_t* memory, const ScratchShape& shape) {
    UnitScratch s;
    s.values = reinterpret_cast<float*>(memory);
    s.sizes = s.values + shape.wave_floats;
    s.dense_values = s.sizes + shape.wave_floats;
    s.dense_sizes = s.dense_values + shape.cells;
    s.masks = reinterpret_cast<std::uint32_t*>(s.dense_sizes + shape.cells);
    s.kinds = reinterpret_cast<std::uint8_t*>(s.masks + shape.masks);
    return s;
  }
};

// The units of a chunk of so many tiles, at least 1.
__host__ __device__ constexpr std::uint32_t unit_count(std::uint32_t tiles, std::uint32_t log2) {
  return ((tiles - 1) >> log2) + 1;
}
// The tiles of a unit.
struct UnitTiles {
  std::uint32_t first, count;  // count: 0 if there is no such unit

  __device__ __forceinline__ UnitTiles(std::uint32_t all, std::uint32_t log2, std::uint32_t unit)
      : first(unit << log2) {
    count = unit >= unit_count(all, log2) ? 0 : all - first < (1u << log2) ? all - first : 1u << log2;
  }
};

// What a launch decodes. DecodeFrame::mode is the binary logarithm of the tiles in a unit, but for frames with heads.
struct AdaptiveDecode {
  PartGrids grids;
  std::uint32_t axes, parts;      // axes: of the frames; parts: of a frame
  AdaptiveTaps taps[kTileKinds];  // tile_kind_index()
  TileKind kind;                  // that the launch decodes
  std::uint32_t most_units;       // of a part, at most
  std::uint64_t start, stop;      // requested values
  const DecodeFrame* frames;      // nullptr: use only_frame
  DecodeFrame only_frame;
  std::uint32_t frame_count;
  OpenPart* opened;          // of each part of each frame
  std::uint32_t* slots;      // of each part's tables
  std::uint32_t* next_unit;  // a counter for each kind and place
  std::uint8_t* scratch;     // of each thread block, but for rings alone
  ScratchShape scratch_shape;
  float* planes;  // for volumes in rings: plane_floats of each warp
  std::size_t plane_floats;

  __device__ __forceinline__ const DecodeFrame& frame(std::uint32_t i) const {
    return frames != nullptr ? frames[i] : only_frame;
  }
  __host__ __device__ std::uint32_t part_count() const { return frame_count * parts; }
  __device__ __forceinline__ std::uint32_t* counter(TilePlace place) const {
    return next_unit + kPlaceCount * tile_kind_index(kind) + static_cast<std::uint32_t>(place);
  }
  __device__ __forceinline__ std::uint32_t* slots_of(std::uint32_t i) const {
    return slots + std::size_t{i} * kMostTablesOfModel * kSlotsOfTable;
  }
};

// Launchers of the kernels for a dtype.
struct AdaptiveKernels {
  // Returns the number of thread blocks that are resident on the device.
  cudaError_t (*resident)(TileKind kind, TilePlace place, std::uint32_t* blocks);
  cudaError_t (*decode)(const AdaptiveDecode& job, TilePlace place, std::uint32_t blocks, cudaStream_t stream);
};

}  // namespace pyfilter::cuda
