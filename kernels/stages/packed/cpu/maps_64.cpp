// SPDX-License-Identifier: BSD-3-Clause
// Maps of packed tiles to codes of 64 bits. Compiled once per level (core/target.hpp).
#include "stages/bit_map.hpp"
#include "stages/integer.hpp"
#include "stages/logarithm.hpp"
#include "stages/packed/map_steps.hpp"
#include "stages/packed/special_integer.hpp"
#include "stages/quantizing_map.hpp"

PYF_BEGIN_TARGET

template <>
const MapFunctions<std::uint64_t>& map_functions(const Plan& plan) {
  if (plan.dtype != Dtype::f64) return kMapFunctions<IntegerMap<std::uint64_t>>;
  if (plan.step == 0) return kMapFunctions<ExactMap<double>>;
  return plan.pointwise ? kMapFunctions<LogMap<double>> : kMapFunctions<QuantizingMap<double>>;
}

PYF_END_TARGET
