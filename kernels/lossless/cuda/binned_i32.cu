// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for integers of 32 bits.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernels32;
const BinnedKernels kBinnedKernels32 = kBinnedKernelsOf<std::uint32_t, false>;

}  // namespace pyfilter::cuda
