// SPDX-License-Identifier: BSD-3-Clause
// Converts values, requests and frames between derived types and their base types (base_values.hpp).
#include "core/base_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "core/convert.hpp"
#include "core/error_text.hpp"
#include "core/half_values.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "registry_table.hpp"

namespace pyfilter {
namespace {

Shape base_shape(Dtype dtype, const Shape& shape) {
  Shape base = shape;
  if (!is_complex(dtype)) return base;
  if (base.rank == 0) {
    base.rank = 1;
    base.dims[0] = 1;
  }
  base.dims[0] *= 2;
  return base;
}

bool is_finite(Dtype dtype, std::uint64_t pattern) {
  return dtype == Dtype::c64 ? std::isfinite(std::bit_cast<float>(static_cast<std::uint32_t>(pattern)))
                             : std::isfinite(std::bit_cast<double>(pattern));
}

// Whether a part of a fill value needs a sentinel. NaN and infinities are always exact, and so is +0.
bool needs_sentinel(Dtype dtype, std::uint64_t pattern) { return pattern != 0 && is_finite(dtype, pattern); }

// The part of a fill value that is the sentinel of the base array: 0 real, 1 imaginary.
std::size_t part_of_sentinel(const Request& request) {
  if (request.fill == 0) return 1;
  return request.fill_imaginary == 0 || needs_sentinel(request.dtype, request.fill) ? 0 : 1;
}

// A complex fill value as it is in memory.
struct FillBytes {
  explicit FillBytes(const Request& request) : size(dtype_bytes(request.dtype)) {
    std::memcpy(bytes, &request.fill, size / 2);
    std::memcpy(bytes + size / 2, &request.fill_imaginary, size / 2);
  }
  bool is_at(const std::uint8_t* value) const { return std::memcmp(value, bytes, size) == 0; }

  std::size_t size;
  std::uint8_t bytes[16];
};

// Value i of interleaved parts to planes of parts.
template <class Part>
void split(const Conversion& job, std::uint64_t i) {
  std::memcpy(job.to + i * sizeof(Part), job.from + 2 * i * sizeof(Part), sizeof(Part));
  std::memcpy(job.to + (job.count + i) * sizeof(Part), job.from + (2 * i + 1) * sizeof(Part), sizeof(Part));
}

template <class Part>
void join(const Conversion& job, std::uint64_t i) {
  std::memcpy(job.to + 2 * i * sizeof(Part), job.from + i * sizeof(Part), sizeof(Part));
  std::memcpy(job.to + (2 * i + 1) * sizeof(Part), job.from + (job.count + i) * sizeof(Part), sizeof(Part));
}

void order(const Conversion& job, std::uint64_t i) {
  std::uint16_t bits;
  std::memcpy(&bits, job.from + 2 * i, sizeof bits);
  bits = ordered_half(bits);
  std::memcpy(job.to + 2 * i, &bits, sizeof bits);
}

}  // namespace

Request base_request(const Request& request) noexcept {
  Request base = request;
  base.dtype = base_dtype(request.dtype);
  base.shape = base_shape(request.dtype, request.shape);
  base.fill_imaginary = 0;
  if (has_half_bound(request)) {
    base.dtype = Dtype::f32;
    base.fill = std::bit_cast<std::uint32_t>(widened(request.dtype, static_cast<std::uint16_t>(request.fill)));
  }
  if (!is_complex(request.dtype) || !request.has_fill) return base;
  const std::uint64_t real = request.fill, imaginary = request.fill_imaginary;
  base.fill = part_of_sentinel(request) == 0 ? real : imaginary;
  // what pads edge chunks may have a part that is 0: the range must not count it
  if ((real == 0) != (imaginary == 0)) base.without_zeros = true;
  return base;
}

FrameInfo base_info(const FrameInfo& info) noexcept {
  FrameInfo base = info;
  base.dtype = has_half_bound(info) ? Dtype::f32 : base_dtype(info.dtype);
  base.shape = base_shape(info.dtype, info.shape);
  base.value_count = is_complex(info.dtype) ? 2 * info.value_count : info.value_count;
  base.value_bytes = base.value_count * dtype_bytes(base.dtype);
  return base;
}

bool needs_two_sentinels(const Request& request) noexcept {
  return is_complex(request.dtype) && request.has_fill && request.fill != request.fill_imaginary &&
         needs_sentinel(request.dtype, request.fill) && needs_sentinel(request.dtype, request.fill_imaginary);
}

SentinelTest sentinel_test(const Request& request) noexcept {
  SentinelTest test;
  if (!is_complex(request.dtype) || !request.has_fill || request.fill == request.fill_imaginary) return test;
  test.two = needs_two_sentinels(request);
  test.at = static_cast<std::uint32_t>(part_of_sentinel(request));
  test.fill[0] = request.fill;
  test.fill[1] = request.fill_imaginary;
  const bool single = request.dtype == Dtype::c64;
  test.magnitude = single ? 0x7FFFFFFFu : 0x7FFFFFFFFFFFFFFFu;
  test.infinity = single ? 0x7F800000u : 0x7FF0000000000000u;
  test.never = !is_finite(request.dtype, test.fill[1 - test.at]);  // no other part becomes that one
  return test;
}

bool needs_exact(const Request& request, const void* values, std::uint64_t count) noexcept {
  const SentinelTest test = sentinel_test(request);
  if (test.never) return false;
  const std::size_t width = dtype_bytes(request.dtype) / 2;
  const auto* const from = static_cast<const std::uint8_t*>(values);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t parts[2] = {};
    std::memcpy(&parts[0], from + 2 * i * width, width);
    std::memcpy(&parts[1], from + (2 * i + 1) * width, width);
    if (test.fails(parts[0], parts[1])) return true;
  }
  return false;
}

std::uint64_t without_fill(const Request& request, const void* values, std::uint64_t count, void* out) noexcept {
  const FillBytes fill(request);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  auto* to = static_cast<std::uint8_t*>(out);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (fill.is_at(from + i * fill.size)) continue;
    std::memcpy(to + kept * fill.size, from + i * fill.size, fill.size);
    ++kept;
  }
  return kept;
}

Request exact_request(const Request& request) noexcept {
  Request exact = request;
  exact.codec = registry::kExactCodec;
  exact.bound_mode = Bound::none;
  exact.bound = 0;
  exact.parameters = {};
  return exact;
}

std::unique_ptr<std::uint8_t[]> base_memory(std::size_t bytes) noexcept {
  return std::unique_ptr<std::uint8_t[]>(new (std::nothrow) std::uint8_t[bytes + 1]);  // bytes may be 0
}

void to_base(Dtype dtype, const void* values, std::uint64_t count, void* base) noexcept {
  if (count == 0) return;
  if (dtype == Dtype::c64) return convert<split<float>>(values, count, base);
  if (dtype == Dtype::c128) return convert<split<double>>(values, count, base);
  if (is_half(dtype)) return convert<order>(values, count, base);
  std::memcpy(base, values, count * dtype_bytes(dtype));
}

void from_base(Dtype dtype, const void* base, std::uint64_t count, void* values) noexcept {
  if (count == 0) return;
  if (dtype == Dtype::c64) return convert<join<float>>(base, count, values);
  if (dtype == Dtype::c128) return convert<join<double>>(base, count, values);
  if (is_half(dtype)) return convert<order>(base, count, values);
  if (values != base) std::memcpy(values, base, count * dtype_bytes(dtype));
}

Status derived_header(const Request& request, const void* frame, std::size_t frame_bytes, void* header,
                      std::size_t* derived_bytes) noexcept {
  FrameInfo info;
  PYF_TRY(read_header(static_cast<const std::uint8_t*>(frame), frame_bytes, &info));
  *derived_bytes = frame_bytes - static_cast<std::size_t>(info.header_bytes) + header_bytes(request.shape.rank);
  info.dtype = request.dtype;
  info.shape = request.shape;
  info.frame_bytes = *derived_bytes;
  finish_header(info, static_cast<std::uint8_t*>(header));
  return kOk;
}

Status name_derived(const Request& request, void* frame, std::size_t* frame_bytes) noexcept {
  auto* const bytes = static_cast<std::uint8_t*>(frame);
  std::uint8_t header[header_bytes(kMaxRank)];
  std::size_t derived_bytes = 0;
  PYF_TRY(derived_header(request, frame, *frame_bytes, header, &derived_bytes));
  const std::size_t after = header_bytes(request.shape.rank), before = *frame_bytes + after - derived_bytes;
  if (after != before) std::memmove(bytes + after, bytes + before, *frame_bytes - before);
  std::memcpy(bytes, header, after);
  *frame_bytes = derived_bytes;
  return kOk;
}

Status base_frame(const Request& request, const void* frame, std::size_t frame_bytes,
                  std::unique_ptr<std::uint8_t[]>* base, std::size_t* base_bytes) noexcept {
  const auto* const bytes = static_cast<const std::uint8_t*>(frame);
  FrameInfo info;
  PYF_TRY(read_header(bytes, frame_bytes, &info));
  if (info.dtype != request.dtype)
    return fail(Code::invalid_argument, "the frame to be updated holds dtype %s, the values are %s",
                dtype_name(info.dtype), dtype_name(request.dtype));
  if (info.frame_bytes != frame_bytes)
    return fail(Code::corrupt, "corrupt frame: %zu bytes, the header says %llu", frame_bytes,
                static_cast<unsigned long long>(info.frame_bytes));
  FrameInfo made = base_info(info);
  const auto before = static_cast<std::size_t>(info.header_bytes), after = header_bytes(made.shape.rank);
  *base_bytes = frame_bytes - before + after;
  *base = base_memory(*base_bytes);
  if (!*base) return fail(Code::no_memory, "no memory for a frame of %zu bytes", *base_bytes);
  made.frame_bytes = *base_bytes;
  finish_header(made, base->get());
  std::memcpy(base->get() + after, bytes + before, frame_bytes - before);
  return kOk;
}

}  // namespace pyfilter
