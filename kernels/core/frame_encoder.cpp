// SPDX-License-Identifier: BSD-3-Clause
// Encodes frames on the CPU (frame_encoder.hpp): the header, then the codec's payload or, if shorter, raw values.
#include "core/frame_encoder.hpp"

#include <cstring>

#include "core/bound.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"
#include "core/level.hpp"
#include "core/request.hpp"
#include "core/value_range.hpp"

namespace pyfilter {
namespace {

void store_raw(FrameInfo& info, const void* values, std::uint8_t* out) {
  info.stored_raw = true;
  info.bound = info.step = 0;
  info.has_sentinel = info.pointwise = false;
  info.frame_bytes = info.header_bytes + info.value_bytes;
  if (info.value_bytes != 0) std::memcpy(out + info.header_bytes, values, info.value_bytes);
}

}  // namespace

double resolve_bound(const Request& request, const void* values, std::uint64_t count) noexcept {
  if (request.bound_mode == Bound::absolute || request.bound_mode == Bound::pointwise_relative) return request.bound;
  if (!is_float(request.dtype)) {
    std::uint64_t low = 0, high = 0;
    return find_integer_range(request, values, count, &low, &high) ? resolve_integer_relative(request.bound, high - low)
                                                                   : 0;
  }
  double low = 0, high = 0;
  if (request.bound_mode == Bound::none || !find_value_range(request, values, count, &low, &high)) return 0;
  return resolve_relative(request.bound, low, high);
}

bool settle_step(const Request& request, const void* values, FrameInfo& info) noexcept {
  const double bound = resolve_bound(request, values, info.value_count);
  if (!(bound > 0)) return false;
  const StepChoice choice = is_float(request.dtype)
                                ? value_stages().choose_step(request, bound, values, info.value_count)
                                : choose_integer_step(request, bound);
  if (!choice.quantise) return false;
  info.bound = choice.bound;
  info.step = choice.step;
  info.pointwise = request.bound_mode == Bound::pointwise_relative;
  info.has_sentinel = choice.has_sentinel;
  info.sentinel = choice.sentinel;
  return true;
}

Status encode_payload(const Request& request, const void* values, std::uint64_t count, FrameInfo& info,
                      std::uint8_t* out, std::size_t limit, std::size_t* bytes) noexcept {
  *bytes = 0;
  info = frame_template(request, request.codec, count);
  return codec_of(request.codec)->encode(request, values, info, out, limit, bytes);
}

Status encode_frame(const Request& request, const void* values, std::uint64_t count, std::uint8_t* out,
                    std::size_t* frame_bytes) noexcept {
  FrameInfo info;
  std::size_t payload = 0;
  const std::size_t header = header_bytes(request.shape.rank), value_bytes = count * dtype_bytes(request.dtype);
  PYF_TRY(encode_payload(request, values, count, info, out + header, value_bytes, &payload));
  info.frame_bytes = info.header_bytes + payload;
  if (payload == 0) store_raw(info, values, out);
  finish_header(info, out);
  *frame_bytes = static_cast<std::size_t>(info.frame_bytes);
  return kOk;
}

}  // namespace pyfilter
