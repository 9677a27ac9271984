// SPDX-License-Identifier: BSD-3-Clause
// Lossless's entry in core's table of codecs (core/codec.hpp).
#include "lossless/codec.hpp"

#include "stages/block_codec.hpp"

namespace pyfilter {
namespace {

// Parameter 0 of requests and frames.
constexpr std::uint8_t kFast = 0, kRatio = 1;
bool is_binned(const Parameters& parameters) { return parameters[0] == kRatio; }

Status encode(const Request& /*request*/, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  if (is_binned(info.parameters)) return encode_binned(values, info, out, limit, bytes);
  return encode_blocks(*lossless_coders().coder, info, values, out, limit, bytes);
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  if (is_binned(info.parameters)) return decode_binned(info, payload, payload_bytes, start, stop, values);
  return decode_blocks(*lossless_coders().coder, info, payload, payload_bytes, start, stop, values);
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  if (parameters[0] > kRatio) return fail(code, "%s: effort %d, allowed: 0 (fast), 1 (ratio)", row.name, parameters[0]);
  if (!is_binned(parameters)) return check_block_parameters(row, parameters, shape, in_frame);
  if (parameters[1] != 0)
    return fail(code, "%s: block_dims %d, with effort 1 (ratio) there are no blocks: must be 0", row.name,
                parameters[1]);
  return check_zero_parameters(row, parameters, 2, in_frame);
}

void frame_parameters(Parameters& parameters) {
  if (!is_binned(parameters)) block_frame_parameters(parameters);
}

Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  return is_binned(info.parameters) ? check_binned_size(info, payload_bytes) : check_block_size(info, payload_bytes);
}

// Frames of effort "fast" exist since format 1, those of effort "ratio" since format 7.
std::uint8_t frame_version(const Parameters& parameters) { return is_binned(parameters) ? 7 : 1; }

}  // namespace

extern const Codec kLosslessCodec;
const Codec kLosslessCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_size = check_size,
    .encode = encode,
    .decode = decode,
    .frame_version = frame_version,
    .quantises = false,
};

}  // namespace pyfilter
