// SPDX-License-Identifier: BSD-3-Clause
// Encoding chunks with effort "ratio" on a GPU: the job from the host, and what its kernels leave for each other.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "lossless/bin_search.hpp"
#include "lossless/binned_write.hpp"
#include "lossless/train/number_values.hpp"
#include "stages/cuda/coded_entry.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kTrainThreads = 512;
inline constexpr std::uint32_t kUnitWarps = 8;  // of a thread block that encodes; each encodes a part of a unit

struct BinOfSymbol {
  std::uint8_t bits, level;
};

// A stream's tables for encoding.
template <class U>
struct EncodedBins {
  BinSearch<U> search;
  BinOfSymbol of_symbol[kSymbols];
  std::uint32_t bins, table_of_level[kBinLevels];
  CodedEntry<kBinTableBits> entries[kMostBinTables * kSymbols];
};

// The model of a chunk, and its bytes. `text` has `text_bytes` bytes, a multiple of 4.
template <class U>
struct TrainedChunk {
  BinnedParts model;
  EncodedBins<U> streams[2];
  std::uint64_t dictionary[kMostEntries];
  std::uint32_t places[kPatternSlots];
  std::uint32_t text_bytes;
  alignas(8) std::uint8_t text[(most_binned_model_bytes(kMostEntries) + 7) / 8 * 8];
};

// First differences of a unit, which are stored, at most.
inline constexpr std::uint32_t kMostStored = kMostStrides * kShortStride;

// What the encoder leaves of a unit: heads, and the sum of its bytes.
struct EncodedUnit {
  StreamHead heads[2];
  std::uint32_t bytes;
};

struct BinnedEncode {
  EncodeParams base;
  Shape shape;
  NumberMap map;
  std::uint64_t values;                    // of a chunk
  std::uint32_t most_units, most_parts;    // of a chunk
  std::uint32_t part_values;               // PartsOfUnits
  std::uint32_t first_chunk, chunk_count;  // whose units are encoded; memory below is for these
  double* logs;                            // of counts
  void* spaces;                            // TrainSpace of each thread block that trains
  void* trained;                           // TrainedChunk of each chunk of the batch
  EncodedUnit* units;
  std::uint32_t* states;    // of both streams of each unit: 64
  void* first_differences;  // kMostStored of each unit
  // For each value: numbers, remainders, levels; for both streams symbols, which words replace.
  void *numbers, *remainders;
  std::uint8_t* levels;
  std::uint16_t* symbols[2];
  std::uint32_t* offsets[2];  // of each part of a unit: offset_words()
};

// Long units are encoded in parts of about `part_values` values, by a warp each: 1, 2, 4 or 8 of them, which a thread
// block has. The parts of a chunk are at most values / part_values, rounded up.
struct PartOfUnit {
  bool exists;
  std::uint32_t number, unit, part, parts;  // number: of the unit's first part, in the chunk
};
struct PartsOfUnits {
  std::uint64_t unit_values, values;
  std::uint32_t part_values, of_unit;

  __device__ __forceinline__ PartsOfUnits(const BinnedEncode& job, std::uint64_t values_of_unit)
      : unit_values(values_of_unit),
        values(job.values),
        part_values(job.part_values),
        of_unit(parts_of(values_of_unit)) {}
  // Part number `i` of the chunk.
  __device__ __forceinline__ PartOfUnit part(std::uint32_t i) const {
    const std::uint32_t unit = i / of_unit, first = unit * of_unit;
    const std::uint64_t start = unit * unit_values;
    if (start >= values) return {};
    const std::uint32_t parts = values - start < unit_values ? parts_of(values - start) : of_unit;
    return {i - first < parts, first, unit, i - first, parts};
  }

 private:
  __device__ __forceinline__ std::uint32_t parts_of(std::uint64_t count) const {
    static_assert(kUnitWarps == 8);
    std::uint32_t parts = 1;
    while (parts < kUnitWarps && count >= std::uint64_t{2 * parts} * part_values) parts *= 2;
    return parts;
  }
};

// Words before the offsets of part number `part`, which begins at value `first`.
template <class U>
__host__ __device__ constexpr std::uint64_t offset_words(std::uint64_t first, std::uint64_t part) {
  return (first * (sizeof(U) + 1) + 3) / 4 + 4 * part;
}

// Launchers of the kernels for values of a width.
struct BinnedEncoders {
  std::size_t space_bytes, trained_bytes, number_bytes;
  // Returns the number of thread blocks that train at a time.
  cudaError_t (*resident)(std::uint32_t* blocks);
  cudaError_t (*train)(const BinnedEncode& job, std::uint32_t blocks, cudaStream_t stream);
  cudaError_t (*encode)(const BinnedEncode& job, cudaStream_t stream);
};

// Encodes a batch of chunks with effort "ratio".
Status encode_binned_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

}  // namespace pyfilter::cuda
