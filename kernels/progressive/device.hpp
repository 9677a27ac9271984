// SPDX-License-Identifier: BSD-3-Clause
// Functions of progressive frames on a device, besides encoding and decoding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"

namespace pyfilter {

// decode_progressive_part() of driver.hpp for values in device memory: copies the needed bytes of a frame in host
// memory. Waits.
Status cuda_decode_progressive_part(const void* frame, std::size_t available, std::uint32_t segments,
                                    std::uint32_t level, void* values, std::size_t value_bytes, void* stream) noexcept;

}  // namespace pyfilter
