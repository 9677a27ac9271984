// SPDX-License-Identifier: BSD-3-Clause
// Costs of predictors of integers on the CPU; compiled once per level (core/target.hpp).
#include "stages/integer.hpp"
#include "stages/packed/choose_cpu.hpp"
#include "stages/packed/cpu/samples.hpp"
#include "stages/packed/special_integer.hpp"

PYF_BEGIN_TARGET

void sample_integers(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                     std::uint64_t k, void* scratch, PredictorCosts* costs) {
  const auto sample = [&]<class U>(U /*width*/) {
    sample_predictors<IntegerMap<U>>(request, plan, values, count, k, scratch, *costs);
  };
  switch (dtype_bytes(request.dtype)) {
    case 1:
      return sample(std::uint8_t{});
    case 2:
      return sample(std::uint16_t{});
    case 4:
      return sample(std::uint32_t{});
    default:
      return sample(std::uint64_t{});
  }
}

PYF_END_TARGET
