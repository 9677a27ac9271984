// SPDX-License-Identifier: BSD-3-Clause
// Adaptive's entry in core's table of codecs (core/codec.hpp): trains a model for the chunk and encodes its streams.
// The chunk becomes a Lorenzo frame if that is smaller, or if it has no bound on absolute errors.
#include "adaptive/codec.hpp"

#include <cstring>
#include <memory>
#include <new>

#include "adaptive/payload.hpp"
#include "adaptive/step.hpp"
#include "core/api.hpp"
#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/frame_encoder.hpp"
#include "core/request.hpp"
#include "core/value_range.hpp"

namespace pyfilter {
namespace {

template <class T>
std::uint64_t count_zeros(const void* values, std::uint64_t count) {
  const auto* from = static_cast<const std::uint8_t*>(values);
  std::uint64_t zeros = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, from + i * sizeof(T), sizeof(T));
    zeros += x == 0 ? 1 : 0;
  }
  return zeros;
}
void choose_zero_sentinel(const void* values, FrameInfo& info) {
  if (info.has_sentinel) return;
  const std::uint64_t tiles = make_adaptive_grid(info.shape, info.value_count, false).tiles();
  info.sentinel = 0;
  const std::uint64_t zeros = info.dtype == Dtype::f32 ? count_zeros<float>(values, info.value_count)
                                                       : count_zeros<double>(values, info.value_count);
  info.has_sentinel = has_many_zeros(zeros, tiles);
}

Status encode_as(std::uint8_t codec, const Request& request, const void* values, FrameInfo& info, std::uint8_t* out,
                 std::size_t limit, std::size_t* bytes) {
  Request other = request;
  other.codec = codec;
  other.parameters = {};
  return encode_payload(other, values, info.value_count, info, out, limit, bytes);
}

// Sets a frame's bound, step, sentinel and offset. Returns false if the codec cannot keep the bound or gains nothing.
bool settle(const Request& request, const void* values, FrameInfo& info, double* offset) {
  if (request.bound_mode == Bound::pointwise_relative || info.value_count == 0) return false;
  if (!settle_step(request, values, info)) return false;
  choose_zero_sentinel(values, info);
  if (request.origin != nullptr) {
    info.step = request.step;
    return true;
  }
  Request ranged = request;
  ranged.has_fill = info.has_sentinel;
  ranged.fill = info.sentinel;
  double low = 0, high = 0;
  return find_value_range(ranged, values, info.value_count, &low, &high) &&
         choose_scale(info.dtype == Dtype::f32, info.bound, low, high, offset, &info.step);
}

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  *bytes = 0;
  const FrameInfo empty = info;
  double offset = 0;
  if (!is_float(request.dtype))
    return encode_as(registry::kCodecHierarchicalDelta, request, values, info, out, limit, bytes);
  if (!settle(request, values, info, &offset)) {
    info = empty;
    return encode_as(registry::kCodecLorenzo, request, values, info, out, limit, bytes);
  }
  PYF_TRY(encode_adaptive_payload(request, values, offset, info, out, limit, bytes));
  // Lorenzo is not tried with an origin (it would move kept values), nor if the caller names a predictor.
  if (request.origin != nullptr || request.parameters[kPredictor] != 0) return kOk;
  std::size_t most = *bytes != 0 ? *bytes : limit;
  const std::unique_ptr<std::uint8_t[]> other(new (std::nothrow) std::uint8_t[most + kTileSlackBytes]);
  if (!other) return fail(Code::no_memory, "no memory for %zu bytes to compare with", most);
  for (const std::uint8_t codec : {registry::kCodecLorenzo, registry::kCodecHierarchicalDelta}) {
    if (codec == registry::kCodecHierarchicalDelta && most > kMostSmallBytes) continue;
    FrameInfo other_info = empty;
    std::size_t other_bytes = 0;
    PYF_TRY(encode_as(codec, request, values, other_info, other.get(), most, &other_bytes));
    if (other_bytes == 0) continue;
    info = other_info;
    std::memcpy(out, other.get(), other_bytes);
    *bytes = most = other_bytes;
  }
  return kOk;
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  if (!in_frame) {
    PYF_TRY(check_zero_parameters(row, parameters, 2, in_frame));
    if (parameters[kPredictor] > 2)
      return fail(code, "%s: predictor %d, allowed: 0 (auto), 1 (regression), 2 (interpolation)", row.name,
                  parameters[kPredictor]);
    if (parameters[kEffort] > 1)
      return fail(code, "%s: effort %d, allowed: 0 (best), 1 (fast)", row.name, parameters[kEffort]);
    return kOk;
  }
  PYF_TRY(check_zero_parameters(row, parameters, 3, in_frame));
  if (parameters[kFormat] != 1) return fail(code, "%s: payload %d, allowed: 1", row.name, parameters[kFormat]);
  if (parameters[kAxes] > kPartAxes || (parameters[kAxes] == 1 && !may_go_across(shape)))
    return fail(code, "%s: axes %d, allowed: 0, %d; 1 too for some shapes of four axes", row.name, parameters[kAxes],
                kPartAxes);
  if (parameters[kAxes] == kPartAxes && parameters[kUnitLog2] != 0)
    return fail(code, "%s: units of 2^%d tiles beside those of parts, allowed: 0", row.name, parameters[kUnitLog2]);
  if (parameters[kUnitLog2] > kMostTilesLog2)
    return fail(code, "%s: units of 2^%d tiles, allowed: 0 to %u", row.name, parameters[kUnitLog2], kMostTilesLog2);
  return kOk;
}

void frame_parameters(Parameters& parameters) { parameters = {1}; }

std::uint8_t frame_version(const Parameters& parameters) { return parameters[kAxes] == kPartAxes ? kPartsVersion : 7; }

Status check_step(const FrameInfo& info) {
  if (!is_float(info.dtype))  // integer requests become frames of another codec
    return fail(Code::corrupt, "corrupt frame: codec adaptive cannot hold dtype %s", dtype_name(info.dtype));
  if (info.dtype == Dtype::f32 && static_cast<double>(static_cast<float>(info.step)) != info.step)
    return fail(Code::corrupt, "corrupt frame: the step is not a value of the frame's dtype");
  return info.pointwise ? fail(Code::corrupt, "corrupt frame: adaptive with a pointwise relative bound") : kOk;
}

}  // namespace

extern const Codec kAdaptiveCodec;
const Codec kAdaptiveCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_step = check_step,
    .check_size = check_adaptive_size,
    .encode = encode,
    .decode = decode_adaptive_payload,
    .frame_version = frame_version,
    .may_be_pointwise = false,
    .closed_loop = true,
    .integers_on_devices = false,
};

}  // namespace pyfilter
