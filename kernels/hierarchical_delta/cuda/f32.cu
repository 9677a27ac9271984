// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the GPU: tiles of f32.
#include "hierarchical_delta/cuda/coder.cuh"
#include "stages/bit_map.hpp"
#include "stages/quantizing_map.hpp"

namespace pyfilter::cuda {

const Coder* packed_coder_f32(int tile_shape, bool exact) {
  return exact ? packed_coder<ExactMap<float>>(tile_shape) : packed_coder<QuantizingMap<float>>(tile_shape);
}

}  // namespace pyfilter::cuda
