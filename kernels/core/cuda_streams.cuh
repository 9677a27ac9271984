// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device, from the host's side: what encoding and decoding batches need for its streams besides
// (cuda_encode.cu, cuda_decode.cu).
#pragma once

#include <cstdint>
#include <vector>

#include "core/cuda_memory.cuh"
#include "core/status.hpp"
#include "core/types.hpp"
#include "stages/cuda/entropy/params.cuh"

namespace pyfilter::cuda {

// Tiles that are encoded together at most: their residuals and streams take four times the memory of their values.
inline constexpr std::uint64_t kMostStreamTiles = std::uint64_t{1} << 17;
inline constexpr std::size_t kMostStreamChunks = 1024;
// Batches of so many tiles have their models made beside their residuals: of fewer, the launches take longer.
inline constexpr std::uint64_t kManyTiles = 16384;

// Memory of a batch that is encoded: one allocation, the first `zeroed` bytes of which must be 0.
struct StreamLayout {
  std::size_t bytes = 0, zeroed = 0;
  std::size_t shape_chunks, more_units, counts, bits, plans, models, groups, notes, residuals, specials, streams;

  StreamLayout(std::size_t chunks, std::size_t slots, std::size_t value_size);
};

// Streams of the chunks whose predictors are chosen; frames of hierarchical_delta are there where they compete.
Status encode_streams(const StreamParams& job, Dtype dtype, bool pointwise, const bool* open_shapes,
                      std::uint64_t places, cudaStream_t stream);

// Frames of one tile shape, with or without logarithms, and of one coder or the other. `job` is as for packed tiles,
// its tables and lists to be made here.
Status decode_streams(const StreamCoder& coder, const DecodeParams& job, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream);

}  // namespace pyfilter::cuda
