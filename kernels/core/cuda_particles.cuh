// SPDX-License-Identifier: BSD-3-Clause
// Particles on a device, from the host's side: encoding batches (cuda_encode.cu calls it).
#pragma once

#include <cstdint>

#include "core/cuda_driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// A batch that has been checked. Waits for the device once, to know which chunks lorenzo has to encode.
Status encode_particles(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) noexcept;

}  // namespace pyfilter::cuda
