// SPDX-License-Identifier: BSD-3-Clause
// Particles on a device, from the host's side: encoding batches.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/cuda/driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// Encodes a checked batch. Waits for the device once, to learn which chunks lorenzo must encode.
Status encode_particles(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

// Sets particles[i] (device memory) to the row of the single chunk at `values` that becomes row i, as particle_order()
// of codec.hpp. There is at least one particle.
Status order_particles(const Request& request, const void* values, std::uint64_t count, int coordinates,
                       std::uint32_t* particles, cudaStream_t stream) noexcept;

}  // namespace pyfilter::cuda
