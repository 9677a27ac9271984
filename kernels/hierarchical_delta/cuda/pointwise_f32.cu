// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the GPU: tiles of f32 with a bound relative to each value.
#include "hierarchical_delta/cuda/coder.cuh"
#include "stages/logarithm.hpp"

namespace pyfilter::cuda {

const Coder* pointwise_coder_f32(int tile_shape) { return packed_coder<LogMap<float>>(tile_shape); }

}  // namespace pyfilter::cuda
