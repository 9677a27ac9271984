// SPDX-License-Identifier: BSD-3-Clause
// The parameters of the kernels of progressive frames (docs/format.md, section 13). All frames of a batch have one
// shape and dtype, so one layout; blockIdx.y is the frame.
//
// Coefficients and planes are stored by tiles: a tile has a slot of 4096 integers, with coefficient i at index i. As
// planes, word w of plane p is word 128 p + w of the slot, and signs are the last plane.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"
#include "progressive/choices.hpp"
#include "progressive/head.hpp"
#include "progressive/layout.hpp"
#include "progressive/specials.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kSlotValues = 4096;
inline constexpr int kGroupTiles = 16;  // tiles of a unit that adjacent blocks decode

// Tiles of a unit: as many as a block takes, or the remaining ones.
struct TileGroup {
  std::uint32_t unit, first;
};

// Data shared by all frames of a batch, in device memory.
struct ProgressiveShared {
  ProgressiveLayout layout;
  std::uint32_t first_tile[kMostUnits + 1];  // first tile of each unit, among the tiles of all units
};

// A parsed head, or one under construction.
struct FrameHead {
  ProgressiveHead head;
  std::int8_t last[kMostUnits];  // decoding: the plane of a unit's last segment; `planes` if it has none
  std::uint32_t dead;            // skip the frame: it is damaged or stored in another way
};

// The location of a piece: its offset from the start of the payload, and its size in the low bits.
KFN std::uint64_t pack_piece(std::uint64_t offset, std::uint32_t size) { return offset << 16 | size; }
KFN std::uint64_t piece_offset(std::uint64_t piece) { return piece >> 16; }
KFN std::uint32_t piece_size(std::uint64_t piece) { return static_cast<std::uint32_t>(piece & 0xFFFF); }

// The index of plane p of unit u among the segments of all units.
KFN std::size_t segment_index(int u, int p) {
  return 64 * static_cast<std::size_t>(u) + static_cast<std::size_t>(p + 1);
}

struct SegmentLocation {
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
  std::uint32_t segments;  // number of available segments; kAllSegments: the whole frame
};
inline constexpr std::uint32_t kAllSegments = 0xFFFFFFFFu;

// An array for each frame of a batch, `stride` apart.
template <class T>
struct PerFrame {
  std::uint8_t* data;
  std::size_t stride;

  __device__ __forceinline__ T* of(std::uint32_t frame) const { return reinterpret_cast<T*>(data + frame * stride); }
};

// A unit and a plane.
struct UnitSegment {
  int unit, planes, plane;
  bool there;
};

// Frames of a batch, in tiles.
struct ProgressiveBatch {
  const ProgressiveShared* shared;
  FrameHead* heads;
  std::uint32_t frame_count, tiles;
  int width, pieces;              // bytes of an integer; the most pieces of a tile
  PerFrame<std::uint32_t> slots;  // of tiles

  // The index of the first piece of plane p of unit u among all pieces.
  __device__ __forceinline__ std::size_t piece_index(int u, int planes, int p) const {
    const ProgressiveUnit& unit = shared->layout.unit[u];
    return static_cast<std::size_t>(shared->first_tile[u]) * static_cast<std::size_t>(pieces) +
           static_cast<std::size_t>(planes - 1 - p) * unit.tiles;
  }
  __device__ __forceinline__ std::size_t slot_words() const { return std::size_t{kSlotValues} * width / 4; }
  // The slots of a unit.
  __device__ __forceinline__ std::uint32_t* slots_of(std::uint32_t frame, int u) const {
    return slots.of(frame) + static_cast<std::size_t>(shared->first_tile[u]) * slot_words();
  }
  // The segment of a block: blockIdx.x is its unit and, from the highest on, its plane.
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
  int level;                           // the requested grid
  PerFrame<SegmentLocation> segments;  // by segment_index()
  PerFrame<std::uint64_t> locations;   // of pieces: those of a unit's tiles, plane by plane from the highest on
  PerFrame<std::uint8_t> tops;         // of each tile: number of planes so far
  PerFrame<std::uint8_t> roots;        // the coarsest grid
};

// How blocks divide rows: `across` threads take a row, or a piece of a long one.
struct RowShare {
  std::uint32_t across = 8, pieces = 1, piece = ~0u;  // piece: values of a piece
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
inline constexpr std::uint32_t kMaskRows = 256;  // rows of a segment of the mask

// The head of the section of special values.
struct SpecialNote {
  std::uint64_t missing, verbatim, mask_at, verbatim_at;  // offsets in the payload; mask_at 0: no mask
  unsigned long long found;                               // missing values found in the mask
};

struct SpecialDecode {
  ProgressiveDecode job;
  std::uint64_t count, start, stop;
  std::uint32_t rows, row, words, segments, pieces;  // a row has `row` values and `words` words
  PerFrame<SpecialNote> notes;
  PerFrame<std::uint64_t> piece_at;  // offsets and sizes of the mask's pieces, as pack_piece()
  PerFrame<std::uint32_t> changes;   // bits of the pieces, concatenated
  PerFrame<std::uint32_t> mask;      // rows of words: the mask
  PerFrame<std::uint32_t> sums;      // of segments of rows
};

// -- encoding

// The outcome of a chunk.
enum class Outcome : std::uint32_t {
  progressive,
  raw,
  special,    // has special values: encoded behind the others
  elsewhere,  // bit-exact: the CPU encodes it; or done already
};

// Facts about a chunk, found by the kernels.
struct EncodeNote {
  Outcome outcome;
  std::uint32_t measures;
  unsigned long long largest, special;            // scan_values(): largest magnitude's bits, number of special values
  unsigned long long second, positive, negative;  // of the second scan
  unsigned long long clashing;                    // values that would decode to the sentinel
  long long low, high;                            // of the integers
  std::uint32_t look;                             // whether there is a second scan
  std::uint32_t has_sentinel, in_range;
  int exponent;
  std::uint64_t sentinel, conversion, payload_bytes;
  unsigned long long missing, verbatim, first_odd;  // numbers of special values; the first one that is not finite
  std::uint32_t fill_seen;                          // whether some value is the fill value
  unsigned long long any[kMostUnits];               // OR of the magnitudes of a unit's coefficients
  std::uint32_t measured_segment[kMostMeasures];    // the segments with measured errors
  unsigned long long measured[kMostMeasures];       // their errors
};

// A piece of the mask of missing values, and the verbatim values in the same part of the chunk. Positions are those of
// values, offsets are counted from the start of the section of special values.
struct SpecialPiece {
  std::uint32_t mask_bytes, code;  // size in the payload; k of the code of runs
  std::uint64_t verbatim_bytes;    // without the first one's distance
  std::uint64_t first, behind;     // the first verbatim value; one more than the last, 0: there is none
  std::uint64_t next;              // one more than the last verbatim value before this piece
  std::uint64_t mask_at, verbatim_at;
};
inline constexpr std::uint32_t kMaskPieceWords = kMaskPiece / 32, kMaskWords = 1040;  // the latter for kMostMaskBytes

// Slots hold coefficients first, then pieces.
struct ProgressiveEncode : ProgressiveBatch {
  bool measured, has_fill, without_zeros;
  Bound bound_mode;
  double bound;
  std::uint64_t fill, count, value_bytes;
  const std::uint8_t* values;
  std::uint64_t value_stride;
  std::uint8_t* payloads;  // of the first frame
  std::uint64_t frame_stride;
  std::uint64_t grid_at[kMostLevels + 1];  // offset of each grid's integers
  std::uint64_t integers;                  // of all grids
  PerFrame<EncodeNote> notes;
  PerFrame<std::uint8_t> grids;                 // integers
  PerFrame<std::uint32_t> planes;               // of tiles
  PerFrame<std::uint64_t> largest;              // largest coefficient of each quarter tile
  PerFrame<std::uint32_t> bytes;                // of a tile's pieces, each padded to a multiple of four
  PerFrame<std::uint32_t> sizes;                // of pieces: offset in the slot (high half), and size; by piece_index()
  PerFrame<std::uint64_t> locations;            // offsets of pieces in the payload
  PerFrame<std::uint64_t> segment_bytes;        // by segment_index()
  PerFrame<ProgressiveSegment> segments;        // in reading order
  PerFrame<SegmentLocation> segment_locations;  // by segment_index()
  PerFrame<std::int8_t> states;                 // of each measured error: the plane of each unit
  // of chunks with special values: a bit for each value of each grid, in the order of `grids`; a bit for each missing
  // value; pieces of the mask, and their bits, kMaskWords words apart
  PerFrame<std::uint32_t> special, missing;
  PerFrame<SpecialPiece> special_pieces;
  PerFrame<std::uint32_t> mask_bits;

  __device__ __forceinline__ std::uint8_t* payload(std::uint32_t frame) const {
    return payloads + frame * frame_stride;
  }
  // The bits of special values of a grid; nullptr if there are none.
  __device__ __forceinline__ const std::uint32_t* special_bits(std::uint32_t frame, int level) const {
    return special.data == nullptr ? nullptr : special.of(frame) + grid_at[level] / 32;
  }
};

// All units of a level at once.
struct ForwardLevel {
  ProgressiveEncode job;
  int level, unit[3];                          // units by axis; -1: none
  std::uint32_t across, pieces, groups, rows;  // lanes of a piece; pieces of a row; groups of a plane; rows of a group
};

// A pass that measures errors.
struct MeasurePass : GridPass {
  ProgressiveEncode job;
  int index;  // index of the measured error
};

// Grids of several readers for each frame.
struct ReaderGrids {
  std::uint8_t* data;
  std::size_t frame_stride, reader_stride;

  __device__ __forceinline__ std::uint8_t* of(std::uint32_t frame, std::uint32_t reader) const {
    return data + frame * frame_stride + reader * reader_stride;
  }
};

inline constexpr int kReadersOfBlock = kMostMeasures;
// The largest errors of a reader at a level, for bricks of its points.
inline constexpr std::uint32_t kBrickZ = 2, kBrickY = 16, kBrickX = 64;

// The passes of a level, for readers from `first` on. A row is divided into pieces of `lanes` lanes, and rows into
// marches of this many steps along y.
struct MeasureLevel {
  ProgressiveEncode job;
  int level, unit[3];  // units by axis; -1: none
  Extents from, to;    // of the grids
  ReaderGrids in, out;
  ReaderGrids bricks;  // of the grid above the finest, of 64 bits; nullptr: not needed
  std::uint32_t first, readers;
  std::uint32_t lanes, pieces, marches, steps;
};

// Points of a line that a lane computes from four known ones, at the third level. Lanes of a warp that compute points
// of their own.
inline constexpr std::uint32_t kLinePoints = 32, kLineLanes = 30;

// Three levels of a line, for readers from `first` on; a block takes this many tiles.
struct MeasureLine {
  ProgressiveEncode job;
  int level, unit[3];      // the finest level; the units of the three levels
  std::uint32_t sizes[4];  // of its grid, and of the three above
  ReaderGrids in, out;
  std::uint32_t first, readers, tiles, steps;
};

// Whether a level and the two above are a line: one axis, with coefficients in slots in line order.
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

// Units of a level by axis, -1: none.
inline void units_of_level(const ProgressiveLayout& layout, int level, int (&unit)[3]) {
  for (int& u : unit) u = -1;
  for (int u = 0; u < layout.units; ++u)
    if (layout.unit[u].level == level) unit[layout.unit[u].axis] = u;
}
// Whether rows of a level and of the level above are aligned to 16 bytes, and have at least four points along x.
// Integers have `width` bytes. The rows of tiles must also equal the unit's.
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

// Whether errors are measured level by level: not for arrays with short rows.
inline bool measured_by_levels(const ProgressiveLayout& layout, std::size_t width) {
  return layout.grids[0].x >= 64 || has_wide_rows(layout, 0, width);
}

// Marks a frame as damaged.
__device__ __forceinline__ void damage(const ProgressiveFrame& frame, FrameHead& head) {
  atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(Fault::segments));
  *static_cast<volatile std::uint32_t*>(&head.dead) = 1;
}
// Whether a frame is damaged, for kernels that detect damage: other threads may mark it at the same time. Threads that
// work together must share one result, or some would continue alone.
__device__ __forceinline__ bool is_damaged(const FrameHead& head) {
  return *static_cast<const volatile std::uint32_t*>(&head.dead) != 0;
}

}  // namespace pyfilter::cuda
