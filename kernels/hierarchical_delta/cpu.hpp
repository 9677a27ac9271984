// SPDX-License-Identifier: BSD-3-Clause
// What the files of HierarchicalDelta on the CPU have for one another: each compiles some maps, cpu.cpp chooses.
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/target.hpp"

PYF_BEGIN_TARGET

const TileCoder* packed_coder_f32(const Plan& plan);
const TileCoder* packed_coder_f64(const Plan& plan);
const TileCoder* pointwise_coder_f32(const Plan& plan);
const TileCoder* pointwise_coder_f64(const Plan& plan);
const TileCoder* integer_coder(const Plan& plan);

// What LevelTable::sample_predictors is, by dtype and kind of bound.
using SamplePredictors = void(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                              std::uint64_t k, void* scratch, PredictorCosts* costs);
SamplePredictors sample_predictors_f32, sample_predictors_f64, sample_pointwise_predictors_f32,
    sample_pointwise_predictors_f64, sample_integer_predictors;

StepChoice choose_log_step_f32(const Request& request, const void* values, std::uint64_t count);
StepChoice choose_log_step_f64(const Request& request, const void* values, std::uint64_t count);

PYF_END_TARGET
