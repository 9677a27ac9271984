// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in packed tiles, from the host's side.
#pragma once

#include <cstdint>

#include "stages/cuda/batch.cuh"
#include "stages/cuda/packed/choose.cuh"

namespace pyfilter::cuda {

// The tiles that a request may need: a grid for each shape that it leaves open.
struct TileGrids {
  bool open[kCandidates] = {};
  Grid grids[kColumns + 1];  // without tiles where a frame has no room for them
  Grid all[kColumns + 1];
  std::uint64_t most_tiles = 1, fewest = ~std::uint64_t{0};

  TileGrids(const Request& request, std::uint64_t count, std::uint64_t value_bytes);
};

using PackedCoder = const Coder*(Dtype dtype, int tile_shape, bool exact, bool pointwise);

// A batch that has room for passes over these tiles.
TileBatch packed_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                       const TileGrids& tiles, const BatchHeaders& headers);

// What the choice of predictors is made by. `costs`: zeroed, kCandidates a chunk.
ChooseParams choose_params(const Request& request, const TileGrids& tiles, const TileBatch& batch,
                           unsigned long long* costs, bool entropy);

// The choice, then a pass over the tiles of each shape for quantised chunks and one for others.
Status encode_packed(const Request& request, const TileGrids& tiles, const TileBatch& batch, const EncodeParams& params,
                     PackedCoder& find, bool only_exact);

}  // namespace pyfilter::cuda
