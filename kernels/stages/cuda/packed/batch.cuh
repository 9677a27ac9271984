// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in packed tiles, from the host's side.
#pragma once

#include <cstdint>

#include "stages/cuda/batch.cuh"
#include "stages/cuda/packed/choose.cuh"

namespace pyfilter::cuda {

// The tile grids that a request may need: one for each shape that the request leaves open.
struct TileGrids {
  bool open[kCandidates] = {};
  Grid grids[kColumns + 1];  // 0 tiles if a frame has no space for them
  Grid all[kColumns + 1];
  std::uint64_t most_tiles = 1, fewest = ~std::uint64_t{0};

  TileGrids(const Request& request, std::uint64_t count, std::uint64_t value_bytes);
};

// Whether every row of every chunk starts at a multiple of 16 bytes. `address_bits`: the OR of the chunks' addresses.
inline bool rows_aligned(const Grid& grid, std::uint64_t address_bits, std::size_t width) {
  return address_bits % 16 == 0 && (grid.block_dims == kChain || grid.nx * width % 16 == 0);
}

using PackedCoder = const Coder*(Dtype dtype, int tile_shape, bool exact, bool pointwise);

// A batch with counters for passes over these tiles.
TileBatch packed_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                       const TileGrids& tiles, const BatchHeaders& headers);

// The parameters of the predictor choice. `costs`: kCandidates a chunk, zeroed.
ChooseParams choose_params(const Request& request, const TileGrids& tiles, const TileBatch& batch,
                           unsigned long long* costs, bool entropy);

// Chooses predictors, then encodes: for each shape one pass over tiles of quantised chunks and one over tiles of
// bit-exact chunks.
Status encode_packed(const Request& request, const TileGrids& tiles, const TileBatch& batch, const EncodeParams& params,
                     PackedCoder& find, bool only_exact);

}  // namespace pyfilter::cuda
