// SPDX-License-Identifier: BSD-3-Clause
// Decoders of adaptive frames of f64.
#include "adaptive/cuda/kernels.cuh"

namespace pyfilter::cuda {

extern const AdaptiveKernels kAdaptiveKernels64;
const AdaptiveKernels kAdaptiveKernels64 = adaptive_kernels_of<double>();

}  // namespace pyfilter::cuda
