// SPDX-License-Identifier: BSD-3-Clause
// The parameters of lorenzo's kernels, and the data they leave for each other (docs/format.md, section 8). The kernels
// of encoding: tiles to residuals, counts of a sample, a model for each chunk, groups to streams, sizes to offsets,
// copies to frames. The kernels of decoding: tables, groups to values, special values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tile_shape.hpp"
#include "lorenzo/group.hpp"
#include "lorenzo/huffman.hpp"
#include "lorenzo/model.hpp"
#include "lorenzo/rans.hpp"
#include "stages/cuda/params.cuh"
#include "stages/packed/layout.hpp"

namespace pyfilter::cuda {

// DecodeFrame::mode: the order of differences, the coder, and log2 of the tiles of a group.
inline std::uint32_t stream_mode(std::uint32_t order, std::uint32_t coder, std::uint32_t log2) {
  return order | coder << 8 | log2 << 16;
}
__device__ __forceinline__ std::uint32_t order_of(const DecodeFrame& frame) { return frame.mode & 0xFF; }
__device__ __forceinline__ std::uint32_t coder_of(const DecodeFrame& frame) { return frame.mode >> 8 & 0xFF; }
__host__ __device__ inline std::uint32_t group_log2_of(const DecodeFrame& frame) { return frame.mode >> 16; }

inline constexpr std::uint32_t kNoteBytes = 8, kNoteHalves = 16, kNoteWidth = 24;  // residuals below 2^8, 2^16
inline constexpr std::uint32_t kNoteWide = 0;                                      // or wider
inline constexpr std::uint32_t kNoteVerbatim = 32;                                 // no block of the tile is coded
inline constexpr std::uint32_t kNoteCoding = 3;  // the tile's coding in the group's head, set once groups are known

// The facts about a tile. Its first residual is 0 unless it is no difference: the true one depends on the group.
struct TileNote {
  std::uint32_t coded[4];       // blocks with a residual that is not 0
  std::uint64_t first, carry;   // first code; the code that the next tile's first code is a difference to
  std::uint32_t special_words;  // size of its special part
  std::uint32_t flags;
};

// Residuals of a tile wait in its slot: the first block, then the coded blocks, 32 blocks interleaved position by
// position. Four or two narrow residuals share a word.
__host__ __device__ inline std::size_t residual_slot(std::size_t code_bytes) { return 4096 * code_bytes; }
__host__ __device__ inline std::size_t special_slot(std::size_t value_bytes) {
  return (max_packed_bytes(value_bytes) + 15) / 16 * 16;
}
// A rans stream takes at most 10 bits for a symbol, 18 with an escape, and the raw bits: 47 or 79 bits a value. A
// Huffman stream takes two more bits and its gap array. The rest is for states and the last word.
__host__ __device__ inline std::size_t stream_slot(std::size_t code_bytes) { return 4096 * (code_bytes + 2) + 1536; }

// An encoded group. Its stream is at the end of its tiles' stream slots (rans) or at their start (Huffman).
struct GroupNote {
  std::uint32_t bytes;         // of the group, 0 if it is empty
  std::uint32_t stream_bytes;  // rans: a multiple of 2
  std::uint32_t lead;          // rans: words of the states; Huffman: gaps
};

// A symbol's entry for the encoder. A state from `limit` on first emits a word. Then come raw bits, and the state grows
// by first + others * (state / frequency), with others = 2^10 - frequency. Bit counts sit where wrapping shifts read
// them. A slow symbol is an escape, or has outer bits. `reciprocal` and `shift` divide by bits 32 on of the product;
// for the frequency 1 the quotient is too small by 1 for any state but 0, which no lane has, and `first` makes up for
// it.
struct DeviceEntry {
  std::uint32_t reciprocal, limit;
  std::uint32_t growth;           // raw bits, kGrowthEscaped, others << 16, kGrowthSlow
  std::uint32_t shift_and_first;  // shift, first << 16
};
inline constexpr std::uint32_t kGrowthEscaped = 1u << 15, kGrowthSlow = 1u << 31;
inline constexpr DeviceEntry kNeutralEntry = {0, ~0u, 0, 0};  // changes no state
__device__ __forceinline__ DeviceEntry device_encode_entry(const EncodeEntry& entry, std::uint32_t symbol,
                                                           const EncodeEntry& escape) {
  const bool escaped = symbol == kEscape || entry.frequency() == 0;
  const EncodeEntry& own = escaped ? escape : entry;
  const std::uint32_t all = raw_bits(symbol), raw = escaped ? 0 : all < kInnerBits ? all : kInnerBits;
  const bool slow = escaped || symbol >= 2 * kDirectSymbols, one = own.frequency() == 1;
  const std::uint32_t others = kFrequencySum - own.frequency();
  return {one ? ~0u : own.reciprocal, own.frequency() << (kStateBits - kProbabilityBits - raw),
          raw | (escaped ? kGrowthEscaped : 0) | (slow ? kGrowthSlow : 0) | others << 16,
          one ? (own.first() + others) << 16 : (own.shift() - 1) | own.first() << 16};
}
// Shifts by the low five bits of `amount`.
__device__ __forceinline__ std::uint32_t shift_left(std::uint32_t x, std::uint32_t amount) {
  return __funnelshift_l(0, x, amount);
}
__device__ __forceinline__ std::uint32_t shift_right(std::uint32_t x, std::uint32_t amount) {
  return __funnelshift_r(x, 0, amount);
}

// The tables of a chunk's streams.
struct StreamModel {
  EntropyModel model;
  EncodeTables tables;
  HuffmanCodes codes;
  std::uint32_t table_bytes;
  alignas(4) std::uint8_t text[kMostTableBytes];
};

// The tiles of a chunk that a pass takes: all, the sample of the model, or all others.
enum class TilesTaken : std::uint32_t { all, sampled, others };

// Chunks of one tile shape: their numbers and buffers.
struct StreamParams {
  EncodeParams base;  // its grid is the pass's; headers[0] is lorenzo's
  Grid grids[kColumns + 1];
  std::uint32_t slots;  // tiles that the slots of a chunk hold
  std::uint8_t coder;
  TilesTaken taken;
  std::uint64_t compare_tiles;  // chunks of at most this many tiles compete with a frame of hierarchical_delta
  std::uint32_t* shape_chunks;  // chunks of each tile shape
  TileNote* notes;
  std::uint8_t *residuals, *specials, *streams;
  std::size_t value_size, code_size;
  SymbolCounts* counts;
  StreamModel* models;
  GroupNote* groups;
  std::uint32_t* more_units;  // of each chunk: groups started beyond each warp's first; 0 at first
  ChunkPlan* plans;           // base.plans, writable
};

__device__ __forceinline__ std::uint32_t shape_of(const ChunkPlan& plan) { return plan.predictor & 0xFF; }
__device__ __forceinline__ int order_of(const ChunkPlan& plan) { return static_cast<int>(plan.predictor >> 16 & 0xFF); }
__device__ __forceinline__ bool takes_part(const ChunkPlan& plan, int shape) {
  return plan.quantise != 0 && shape_of(plan) == static_cast<std::uint32_t>(shape);
}

// decode_entry() in a form that is cheaper for most steps. A symbol with inner bits only is replaced by its smallest
// residual; any other symbol has kSlowEntry beside it.
inline constexpr std::uint32_t kSlowEntry = 7u << 29;
__device__ __forceinline__ std::uint32_t device_entry(std::uint32_t symbol, std::uint32_t frequency,
                                                      std::uint32_t shift_and_first) {
  const std::uint32_t entry = decode_entry(symbol, frequency, shift_and_first);
  return symbol < 2 * kDirectSymbols ? (entry & ~0xFFu) | smallest_of<std::uint32_t>(symbol) : entry | kSlowEntry;
}

// The bytes of a type for residuals with codewords of a Huffman stream. Escapes may be larger.
constexpr std::uint32_t residual_class(std::uint32_t last_symbol, std::uint32_t code_bytes) {
  return last_symbol < symbols_of_width(8) ? 1 : last_symbol < symbols_of_width(16) ? 2 : code_bytes;
}

// The decoding tables of a frame, made by the table kernel.
struct FrameTables {
  std::uint32_t bytes;          // of the frame's table section; 0: the section is damaged
  std::uint32_t last_residual;  // of a Huffman codebook: the largest residual of a symbol other than the escape
  Contexts contexts;
  std::uint32_t flag_frequency[kFlagContexts];
  union {
    alignas(16) std::uint32_t entries[kMostTables * kFrequencySum];
    HuffmanTables huffman;
  };
};

// A tile whose residuals a rans stream gave. They wait in its slot: the coded blocks in order, 32 of them interleaved,
// a word for four residuals of a block. Fours with larger residuals than a byte are in the slot's second part, as
// halves or as codes. Bit 8 * r + f of `halves` and `codes`: round r, four f.
struct TileResiduals {
  std::uint32_t coded[4];
  std::uint64_t first;  // the tile's first code
  std::uint32_t halves, codes;
  std::uint64_t verbatim;  // 1: a later kernel stores the tile
};
__host__ __device__ constexpr std::size_t residual_bytes_of_tile(std::size_t code_bytes) {
  return 4096 * (1 + code_bytes);
}
// The slots of a launch's frame. Tiles in front of the first one that is wanted have slots, too, if they share its
// group.
__host__ __device__ inline std::uint32_t tiles_before(const DecodeParams& job) {
  return job.first_tile % kMostGroupTiles;
}
__host__ __device__ inline std::uint32_t residual_slots(const DecodeParams& job) {
  return job.tile_count + tiles_before(job);
}

// A tile's special part to apply.
struct SpecialTile {
  std::uint32_t frame, tile, words;
  std::uint64_t at;  // offset in bytes behind the frame's header
};

struct StreamDecodeParams {
  DecodeParams base;
  FrameTables* tables;           // of each frame
  std::uint32_t* special_count;  // 0 at first
  SpecialTile* specials;         // as many as tiles are decoded
  std::uint8_t* repeats;  // for each Huffman group of each frame: whether it must be decoded with wider residuals
  std::uint32_t first_frame, frames;  // of the launch
  // Rans streams of planes, volumes and columns, which become residuals first: the tiles of `slots` slots at a time.
  std::uint64_t slots;
  std::uint8_t* residuals;
  TileResiduals* residual_tiles;
};

// Launchers of a dtype, kind of bound and tile shape.
struct StreamCoder {
  cudaError_t (*residuals)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*count)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*encode)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*decode)(const StreamDecodeParams& job, std::uint8_t coder, std::uint32_t most_units,
                        std::uint32_t frames, cudaStream_t stream);
  std::size_t residual_bytes;  // of a tile whose rans stream becomes residuals first; 0: no kernel of the shape does so
};
// nullptr: lorenzo does not support the dtype.
const StreamCoder* lorenzo_coder(Dtype dtype, int tile_shape, bool pointwise);

// Kernels for all shapes and dtypes. pick_predictors: predictors of quantised chunks to job.plans, of bit-exact and
// small chunks to `others`, for hierarchical_delta. Then models; groups to frames; tables of frames.
cudaError_t pick_predictors(const StreamParams& job, const bool* open, const unsigned long long* bits, int asked,
                            ChunkPlan* others, cudaStream_t stream);
cudaError_t make_models(const StreamParams& job, cudaStream_t stream);
cudaError_t place_groups(const StreamParams& job, cudaStream_t stream);
cudaError_t read_tables(const StreamDecodeParams& job, std::uint32_t frames, cudaStream_t stream);

}  // namespace pyfilter::cuda
