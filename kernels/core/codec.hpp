// SPDX-License-Identifier: BSD-3-Clause
// A codec as core/ sees it: functions that the codec's folder defines, and what its frames may contain. registry.json
// names the codecs; CMake makes the table of them from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"
#include "registry_table.hpp"

namespace pyfilter {

using Parameters = std::array<std::uint8_t, kParameterBytes>;

struct Codec {
  // Checks the parameters of a request, or of a frame, for an array of a shape.
  Status (*check_parameters)(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                             bool in_frame);
  // Turns the parameters of a request into those of its frame; encode() sets those that depend on values.
  void (*frame_parameters)(Parameters& parameters);
  // Checks a header's bound and step, already known to be finite and above 0. nullptr: no rules beyond those of all
  // codecs (request.cpp).
  Status (*check_step)(const FrameInfo& info) = nullptr;
  // Checks that a payload of `payload_bytes` bytes is not too short for what the header says.
  Status (*check_size)(const FrameInfo& info, std::uint64_t payload_bytes);

  // Encodes the payload of a frame on the CPU. `info` is frame_template() of the request; encode() completes it except
  // for its sizes, and may replace the codec by another one. *bytes is 0 if `limit` bytes or more would be needed.
  Status (*encode)(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
                   std::size_t* bytes);
  // Decodes the values [start, stop) of a payload on the CPU.
  Status (*decode)(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
                   std::uint64_t stop, void* values);

  // Called by other codecs that fall back on this one: encode the payload for a complete header, or find its size (for
  // few tiles). nullptr: no codec falls back on this one.
  Status (*encode_planned)(const FrameInfo& info, const void* values, std::uint8_t* out, std::size_t limit,
                           std::size_t* bytes) = nullptr;
  Status (*planned_bytes)(const FrameInfo& info, const void* values, std::size_t* bytes) = nullptr;

  // The format version of frames with these parameters; nullptr: the codec's in registry.json for all.
  std::uint8_t (*frame_version)(const Parameters& parameters) = nullptr;

  bool quantises = true;          // frames have a step
  bool may_be_exact = false;      // frames without a step are allowed and bit-exact
  bool may_be_pointwise = false;  // pointwise relative bounds are allowed
  bool powers_of_two = false;     // all steps are powers of two
  // Values are predicted from reconstructed values. Encoding decoded values again moves them, unless the request has
  // their frame as its origin. Steps are those of the origin, or halves of them.
  bool closed_loop = false;
  // Whether there are CUDA kernels for floating-point values and for integers.
  bool floats_on_devices = true, integers_on_devices = true;
};

// nullptr where registry.json has no codec of this id.
const Codec* codec_of(std::uint8_t id) noexcept;

}  // namespace pyfilter
