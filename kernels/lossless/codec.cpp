// SPDX-License-Identifier: BSD-3-Clause
// Lossless's entry in core's table of codecs (core/codec.hpp).
#include "lossless/codec.hpp"

#include "stages/block_codec.hpp"

namespace pyfilter {
namespace {

Status encode(const Request& /*request*/, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  return encode_blocks(*lossless_coders().coder, info, values, out, limit, bytes);
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  return decode_blocks(*lossless_coders().coder, info, payload, payload_bytes, start, stop, values);
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  if (parameters[0] != 0)
    return fail(parameter_code(in_frame), "%s: parameter byte 0 is %d, must be 0", row.name, parameters[0]);
  return check_block_parameters(row, parameters, shape, in_frame);
}

// A request replaced by lossless may have another codec's mode.
void frame_parameters(Parameters& parameters) {
  block_frame_parameters(parameters);
  parameters[0] = 0;
}

}  // namespace

extern const Codec kLosslessCodec;
const Codec kLosslessCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_size = check_block_size,
    .encode = encode,
    .decode = decode,
    .quantises = false,
};

}  // namespace pyfilter
