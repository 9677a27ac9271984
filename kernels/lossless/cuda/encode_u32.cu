// SPDX-License-Identifier: BSD-3-Clause
// Encoders of effort "ratio" for values of 32 bits.
#include "lossless/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const BinnedEncoders kBinnedEncoders32;
const BinnedEncoders kBinnedEncoders32 = kBinnedEncodersOf<std::uint32_t>;

}  // namespace pyfilter::cuda
