// SPDX-License-Identifier: BSD-3-Clause
// Particles on a device, beyond encoding and decoding. Encoding waits for the device once, to know which chunks lorenzo
// encodes in their place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// particle_order() of codec.hpp, in device memory: particles[i] becomes the row that comes to place i.
Status cuda_particle_order(const Request& request, const void* values, std::size_t value_bytes,
                           std::uint32_t* particles, void* stream) noexcept;

}  // namespace pyfilter
