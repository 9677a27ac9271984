// SPDX-License-Identifier: BSD-3-Clause
// Functions of particles on a device, besides encoding and decoding. Encoding waits for the device once, to learn which
// chunks lorenzo must encode instead.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// particle_order() of codec.hpp, in device memory: particles[i] is set to the row that becomes row i.
Status cuda_particle_order(const Request& request, const void* values, std::size_t value_bytes,
                           std::uint32_t* particles, void* stream) noexcept;

}  // namespace pyfilter
