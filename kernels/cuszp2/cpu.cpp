// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2 on the CPU; compiled once per level (core/target.hpp). Also holds the level's table.
#include "cuszp2/codec.hpp"

#include "core/level.hpp"
#include "stages/sample.hpp"

PYF_BEGIN_TARGET

const TileCoder* cuszp2_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return tile_coder<QuantizingMap<float>>(block_dims);
  if (dtype == Dtype::f64) return tile_coder<QuantizingMap<double>>(block_dims);
  return nullptr;
}

StepChoice choose_step_of(const Request& request, double bound, const void* values, std::uint64_t count) {
  if (request.bound_mode == Bound::pointwise_relative) return choose_log_step_of(request, values, count);
  return request.dtype == Dtype::f32 ? choose_step<float>(request, bound, values, count)
                                     : choose_step<double>(request, bound, values, count);
}

bool value_range_of(const Request& request, const void* values, std::uint64_t count, double* low, double* high) {
  return request.dtype == Dtype::f32 ? value_range<float>(request, values, count, low, high)
                                     : value_range<double>(request, values, count, low, high);
}

extern const LevelTable kLevelTable;
const LevelTable kLevelTable{&cuszp2_coder,     &lossless_coder,       &hierarchical_delta_coder, &lorenzo_coder,
                             &particle_coder,   &sample_predictors_of, &choose_step_of,           &value_range_of,
                             &integer_range_of, &kProgressiveCoder};

PYF_END_TARGET
