// SPDX-License-Identifier: BSD-3-Clause
// Checks against registry.json (request.hpp, api.hpp).
#include "core/request.hpp"

#include <cmath>
#include <cstdio>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/bound.hpp"
#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/half_values.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"

namespace pyfilter {
namespace {

// All codecs, as "id (name), id (name), ...".
void list_codecs(char* out, std::size_t size) {
  std::size_t used = 0;
  out[0] = '\0';
  for (const auto& row : registry::kCodecs) {
    if (used >= size) return;
    const int n = std::snprintf(out + used, size - used, "%s%d (%s)", used == 0 ? "" : ", ", row.id, row.name);
    if (n > 0) used += static_cast<std::size_t>(n);
  }
}

Status check_shape(const Shape& shape) {
  std::uint64_t count = 0;
  if (shape.rank < 0 || shape.rank > kMaxRank)
    return fail(Code::invalid_argument, "rank %d, allowed: 0 to %d", shape.rank, kMaxRank);
  if (!value_count(shape, &count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  return kOk;
}

}  // namespace

const char* dtype_name(Dtype dtype) noexcept {
  for (const auto& row : registry::kDtypes)
    if (row.code == static_cast<std::uint8_t>(dtype)) return row.name;
  return "unknown";
}

void list_dtypes(std::uint32_t mask, char* out, std::size_t size) noexcept {
  std::size_t used = 0;
  out[0] = '\0';
  for (unsigned code = 0; code < 32 && used < size; ++code) {
    if ((mask >> code & 1) == 0) continue;
    const int n =
        std::snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", dtype_name(static_cast<Dtype>(code)));
    if (n > 0) used += static_cast<std::size_t>(n);
  }
}

void list_bounds(std::uint32_t mask, char* out, std::size_t size) noexcept {
  std::size_t used = 0;
  out[0] = '\0';
  for (unsigned mode = 0; mode < 32; ++mode) {
    for (const auto& row : registry::kBounds) {
      if (row.mode != mode || (mask >> mode & 1) == 0 || used >= size) continue;
      const int n = std::snprintf(out + used, size - used, "%s%u (%s)", used == 0 ? "" : ", ", mode, row.name);
      if (n > 0) used += static_cast<std::size_t>(n);
    }
  }
}

const registry::CodecRow* find_codec(std::uint8_t id) noexcept {
  for (const auto& row : registry::kCodecs)
    if (row.id == id) return &row;
  return nullptr;
}

Status check_frame_codec(const FrameInfo& info) noexcept {
  const registry::CodecRow* codec = find_codec(info.codec);
  if (codec == nullptr)
    return fail(Code::corrupt, "corrupt frame: codec id %d is unknown to pyfilter %s", info.codec, registry::kVersion);
  if ((codec->dtype_mask >> static_cast<unsigned>(info.dtype) & 1) == 0)
    return fail(Code::corrupt, "corrupt frame: codec %s cannot hold dtype %s", codec->name, dtype_name(info.dtype));
  if (is_half(info.dtype) && info.codec != registry::kExactCodec && !has_half_bound(info))
    return fail(Code::corrupt, "corrupt frame: codec %s, dtype %s without a bound", codec->name,
                dtype_name(info.dtype));
  if (is_derived(info.dtype)) return check_frame_codec(base_info(info));
  const Codec& functions = *codec_of(info.codec);
  PYF_TRY(functions.check_parameters(*codec, info.parameters, info.shape, true));
  if (const std::uint8_t version = version_of(*codec, info.parameters); info.format_version < version)
    return fail(Code::corrupt, "corrupt frame: codec %s in format %d, allowed: %d or later", codec->name,
                info.format_version, version);
  const bool quantised = functions.quantises && !info.stored_raw && !(functions.may_be_exact && info.step == 0);
  if (!quantised && (info.step != 0 || info.bound != 0))
    return fail(Code::corrupt, "corrupt frame: a bit-exact frame with a bound or a step");
  if (quantised) {
    if (!(info.step > 0) || !(info.bound > 0))
      return fail(Code::corrupt, "corrupt frame: a quantised frame without bound or step");
    if (info.pointwise && (!functions.may_be_pointwise || !is_float(info.dtype)))
      return fail(Code::corrupt, "corrupt frame: codec %s, dtype %s with a pointwise relative bound", codec->name,
                  dtype_name(info.dtype));
    if (info.pointwise && info.bound >= 1)
      return fail(Code::corrupt, "corrupt frame: a pointwise relative bound of %g", info.bound);
    if (!is_float(info.dtype) && !is_integer_step(info.bound, info.step, dtype_bytes(info.dtype)))
      return fail(Code::corrupt,
                  "corrupt frame: the bound %g and the step %g do not fit each other for integers, dtype %s",
                  info.bound, info.step, dtype_name(info.dtype));
    if (functions.check_step != nullptr) return functions.check_step(info);
    if (!info.pointwise && info.dtype == Dtype::f32 && static_cast<double>(static_cast<float>(info.step)) != info.step)
      return fail(Code::corrupt, "corrupt frame: the step is not a value of the frame's dtype");
  } else if (info.has_sentinel || info.pointwise) {
    return fail(Code::corrupt, "corrupt frame: a bit-exact frame with a sentinel or a pointwise relative bound");
  }
  return kOk;
}

Status check_request(const Request& request) noexcept {
  const registry::CodecRow* codec = find_codec(request.codec);
  if (codec == nullptr) {
    char allowed[256];
    list_codecs(allowed, sizeof allowed);
    return fail(Code::invalid_argument, "codec id %d is unknown, allowed: %s", request.codec, allowed);
  }
  if (dtype_bytes(request.dtype) == 0)
    return fail(Code::invalid_argument, "dtype code %d is unknown, allowed: 1 to 15", static_cast<int>(request.dtype));
  if ((codec->dtype_mask >> static_cast<unsigned>(request.dtype) & 1) == 0) {
    char allowed[160];
    list_dtypes(codec->dtype_mask, allowed, sizeof allowed);
    return fail(Code::unsupported, "%s cannot compress dtype %s, allowed: %s", codec->name, dtype_name(request.dtype),
                allowed);
  }
  if (is_derived(request.dtype)) {
    PYF_TRY(check_shape(request.shape));
    return check_request(base_request(request));
  }
  const auto mode = static_cast<unsigned>(request.bound_mode);
  if (mode > 31 || (codec->bound_mask >> mode & 1) == 0) {
    char allowed[160];
    list_bounds(codec->bound_mask, allowed, sizeof allowed);
    return fail(Code::invalid_argument, "%s does not take bound mode %u, allowed: %s", codec->name, mode, allowed);
  }
  const bool integers = !is_float(request.dtype), of_values = request.bound_mode == Bound::absolute;
  if (request.bound_mode == Bound::pointwise_relative && integers)
    return fail(Code::invalid_argument,
                "a pointwise relative bound needs floating-point values, these are %s; allowed for integers: 1 "
                "(absolute), 2 (relative), 4 (psnr)",
                dtype_name(request.dtype));
  const bool positive = request.bound > 0 || (integers && of_values && request.bound == 0);
  if (request.bound_mode != Bound::none && !(std::isfinite(request.bound) && positive))
    return fail(Code::invalid_argument, "the bound is %g, must be finite and %s", request.bound,
                integers && of_values ? ">= 0 (0: integers bit for bit)" : "> 0");
  if (request.bound_mode == Bound::psnr && request.bound > kHighestPsnr)
    return fail(Code::invalid_argument, "the psnr is %g dB, must be > 0 and at most %g", request.bound, kHighestPsnr);
  if (request.bound_mode == Bound::pointwise_relative && request.bound >= 1)
    return fail(Code::invalid_argument, "the pointwise relative bound is %g, must be > 0 and < 1", request.bound);
  if (request.bound_mode == Bound::none && request.bound != 0)
    return fail(Code::invalid_argument, "%s takes no bound, but %g is given", codec->name, request.bound);
  PYF_TRY(check_shape(request.shape));
  PYF_TRY(codec_of(request.codec)->check_parameters(*codec, request.parameters, request.shape, false));
  std::uint64_t count = 0;
  value_count(request.shape, &count);
  if (count * dtype_bytes(request.dtype) > kMaxChunkBytes)
    return fail(Code::unsupported, "%llu bytes in one frame, at most %llu: use smaller chunks",
                static_cast<unsigned long long>(count * dtype_bytes(request.dtype)),
                static_cast<unsigned long long>(kMaxChunkBytes));
  return kOk;
}

Status check_frame_bytes(std::uint64_t in_header, std::size_t frame_bytes) noexcept {
  if (in_header > frame_bytes)
    return fail(Code::truncated, "truncated frame: %zu bytes of %llu", frame_bytes,
                static_cast<unsigned long long>(in_header));
  if (in_header < frame_bytes)
    return fail(Code::corrupt, "corrupt frame: %zu bytes, the header says %llu", frame_bytes,
                static_cast<unsigned long long>(in_header));
  return kOk;
}

Status check_decode(const FrameInfo& info, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                    std::size_t value_bytes) noexcept {
  PYF_TRY(check_frame_bytes(info.frame_bytes, frame_bytes));
  if (start > stop || stop > info.value_count)
    return fail(Code::invalid_argument, "values %llu to %llu asked for, the frame holds %llu",
                static_cast<unsigned long long>(start), static_cast<unsigned long long>(stop),
                static_cast<unsigned long long>(info.value_count));
  const std::uint64_t wanted = (stop - start) * dtype_bytes(info.dtype);
  if (wanted != value_bytes)
    return fail(Code::invalid_argument, "a buffer of %zu bytes for values, exactly %llu are decoded", value_bytes,
                static_cast<unsigned long long>(wanted));
  return kOk;
}

FrameInfo frame_template(const Request& request, std::uint8_t codec, std::uint64_t count) noexcept {
  FrameInfo info;
  info.codec = codec;
  info.dtype = request.dtype;
  info.source_big_endian = request.source_big_endian;
  info.parameters = request.parameters;
  info.carried_bound = request.carried_bound;
  codec_of(codec)->frame_parameters(info.parameters);
  info.shape = request.shape;
  info.header_bytes = header_bytes(request.shape.rank);
  info.value_count = count;
  info.value_bytes = count * dtype_bytes(request.dtype);
  return info;
}

Status check_zero_parameters(const registry::CodecRow& row, const std::array<std::uint8_t, kParameterBytes>& parameters,
                             std::size_t first, bool in_frame) noexcept {
  for (std::size_t i = first; i < parameters.size(); ++i)
    if (parameters[i] != 0)
      return fail(parameter_code(in_frame), "%s: parameter byte %zu is %d, must be 0", row.name, i, parameters[i]);
  return kOk;
}

Status check_directory_size(std::uint64_t entries, std::uint64_t payload_bytes) noexcept {
  if (payload_bytes / 4 <= entries)
    return fail(Code::corrupt, "corrupt frame: the frame is too short for its directory");
  return kOk;
}

Status no_kernel(const FrameInfo& info) noexcept {
  return fail(Code::internal, "codec %d has no kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
}

static bool has_kernels(std::uint8_t codec, Dtype dtype) {
  const Codec& functions = *codec_of(codec);
  return is_float(dtype) ? functions.floats_on_devices : functions.integers_on_devices;
}
bool on_devices(const FrameInfo& info) noexcept { return has_kernels(info.codec, base_info(info).dtype); }
bool encodes_on_devices(const Request& request) noexcept {
  return has_kernels(request.codec, base_request(request).dtype);
}

std::uint8_t version_of(const registry::CodecRow& row, const Parameters& parameters) noexcept {
  const auto own = codec_of(row.id)->frame_version;
  return own != nullptr ? own(parameters) : row.format_version;
}

void finish_header(const FrameInfo& info, std::uint8_t* out) noexcept {
  write_header(info, *find_codec(info.codec), out);
}

}  // namespace pyfilter
