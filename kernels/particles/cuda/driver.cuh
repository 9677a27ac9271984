// SPDX-License-Identifier: BSD-3-Clause
// Particles on a device, from the host's side: encoding batches .
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda/driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// A batch that has been checked. Waits for the device once, to know which chunks lorenzo has to encode.
Status encode_particles(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

// particles[i] (device memory) becomes the row of the one chunk at `values` that comes to place i, as particle_order()
// of api.hpp has it. There is a particle at least.
Status order_particles(const Request& request, const void* values, std::uint64_t count, int coordinates,
                       std::uint32_t* particles, cudaStream_t stream) noexcept;

}  // namespace pyfilter::cuda
