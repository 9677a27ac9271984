// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta of integers on the CPU; compiled once per level (core/target.hpp).
#include <cstring>

#include "core/level.hpp"
#include "hierarchical_delta/instances.hpp"
#include "stages/integer.hpp"
#include "stages/packed/special_integer.hpp"

PYF_BEGIN_TARGET

// Calls visit(an unsigned value of the width of a dtype).
template <class Visit>
static auto with_integer(Dtype dtype, const Visit& visit) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

const TileCoder* integer_coder(const Plan& plan) {
  return with_integer(plan.dtype, [&](auto u) { return packed_coder<IntegerMap<decltype(u)>>(plan.grid.block_dims); });
}

void sample_integer_predictors(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                               std::uint64_t k, void* scratch, PredictorCosts* costs) {
  with_integer(request.dtype, [&](auto u) {
    sample_predictors<IntegerMap<decltype(u)>>(request, plan, values, count, k, scratch, *costs);
  });
}

bool integer_range_of(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                      std::uint64_t* high) {
  return with_integer(request.dtype,
                      [&](auto u) { return integer_range<decltype(u)>(request, values, count, low, high); });
}

PYF_END_TARGET
