// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the GPU: tiles of f64 with a bound relative to each value.
#include "hierarchical_delta/cuda/coder.cuh"
#include "stages/logarithm.hpp"

namespace pyfilter::cuda {

const Coder* pointwise_coder_f64(int tile_shape) { return packed_coder<LogMap<double>>(tile_shape); }

}  // namespace pyfilter::cuda
