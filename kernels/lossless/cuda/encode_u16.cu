// SPDX-License-Identifier: BSD-3-Clause
// Encoders of effort "ratio" for values of 16 bits.
#include "lossless/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const BinnedEncoders kBinnedEncoders16;
const BinnedEncoders kBinnedEncoders16 = kBinnedEncodersOf<std::uint16_t>;

}  // namespace pyfilter::cuda
