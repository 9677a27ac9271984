// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the GPU: tiles of f64.
#include "lorenzo/cuda/coder.cuh"
#include "stages/quantizing_map.hpp"

namespace pyfilter::cuda {

const StreamCoder* stream_coder_f64(int tile_shape) { return stream_coder<QuantizingMap<double>>(tile_shape); }

}  // namespace pyfilter::cuda
