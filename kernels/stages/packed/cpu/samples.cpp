// SPDX-License-Identifier: BSD-3-Clause
// Costs of predictors on the CPU: which instance a plan needs. Compiled once per level (core/target.hpp), the instances
// in files of their own beside it.
#include "stages/packed/cpu/samples.hpp"

PYF_BEGIN_TARGET

static void sample(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                   std::uint64_t k, void* scratch, PredictorCosts* costs) {
  const bool single = request.dtype == Dtype::f32;
  SamplePredictors* const function = !is_float(request.dtype) ? &sample_integers
                                     : plan.step == 0         ? (single ? &sample_exact_f32 : &sample_exact_f64)
                                     : plan.pointwise ? (single ? &sample_logarithms_f32 : &sample_logarithms_f64)
                                                      : (single ? &sample_quantised_f32 : &sample_quantised_f64);
  function(request, plan, values, count, k, scratch, costs);
}

const PredictorStages kPredictorStages{&sample};

PYF_END_TARGET
