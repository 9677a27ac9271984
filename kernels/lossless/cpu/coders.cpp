// SPDX-License-Identifier: BSD-3-Clause
// Lossless on the CPU; compiled once per level (core/target.hpp).
#include "lossless/codec.hpp"
#include "stages/bit_map.hpp"
#include "stages/tile_coder.hpp"

PYF_BEGIN_TARGET

static const TileCoder* find_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return tile_coder<ExactMap<float>>(block_dims);
  if (dtype == Dtype::f64) return tile_coder<ExactMap<double>>(block_dims);
  switch (dtype_bytes(dtype)) {
    case 1:
      return tile_coder<BitMap<std::uint8_t, false>>(block_dims);
    case 2:
      return tile_coder<BitMap<std::uint16_t, false>>(block_dims);
    case 4:
      return tile_coder<BitMap<std::uint32_t, false>>(block_dims);
    case 8:
      return tile_coder<BitMap<std::uint64_t, false>>(block_dims);
    default:
      return nullptr;
  }
}

const LosslessCoders kLosslessCoders{&find_coder};

PYF_END_TARGET
