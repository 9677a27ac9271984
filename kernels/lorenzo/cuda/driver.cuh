// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device, from the host's side: the streams of batches, on top of core/cuda/encode.cu and
// core/cuda/decode.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cuda/memory.cuh"
#include "core/cuda/sizes.cuh"
#include "core/status.hpp"
#include "core/types.hpp"
#include "lorenzo/cuda/params.cuh"

namespace pyfilter::cuda {

// Batches of at least this many tiles make their models in parallel with residuals; for fewer the extra launches cost
// more.
inline constexpr std::uint64_t kManyTiles = usual_size(16384, 30);
// The most chunks of a launch.
inline constexpr std::size_t kMostStreamChunks = usual_size(1024, 5);

// Encodes streams of chunks whose predictors are chosen; hierarchical_delta's frames already exist where they compete.
// Encodes together as many chunks as memory allows. Waits for the predictors if the memory depends on them.
Status encode_streams(const StreamParams& job, Dtype dtype, bool pointwise, const bool* open_shapes,
                      std::uint64_t address_bits, cudaStream_t stream);

// Decodes frames of one tile shape, kind of bound and coder. `job`: as for packed tiles; the tables and lists are made
// here.
Status decode_streams(const StreamCoder& coder, const DecodeParams& job, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream);

}  // namespace pyfilter::cuda
