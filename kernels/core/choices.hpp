// SPDX-License-Identifier: BSD-3-Clause
// What is found out about a whole chunk before its tiles are encoded, over threads, on the CPU: the range of its values
// and the predictor that suits it.
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Smallest and largest finite value but the fill's; false when there is none. A zero has no sign.
bool find_value_range(const Request& request, const void* values, std::uint64_t count, double* low,
                      double* high) noexcept;
// The same of integers, as numbers above the lowest one of their type.
bool find_integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high) noexcept;

// Among those that the request leaves open; `plan` has bound, step (0: bit-exact) and sentinel.
Predictor choose_predictor(const Request& request, const Plan& plan, const void* values, std::uint64_t count) noexcept;

}  // namespace pyfilter
