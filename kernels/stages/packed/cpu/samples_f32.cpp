// SPDX-License-Identifier: BSD-3-Clause
// Costs of predictors of f32 on the CPU; compiled once per level (core/target.hpp).
#include "stages/bit_map.hpp"
#include "stages/logarithm.hpp"
#include "stages/packed/choose_cpu.hpp"
#include "stages/packed/cpu/samples.hpp"
#include "stages/quantizing_map.hpp"

PYF_BEGIN_TARGET

void sample_quantised_f32(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                          std::uint64_t k, void* scratch, PredictorCosts* costs) {
  sample_predictors<QuantizingMap<float>>(request, plan, values, count, k, scratch, *costs);
}

void sample_exact_f32(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                      std::uint64_t k, void* scratch, PredictorCosts* costs) {
  sample_predictors<ExactMap<float>>(request, plan, values, count, k, scratch, *costs);
}

void sample_logarithms_f32(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                           std::uint64_t k, void* scratch, PredictorCosts* costs) {
  sample_predictors<LogMap<float>>(request, plan, values, count, k, scratch, *costs);
}

PYF_END_TARGET
