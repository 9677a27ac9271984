// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in block tiles, from the host's side.
#pragma once

#include "stages/cuda/batch.cuh"

namespace pyfilter::cuda {

// Finds a codec's launchers by dtype and block dimensions; nullptr: the dtype is not supported.
using FindCoder = const Coder*(Dtype dtype, int block_dims);

// Quantised chunks use `quantised` (nullptr: there are none), all others `exact`.
Status encode_block_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                          const BatchHeaders& headers, FindCoder* quantised, FindCoder& exact);

}  // namespace pyfilter::cuda
