// SPDX-License-Identifier: BSD-3-Clause
// Encoders of f32.
#include "adaptive/cuda/encode_launch.cuh"

namespace pyfilter::cuda {

extern const AdaptiveEncoders kAdaptiveEncoders32;
const AdaptiveEncoders kAdaptiveEncoders32 = kAdaptiveEncodersOf<float>;

}  // namespace pyfilter::cuda
