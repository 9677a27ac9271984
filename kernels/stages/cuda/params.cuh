// SPDX-License-Identifier: BSD-3-Clause
// The parameters of the CUDA kernels, and the table of a codec's launchers. All chunks of a batch have one shape and
// dtype.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/codec.cuh"
#include "core/plan.hpp"
#include "core/types.hpp"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

inline constexpr int kThreads = 128;  // of a thread block: one for each run of 32 values of a tile
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kMaxHeaderWords = 78;  // of a frame of rank 32

// A divisor of 32-bit numbers, known at launch: its inverse makes a division five instructions.
struct Divisor {
  std::uint32_t value = 1, inverse = ~std::uint32_t{0};  // floor((2^32 - 1) / value)

  Divisor() = default;
  explicit Divisor(std::uint64_t divisor)  // larger divisors than 32-bit numbers act as the largest
      : value(static_cast<std::uint32_t>(divisor < 1                    ? 1
                                         : divisor <= ~std::uint32_t{0} ? divisor
                                                                        : ~std::uint32_t{0})),
        inverse(~std::uint32_t{0} / value) {}
};

struct Quotient {
  std::uint32_t quotient, remainder;
};

// The product with the inverse is the quotient or one less: n (2^32 - inverse * value) / (2^32 value) is below 1.
__device__ __forceinline__ Quotient divide(std::uint32_t n, const Divisor& by) {
  std::uint32_t quotient = __umulhi(n, by.inverse), remainder = n - quotient * by.value;
  if (remainder >= by.value) {
    ++quotient;
    remainder -= by.value;
  }
  return {quotient, remainder};
}

// The grid of a launch. A launch has fewer than 2^32 blocks and tiles.
struct LaunchGrid : Grid {
  Divisor by_gx, by_gy, by_gz, by_tiles;

  LaunchGrid() = default;
  LaunchGrid(const Grid& grid) : Grid(grid), by_gx(grid.gx), by_gy(grid.gy), by_gz(grid.gz), by_tiles(grid.tiles) {}
};

// Sizes of a batch's tiles, and the sums of all sizes up to each tile, in words. A size is posted as size + 1; 0: not
// posted. A sum has a flag (1: valid) in front.
struct TileSums {
  std::uint32_t* sizes;
  uint2* ends;
};

// Choices for a chunk, made on the device by the prepare kernel.
struct ChunkPlan {
  double bound, step;
  std::uint64_t sentinel;
  std::uint32_t quantise;   // 0: bit-exact
  std::uint32_t predictor;  // packed tiles: tile shape, order << 16
  std::uint32_t has_sentinel;
  std::uint32_t version;  // the format version of the frame, if it is later than that of the batch's other frames
  // the tiles' part of the plan: a Quantizer or LogQuantizer of the chunk's dtype
  alignas(16) unsigned char ready[64];

  template <class Quantiser>
  __device__ __forceinline__ const Quantiser& ready_as() const {
    static_assert(sizeof(Quantiser) <= sizeof ready);
    return *reinterpret_cast<const Quantiser*>(ready);
  }
  template <class T>
  __device__ __forceinline__ const Quantizer<T>& quantizer() const {
    return ready_as<Quantizer<T>>();
  }
};

inline constexpr std::uint32_t kNoPredictor = 0xFF;  // packed tiles: no pass encodes the chunk

static_assert(offsetof(ChunkPlan, quantise) % 8 == 0 &&
              offsetof(ChunkPlan, predictor) == offsetof(ChunkPlan, quantise) + sizeof(std::uint32_t));

// A header with zeros where the device writes: raw and sentinel flags, checksum, size, bound, step, sentinel.
struct HeaderTemplate {
  std::uint32_t words[kMaxHeaderWords];
};

struct Counters {
  std::uint32_t task[2];                           // next task of the quantising and the bit-exact pass
  std::uint32_t exact_chunks;                      // chunks that the bit-exact pass of a quantising request encodes
  std::uint32_t packed_task[8], packed_chunks[8];  // the same for the passes over packed tiles
  std::uint32_t raw_chunks;
};

struct EncodeParams {
  LaunchGrid grid;
  std::uint32_t tiles, blocks, chunks;  // tiles and blocks of one chunk
  std::uint32_t waiting_bytes;          // shared memory for a tile that waits for its offset
  std::uint8_t mode;
  bool exceptions;              // packed tiles: whether exceptions may be used
  bool pointwise;               // packed tiles: codes are those of logarithms
  std::uint32_t pass;           // packed tiles: packed_pass()
  const std::uint32_t* listed;  // packed tiles: the chunks of this pass, in any order
  bool exact_pass;              // whether this launch encodes the chunks that are not quantised
  bool aligned;                 // every row of every chunk starts at a multiple of 16 bytes
  const std::uint8_t* values;
  std::uint64_t value_stride, value_bytes;
  std::uint8_t* frames;
  std::uint64_t frame_stride;
  std::uint64_t* frame_bytes;
  const ChunkPlan* plans;
  TileSums sums;
  std::uint32_t* raw;  // one flag a chunk
  Counters* counters;
  std::uint32_t header_words;
  HeaderTemplate headers[2];                      // quantised, bit-exact
  std::uint32_t crc_powers[kMaxHeaderWords + 1];  // x^(32 k) modulo the polynomial of CRC-32
};

struct DecodeParams {
  LaunchGrid grid;
  std::uint32_t tiles, blocks;
  std::uint32_t first_tile, tile_count;  // of each frame, decoded by this launch
  bool aligned;
  std::uint64_t start, stop;  // requested values
  const DecodeFrame* frames;  // nullptr: use only_frame
  DecodeFrame only_frame;

  __device__ __forceinline__ const DecodeFrame& frame(std::uint32_t i) const {
    return frames != nullptr ? frames[i] : only_frame;
  }
};

// Launchers of one codec, dtype and block dimensions. They return the launch's error.
struct Coder {
  cudaError_t (*encode)(const EncodeParams& params, cudaStream_t stream);
  cudaError_t (*decode)(const DecodeParams& params, std::uint32_t frames, cudaStream_t stream);
};

}  // namespace pyfilter::cuda
