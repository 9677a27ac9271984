// SPDX-License-Identifier: BSD-3-Clause
// The range of a chunk's values, by all threads, on the CPU.
#pragma once

#include <cstdint>

#include "core/types.hpp"

namespace pyfilter {

// Smallest and largest finite value but the fill's; false when there is none. A zero has no sign.
bool find_value_range(const Request& request, const void* values, std::uint64_t count, double* low,
                      double* high) noexcept;
// The same of integers, as numbers above the lowest one of their type.
bool find_integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high) noexcept;

}  // namespace pyfilter
