// SPDX-License-Identifier: BSD-3-Clause
// What the host's sides of encoding and decoding on a GPU share.
#pragma once

#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "core/cuda/driver.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// Memory of a warp for the largest tile of a grid.
ScratchShape scratch_shape_of(const AdaptiveGrid& grid);

// Encodes a batch of chunks; waits for sizes.
Status encode_adaptive(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

}  // namespace pyfilter::cuda
