// SPDX-License-Identifier: BSD-3-Clause
// The entry points (api.hpp): they check their arguments, then call the device or the codec's CPU functions.
#include "core/api.hpp"

#include <cstring>
#include <memory>

#include "core/base_values.hpp"
#include "core/bound.hpp"
#include "core/codec.hpp"
#include "core/cuda/driver.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/frame_encoder.hpp"
#include "core/half_values.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/value_range.hpp"

namespace pyfilter {
std::size_t max_frame_bytes(const Request& request) noexcept {
  std::uint64_t count = 0;
  if (request.shape.rank < 0 || request.shape.rank > kMaxRank || !value_count(request.shape, &count)) return 0;
  if (is_derived(request.dtype) && !has_half_bound(request)) return max_frame_bytes(base_request(request));
  const std::uint64_t bytes = count * dtype_bytes(request.dtype);
  if (bytes > kMaxChunkBytes) return 0;
  return header_bytes(request.shape.rank) + static_cast<std::size_t>(bytes);
}

static Status encode_checked(const Request& asked, const void* values, std::size_t value_bytes, void* frame,
                             std::size_t frame_capacity, std::size_t* frame_bytes, bool may_use_device);

// Encodes `count` values of a derived type: the request and the sizes have been checked.
static Status encode_derived(const Request& request, const void* values, std::uint64_t count, void* frame,
                             std::size_t frame_capacity, std::size_t* frame_bytes) {
  const std::size_t value_bytes = count * dtype_bytes(request.dtype);
  const auto base = base_memory(value_bytes);
  if (!base) return fail(Code::no_memory, "no memory for %zu bytes of values", value_bytes);
  to_base(request.dtype, values, count, base.get());
  Request of_base = base_request(request);
  if (needs_exact(request, values, count)) of_base = exact_request(of_base);
  PYF_TRY(encode_checked(of_base, base.get(), value_bytes, frame, frame_capacity, frame_bytes, false));
  return name_derived(request, frame, frame_bytes);
}

static Status encode_checked(const Request& asked, const void* values, std::size_t value_bytes, void* frame,
                             std::size_t frame_capacity, std::size_t* frame_bytes, bool may_use_device) {
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
  // on device failure (no memory, a fork) encode on the CPU
  if (may_use_device && prefers_cuda() && encodes_on_devices(request) &&
      cuda_encode_host(request, values, value_bytes, frame, frame_bytes).ok())
    return kOk;
  if (has_half_bound(request)) return encode_halves(request, values, count, frame, frame_capacity, frame_bytes);
  if (is_derived(request.dtype)) return encode_derived(request, values, count, frame, frame_capacity, frame_bytes);
  return encode_frame(request, values, count, static_cast<std::uint8_t*>(frame), frame_bytes);
}

Status encode(const Request& request, const void* values, std::size_t value_bytes, void* frame,
              std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  return encode_checked(request, values, value_bytes, frame, frame_capacity, frame_bytes, true);
}

Status encode_on_cpu(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                     std::size_t frame_capacity, std::size_t* frame_bytes) noexcept {
  return encode_checked(request, values, value_bytes, frame, frame_capacity, frame_bytes, false);
}

Status frame_info(const void* frame, std::size_t available, FrameInfo* info) noexcept {
  return read_header(static_cast<const std::uint8_t*>(frame), available, info);
}

Status decode(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes) noexcept {
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  return decode_range(frame, frame_bytes, 0, info.value_count, values, value_bytes);
}

// Decodes the values [start, stop) of a payload whose header and sizes have been checked.
static Status decode_payload(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                             std::uint64_t start, std::uint64_t stop, void* values) {
  if (!info.stored_raw) return codec_of(info.codec)->decode(info, payload, payload_bytes, start, stop, values);
  const std::size_t width = dtype_bytes(info.dtype);
  if (start != stop) std::memcpy(values, payload + start * width, static_cast<std::size_t>(stop - start) * width);
  return kOk;
}

// The same for a frame of a derived type: of complex values, real and imaginary parts are two ranges of the base array.
static Status decode_derived(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes,
                             std::uint64_t start, std::uint64_t stop, void* values) {
  const FrameInfo base = base_info(info);
  if (has_half_bound(info)) {
    const auto wide = wide_memory(stop - start);
    if (!wide) return no_wide_memory(stop - start);
    PYF_TRY(decode_payload(base, payload, payload_bytes, start, stop, wide.get()));
    narrow(info.dtype, wide.get(), stop - start, values);
    return kOk;
  }
  if (!is_complex(info.dtype)) {
    PYF_TRY(decode_payload(base, payload, payload_bytes, start, stop, values));
    from_base(info.dtype, values, stop - start, values);
    return kOk;
  }
  const std::size_t bytes = static_cast<std::size_t>(stop - start) * dtype_bytes(info.dtype);
  const auto decoded = base_memory(bytes);
  if (!decoded) return fail(Code::no_memory, "no memory for %zu bytes of values", bytes);
  if (stop - start == info.value_count) {
    PYF_TRY(decode_payload(base, payload, payload_bytes, 0, base.value_count, decoded.get()));
  } else {
    PYF_TRY(decode_payload(base, payload, payload_bytes, start, stop, decoded.get()));
    PYF_TRY(decode_payload(base, payload, payload_bytes, info.value_count + start, info.value_count + stop,
                           decoded.get() + bytes / 2));
  }
  from_base(info.dtype, decoded.get(), stop - start, values);
  return kOk;
}

Status decode_range(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop, void* values,
                    std::size_t value_bytes) noexcept {
  const FpEnvironment environment;
  FrameInfo info;
  PYF_TRY(frame_info(frame, frame_bytes, &info));
  PYF_TRY(check_decode(info, frame_bytes, start, stop, value_bytes));
  const auto* payload = static_cast<const std::uint8_t*>(frame) + info.header_bytes;
  const std::size_t payload_bytes = frame_bytes - static_cast<std::size_t>(info.header_bytes);
  // on device failure, or for a damaged frame, decode on the CPU and report its error
  if (prefers_cuda() && !info.stored_raw && on_devices(info) &&
      cuda_decode_host(frame, frame_bytes, start, stop, values, value_bytes).ok())
    return kOk;
  if (is_derived(info.dtype)) return decode_derived(info, payload, payload_bytes, start, stop, values);
  return decode_payload(info, payload, payload_bytes, start, stop, values);
}

// The range of all parts. Order does not matter, so the parts stay where they are.
static Status complex_range(const Request& request, const void* values, std::size_t value_bytes, double* low,
                            double* high, bool* found) {
  const Request base = base_request(request);
  std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  std::unique_ptr<std::uint8_t[]> others;
  if (needs_two_sentinels(request)) {
    others = base_memory(value_bytes);
    if (!others) return fail(Code::no_memory, "no memory for %zu bytes of values", value_bytes);
    count = without_fill(request, values, count, others.get());
    values = others.get();
  }
  *found = find_value_range(base, values, 2 * count, low, high);
  return kOk;
}

static Status half_range(Request request, const void* values, std::size_t value_bytes, double* low, double* high,
                         bool* found) {
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  const auto wide = wide_memory(count);
  if (!wide) return no_wide_memory(count);
  widen(request.dtype, values, count, wide.get());
  request.bound_mode = Bound::relative;
  *found = find_value_range(base_request(request), wide.get(), count, low, high);
  return kOk;
}

Status value_range(const Request& request, const void* values, std::size_t value_bytes, double* low, double* high,
                   bool* found) noexcept {
  const FpEnvironment environment;
  if (dtype_bytes(request.dtype) == 0)
    return fail(Code::invalid_argument, "dtype code %d is unknown, allowed: 1 to 15", static_cast<int>(request.dtype));
  if (is_complex(request.dtype)) return complex_range(request, values, value_bytes, low, high, found);
  if (is_half(request.dtype)) return half_range(request, values, value_bytes, low, high, found);
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  if (is_float(request.dtype)) {
    *found = find_value_range(request, values, count, low, high);
    return kOk;
  }
  std::uint64_t above_low = 0, above_high = 0;
  *found = find_integer_range(request, values, count, &above_low, &above_high);
  if (*found) integer_limits(request.dtype, above_low, above_high, low, high);
  return kOk;
}

}  // namespace pyfilter
