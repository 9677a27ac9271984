// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of progressive frames are given (docs/format.md, section 13). All frames of a batch have one shape
// and dtype, and so one layout; blockIdx.y is the frame.
//
// Coefficients and planes are kept in the order of tiles: a tile has a slot of 4096 integers, coefficient i of it at i.
// As planes, word w of plane p is word 128 p + w of the slot, and signs are the last plane.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"
#include "progressive/choices.hpp"
#include "progressive/head.hpp"
#include "progressive/layout.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kSlotValues = 4096;
inline constexpr int kGroupTiles = 16;  // of a unit, that blocks side by side decode

// Tiles of a unit: as many as a block takes, or what is left.
struct TileGroup {
  std::uint32_t unit, first;
};

// What is the same for all frames of a batch, in device memory.
struct ProgressiveShared {
  ProgressiveLayout layout;
  std::uint32_t first_tile[kMostUnits + 1];  // of a unit, among the tiles of all
};

// A head as it was read, or as it is made.
struct FrameHead {
  ProgressiveHead head;
  std::int8_t last[kMostUnits];  // decoding: the plane of the last segment of a unit; its planes: none is there
  std::uint32_t dead;            // nothing more to do: damaged, stored in another way
};

// Where a piece is: its offset from the start of the payload, its size in the low bits.
KFN std::uint64_t pack_piece(std::uint64_t offset, std::uint32_t size) { return offset << 16 | size; }
KFN std::uint64_t piece_offset(std::uint64_t piece) { return piece >> 16; }
KFN std::uint32_t piece_size(std::uint64_t piece) { return static_cast<std::uint32_t>(piece & 0xFFFF); }

// Of plane p of unit u, among the segments of all units.
KFN std::size_t segment_index(int u, int p) {
  return 64 * static_cast<std::size_t>(u) + static_cast<std::size_t>(p + 1);
}

struct SegmentPlace {
  std::uint64_t offset, size;
};

// A frame to decode.
struct ProgressiveFrame {
  const std::uint8_t* payload;
  std::uint64_t payload_bytes;
  std::uint8_t* out;
  std::uint32_t* fault;
  double step;
  std::uint64_t sentinel;
  std::uint32_t has_sentinel;
  std::uint32_t segments;  // how many of them are there; kAllSegments: the whole frame
};
inline constexpr std::uint32_t kAllSegments = 0xFFFFFFFFu;

// One array for each frame of a batch, `stride` apart.
template <class T>
struct PerFrame {
  std::uint8_t* data;
  std::size_t stride;

  __device__ __forceinline__ T* of(std::uint32_t frame) const { return reinterpret_cast<T*>(data + frame * stride); }
};

// A segment of a unit.
struct UnitSegment {
  int unit, planes, plane;
  bool there;
};

// Frames of a batch in tiles.
struct ProgressiveBatch {
  const ProgressiveShared* shared;
  FrameHead* heads;
  std::uint32_t frame_count, tiles;
  int width, pieces;              // bytes of an integer; of a tile at most
  PerFrame<std::uint32_t> slots;  // of tiles

  // Where the pieces of plane p of a unit are among those of all.
  __device__ __forceinline__ std::size_t place_of(int u, int planes, int p) const {
    const ProgressiveUnit& unit = shared->layout.unit[u];
    return static_cast<std::size_t>(shared->first_tile[u]) * static_cast<std::size_t>(pieces) +
           static_cast<std::size_t>(planes - 1 - p) * unit.tiles;
  }
  __device__ __forceinline__ std::size_t slot_words() const { return std::size_t{kSlotValues} * width / 4; }
  // The slots of a unit.
  __device__ __forceinline__ std::uint32_t* slots_of(std::uint32_t frame, int u) const {
    return slots.of(frame) + static_cast<std::size_t>(shared->first_tile[u]) * slot_words();
  }
  // Of a launch with a block for each: blockIdx.x is its unit and, from the highest on, its plane.
  __device__ __forceinline__ UnitSegment block_segment(const FrameHead& head) const {
    const int u = static_cast<int>(blockIdx.x) / pieces, planes = head.head.planes[u],
              p = planes - 1 - static_cast<int>(blockIdx.x) % pieces;
    return {u, planes, p, planes != 0 && p >= -1};
  }
};

struct ProgressiveDecode : ProgressiveBatch {
  const ProgressiveFrame* frames;
  const TileGroup* groups;
  std::uint32_t group_count;
  int level;                        // the grid that is wanted
  PerFrame<SegmentPlace> segments;  // by segment_index()
  PerFrame<std::uint64_t> places;   // of pieces: those of a unit's tiles, plane by plane from the highest on
  PerFrame<std::uint8_t> tops;      // of each tile: planes that are there
  PerFrame<std::uint8_t> roots;     // the coarsest grid
};

// How blocks share rows: `across` threads take a row, or one of the pieces of a long one.
struct RowShare {
  std::uint32_t across = 8, pieces = 1, piece = ~0u;  // values of a piece
};

// A pass from one grid to the next.
struct GridPass {
  int unit;
  RowShare share;
  Extents from, to;                // of the grids
  PerFrame<std::uint8_t> in, out;  // integers; `out` is not used by the last pass
};
struct InversePass : GridPass {
  ProgressiveDecode job;
  std::uint64_t start, stop;
};

// -- special values

inline constexpr int kMaskThreads = 256;
inline constexpr std::uint32_t kMaskRows = 256;  // of a segment

// What the part of special values says of itself.
struct SpecialNote {
  std::uint64_t missing, verbatim, mask_at, verbatim_at;  // offsets in the payload; mask_at 0: there is no mask
  unsigned long long found;                               // missing values that the mask has
};

struct SpecialDecode {
  ProgressiveDecode job;
  std::uint64_t count, start, stop;
  std::uint32_t rows, row, words, segments, pieces;  // a row has `row` values and `words` words
  PerFrame<SpecialNote> notes;
  PerFrame<std::uint64_t> piece_at;  // offsets of the mask's pieces, packed as those of tiles
  PerFrame<std::uint32_t> changes;   // bits of the pieces, one after the other
  PerFrame<std::uint32_t> mask;      // rows of words: the mask
  PerFrame<std::uint32_t> sums;      // of segments of rows
};

// -- encoding

// What becomes of a chunk.
enum class Outcome : std::uint32_t {
  progressive,
  raw,
  elsewhere,  // bit-exact, or with special values: the CPU encodes it
};

// What the kernels find out about a chunk.
struct EncodeNote {
  Outcome outcome;
  std::uint32_t measures;
  unsigned long long largest, special;            // scan_values(): a magnitude's bits, and how many are not ordinary
  unsigned long long second, positive, negative;  // its second look
  unsigned long long clashing;                    // values that would come back as the sentinel
  long long low, high;                            // of the integers
  std::uint32_t look;                             // whether there is a second look
  std::uint32_t has_sentinel, in_range;
  int exponent;
  std::uint64_t sentinel, conversion, payload_bytes;
  unsigned long long any[kMostUnits];             // all magnitudes of a unit's coefficients
  std::uint32_t measured_segment[kMostMeasures];  // behind which errors are measured
  unsigned long long measured[kMostMeasures];     // and what they are
};

// Slots have coefficients first, then pieces.
struct ProgressiveEncode : ProgressiveBatch {
  bool measured, has_fill;
  Bound bound_mode;
  double bound;
  std::uint64_t fill, count, value_bytes;
  const std::uint8_t* values;
  std::uint64_t value_stride;
  std::uint8_t* payloads;  // of the first frame
  std::uint64_t frame_stride;
  std::uint64_t grid_at[kMostLevels + 1];  // integers of a grid, among those of all
  PerFrame<EncodeNote> notes;
  PerFrame<std::uint8_t> grids;           // integers
  PerFrame<std::uint32_t> planes;         // of tiles
  PerFrame<std::uint64_t> largest;        // coefficient of each quarter of a tile
  PerFrame<std::uint32_t> bytes;          // of tiles: pieces, each at a multiple of four bytes of the slot
  PerFrame<std::uint32_t> sizes;          // of pieces: where in the slot (high half), and how long; by place_of()
  PerFrame<std::uint64_t> places;         // and where in the payload
  PerFrame<std::uint64_t> segment_bytes;  // by segment_index()
  PerFrame<ProgressiveSegment> segments;  // in their order
  PerFrame<SegmentPlace> segment_places;  // by segment_index()
  PerFrame<std::int8_t> states;           // of each measured error: the plane of each unit

  __device__ __forceinline__ std::uint8_t* payload(std::uint32_t frame) const {
    return payloads + frame * frame_stride;
  }
};

// All units of a level at once.
struct ForwardLevel {
  ProgressiveEncode job;
  int level, unit[3];                          // by axis; -1: there is none
  std::uint32_t across, pieces, groups, rows;  // lanes of a piece; pieces of a row; groups of a plane; rows of a group
};

// A pass that measures errors.
struct MeasurePass : GridPass {
  ProgressiveEncode job;
  int index;  // of the measured error
};

// Grids of readers, some of each frame.
struct ReaderGrids {
  std::uint8_t* data;
  std::size_t frame_stride, reader_stride;

  __device__ __forceinline__ std::uint8_t* of(std::uint32_t frame, std::uint32_t reader) const {
    return data + frame * frame_stride + reader * reader_stride;
  }
};

inline constexpr int kReadersOfBlock = kMostMeasures;
// The largest errors that a reader has at a level, of bricks of its points.
inline constexpr std::uint32_t kBrickZ = 2, kBrickY = 16, kBrickX = 64;

// The passes of a level, for readers from `first` on. A row is taken in pieces of `lanes` lanes, rows in marches of so
// many steps along y.
struct MeasureLevel {
  ProgressiveEncode job;
  int level, unit[3];  // by axis; -1: there is none
  Extents from, to;    // of the grids
  ReaderGrids in, out;
  ReaderGrids bricks;  // of the grid above the finest, of 64 bits; nullptr: nobody looks at them
  std::uint32_t first, readers;
  std::uint32_t lanes, pieces, marches, steps;
};

// Points that a lane makes of a line from four that are known, at the third level; lanes of a warp that make their own.
inline constexpr std::uint32_t kLinePoints = 32, kLineLanes = 30;

// Three levels of a line, for readers from `first` on; a block takes so many tiles.
struct MeasureLine {
  ProgressiveEncode job;
  int level, unit[3];      // the finest level; of it and those above it
  std::uint32_t sizes[4];  // of its grid and those above it
  ReaderGrids in, out;
  std::uint32_t first, readers, tiles, steps;
};

// Whether a level and the two above it are those of a line: one axis, coefficients in slots as they follow each other.
inline bool is_line(const ProgressiveLayout& layout, int level) {
  if (level + 3 > layout.levels || layout.grids[level].y != 1 || layout.grids[level].z != 1) return false;
  int units = 0;
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    if (unit.level < level || unit.level > level + 2) continue;
    if (unit.axis != 2 || unit.tiled.x != unit.shape.x) return false;
    ++units;
  }
  return units == 3;
}

// Units of a level by axis, -1 where there is none.
inline void units_of_level(const ProgressiveLayout& layout, int level, int (&unit)[3]) {
  for (int& u : unit) u = -1;
  for (int u = 0; u < layout.units; ++u)
    if (layout.unit[u].level == level) unit[layout.unit[u].axis] = u;
}
// Whether rows of a level and of the one above, which has four points or more along x, are at multiples of 16 bytes and
// tiles have rows as the units do, of integers of `width` bytes.
inline bool has_wide_rows(const ProgressiveLayout& layout, int level, std::size_t width) {
  const std::uint64_t row = layout.grids[level + 1].x;
  bool wide = row >= 4 && row % (16 / width) == 0 && layout.grids[level].x == 2 * row;
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    const bool alike = unit.tiled.z == unit.shape.z && unit.tiled.y == unit.shape.y && unit.tiled.x == unit.shape.x;
    if (unit.level == level) wide = wide && alike;
  }
  return wide;
}

// Whether errors are measured level by level: not of arrays with short rows.
inline bool measured_by_levels(const ProgressiveLayout& layout, std::size_t width) {
  return layout.grids[0].x >= 64 || has_wide_rows(layout, 0, width);
}

// Notes that a frame is damaged.
__device__ __forceinline__ void damage(const ProgressiveFrame& frame, FrameHead& head) {
  atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(Fault::segments));
  *static_cast<volatile std::uint32_t*>(&head.dead) = 1;
}
// Whether one is, in a kernel that finds it out: other threads may meanwhile. So threads that work together have to
// agree on what they have seen, or some would go on without the others.
__device__ __forceinline__ bool is_damaged(const FrameHead& head) {
  return *static_cast<const volatile std::uint32_t*>(&head.dead) != 0;
}

}  // namespace pyfilter::cuda
