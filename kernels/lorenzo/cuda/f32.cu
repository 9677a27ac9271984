// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the GPU: tiles of f32.
#include "lorenzo/cuda/coder.cuh"
#include "stages/quantizing_map.hpp"

namespace pyfilter::cuda {

const StreamCoder* stream_coder_f32(int tile_shape) { return stream_coder<QuantizingMap<float>>(tile_shape); }

}  // namespace pyfilter::cuda
