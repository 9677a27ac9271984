// SPDX-License-Identifier: BSD-3-Clause
// Costs of predictors on the CPU, for both widths of codes. Compiled once per level (core/target.hpp).
#include "stages/packed/choose_cpu.hpp"
#include "stages/packed/predictor.hpp"
#include "stages/packed/tile_instances.hpp"

PYF_BEGIN_TARGET

static void sample(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                   std::uint64_t k, void* scratch, PredictorCosts* costs) {
  auto* const function =
      dtype_bytes(request.dtype) == 8 ? &sample_predictors<std::uint64_t> : &sample_predictors<std::uint32_t>;
  function(request, plan, values, count, k, scratch, *costs);
}

const PredictorStages kPredictorStages{&sample};

PYF_END_TARGET
