// SPDX-License-Identifier: BSD-3-Clause
// Parameters of codecs of packed tiles (parameters.hpp).
#include "stages/packed/parameters.hpp"

#include "core/error_text.hpp"
#include "core/request.hpp"

namespace pyfilter {

Status check_predictor(const registry::CodecRow& row, const Parameters& parameters, bool may_be_fast,
                       bool in_frame) noexcept {
  const int shape = parameters[0];
  if (shape > (may_be_fast ? kAskFast : kColumns) || (in_frame && shape == kAskAny))
    return fail(parameter_code(in_frame),
                "%s: predictor %d, allowed: %s1 (chain), 2 (lorenzo2d), 3 (lorenzo3d), 4 (columns)%s", row.name, shape,
                in_frame ? "" : "0 (auto), ", may_be_fast ? ", 5 (fast)" : "");
  return kOk;
}

Status check_predictor_shape(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                             bool in_frame) noexcept {
  constexpr int kRanks[] = {0, 0, 2, 3, 2, 0}, kOrders[] = {0, 1, 2, 3, 1, 0};
  const int tile_shape = parameters[0], lowest = tile_shape == kChain ? 0 : 1;
  if (in_frame && (parameters[2] < lowest || parameters[2] > kOrders[tile_shape]))
    return fail(parameter_code(in_frame), "%s: order %d, allowed for this tile shape: %d to %d", row.name,
                parameters[2], lowest, kOrders[tile_shape]);
  if (shape.rank < kRanks[tile_shape])
    return fail(parameter_code(in_frame), "%s: predictor %d needs data of rank %d or more, this has rank %d", row.name,
                tile_shape, kRanks[tile_shape], shape.rank);
  return kOk;
}

void read_packed_plan(const FrameInfo& info, PackedPlan& plan) noexcept {
  read_plan(info, plan);
  plan.order = info.parameters[2];
  plan.grid = make_packed_grid(info.shape, info.value_count, info.parameters[0]);
}

}  // namespace pyfilter
