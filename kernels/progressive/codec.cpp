// SPDX-License-Identifier: BSD-3-Clause
// Progressive's entry in core's table of codecs (core/codec.hpp).
#include "progressive/codec.hpp"

#include <algorithm>
#include <cmath>

#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/frame_encoder.hpp"
#include "core/request.hpp"
#include "progressive/driver.hpp"
#include "progressive/head.hpp"

namespace pyfilter {
namespace {

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  *bytes = 0;
  if (info.value_count == 0) return kOk;
  const double bound = resolve_bound(request, values, info.value_count);
  bool too_fine = request.bound_mode != Bound::none && bound == 0;
  if (!too_fine) PYF_TRY(progressive_coder().encode(request, bound, values, &info, out, limit, bytes, &too_fine));
  if (!too_fine) return kOk;
  Request exact = request;
  exact.codec = registry::kCodecHierarchicalDelta;
  exact.bound_mode = Bound::none;
  exact.parameters = {};
  return encode_payload(exact, values, info.value_count, info, out, limit, bytes);
}

// Checks the parameter that says how errors were found.
Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& /*shape*/,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  PYF_TRY(check_zero_parameters(row, parameters, 1, in_frame));
  if (in_frame ? parameters[0] != 1 && parameters[0] != 2 : parameters[0] != 0 && parameters[0] != 2)
    return fail(code, "%s: errors %d, allowed: %d (measured), 2 (bounds)", row.name, parameters[0], in_frame ? 1 : 0);
  return kOk;
}

void frame_parameters(Parameters& parameters) { parameters[0] = parameters[0] == 2 ? 2 : 1; }

// Checks that the step is a power of two whose half is a double.
Status check_step(const FrameInfo& info) {
  int exponent = 0;
  if (std::frexp(info.step, &exponent) == 0.5 && info.bound == info.step / 2 &&
      exponent > (info.dtype == Dtype::f32 ? -149 : -1073))
    return kOk;
  return fail(Code::corrupt,
              "corrupt frame: the bound is %g, the step %g: the step must be twice the bound and a power of two",
              info.bound, info.step);
}

Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  if (info.value_count == 0 ||
      payload_bytes < std::max<std::uint64_t>(kProgressiveFixedBytes, least_payload_bytes(info.value_count)))
    return fail(Code::corrupt, "corrupt frame: the frame is too short for its head");
  return kOk;
}

}  // namespace

extern const Codec kProgressiveCodec;
const Codec kProgressiveCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_step = check_step,
    .check_size = check_size,
    .encode = encode,
    .decode = decode_progressive_range,
    .powers_of_two = true,
};

}  // namespace pyfilter
