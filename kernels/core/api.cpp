// SPDX-License-Identifier: BSD-3-Clause
// The entry points (api.hpp): requests to frames and back. What a frame holds is decided here; how, in the rooms.
#include "core/api.hpp"

#include <cstring>

#include "core/bound.hpp"
#include "core/cpu_driver.hpp"
#include "core/cuda_driver.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"
#include "core/plan.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"

namespace pyfilter {
namespace {

const TileCoder* find_coder(std::uint8_t codec, const Plan& plan) {
  const LevelTable& level = level_table();
  const int dims = plan.grid.block_dims;
  if (codec == registry::kCodecCuszp2) return level.cuszp2(plan.dtype, dims);
  if (codec == registry::kCodecLossless) return level.lossless(plan.dtype, dims);
  if (codec == registry::kCodecHierarchicalDelta) return level.hierarchical_delta(plan);
  return nullptr;
}

Plan make_plan(const FrameInfo& info) {
  Plan plan;
  plan.dtype = info.dtype;
  if (info.codec == registry::kCodecHierarchicalDelta) {
    plan.exceptions = info.parameters[1] == 1;
    plan.order = info.parameters[2];
  } else {
    plan.mode = info.parameters[0];
  }
  plan.pointwise = info.pointwise;
  plan.has_sentinel = info.has_sentinel;
  plan.sentinel = info.sentinel;
  plan.bound = info.bound;
  plan.step = info.step;
  plan.grid = grid_of(info);
  return plan;
}

// The absolute bound of a request for these values; 0 asks for a bit-exact frame.
double resolve_bound(const Request& request, const void* values, std::uint64_t count) {
  if (request.bound_mode == Bound::absolute || request.bound_mode == Bound::pointwise_relative) return request.bound;
  if (!is_float(request.dtype)) {
    std::uint64_t low = 0, high = 0;
    return level_table().integer_range(request, values, count, &low, &high)
               ? resolve_integer_relative(request.bound, high - low)
               : 0;
  }
  double low = 0, high = 0;
  if (request.bound_mode == Bound::none || !level_table().value_range(request, values, count, &low, &high)) return 0;
  return resolve_relative(request.bound, low, high);
}

StepChoice choose_step(const Request& request, double bound, const void* values, std::uint64_t count) {
  return is_float(request.dtype) ? level_table().choose_step(request, bound, values, count)
                                 : choose_integer_step(request, bound);
}

// What the frame will say, but for its size; whether it is quantised or the lossless fallback.
FrameInfo plan_frame(const Request& request, const void* values, std::uint64_t count) {
  FrameInfo info = frame_template(request, request.codec, count);
  if (request.codec == registry::kCodecLossless) return info;
  const double bound = resolve_bound(request, values, count);
  const StepChoice choice = bound > 0 ? choose_step(request, bound, values, count) : StepChoice{};
  if (choice.quantise) {
    info.bound = choice.bound;
    info.step = choice.step;
    info.pointwise = request.bound_mode == Bound::pointwise_relative;
    info.has_sentinel = choice.has_sentinel;
    info.sentinel = choice.sentinel;
  } else if (info.codec == registry::kCodecCuszp2) {
    info = frame_template(request, registry::kCodecLossless, count);
  }
  if (info.codec == registry::kCodecHierarchicalDelta && count != 0) {
    const Predictor predictor = level_table().choose_predictor(request, make_plan(info), values, count);
    info.parameters[0] = predictor.tile_shape;
    info.parameters[2] = predictor.order;
  }
  return info;
}

void store_raw(FrameInfo& info, const void* values, std::uint8_t* out) {
  info.stored_raw = true;
  info.bound = info.step = 0;
  info.has_sentinel = info.pointwise = false;
  info.frame_bytes = info.header_bytes + info.value_bytes;
  if (info.value_bytes != 0) std::memcpy(out + info.header_bytes, values, info.value_bytes);
}

}  // namespace

std::size_t max_frame_bytes(const Request& request) noexcept {
  std::uint64_t count = 0;
  if (request.shape.rank < 0 || request.shape.rank > kMaxRank || !value_count(request.shape, &count)) return 0;
  const std::uint64_t bytes = count * dtype_bytes(request.dtype);
  if (bytes > kMaxChunkBytes) return 0;
  return header_bytes(request.shape.rank) + static_cast<std::size_t>(bytes);
}

Status encode(const Request& asked, const void* values, std::size_t value_bytes, void* frame,
              std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  const FpEnvironment environment;
  PYF_TRY(check_request(asked));
  const Request request = without_psnr(asked);
  std::uint64_t count = 0;
  if (!value_count(request.shape, &count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  if (count * dtype_bytes(request.dtype) != value_bytes)
    return fail(Code::invalid_argument, "%zu bytes of values, the shape and dtype need %llu", value_bytes,
                static_cast<unsigned long long>(count * dtype_bytes(request.dtype)));
  if (frame_capacity < max_frame_bytes(request))
    return fail(Code::no_space, "a buffer of %zu bytes for the frame, %zu may be needed", frame_capacity,
                max_frame_bytes(request));
  // a device that fails (no memory, a fork) must not fail a write that the CPU can do
  if (prefers_cuda() && on_devices(request.codec, request.dtype) &&
      cuda_encode_host(request, values, value_bytes, frame, frame_bytes).ok())
    return kOk;
  FrameInfo info = plan_frame(request, values, count);
  auto* out = static_cast<std::uint8_t*>(frame);
  const Plan plan = make_plan(info);
  const TileCoder* coder = find_coder(info.codec, plan);
  if (coder == nullptr)
    return fail(Code::internal, "codec %d has no kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
  std::size_t payload = 0;
  if (count != 0) PYF_TRY(encode_tiles(plan, *coder, values, out + info.header_bytes, value_bytes, &payload));
  info.frame_bytes = info.header_bytes + payload;
  if (payload == 0) store_raw(info, values, out);
  finish_header(info, out);
  *frame_bytes = static_cast<std::size_t>(info.frame_bytes);
  return kOk;
}

Status frame_info(const void* frame, std::size_t available, FrameInfo* info) noexcept {
  return read_header(static_cast<const std::uint8_t*>(frame), available, info);
}

Status decode(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes) noexcept {
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  return decode_range(frame, frame_bytes, 0, info.value_count, values, value_bytes);
}

Status decode_range(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop, void* values,
                    std::size_t value_bytes) noexcept {
  const FpEnvironment environment;
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  PYF_TRY(check_decode(info, frame_bytes, start, stop, value_bytes));
  const auto* payload = static_cast<const std::uint8_t*>(frame) + info.header_bytes;
  const std::size_t payload_bytes = frame_bytes - static_cast<std::size_t>(info.header_bytes);
  if (info.stored_raw) {
    if (value_bytes != 0) std::memcpy(values, payload + start * dtype_bytes(info.dtype), value_bytes);
    return kOk;
  }
  // where the device fails or finds a fault the CPU looks again, and has the last word on the error
  if (prefers_cuda() && on_devices(info.codec, info.dtype) &&
      cuda_decode_host(frame, frame_bytes, start, stop, values, value_bytes).ok())
    return kOk;
  const Plan plan = make_plan(info);
  const TileCoder* coder = find_coder(info.codec, plan);
  if (coder == nullptr)
    return fail(Code::internal, "codec %d has no kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
  return decode_tiles(plan, *coder, payload, payload_bytes, start, stop, values);
}

Status value_range(const Request& request, const void* values, std::size_t value_bytes, double* low, double* high,
                   bool* found) noexcept {
  const FpEnvironment environment;
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  if (is_float(request.dtype)) {
    *found = level_table().value_range(request, values, count, low, high);
    return kOk;
  }
  std::uint64_t above_low = 0, above_high = 0;
  *found = level_table().integer_range(request, values, count, &above_low, &above_high);
  if (*found) integer_limits(request.dtype, above_low, above_high, low, high);
  return kOk;
}

}  // namespace pyfilter
