// SPDX-License-Identifier: BSD-3-Clause
// What the host's sides of encoding and decoding on a GPU share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "core/cuda/driver.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// Enlarges the memory of a warp to what the largest tile of a grid needs, and that of PlaneWindows.
void make_room(const AdaptiveGrid& grid, ScratchShape& scratch, std::size_t& plane_floats);

// Encodes a batch of chunks; waits for sizes.
Status encode_adaptive(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

}  // namespace pyfilter::cuda
