// SPDX-License-Identifier: BSD-3-Clause
// Costs of predictors for each map, of which every file beside it compiles some.
#pragma once

#include "core/target.hpp"
#include "stages/packed/predictor.hpp"

PYF_BEGIN_TARGET

using SamplePredictors = void(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                              std::uint64_t k, void* scratch, PredictorCosts* costs);
SamplePredictors sample_quantised_f32, sample_quantised_f64, sample_exact_f32, sample_exact_f64, sample_logarithms_f32,
    sample_logarithms_f64, sample_integers;

PYF_END_TARGET
