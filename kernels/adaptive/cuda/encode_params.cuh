// SPDX-License-Identifier: BSD-3-Clause
// Encoding chunks on a GPU: the job from the host, and what its kernels leave for each other.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "adaptive/plan.hpp"
#include "adaptive/records.hpp"
#include "adaptive/train/fold.hpp"
#include "adaptive/train/trainer.hpp"
#include "stages/cuda/coded_entry.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kTrainThreads = 256, kTrainWarps = kTrainThreads / 32;
inline constexpr std::uint32_t kOrders = 3;  // axes that a part may have: its own, then others

// What decides the offset and the step of a chunk: its lowest and highest value but for zeros, as keys in the order of
// the values (0: none; `low` is inverted), and the number of zeros.
struct ChunkFacts {
  unsigned long long low, high, zeros;
};

// Global memory of a warp that codes a tile.
struct EncodeScratch {
  UnitScratch unit;
  std::uint8_t* marks;  // values that must be stored

  static __host__ __device__ std::size_t bytes(const ScratchShape& shape) {
    return shape.bytes() + (shape.cells + 255) / 256 * 256;
  }
  PYF_LANES EncodeScratch in(std::uint8_t* memory, const ScratchShape& shape) {
    return {UnitScratch::in(memory, shape), memory + shape.bytes()};
  }
};

// What the encoder leaves of a tile: numbers of records, flags, steps, words of stored values, and whether it has
// masks.
struct TileHead {
  std::uint32_t values, flags, steps, stored, masks;
};
struct TileRecords {
  std::uint32_t *values, *steps, *stored;  // make_record() of each value, the lanes of each step, stored values
  std::uint8_t* flags;                     // the context of a value's flag, plus 128 if it is special
};
// Memory of the largest tile's records.
struct RecordShape {
  std::uint32_t cells = 0, steps = 0, value_words = 0;

  __host__ __device__ std::size_t bytes() const {
    return (4 * (std::size_t{cells} * (1 + value_words) + steps) + cells + 255) / 256 * 256;
  }
  __device__ __forceinline__ TileRecords in(std::uint8_t* memory) const {
    TileRecords r;
    r.values = reinterpret_cast<std::uint32_t*>(memory);
    r.stored = r.values + cells;
    r.steps = r.stored + std::size_t{cells} * value_words;
    r.flags = reinterpret_cast<std::uint8_t*>(r.steps + steps);
    return r;
  }
};

// The model of a part, its bytes, and its symbols' entries.
struct TrainedModel {
  AdaptiveModel model;
  double bits, total_activity;
  std::uint32_t unit_log2, text_bytes;
  CodedEntry<kTableBits> entries[kMostTablesOfModel * kSymbols];
  std::uint32_t first_of_level[kContextLevels];
  alignas(8) std::uint8_t text[kMostModelBytes];
};

// Memory of a thread block for samples of its chunk. Tiles put theirs into slots; then they are packed.
inline constexpr std::uint32_t kMostSlots = 64;
struct SampleMemory {
  std::uint8_t* slots;
  Sample* samples;
  ContextSample* contexts;
  std::uint32_t* counts;  // of each slot and pass
};
struct SampleMemorySizes {
  std::size_t slot_bytes = 0, samples = 0, contexts = 0;

  __host__ __device__ static std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  __host__ __device__ std::size_t bytes() const {
    return padded(slot_bytes) + padded(samples * sizeof(Sample)) + padded(contexts * sizeof(ContextSample)) +
           padded(4 * kMostSlots * (kMostLevels + 1));
  }
  __device__ __forceinline__ SampleMemory in(std::uint8_t* memory) const {
    SampleMemory m;
    m.slots = memory;
    m.samples = reinterpret_cast<Sample*>(m.slots + padded(slot_bytes));
    m.contexts =
        reinterpret_cast<ContextSample*>(reinterpret_cast<std::uint8_t*>(m.samples) + padded(samples * sizeof(Sample)));
    m.counts = reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uint8_t*>(m.contexts) +
                                                padded(contexts * sizeof(ContextSample)));
    return m;
  }
};

// Memory of a thread block that solves equations: numbers for as many samples as there may be.
struct SolvingSizes {
  std::size_t samples = 0, contexts = 0;

  __host__ __device__ std::size_t bytes() const {
    return SampleMemorySizes::padded(4 * contexts) + SampleMemorySizes::padded(4 * (3 * samples + 2 * contexts));
  }
  __device__ __forceinline__ void lay_out(std::uint8_t* memory, float* staged, TrainSpace& space) const {
    space.context_space.numbers = reinterpret_cast<float*>(memory);
    auto* at = reinterpret_cast<std::uint32_t*>(memory + SampleMemorySizes::padded(4 * contexts));
    space.equation_space = {at, at + samples, staged, {at + 2 * samples, {}}};
    space.context_space.staged = staged;
    space.context_space.by_parity.order = at + 3 * samples;
    space.context_space.by_set.order = at + 3 * samples + contexts;
  }
};

// Lines of which folds are found.
struct FoldJob {
  AdaptiveGrid lines;  // of all components together
  const std::uint8_t* values;
  std::size_t value_stride;
  std::uint32_t parts, count;  // parts: of a chunk; count: of all chunks
  FoldSpace* spaces;           // of each thread block
  Folds* folds;                // of each part
};

struct EncodedUnit {
  std::uint32_t words, bit_words, bytes;  // words: of 16 bits, of the stream; bit_words: of masks and states
};

// What depends on the axes of a part.
struct EncodeOrder {
  TileKind kind;
  const AdaptiveGrid* grids;  // of each part of each chunk; without values where a part has no such axes
  std::uint32_t tiles;        // of a part, at most
  ScratchShape scratch;
  RecordShape records;
  std::uint32_t* next_tile;  // a counter for each place
  std::size_t plane_floats;  // of a warp that codes tiles of volumes in rings
  std::size_t tile_words;    // 16-bit words of a stream for each tile, at most
};

// A chunk has a part for each of its components (docs/format.md, section 14.1). Arrays are of all parts of all chunks.
struct AdaptiveEncode {
  EncodeParams base;
  AdaptiveTaps taps[kTileKinds];  // tile_kind_index()
  AdaptiveChoice choice;
  std::uint32_t parts, orders;  // parts: of a chunk
  EncodeOrder order[kOrders];
  std::uint64_t values;  // of a chunk
  std::uint32_t most_tiles;
  ChunkPlan* plans;  // of each chunk
  double* offsets;
  double* rated;          // of each order: estimated bits of each part
  std::uint32_t* chosen;  // the order of each part
  float* activity;        // of each tile
  TrainedModel* trained;
  TileHead* heads;  // of each tile
  std::uint8_t* record_memory;
  std::size_t record_bytes, part_words;  // of a part: records of its tiles, and 16-bit words of its streams
  std::uint32_t* sizes;                  // of each part, in words of 4 bytes
  double* logs;                          // of counts
  TrainSpace* spaces;                    // of each thread block that trains
  std::uint8_t *solving, *samples, *scratch;
  std::size_t scratch_bytes;  // of a warp
  float* planes;              // of each warp that codes tiles
  SampleMemorySizes sample_sizes;
  SolvingSizes solving_sizes;
  // of each unit: sizes, and bits of masks and states; of each tile memory for words, which end at the end of the
  // unit's last tile
  EncodedUnit* units;
  std::uint32_t* unit_bits;
  std::uint16_t* words;

  __host__ __device__ std::uint32_t part_count() const { return base.chunks * parts; }
  __device__ __forceinline__ const ChunkPlan& plan_of(std::uint32_t part) const { return base.plans[part / parts]; }
  __device__ __forceinline__ const AdaptiveTaps& taps_of(const EncodeOrder& o) const {
    return taps[tile_kind_index(o.kind)];
  }
  __device__ __forceinline__ TileRecords records_of(const EncodeOrder& o, std::uint32_t part,
                                                    std::uint32_t tile) const {
    return o.records.in(record_memory + part * record_bytes + tile * o.records.bytes());
  }
  __device__ __forceinline__ TileHead& head_of(std::uint32_t part, std::uint32_t tile) const {
    return heads[std::size_t{part} * most_tiles + tile];
  }
  // The words of a part's tiles from `tile` on.
  __device__ __forceinline__ std::uint16_t* words_of(const EncodeOrder& o, std::uint32_t part,
                                                     std::uint32_t tile) const {
    return words + part * part_words + tile * o.tile_words;
  }
};

// Launchers of the kernels for values of a type.
struct AdaptiveEncoders {
  // Finds folds of the parts of `chunks` chunks, whose lines are of this grid.
  cudaError_t (*find_folds)(const FoldJob& job, std::uint32_t blocks, cudaStream_t stream);
  cudaError_t (*settle)(const AdaptiveEncode& job, const Request& request, ChunkFacts* facts, cudaStream_t stream);
  // Return the number of thread blocks that train, and of warps that code tiles, at a time.
  cudaError_t (*resident)(const AdaptiveEncode& job, std::uint32_t* training, std::uint32_t* coding);
  cudaError_t (*encode)(const AdaptiveEncode& job, std::uint32_t training, std::uint32_t coding, cudaStream_t stream);
};

}  // namespace pyfilter::cuda
