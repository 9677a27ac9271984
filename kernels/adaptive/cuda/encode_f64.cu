// SPDX-License-Identifier: BSD-3-Clause
// Encoders of f64.
#include "adaptive/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const AdaptiveEncoders kAdaptiveEncoders64;
const AdaptiveEncoders kAdaptiveEncoders64 = kAdaptiveEncodersOf<double>;

}  // namespace pyfilter::cuda
