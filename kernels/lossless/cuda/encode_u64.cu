// SPDX-License-Identifier: BSD-3-Clause
// Encoders of effort "ratio" for values of 64 bits.
#include "lossless/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const BinnedEncoders kBinnedEncoders64;
const BinnedEncoders kBinnedEncoders64 = kBinnedEncodersOf<std::uint64_t>;

}  // namespace pyfilter::cuda
