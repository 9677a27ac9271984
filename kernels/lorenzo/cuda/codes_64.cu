// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the GPU: residuals of 64 bits to streams, and back.
#include "lorenzo/cuda/codes.cuh"

namespace pyfilter::cuda {

PYF_INSTANTIATE_CODES(std::uint64_t, kChain);
PYF_INSTANTIATE_CODES(std::uint64_t, kPlane);
PYF_INSTANTIATE_CODES(std::uint64_t, kVolume);
PYF_INSTANTIATE_CODES(std::uint64_t, kColumns);
PYF_INSTANTIATE_RANS_RESIDUALS(std::uint64_t, kPlane);
PYF_INSTANTIATE_RANS_RESIDUALS(std::uint64_t, kVolume);
PYF_INSTANTIATE_RANS_RESIDUALS(std::uint64_t, kColumns);

}  // namespace pyfilter::cuda
