// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for integers of 16 bits.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernels16;
const BinnedKernels kBinnedKernels16 = kBinnedKernelsOf<std::uint16_t, false>;

}  // namespace pyfilter::cuda
