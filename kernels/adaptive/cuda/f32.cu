// SPDX-License-Identifier: BSD-3-Clause
// Decoders of adaptive frames of f32.
#include "adaptive/cuda/kernels.cuh"

namespace pyfilter::cuda {

extern const AdaptiveKernels kAdaptiveKernels32;
const AdaptiveKernels kAdaptiveKernels32 = adaptive_kernels_of<float>();

}  // namespace pyfilter::cuda
