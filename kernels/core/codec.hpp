// SPDX-License-Identifier: BSD-3-Clause
// What a codec is to the rest of the library: the functions that its room exports, and what its frames may say.
// registry.json names the codecs; CMake makes the table from it. Only rooms know what is behind these functions.
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
  // Turns the parameters of a request into those of its frame; what depends on values is settled by encode().
  void (*frame_parameters)(Parameters& parameters);
  // Checks a header's bound and step, which are finite and above 0. nullptr: the rules of all codecs suffice.
  Status (*check_step)(const FrameInfo& info) = nullptr;
  // A payload of `payload_bytes` bytes is no shorter than the header allows.
  Status (*check_size)(const FrameInfo& info, std::uint64_t payload_bytes);

  // Encodes the payload of a frame on the CPU. `info` is frame_template() of the request and comes back complete but
  // for its sizes; it may name another codec then. *bytes is 0 where `limit` bytes or more would be needed.
  Status (*encode)(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
                   std::size_t* bytes);
  // Decodes the values [start, stop) of a payload on the CPU.
  Status (*decode)(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
                   std::uint64_t stop, void* values);

  // For other codecs to fall back on: the payload of a header that is complete, and its size, for few tiles. nullptr
  // where none does.
  Status (*encode_planned)(const FrameInfo& info, const void* values, std::uint8_t* out, std::size_t limit,
                           std::size_t* bytes) = nullptr;
  Status (*planned_bytes)(const FrameInfo& info, const void* values, std::size_t* bytes) = nullptr;

  bool quantises = true;          // its frames have a step
  bool may_be_exact = false;      // but need none: without one they are bit-exact
  bool may_be_pointwise = false;  // the bound may be relative to each value
  bool powers_of_two = false;     // steps are powers of two
  // What devices encode and decode of the dtypes that the codec takes.
  bool floats_on_devices = true, integers_on_devices = true;
};

// nullptr where registry.json has no codec of this id.
const Codec* codec_of(std::uint8_t id) noexcept;

}  // namespace pyfilter
