// SPDX-License-Identifier: BSD-3-Clause
// Parameters of the codecs of packed tiles (docs/format.md, sections 7.1 and 8.1): 0 is the tile shape, 2 (of a frame)
// the order of differences.
#pragma once

#include "core/codec.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

// Checks the predictor that a request asks for (kAskFast only if `may_be_fast`), or a frame's tile shape.
Status check_predictor(const registry::CodecRow& row, const Parameters& parameters, bool may_be_fast,
                       bool in_frame) noexcept;
// Checks a frame's order of differences, and the rank that its tile shape needs.
Status check_predictor_shape(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                             bool in_frame) noexcept;

// Fills the plan of a frame, except the codec's own members.
void read_packed_plan(const FrameInfo& info, PackedPlan& plan) noexcept;

}  // namespace pyfilter
