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

Predictor choose_predictor_f32(const Request& request, const Plan& plan, const void* values, std::uint64_t count);
Predictor choose_predictor_f64(const Request& request, const Plan& plan, const void* values, std::uint64_t count);
Predictor choose_pointwise_predictor_f32(const Request& request, const Plan& plan, const void* values,
                                         std::uint64_t count);
Predictor choose_pointwise_predictor_f64(const Request& request, const Plan& plan, const void* values,
                                         std::uint64_t count);
Predictor choose_integer_predictor(const Request& request, const Plan& plan, const void* values, std::uint64_t count);

StepChoice choose_log_step_f32(const Request& request, const void* values, std::uint64_t count);
StepChoice choose_log_step_f64(const Request& request, const void* values, std::uint64_t count);

PYF_END_TARGET
