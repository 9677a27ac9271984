// SPDX-License-Identifier: BSD-3-Clause
// Encoders of effort "ratio" for values of 8 bits.
#include "lossless/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const BinnedEncoders kBinnedEncoders8;
const BinnedEncoders kBinnedEncoders8 = kBinnedEncodersOf<std::uint8_t>;

}  // namespace pyfilter::cuda
