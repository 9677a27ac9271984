// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of lorenzo are given, and leave for each other (docs/format.md, section 8). Encoding is a row of
// kernels: tiles to residuals, counts of a sample of them, a model for each chunk, groups to streams, sizes to places,
// and all to the frames. Decoding: tables, then groups to values, then special values in their places.
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

// DecodeFrame::mode: the order of differences, the coder, and how many tiles are a group.
inline std::uint32_t stream_mode(std::uint32_t order, std::uint32_t coder, std::uint32_t log2) {
  return order | coder << 8 | log2 << 16;
}
__device__ __forceinline__ std::uint32_t order_of(const DecodeFrame& frame) { return frame.mode & 0xFF; }
__device__ __forceinline__ std::uint32_t coder_of(const DecodeFrame& frame) { return frame.mode >> 8 & 0xFF; }
__host__ __device__ inline std::uint32_t group_log2_of(const DecodeFrame& frame) { return frame.mode >> 16; }

inline constexpr std::uint32_t kNoteBytes = 8, kNoteHalves = 16, kNoteWidth = 24;  // residuals below 2^8, 2^16
inline constexpr std::uint32_t kNoteWide = 0;                                      // or none of these
inline constexpr std::uint32_t kNoteVerbatim = 32;                                 // nothing of the tile is coded
inline constexpr std::uint32_t kNoteCoding = 3;  // of the group's head, once groups are known

// What is known of a tile. Its first residual is 0 unless it is no difference: what it is depends on the group.
struct TileNote {
  std::uint32_t coded[4];       // blocks with residuals that are not 0
  std::uint64_t first, carry;   // first code; the one that the next tile's first is a difference to
  std::uint32_t special_words;  // of its special part
  std::uint32_t flags;
};

// Residuals of a tile wait in its slot by blocks, the first block and then those that are coded, so that 32 blocks lie
// side by side: position by position, four or two of them in a word where residuals are narrow.
__host__ __device__ inline std::size_t residual_slot(std::size_t code_bytes) { return 4096 * code_bytes; }
__host__ __device__ inline std::size_t special_slot(std::size_t value_bytes) {
  return (max_packed_bytes(value_bytes) + 15) / 16 * 16;
}
// A rans stream takes at most 10 bits for a symbol, 18 for an escape with it, and the raw bits: 47 or 79 bits a value;
// a Huffman stream two more and its gap array. There is room besides for states and the last word.
__host__ __device__ inline std::size_t stream_slot(std::size_t code_bytes) { return 4096 * (code_bytes + 2) + 1536; }

// A group that is encoded; its stream is at the end of its tiles' stream slots (rans) or at their start.
struct GroupNote {
  std::uint32_t bytes;         // of the group, 0 where there is nothing to say
  std::uint32_t stream_bytes;  // rans: a multiple of 2
  std::uint32_t lanes;
};

// What a step of an encoder needs of a symbol in a table: a state from `limit` on gives a word first; then come raw
// bits, and the state grows by first + others * (state / frequency), where others = 2^10 - frequency. Numbers of bits
// are where shifts that wrap take them from. A slow one is an escape, or has outer bits too.
struct DeviceEntry {
  std::uint32_t reciprocal, limit;
  std::uint32_t growth;  // raw bits, kGrowthEscaped, kGrowthSlow, others << 16
  std::uint32_t place;   // shift, first << 16
};
inline constexpr std::uint32_t kGrowthEscaped = 1u << 14, kGrowthSlow = 1u << 15;
inline constexpr DeviceEntry kNeutralEntry = {0, ~0u, 0, 0};  // changes no state
__device__ __forceinline__ DeviceEntry device_encode_entry(const EncodeEntry& entry, std::uint32_t symbol,
                                                           const EncodeEntry& escape) {
  const bool escaped = symbol == kEscape || entry.frequency() == 0;
  const EncodeEntry& own = escaped ? escape : entry;
  const std::uint32_t all = raw_bits(symbol), raw = escaped ? 0 : all < kInnerBits ? all : kInnerBits;
  const bool slow = escaped || symbol >= 2 * kDirectSymbols;
  return {own.reciprocal, own.frequency() << (kStateBits - kProbabilityBits - raw),
          raw | (escaped ? kGrowthEscaped : 0) | (slow ? kGrowthSlow : 0) | (kFrequencySum - own.frequency()) << 16,
          own.shift() | own.first() << 16};
}
// Shifts by the low five bits of `amount`.
__device__ __forceinline__ std::uint32_t shift_left(std::uint32_t x, std::uint32_t amount) {
  return __funnelshift_l(0, x, amount);
}
__device__ __forceinline__ std::uint32_t shift_right(std::uint32_t x, std::uint32_t amount) {
  return __funnelshift_r(x, 0, amount);
}

// What a chunk's streams are coded with.
struct StreamModel {
  EntropyModel model;
  EncodeTables tables;
  HuffmanCodes codes;
  std::uint32_t table_bytes;
  alignas(4) std::uint8_t text[kMostTableBytes];
};

// Tiles that a pass takes of a chunk: all, those that models are made from, or all others.
enum class TilesTaken : std::uint32_t { all, sampled, others };

// Chunks of a shape: their numbers and what they need.
struct StreamParams {
  EncodeParams base;  // its grid is that of a pass; headers[0] is lorenzo's
  Grid grids[kColumns + 1];
  std::uint32_t slots;  // tiles that a chunk has room for
  std::uint8_t coder;
  TilesTaken taken;
  std::uint64_t compare_tiles;  // chunks of up to so many tiles have a frame of hierarchical_delta to beat
  std::uint32_t* shape_chunks;  // chunks of each tile shape
  TileNote* notes;
  std::uint8_t *residuals, *specials, *streams;
  std::size_t value_size, code_size;
  SymbolCounts* counts;
  StreamModel* models;
  GroupNote* groups;
  std::uint32_t* more_units;  // groups that were begun of each chunk beyond the first of each warp; 0 at first
  ChunkPlan* plans;           // base.plans, to be written
};

__device__ __forceinline__ std::uint32_t shape_of(const ChunkPlan& plan) { return plan.predictor & 0xFF; }
__device__ __forceinline__ int order_of(const ChunkPlan& plan) { return static_cast<int>(plan.predictor >> 16 & 0xFF); }
__device__ __forceinline__ bool takes_part(const ChunkPlan& plan, int shape) {
  return plan.quantise != 0 && shape_of(plan) == static_cast<std::uint32_t>(shape);
}

// decode_entry() in a form that most steps need less of: the smallest residual of a symbol in its place, if it has no
// bits but inner ones; else the symbol and kSlowEntry.
inline constexpr std::uint32_t kSlowEntry = 7u << 29;
__device__ __forceinline__ std::uint32_t device_entry(std::uint32_t symbol, std::uint32_t frequency,
                                                      std::uint32_t place) {
  const std::uint32_t entry = decode_entry(symbol, frequency, place);
  return symbol < 2 * kDirectSymbols ? (entry & ~0xFFu) | smallest_of<std::uint32_t>(symbol) : entry | kSlowEntry;
}

// Bytes that the residuals of a Huffman stream take while they wait: those that have codewords. Escapes may have more.
constexpr std::uint32_t residual_class(std::uint32_t last_symbol, std::uint32_t code_bytes) {
  return last_symbol < symbols_of_width(8) ? 1 : last_symbol < symbols_of_width(16) ? 2 : code_bytes;
}

// What a decoder needs of a frame, made by the table kernel.
struct FrameTables {
  std::uint32_t bytes;          // of the frame's table section; 0: it is damaged
  std::uint32_t last_residual;  // of a Huffman codebook: its last symbol that is no escape
  Contexts contexts;
  std::uint32_t flag_frequency[kFlagContexts];
  union {
    alignas(16) std::uint32_t entries[kMostTables * kFrequencySum];
    HuffmanTables huffman;
  };
};

// A special part of a tile, to be put in its place.
struct SpecialTile {
  std::uint32_t frame, tile, words;
  std::uint64_t at;  // bytes behind the frame's header
};

struct StreamDecodeParams {
  DecodeParams base;
  FrameTables* tables;           // of each frame
  std::uint32_t* special_count;  // 0 at first
  SpecialTile* specials;         // room for all tiles that are decoded
  std::uint8_t* repeats;         // of each frame's Huffman groups: those to be decoded with wider residuals
  std::uint32_t frames;          // of the launch
};

// Launchers of a dtype, bound and tile shape.
struct StreamCoder {
  cudaError_t (*residuals)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*count)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*encode)(const StreamParams& job, cudaStream_t stream);
  cudaError_t (*decode)(const StreamDecodeParams& job, std::uint8_t coder, std::uint32_t most_units,
                        std::uint32_t frames, cudaStream_t stream);
};
// nullptr where there is none.
const StreamCoder* lorenzo_coder(Dtype dtype, int tile_shape, bool pointwise);

// Kernels for all of them: predictors of the quantised chunks to job.plans, and of hierarchical_delta for the others
// and the small ones to `others`; models; groups to frames; tables of frames.
cudaError_t pick_predictors(const StreamParams& job, const bool* open, const unsigned long long* bits, int asked,
                            ChunkPlan* others, cudaStream_t stream);
cudaError_t make_models(const StreamParams& job, cudaStream_t stream);
cudaError_t place_groups(const StreamParams& job, cudaStream_t stream);
cudaError_t read_tables(const StreamDecodeParams& job, std::uint32_t frames, cudaStream_t stream);

}  // namespace pyfilter::cuda
