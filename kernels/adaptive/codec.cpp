// SPDX-License-Identifier: BSD-3-Clause
// Adaptive's entry in core's table of codecs (core/codec.hpp): trains a model for the chunk and encodes its streams.
// The chunk becomes a Lorenzo frame if that is smaller, or if it has no bound on absolute errors.
#include "adaptive/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "adaptive/step.hpp"
#include "core/api.hpp"
#include "core/codec.hpp"
#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/frame_encoder.hpp"
#include "core/request.hpp"
#include "core/value_range.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

// Parameters of a request: predictor, effort. Parameters of a frame: 1, whether volumes lie across the axis before
// their own, log2 of the tiles of a unit.
enum : std::size_t { kPredictor = 0, kEffort = 1 };
enum : std::size_t { kFormat = 0, kAcross = 1, kUnitLog2 = 2 };
constexpr std::size_t kPayloadHead = 8;  // the offset
constexpr std::uint64_t kLeastModelBytes = 8;

void set_units(const FrameInfo& info, AdaptivePlan& plan) {
  plan.unit_tiles = 1u << info.parameters[kUnitLog2];
  const AdaptiveSizes sizes = adaptive_coders().sizes(plan);
  plan.unit_bytes = sizes.unit;
  plan.scratch_bytes = sizes.scratch;
}

AdaptivePlan plan_of(const FrameInfo& info) {
  AdaptivePlan plan;
  read_plan(info, plan);
  plan.tiles = make_adaptive_grid(info.shape, info.value_count, info.parameters[kAcross] != 0);
  plan.grid.values = info.value_count;
  plan.grid.tiles = plan.tiles.tiles();
  plan.grid.unordered = true;
  set_units(info, plan);
  return plan;
}

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

// Reads the offset and the model of a payload.
Status read_head(const std::uint8_t* payload, std::size_t payload_bytes, AdaptivePlan& plan, AdaptiveModel& model,
                 std::size_t* bytes) {
  if (payload_bytes < kPayloadHead) return fail(Code::corrupt, "corrupt frame: too short for its offset");
  plan.offset = load_le<double>(payload);
  model.kind = plan.tiles.kind;
  if (!std::isfinite(plan.offset) || !read_model(payload + kPayloadHead, payload_bytes - kPayloadHead, model, bytes))
    return fail(Code::corrupt, "corrupt frame: its offset or its model is invalid");
  if (model.masks && !plan.has_sentinel)
    return fail(Code::corrupt, "corrupt frame: its model has masks, but the frame has no sentinel");
  *bytes += kPayloadHead;
  return kOk;
}

Status decode_streams(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                      const AdaptivePlan& asked, AdaptiveModel& model, void* values) {
  const std::unique_ptr<AdaptiveTables> tables(new (std::nothrow) AdaptiveTables);
  if (!tables) return fail(Code::no_memory, "no memory for the tables of a frame");
  AdaptivePlan plan = asked;
  std::size_t head = 0;
  PYF_TRY(read_head(payload, payload_bytes, plan, model, &head));
  make_adaptive_tables(model, false, *tables);
  plan.model = &model;
  plan.tables = tables.get();
  // a unit's values are not contiguous in the array: every unit searches for the requested ones
  return decode_tiles(plan, *adaptive_coders().units, payload + head, payload_bytes - head, 0, info.value_count,
                      values);
}

// An origin's values and settings, which an encoder needs.
struct Origin {
  FrameInfo info;
  double offset = 0;
  std::unique_ptr<std::uint8_t[]> values, kinds;
  std::unique_ptr<float[]> r;

  Status open(const Request& request, AdaptiveModel& model) {
    PYF_TRY(frame_info(request.origin, request.origin_bytes, &info));
    const auto count = static_cast<std::size_t>(info.value_count);
    values.reset(new (std::nothrow) std::uint8_t[info.value_bytes]);
    kinds.reset(new (std::nothrow) std::uint8_t[count]);
    r.reset(new (std::nothrow) float[count]);
    if (!values || !kinds || !r) return fail(Code::no_memory, "no memory for the values that a chunk had before");
    AdaptivePlan plan = plan_of(info);
    plan.stop = info.value_count;
    plan.decoded_r = r.get();
    plan.decoded_kinds = kinds.get();
    const auto* const payload = static_cast<const std::uint8_t*>(request.origin) + info.header_bytes;
    const auto payload_bytes = static_cast<std::size_t>(info.frame_bytes - info.header_bytes);
    offset = load_le<double>(payload);
    return decode_streams(info, payload, payload_bytes, plan, model, values.get());
  }
  // Sets the plan and the model for a step that is a fraction of the origin's. r, and therefore thresholds, are in
  // units of the step.
  void set_plan(double step, AdaptivePlan& plan, AdaptiveModel& model) const {
    plan.offset = offset;
    plan.origin_r = r.get();
    plan.origin_kinds = kinds.get();
    plan.origin_values = values.get();
    plan.origin_scale = static_cast<float>(info.step / step);
    for (PassModel& pass : model.passes)
      for (float& threshold : pass.thresholds) threshold *= plan.origin_scale;
  }
};

// Chooses tiles across the axis before the last three if they need fewer bits.
void try_across(const AdaptiveChoice& choice, const void* values, FrameInfo& info, AdaptivePlan& plan,
                AdaptiveModel& model, double& bits) {
  FrameInfo other_info = info;
  other_info.parameters[kAcross] = 1;
  AdaptivePlan other = plan_of(other_info);
  other.offset = plan.offset;
  std::vector<KeptTile> kept;
  other.kept = &kept;
  const std::unique_ptr<AdaptiveModel> other_model(new AdaptiveModel);
  const double other_bits = adaptive_coders().train(other, choice, values, *other_model);
  if (other_bits >= bits) return;
  info = other_info;
  bits = other_bits;
  model = *other_model;
  plan.kept->swap(kept);
  other.kept = plan.kept;
  plan = other;
}

// Encodes the payload: offset, model, directory and units. *bytes is 0 if it would need `limit` bytes or more.
Status encode_streams(const Request& request, const void* values, double offset, FrameInfo& info, std::uint8_t* out,
                      std::size_t limit, std::size_t* bytes) {
  const std::unique_ptr<AdaptiveModel> model(new (std::nothrow) AdaptiveModel);
  const std::unique_ptr<AdaptiveTables> tables(new (std::nothrow) AdaptiveTables);
  const std::unique_ptr<std::uint8_t[]> written(new (std::nothrow) std::uint8_t[kMostModelBytes]);
  if (!model || !tables || !written) return fail(Code::no_memory, "no memory for a model of the chunk");
  Origin origin;
  if (request.origin != nullptr) {
    PYF_TRY(origin.open(request, *model));
    info.parameters[kAcross] = origin.info.parameters[kAcross];
    model->masks = info.has_sentinel;
  }
  AdaptivePlan plan = plan_of(info);
  plan.offset = offset;
  if (request.origin != nullptr) origin.set_plan(info.step, plan, *model);
  std::vector<KeptTile> kept;
  plan.kept = &kept;
  double bits = 0;
  try {
    const AdaptiveChoice choice{request.parameters[kPredictor], request.parameters[kEffort] != 0};
    bits = adaptive_coders().train(plan, choice, values, *model);
    if (request.origin == nullptr && may_go_across(info.shape)) try_across(choice, values, info, plan, *model, bits);
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory to train a model of the chunk");
  }
  info.parameters[kUnitLog2] = static_cast<std::uint8_t>(unit_log2_of(bits, plan.tiles.tiles()));
  set_units(info, plan);
  make_adaptive_tables(*model, true, *tables);
  plan.model = model.get();
  plan.tables = tables.get();
  const std::size_t model_bytes = write_model(*model, written.get()), head = kPayloadHead + model_bytes;
  if (head >= limit) return kOk;
  store_le(out, plan.offset);
  std::memcpy(out + kPayloadHead, written.get(), model_bytes);
  PYF_TRY(encode_tiles(plan, *adaptive_coders().units, values, out + head, limit - head, bytes));
  if (*bytes != 0) *bytes += head;
  return kOk;
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
  PYF_TRY(encode_streams(request, values, offset, info, out, limit, bytes));
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

Status decode(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
              std::uint64_t stop, void* values) {
  const std::unique_ptr<AdaptiveModel> model(new (std::nothrow) AdaptiveModel);
  if (!model) return fail(Code::no_memory, "no memory for the model of a frame");
  AdaptivePlan plan = plan_of(info);
  plan.start = start;
  plan.stop = stop;
  return decode_streams(info, payload, payload_bytes, plan, *model, values);
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
  if (parameters[kAcross] > 1 || (parameters[kAcross] == 1 && !may_go_across(shape)))
    return fail(code, "%s: order of axes %d, allowed: 0; 1 too for some shapes of four axes", row.name,
                parameters[kAcross]);
  if (parameters[kUnitLog2] > kMostTilesLog2)
    return fail(code, "%s: units of 2^%d tiles, allowed: 0 to %u", row.name, parameters[kUnitLog2], kMostTilesLog2);
  return kOk;
}

void frame_parameters(Parameters& parameters) { parameters = {1}; }

Status check_step(const FrameInfo& info) {
  if (!is_float(info.dtype))  // integer requests become frames of another codec
    return fail(Code::corrupt, "corrupt frame: codec adaptive cannot hold dtype %s", dtype_name(info.dtype));
  if (info.dtype == Dtype::f32 && static_cast<double>(static_cast<float>(info.step)) != info.step)
    return fail(Code::corrupt, "corrupt frame: the step is not a value of the frame's dtype");
  return info.pointwise ? fail(Code::corrupt, "corrupt frame: adaptive with a pointwise relative bound") : kOk;
}

// Every frame has an offset, a model, a directory and a head for each unit. So its size limits the number of values
// that it can hold.
Status check_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  const AdaptiveGrid grid = make_adaptive_grid(info.shape, info.value_count, info.parameters[kAcross] != 0);
  const std::uint64_t tiles = grid.tiles(), unit = std::uint64_t{1} << info.parameters[kUnitLog2],
                      units = tile_parts(tiles, unit),
                      of_unit = 4 + kUnitHead + 4 * std::uint64_t{least_state_words(grid.most_rows())};
  const std::uint64_t least = kPayloadHead + kLeastModelBytes + 4;
  if (payload_bytes < least || (payload_bytes - least) / of_unit < units)
    return fail(Code::corrupt, "corrupt frame: the frame is too short for its units");
  return kOk;
}

}  // namespace

extern const Codec kAdaptiveCodec;
const Codec kAdaptiveCodec{
    .check_parameters = check_parameters,
    .frame_parameters = frame_parameters,
    .check_step = check_step,
    .check_size = check_size,
    .encode = encode,
    .decode = decode,
    .may_be_pointwise = false,
    .closed_loop = true,
    .integers_on_devices = false,
};

}  // namespace pyfilter
