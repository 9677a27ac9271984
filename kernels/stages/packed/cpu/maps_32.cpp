// SPDX-License-Identifier: BSD-3-Clause
// Maps of packed tiles to codes of 32 bits. Compiled once per level (core/target.hpp).
#include "stages/bit_map.hpp"
#include "stages/integer.hpp"
#include "stages/logarithm.hpp"
#include "stages/packed/map_steps.hpp"
#include "stages/packed/special_integer.hpp"
#include "stages/quantizing_map.hpp"

PYF_BEGIN_TARGET

template <>
const MapFunctions<std::uint32_t>& map_functions(const Plan& plan) {
  if (plan.dtype == Dtype::f32) {
    if (plan.step == 0) return kMapFunctions<ExactMap<float>>;
    return plan.pointwise ? kMapFunctions<LogMap<float>> : kMapFunctions<QuantizingMap<float>>;
  }
  switch (dtype_bytes(plan.dtype)) {
    case 1:
      return kMapFunctions<IntegerMap<std::uint8_t>>;
    case 2:
      return kMapFunctions<IntegerMap<std::uint16_t>>;
    default:
      return kMapFunctions<IntegerMap<std::uint32_t>>;
  }
}

PYF_END_TARGET
