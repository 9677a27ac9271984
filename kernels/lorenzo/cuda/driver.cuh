// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device, from the host's side: what encoding and decoding batches need for its streams besides
// (core/cuda/encode.cu, core/cuda/decode.cu).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cuda/memory.cuh"
#include "core/cuda/sizes.cuh"
#include "core/status.hpp"
#include "core/types.hpp"
#include "lorenzo/cuda/params.cuh"

namespace pyfilter::cuda {

// Batches of so many tiles have their models made beside their residuals: of fewer, the launches take longer.
inline constexpr std::uint64_t kManyTiles = usual_size(16384, 30);
// Chunks of a launch at most.
inline constexpr std::size_t kMostStreamChunks = usual_size(1024, 5);

// Memory for the choice of predictors of a batch: one allocation, the first `zeroed` bytes of which must be 0.
struct ChoiceLayout {
  std::size_t bytes = 0, zeroed = 0;
  std::size_t shape_chunks, bits, plans;

  explicit ChoiceLayout(std::size_t chunks);
};

// Streams of the chunks whose predictors are chosen; frames of hierarchical_delta are there where they compete. As many
// chunks together as there is memory for. Waits for the predictors if that depends on them.
Status encode_streams(const StreamParams& job, Dtype dtype, bool pointwise, const bool* open_shapes,
                      std::uint64_t places, cudaStream_t stream);

// Frames of one tile shape, with or without logarithms, and of one coder or the other. `job` is as for packed tiles,
// its tables and lists to be made here.
Status decode_streams(const StreamCoder& coder, const DecodeParams& job, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream);

}  // namespace pyfilter::cuda
