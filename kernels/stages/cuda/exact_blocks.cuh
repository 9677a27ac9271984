// SPDX-License-Identifier: BSD-3-Clause
// Launchers for bit-exact blocks, the fallback of codecs of quantised blocks; the bit-exact codec implements them.
#pragma once

#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// nullptr: the dtype is not supported.
const Coder* exact_block_coder(Dtype dtype, int block_dims);

}  // namespace pyfilter::cuda
