// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2 on the GPU.
#include "cuszp2/codec.hpp"
#include "stages/cuda/coder.cuh"

namespace pyfilter::cuda {

const Coder* cuszp2_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return coder<QuantizingMap<float>>(block_dims);
  if (dtype == Dtype::f64) return coder<QuantizingMap<double>>(block_dims);
  return nullptr;
}

}  // namespace pyfilter::cuda
