// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for f32.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernelsF32;
const BinnedKernels kBinnedKernelsF32 = kBinnedKernelsOf<std::uint32_t, true>;

}  // namespace pyfilter::cuda
