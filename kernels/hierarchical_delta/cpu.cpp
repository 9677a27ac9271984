// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the CPU; compiled once per level (core/target.hpp).
#include "hierarchical_delta/codec.hpp"

#include "core/level.hpp"
#include "stages/packed/choose_cpu.hpp"
#include "stages/packed/decode.hpp"
#include "stages/packed/encode.hpp"

PYF_BEGIN_TARGET

template <class Map, int S>
inline constexpr TileCoder kPackedCoder{&encode_packed_tile<Map, S>, &decode_packed_tile<Map, S>};

template <class Map>
static const TileCoder* packed_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kPackedCoder<Map, kChain>;
    case kPlane:
      return &kPackedCoder<Map, kPlane>;
    case kVolume:
      return &kPackedCoder<Map, kVolume>;
    case kColumns:
      return &kPackedCoder<Map, kColumns>;
    default:
      return nullptr;
  }
}

const TileCoder* hierarchical_delta_coder(Dtype dtype, int tile_shape, bool exact) {
  if (dtype == Dtype::f32)
    return exact ? packed_coder<ExactMap<float>>(tile_shape) : packed_coder<QuantizingMap<float>>(tile_shape);
  if (dtype == Dtype::f64)
    return exact ? packed_coder<ExactMap<double>>(tile_shape) : packed_coder<QuantizingMap<double>>(tile_shape);
  return nullptr;
}

Predictor choose_predictor_of(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  if (request.dtype == Dtype::f32)
    return plan.step == 0 ? choose_predictor<ExactMap<float>>(request, plan, values, count)
                          : choose_predictor<QuantizingMap<float>>(request, plan, values, count);
  return plan.step == 0 ? choose_predictor<ExactMap<double>>(request, plan, values, count)
                        : choose_predictor<QuantizingMap<double>>(request, plan, values, count);
}

PYF_END_TARGET
