// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2's entry in core's table of codecs (core/codec.hpp).
#include "cuszp2/codec.hpp"

#include "core/frame_encoder.hpp"
#include "stages/block_codec.hpp"

namespace pyfilter {
namespace {

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  if (settle_step(request, values, info)) return encode_blocks(*cuszp2_coders().coder, info, values, out, limit, bytes);
  Request exact = request;
  exact.codec = registry::kCodecLossless;
  exact.parameters[0] = 0;  // the mode
  return encode_payload(exact, values, info.value_count, info, out, limit, bytes);
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  return decode_blocks(*cuszp2_coders().coder, info, payload, payload_bytes, start, stop, values);
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  constexpr std::uint8_t kModes = 3;
  if (parameters[0] >= kModes)
    return fail(parameter_code(in_frame), "%s: mode %d, allowed: 0 (outlier), 1 (plain), 2 (fixed)", row.name,
                parameters[0]);
  return check_block_parameters(row, parameters, shape, in_frame);
}

}  // namespace

extern const Codec kCuszp2Codec;
const Codec kCuszp2Codec{
    .check_parameters = check_parameters,
    .frame_parameters = block_frame_parameters,
    .check_size = check_block_size,
    .encode = encode,
    .decode = decode,
};

}  // namespace pyfilter
