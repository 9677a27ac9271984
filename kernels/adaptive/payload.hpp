// SPDX-License-Identifier: BSD-3-Clause
// Payloads of adaptive frames on the CPU (docs/format.md, section 14.1). A payload has parts: one for each component of
// the values. Old ones, and those of arrays without components whose lines are not folded, are one part without a head.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/plan.hpp"
#include "core/codec.hpp"
#include "core/request.hpp"

namespace pyfilter {

// Parameters of a request: predictor, effort. Parameters of a frame: 1, its axes, log2 of the tiles of a unit.
enum AdaptiveParameter : std::size_t { kPredictor = 0, kEffort = 1, kFormat = 0, kAxes = 1, kUnitLog2 = 2 };

// Encodes a payload; sets the axes and the units of `info`. *bytes is 0 if it would need `limit` bytes or more.
Status encode_adaptive_payload(const Request& request, const void* values, double offset, FrameInfo& info,
                               std::uint8_t* out, std::size_t limit, std::size_t* bytes);
// Decodes the values [start, stop).
Status decode_adaptive_payload(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                               std::uint64_t start, std::uint64_t stop, void* values);
// Checks that a payload is not too short for the units that its frame must have.
Status check_adaptive_size(const FrameInfo& info, std::uint64_t payload_bytes);

}  // namespace pyfilter
