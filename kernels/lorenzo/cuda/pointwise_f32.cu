// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the GPU: tiles of f32 with a bound relative to each value.
#include "lorenzo/cuda/coder.cuh"
#include "stages/logarithm.hpp"

namespace pyfilter::cuda {

const StreamCoder* stream_coder_pointwise_f32(int tile_shape) { return stream_coder<LogMap<float>>(tile_shape); }

}  // namespace pyfilter::cuda
