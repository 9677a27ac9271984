// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for integers of 8 bits.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernels8;
const BinnedKernels kBinnedKernels8 = kBinnedKernelsOf<std::uint8_t, false>;

}  // namespace pyfilter::cuda
