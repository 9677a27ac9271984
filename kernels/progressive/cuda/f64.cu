// SPDX-License-Identifier: BSD-3-Clause
// Kernels of progressive frames of f64.
#include "progressive/cuda/coder.cuh"

namespace pyfilter::cuda {

extern const ProgressiveKernels kProgressiveKernels64;
const ProgressiveKernels kProgressiveKernels64 = kProgressiveKernels<double>;

}  // namespace pyfilter::cuda
