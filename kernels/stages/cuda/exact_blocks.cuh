// SPDX-License-Identifier: BSD-3-Clause
// Launchers for bit-exact blocks: those of lossless, which other codecs of blocks fall back on.
#pragma once

#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// nullptr for no dtype.
const Coder* exact_block_coder(Dtype dtype, int block_dims);

}  // namespace pyfilter::cuda
