// SPDX-License-Identifier: BSD-3-Clause
// Decoders of effort "ratio" for f64.
#include "lossless/cuda/binned_kernels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernelsF64;
const BinnedKernels kBinnedKernelsF64 = kBinnedKernelsOf<std::uint64_t, true>;

}  // namespace pyfilter::cuda
