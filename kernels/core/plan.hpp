// SPDX-License-Identifier: BSD-3-Clause
// Plan: everything about a chunk that its tiles need, derived from a header or a request once. TileCoder: what a
// codec room exports for one CPU level. The drivers (cpu_driver.cpp) know codecs only through these. A directory entry
// is a tile's or, where tiles share a stream, a group's: a unit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The grid of blocks (docs/format.md, section 4.1) or, `packed`, of tiles (7.1). 1-D: n values flat. Otherwise `outer`
// planes or volumes of nz * ny * nx values; nz is 1 for 2-D.
struct Grid {
  int block_dims = 1;  // packed: the tile shape
  bool packed = false;
  std::uint64_t values = 0, outer = 1, nz = 1, ny = 1, nx = 0;
  std::uint64_t gz = 1, gy = 1, gx = 0;  // blocks along each axis; packed: tiles
  std::uint64_t blocks = 0, tiles = 0;   // packed: blocks that tiles have, absent ones too
  std::uint64_t tile_values = 0;         // particles: of a whole tile; block_dims are the coordinates of one
};

// Coders of lorenzo, as frames have them.
inline constexpr std::uint8_t kRans = 1, kHuffmanGaps = 2, kHuffman = 3;

// Tile shapes of packed tiles. Requests name them too, and what leaves them open: for few bits, or for speed.
inline constexpr int kChain = 1, kPlane = 2, kVolume = 3, kColumns = 4;
inline constexpr int kAskAny = 0, kAskFast = 5;

Grid make_grid(const Shape& shape, std::uint64_t values, int block_dims) noexcept;
Grid make_packed_grid(const Shape& shape, std::uint64_t values, int tile_shape) noexcept;
Grid make_particle_grid(std::uint64_t values, int coordinates) noexcept;
// The grid that a header means.
Grid grid_of(const FrameInfo& info) noexcept;

// Tiles that hold the values [start, stop), start < stop (a superset for 2-D and 3-D blocks).
void tiles_of_range(const Grid& grid, std::uint64_t start, std::uint64_t stop, std::uint64_t* first,
                    std::uint64_t* last) noexcept;

struct Plan {
  Dtype dtype = Dtype::none;
  std::uint8_t mode = 0;         // cuszp2: 0 outlier, 1 plain, 2 fixed
  std::uint8_t order = 0;        // hierarchical_delta, lorenzo: axes that differences are taken along
  bool exceptions = false;       // hierarchical_delta: whether the encoder may use them
  bool pointwise = false;        // the bound is relative to each value, the step one of log2 |x|
  bool entropy = false;          // lorenzo: residuals go to an entropy coder, not to bit planes
  std::uint8_t coder = 0;        // lorenzo: kRans or one of the others
  std::uint32_t unit_tiles = 1;  // of a group
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;
  double bound = 0.0, step = 0.0;
  Grid grid;
  // particles, to encode: how many of the first are sorted in their tiles, whether only there, and the indices (low
  // halves) of the chunk in its order, nullptr where tiles have those that they have
  std::uint64_t sorted_particles = 0;
  bool tiles_alone = false;
  const std::uint64_t* entries = nullptr;
  // lorenzo, to encode: the first of the counted tiles are kept here, kCountedTileBytes each
  std::uint8_t* counted = nullptr;
  std::uint64_t counted_tiles = 0;
  const void* tables = nullptr;  // lorenzo: of its coder (stages/entropy/rans.hpp, huffman.hpp), to encode or decode

  std::uint64_t units() const { return grid.tiles / unit_tiles + (grid.tiles % unit_tiles != 0 ? 1 : 0); }
};

// Sizes of a tile in the directory: offset in words and whether it is uniform.
struct EncodedTile {
  std::uint32_t bytes = 0;  // a multiple of 4
  bool uniform = false;
};

// Largest tile: rates, descriptors, outlier bytes, words; and what vector stores may overwrite behind it.
constexpr std::size_t max_tile_bytes(std::size_t value_bytes) { return 4096 * value_bytes + 128 * (1 + 2 + 8) + 4; }
inline constexpr std::size_t kMaxTileBytes = max_tile_bytes(8);
inline constexpr std::size_t kTileSlackBytes = 64;

// Largest group: its tiles' special parts, symbols of 10 bits with all raw bits and an escape, heads and states.
inline constexpr std::uint32_t kMostGroupLog2 = 5, kMostGroupTiles = 1u << kMostGroupLog2;
constexpr std::size_t max_group_bytes(std::uint32_t tiles, std::size_t value_bytes) {
  return 512 + tiles * (4096 * (2 * value_bytes + 3) + 256);
}

// Scratch memory that one thread needs to encode a tile.
inline constexpr std::size_t kScratchBytes = std::size_t{192} << 10;
// And what a group needs besides, for each of its tiles: four rounds (stages/entropy/lanes.hpp) or the words and gaps
// of a Huffman stream, and a special part.
inline constexpr std::size_t kRoundBytes = 8256, kTileStreamBytes = 8 * kRoundBytes;
constexpr std::size_t group_scratch_bytes(std::uint32_t tiles) {
  return kScratchBytes + tiles * (kTileStreamBytes + max_tile_bytes(8)) + kTileSlackBytes;
}

// Tiles that were counted for a model and are kept until they are encoded: so many at most, and no more memory than an
// eighth of the chunk.
inline constexpr std::uint64_t kMostCountedTiles = 128;
inline constexpr std::size_t kCountedTileBytes = 8384;

// What particles need: values, codes, keys, sequences of a tile, and entries to sort (kernels/particles).
inline constexpr std::size_t kParticleScratchBytes = std::size_t{416} << 10;

// A deterministic sample of a chunk, as the choice of step and sentinel sees it (stages/sample.hpp).
struct StepChoice {
  bool quantise = false;  // false: the bound is too tight for this dtype and data, store bit-exact
  double bound = 0.0;     // the bound rounded down to the dtype
  double step = 0.0;
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;
};

// How hierarchical_delta and lorenzo predict: what a frame's parameters say.
struct Predictor {
  std::uint8_t tile_shape = kChain, order = 1;
};

// What is known of the predictors that may be chosen (stages/packed/choose.hpp), from some of the sampled tiles.
inline constexpr int kCandidates = 8;
struct PredictorCosts {
  std::uint64_t bits[kCandidates] = {};
  // By tile shape: whether codes of tiles before were small, as those that follow will be, mostly. It saves time, and
  // changes no bits.
  bool small[5] = {true, true, true, true, true};
};

// Chunks of up to so many tiles are stored as hierarchical_delta stores them where lorenzo's frame is not shorter.
inline constexpr std::uint64_t kCompareTiles = 16;

struct TileCoder {
  // Encodes tile `tile` of the chunk at `values` into `out` (kMaxTileBytes + kTileSlackBytes at least).
  EncodedTile (*encode)(const Plan& plan, const void* values, std::uint64_t tile, void* scratch, std::uint8_t* out);
  // Decodes a tile of `bytes` bytes and stores those of its values whose index is in [start, stop) at
  // out[index - start].
  Status (*decode)(const Plan& plan, const std::uint8_t* tile_bytes, std::size_t bytes, bool uniform,
                   std::uint64_t tile, std::uint64_t start, std::uint64_t stop, void* out);
};

// lorenzo besides: counts of a tile's symbols (stages/entropy/model.hpp), which choose its tables.
struct SymbolCounts;
struct GroupCoder {
  TileCoder groups;
  void (*count)(const Plan& plan, const void* values, std::uint64_t tile, void* scratch, SymbolCounts* counts);
};

// particles besides (kernels/particles/order.hpp).
struct ParticleCoder {
  TileCoder tiles;
  void (*order_chunk)(const Plan& plan, const void* values, std::uint32_t count, std::uint64_t* entries, void* scratch);
  void (*order_tile)(const Plan& plan, const void* values, std::uint32_t* particles, std::uint32_t count,
                     void* scratch);
  // Entries by their keys' lowest bits, entries of equal ones as they are; `other` has as much room.
  void (*sort_entries)(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits);
  bool (*is_ordered)(const Plan& plan, const void* values, std::uint64_t tile, void* scratch);
  // Bytes that lorenzo would need, about (kernels/particles/estimate.hpp).
  std::uint64_t (*estimate_lorenzo)(const Plan& plan, const void* values, void* scratch);
};

// progressive: a chunk to its payload and back (kernels/progressive/).
struct ProgressiveLayout;
struct ProgressiveHead;
struct ProgressiveSegment;
struct ProgressiveCoder {
  // `bound` 0: as fine as integers of the dtype's bits are. Fills step, bound and sentinel of `info`. *bytes is 0 where
  // the payload would have `limit` bytes or more; *too_fine where the bound is finer than the integers.
  Status (*encode)(const Request& request, double bound, const void* values, FrameInfo* info, std::uint8_t* out,
                   std::size_t limit, std::size_t* bytes, bool* too_fine);
  // Values of the grid of `level` from the first `count` segments.
  Status (*decode)(const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout,
                   const ProgressiveHead& head, const ProgressiveSegment* segments, int count, int level, void* out);
};

// What one CPU level offers; one table per level (level_tables.hpp).
struct LevelTable {
  // nullptr where the codec does not take the dtype.
  const TileCoder* (*cuszp2)(Dtype dtype, int block_dims);
  const TileCoder* (*lossless)(Dtype dtype, int block_dims);
  const TileCoder* (*hierarchical_delta)(const Plan& plan);
  const GroupCoder* (*lorenzo)(const Plan& plan);
  const ParticleCoder* (*particles)(const Plan& plan);
  // Adds what the tiles of sample `k` cost by each predictor that the request leaves open. `plan` has bound, step (0:
  // bit-exact) and sentinel; `scratch` is as large as for a tile.
  void (*sample_predictors)(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                            std::uint64_t k, void* scratch, PredictorCosts* costs);
  // `bound` is the absolute one that the request means, or its own where that is relative to each value.
  StepChoice (*choose_step)(const Request& request, double bound, const void* values, std::uint64_t count);
  // Smallest and largest finite value but the fill's; false when there is none.
  bool (*value_range)(const Request& request, const void* values, std::uint64_t count, double* low, double* high);
  // The same of integers, as numbers above the lowest one of their type.
  bool (*integer_range)(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high);
  const ProgressiveCoder* progressive;
};

}  // namespace pyfilter
