// SPDX-License-Identifier: BSD-3-Clause
// Lossless on the GPU.
#include "lossless/codec.hpp"
#include "stages/cuda/coder.cuh"

namespace pyfilter::cuda {

const Coder* lossless_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return coder<BitMap<std::uint32_t, true>>(block_dims);
  if (dtype == Dtype::f64) return coder<BitMap<std::uint64_t, true>>(block_dims);
  switch (dtype_bytes(dtype)) {
    case 1:
      return coder<BitMap<std::uint8_t, false>>(block_dims);
    case 2:
      return coder<BitMap<std::uint16_t, false>>(block_dims);
    case 4:
      return coder<BitMap<std::uint32_t, false>>(block_dims);
    case 8:
      return coder<BitMap<std::uint64_t, false>>(block_dims);
    default:
      return nullptr;
  }
}

}  // namespace pyfilter::cuda
