// SPDX-License-Identifier: BSD-3-Clause
// The range of a chunk's values, found on the CPU with all threads.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace pyfilter {

// Smallest and largest finite value, without the fill value; false if there is none. A zero is +0.
bool find_value_range(const Request& request, const void* values, std::uint64_t count, double* low,
                      double* high) noexcept;
// The same for integers, as differences from the lowest value of the type.
bool find_integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high) noexcept;

}  // namespace pyfilter
