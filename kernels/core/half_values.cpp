// SPDX-License-Identifier: BSD-3-Clause
// Encodes floats of 16 bits with a bound (half_values.hpp).
#include "core/half_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/bound.hpp"
#include "core/convert.hpp"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "core/value_range.hpp"

namespace pyfilter {
namespace {

template <Dtype kDtype>
void widen_value(const Conversion& job, std::uint64_t i) {
  std::uint16_t half;
  std::memcpy(&half, job.from + i * sizeof half, sizeof half);
  const float value = widened(kDtype, half);
  std::memcpy(job.to + i * sizeof value, &value, sizeof value);
}

template <Dtype kDtype>
void narrow_value(const Conversion& job, std::uint64_t i) {
  float value;
  std::memcpy(&value, job.from + i * sizeof value, sizeof value);
  const std::uint16_t half = narrowed(kDtype, value);
  std::memcpy(job.to + i * sizeof half, &half, sizeof half);
}

// Half a unit in the last place of the largest magnitude that a value within `bound` of `largest` may have.
double largest_rounding(Dtype dtype, double largest, double bound) {
  int exponent = 0;
  std::frexp(largest + bound, &exponent);  // below 2^exponent
  return dtype == Dtype::bf16 ? std::ldexp(1.0, std::max(exponent, -125) - 9)
                              : std::ldexp(1.0, std::clamp(exponent, -13, 16) - 12);
}

// The pointwise bound of the f32: half of the bound if a decoded value may be rounded to a subnormal number.
double pointwise_bound(Dtype dtype, double bound, double least) {
  const double normal = dtype == Dtype::bf16 ? 0x1p-126 : 0x1p-14;
  return least < normal / (1 - bound) * (1 + 0x1p-50) ? bound / 2 : closer_pointwise(dtype, bound);
}

// Whether values may become the fill value at all: NaN, infinities and 0 are exact.
bool has_near_fill(const Request& base) {
  const auto bits = static_cast<std::uint32_t>(base.fill);
  return base.has_fill && bits != 0 && std::isfinite(std::bit_cast<float>(bits));
}

}  // namespace

void widen(Dtype dtype, const void* halves, std::uint64_t count, float* values) noexcept {
  dtype == Dtype::bf16 ? convert<widen_value<Dtype::bf16>>(halves, count, values)
                       : convert<widen_value<Dtype::f16>>(halves, count, values);
}
void narrow(Dtype dtype, const float* values, std::uint64_t count, void* halves) noexcept {
  dtype == Dtype::bf16 ? convert<narrow_value<Dtype::bf16>>(values, count, halves)
                       : convert<narrow_value<Dtype::f16>>(values, count, halves);
}

std::unique_ptr<float[]> wide_memory(std::uint64_t count) noexcept {
  return std::unique_ptr<float[]>(new (std::nothrow) float[count + 1]);  // there may be no values
}
Status no_wide_memory(std::uint64_t count) noexcept {
  return fail(Code::no_memory, "no memory for %llu values", static_cast<unsigned long long>(count));
}

double closer_pointwise(Dtype dtype, double bound) noexcept {
  const double unit = dtype == Dtype::bf16 ? 0x1p-8 : 0x1p-11;
  return std::max(bound / 2, (bound - unit) / (1 + unit) * (1 - 0x1p-50));
}

double half_error_of(Dtype dtype, double bound, double largest) noexcept {
  return std::min(2 * bound, (bound + largest_rounding(dtype, largest, bound)) * (1 + 0x1p-50));
}

HalfExtremes find_half_extremes(const Request& base, const float* values, std::uint64_t count) noexcept {
  HalfExtremes found;
  if (base.bound_mode == Bound::pointwise_relative) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const double magnitude = std::fabs(values[i]);
      if (magnitude > 0 && magnitude < found.least) found.least = magnitude;
    }
  } else {
    found.found = find_value_range(base, values, count, &found.low, &found.high);
  }
  if (!has_near_fill(base)) return found;
  const auto bits = static_cast<std::uint32_t>(base.fill);
  const double fill = std::bit_cast<float>(bits);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double distance = std::fabs(static_cast<double>(values[i]) - fill);
    if (distance < found.from_fill && std::bit_cast<std::uint32_t>(values[i]) != bits) found.from_fill = distance;
  }
  return found;
}

HalfBound half_bound(const Request& base, Dtype dtype, const HalfExtremes& extremes) noexcept {
  if (base.bound_mode == Bound::pointwise_relative)
    return {base.bound, pointwise_bound(dtype, base.bound, extremes.least)};
  if (!extremes.found) return {};
  const double bound =
      base.bound_mode == Bound::absolute ? base.bound : resolve_relative(base.bound, extremes.low, extremes.high);
  return half_bound_of(dtype, bound, std::max(std::fabs(extremes.low), std::fabs(extremes.high)));
}

HalfBound half_bound_of(Dtype dtype, double bound, double largest) noexcept {
  return {bound, std::max(bound / 2, (bound - largest_rounding(dtype, largest, bound)) * (1 - 0x1p-50))};
}

bool may_become_fill(const Request& base, const HalfExtremes& extremes, double bound) noexcept {
  if (!has_near_fill(base)) return false;
  const double fill = std::fabs(std::bit_cast<float>(static_cast<std::uint32_t>(base.fill)));
  const double reach = base.bound_mode == Bound::pointwise_relative ? 2 * bound * fill / (1 - bound) : bound;
  return extremes.from_fill <= reach;
}

Status write_shorter(const Request& exact, const void* values, std::uint64_t count, const std::uint8_t* lossy,
                     std::size_t lossy_bytes, void* frame, std::size_t frame_capacity,
                     std::size_t* frame_bytes) noexcept {
  const std::size_t value_bytes = count * dtype_bytes(exact.dtype);
  if (lossy_bytes == 0 || lossy_bytes > surely_shorter(value_bytes)) {
    PYF_TRY(encode_on_cpu(exact, values, value_bytes, frame, frame_capacity, frame_bytes));
    if (lossy_bytes == 0 || *frame_bytes <= lossy_bytes) return kOk;
  }
  std::memcpy(frame, lossy, lossy_bytes);
  *frame_bytes = lossy_bytes;
  return kOk;
}

Status encode_halves(const Request& request, const void* values, std::uint64_t count, void* frame,
                     std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  Request base = base_request(request);
  const std::size_t lossy_capacity = max_frame_bytes(base);
  const auto wide = wide_memory(count);
  const auto lossy = base_memory(lossy_capacity);
  if (!wide || !lossy) return no_wide_memory(count);
  widen(request.dtype, values, count, wide.get());
  const HalfExtremes extremes = find_half_extremes(base, wide.get(), count);
  const HalfBound bound = half_bound(base, request.dtype, extremes);
  std::size_t lossy_bytes = 0;
  FrameInfo info;
  if (bound.of_f32 > 0 && !may_become_fill(base, extremes, bound.of_halves)) {
    if (base.bound_mode != Bound::pointwise_relative) base.bound_mode = Bound::absolute;
    base.bound = bound.of_f32;
    PYF_TRY(encode_on_cpu(base, wide.get(), count * sizeof(float), lossy.get(), lossy_capacity, &lossy_bytes));
    PYF_TRY(name_half_frame(request, bound.of_halves, lossy.get(), &lossy_bytes, &info));
  }
  return write_shorter(exact_request(request), values, count, lossy.get(), has_half_bound(info) ? lossy_bytes : 0,
                       frame, frame_capacity, frame_bytes);
}

Status name_half_frame(const Request& request, double bound, void* frame, std::size_t* frame_bytes,
                       FrameInfo* info) noexcept {
  auto* const bytes = static_cast<std::uint8_t*>(frame);
  PYF_TRY(read_header(bytes, *frame_bytes, info));
  info->dtype = request.dtype;
  if (!has_half_bound(*info)) return kOk;
  info->bound = bound;
  if (!(info->carried_bound > bound)) info->carried_bound = 0;
  finish_header(*info, bytes);
  return kOk;
}

}  // namespace pyfilter
