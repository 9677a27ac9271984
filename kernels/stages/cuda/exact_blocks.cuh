// SPDX-License-Identifier: BSD-3-Clause
// Launchers for bit-exact blocks, which codecs of quantised blocks fall back on; the room of the exact codec has them.
#pragma once

#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// nullptr for no dtype.
const Coder* exact_block_coder(Dtype dtype, int block_dims);

}  // namespace pyfilter::cuda
