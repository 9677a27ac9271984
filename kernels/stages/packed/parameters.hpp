// SPDX-License-Identifier: BSD-3-Clause
// Parameters of codecs of packed tiles (docs/format.md, sections 7.1 and 8.1): 0 is the tile shape, 2 of a frame the
// order of differences.
#pragma once

#include "core/codec.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

// The predictor that a request asks for, `fast` if that may be, or a frame's tile shape.
Status check_predictor(const registry::CodecRow& row, const Parameters& parameters, bool may_be_fast,
                       bool in_frame) noexcept;
// A frame's order of differences, and the rank that a tile shape needs.
Status check_predictor_shape(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                             bool in_frame) noexcept;

// The plan of a frame, without what depends on the codec.
void read_packed_plan(const FrameInfo& info, PackedPlan& plan) noexcept;

}  // namespace pyfilter
