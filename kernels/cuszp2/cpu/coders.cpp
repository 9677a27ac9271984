// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2 on the CPU; compiled once per level (core/target.hpp).
#include "cuszp2/codec.hpp"
#include "stages/quantizing_map.hpp"
#include "stages/tile_coder.hpp"

PYF_BEGIN_TARGET

static const TileCoder* find_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return tile_coder<QuantizingMap<float>>(block_dims);
  if (dtype == Dtype::f64) return tile_coder<QuantizingMap<double>>(block_dims);
  return nullptr;
}

const Cuszp2Coders kCuszp2Coders{&find_coder};

PYF_END_TARGET
