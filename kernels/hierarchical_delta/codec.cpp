// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta's entry in core's table of codecs (core/codec.hpp).
#include "hierarchical_delta/codec.hpp"

#include "core/codec.hpp"
#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/frame_encoder.hpp"
#include "core/request.hpp"
#include "stages/packed/parameters.hpp"
#include "stages/packed/predictor.hpp"

namespace pyfilter {
namespace {

PackedPlan plan_of(const FrameInfo& info) {
  PackedPlan plan;
  read_packed_plan(info, plan);
  plan.exceptions = info.parameters[1] == 1;
  return plan;
}

Status encode_planned(const FrameInfo& info, const void* values, std::uint8_t* out, std::size_t limit,
                      std::size_t* bytes) {
  *bytes = 0;
  if (info.value_count == 0) return kOk;
  const PackedPlan plan = plan_of(info);
  const TileCoder* const coder = hierarchical_delta_coders().coder(plan);
  return coder == nullptr ? no_kernel(info) : encode_tiles(plan, *coder, values, out, limit, bytes);
}

Status planned_bytes(const FrameInfo& info, const void* values, std::size_t* bytes) {
  const PackedPlan plan = plan_of(info);
  const TileCoder* const coder = hierarchical_delta_coders().coder(plan);
  return coder == nullptr ? no_kernel(info) : encoded_bytes(plan, *coder, values, bytes);
}

Status encode(const Request& request, const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit,
              std::size_t* bytes) {
  settle_step(request, values, info);  // a chunk without a step is bit-exact
  choose_predictor(request, plan_of(info), values, info);
  return encode_planned(info, values, out, limit, bytes);
}

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  const PackedPlan plan = plan_of(info);
  const TileCoder* const coder = hierarchical_delta_coders().coder(plan);
  return coder == nullptr ? no_kernel(info) : decode_tiles(plan, *coder, payload, payload_bytes, start, stop, values);
}

Status check_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                        bool in_frame) {
  const Code code = parameter_code(in_frame);
  PYF_TRY(check_zero_parameters(row, parameters, in_frame ? 3 : 2, in_frame));
  PYF_TRY(check_predictor(row, parameters, !in_frame, in_frame));
  if (parameters[1] > 2 || (in_frame && parameters[1] == 0))
    return fail(code, "%s: outliers %d, allowed: %s1 (on), 2 (off)", row.name, parameters[1],
                in_frame ? "" : "0 (auto), ");
  return check_predictor_shape(row, parameters, shape, in_frame);
}

void frame_parameters(Parameters& parameters) {
  // chains leave out exceptions, for speed, unless the caller asks for them
  const int asked = parameters[0];
  if (parameters[1] == 0) parameters[1] = asked == kChain || asked == kAskFast ? 2 : 1;
  if (asked == kAskAny || asked == kAskFast) parameters[0] = kChain;  // a placeholder until the predictor is chosen
  parameters[2] = 1;
}

Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  return check_directory_size(make_packed_grid(info.shape, info.value_count, info.parameters[0]).tiles, payload_bytes);
}

}  // namespace

extern const Codec kHierarchicalDeltaCodec;
const Codec kHierarchicalDeltaCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_size = check_size,
    .encode = encode,
    .decode = decode,
    .encode_planned = encode_planned,
    .planned_bytes = planned_bytes,
    .may_be_exact = true,
    .may_be_pointwise = true,
    .integers_on_devices = false,
};

}  // namespace pyfilter
