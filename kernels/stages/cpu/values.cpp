// SPDX-License-Identifier: BSD-3-Clause
// Ranges of values and steps on the CPU; compiled once per level (core/target.hpp).
#include "core/level.hpp"
#include "stages/integer.hpp"
#include "stages/packed/choose_step.hpp"
#include "stages/sample.hpp"

PYF_BEGIN_TARGET

static StepChoice choose_any_step(const Request& request, double bound, const void* values, std::uint64_t count) {
  const bool single = request.dtype == Dtype::f32;
  if (request.bound_mode == Bound::pointwise_relative)
    return single ? choose_log_step<float>(request, values, count) : choose_log_step<double>(request, values, count);
  return single ? choose_step<float>(request, bound, values, count)
                : choose_step<double>(request, bound, values, count);
}

static bool find_range(const Request& request, const void* values, std::uint64_t count, double* low, double* high) {
  return request.dtype == Dtype::f32 ? value_range<float>(request, values, count, low, high)
                                     : value_range<double>(request, values, count, low, high);
}

static bool find_range_of_integers(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                                   std::uint64_t* high) {
  switch (dtype_bytes(request.dtype)) {
    case 1:
      return integer_range<std::uint8_t>(request, values, count, low, high);
    case 2:
      return integer_range<std::uint16_t>(request, values, count, low, high);
    case 4:
      return integer_range<std::uint32_t>(request, values, count, low, high);
    default:
      return integer_range<std::uint64_t>(request, values, count, low, high);
  }
}

const ValueStages kValueStages{&choose_any_step, &find_range, &find_range_of_integers};

PYF_END_TARGET
