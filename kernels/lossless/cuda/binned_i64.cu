// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for integers of 64 bits.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernels64;
const BinnedKernels kBinnedKernels64 = kBinnedKernelsOf<std::uint64_t, false>;

}  // namespace pyfilter::cuda
