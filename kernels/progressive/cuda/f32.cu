// SPDX-License-Identifier: BSD-3-Clause
// Kernels of progressive frames of f32.
#include "progressive/cuda/coder.cuh"

namespace pyfilter::cuda {

extern const ProgressiveKernels kProgressiveKernels32;
const ProgressiveKernels kProgressiveKernels32 = kProgressiveKernels<float>;

}  // namespace pyfilter::cuda
