// SPDX-License-Identifier: BSD-3-Clause
// Adaptive on the CPU; compiled once per level (core/target.hpp).
#include <memory>

#include "adaptive/codec.hpp"
#include "adaptive/cpu/choose.hpp"
#include "adaptive/cpu/unit.hpp"
#include "adaptive/cpu/unit_decode.hpp"
#include "adaptive/train/fold.hpp"

PYF_BEGIN_TARGET

static EncodedTile encode_any(const Plan& plan, const void* values, std::uint64_t unit, void* scratch,
                              std::uint8_t* out) {
  return plan.dtype == Dtype::f32 ? encode_unit<float>(plan, values, unit, scratch, out)
                                  : encode_unit<double>(plan, values, unit, scratch, out);
}
static Status decode_any(const Plan& plan, const std::uint8_t* bytes, std::size_t size, bool uniform,
                         std::uint64_t unit, std::uint64_t start, std::uint64_t stop, void* out) {
  return plan.dtype == Dtype::f32 ? decode_unit<float>(plan, bytes, size, uniform, unit, start, stop, out)
                                  : decode_unit<double>(plan, bytes, size, uniform, unit, start, stop, out);
}
static constexpr TileCoder kUnits{&encode_any, &decode_any};

static AdaptiveSizes sizes_of(const AdaptivePlan& plan) {
  return {unit_bytes_of(plan.unit_tiles, dtype_bytes(plan.dtype)), unit_scratch_bytes(plan.unit_tiles)};
}

static Folds find_folds_of(const AdaptiveGrid& line, Dtype dtype, const void* values) {
  if (line.kind != TileKind::line) return {};
  const std::unique_ptr<FoldSpace> space(new FoldSpace);
  const auto find = [&]<class T>(T) {
    return find_folds(Alone{}, *space, line, [&](std::uint64_t i) { return value_at<T>(values, i); });
  };
  return dtype == Dtype::f32 ? find(float{}) : find(double{});
}

const AdaptiveCoders kAdaptiveCoders{&kUnits, &rate_axes, &choose_model, &finish_model_of, &sizes_of, &find_folds_of};

PYF_END_TARGET
