// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in block tiles, from the host's side.
#pragma once

#include "stages/cuda/batch.cuh"

namespace pyfilter::cuda {

// Launchers of a codec for a dtype and block dimensions; nullptr where it does not take the dtype.
using FindCoder = const Coder*(Dtype dtype, int block_dims);

// Chunks that are quantised go by `quantised` (nullptr: none is), all others by `exact`.
Status encode_block_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                          const BatchHeaders& headers, FindCoder* quantised, FindCoder& exact);

}  // namespace pyfilter::cuda
