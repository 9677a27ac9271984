// SPDX-License-Identifier: BSD-3-Clause
// Checks against registry.json (request.hpp, api.hpp).
#include "core/request.hpp"

#include <cmath>
#include <cstdio>

#include "core/api.hpp"
#include "core/bound.hpp"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/integer_bound.hpp"
#include "core/plan.hpp"
#include "particles/key.hpp"

namespace pyfilter {
namespace {

constexpr std::uint8_t kModes = 3, kMaxBlockDims = 3;

// hierarchical_delta, lorenzo: what a request may ask for, or a frame say (docs/format.md, sections 7.1 and 8.1).
Status check_predictor(const registry::CodecRow& codec, const std::array<std::uint8_t, kParameterBytes>& parameters,
                       int rank, bool in_frame) {
  const char* const name = codec.name;
  const bool entropy = codec.id == registry::kCodecLorenzo;
  const Code code = in_frame ? Code::corrupt : Code::invalid_argument;
  constexpr int kRanks[] = {0, 0, 2, 3, 2, 0}, kOrders[] = {0, 1, 2, 3, 1, 0};
  for (std::size_t i = (in_frame ? 3 : 2) + (entropy ? 1 : 0); i < parameters.size(); ++i)
    if (parameters[i] != 0) return fail(code, "%s: parameter byte %zu is %d, must be 0", name, i, parameters[i]);
  const int shape = parameters[0];
  const bool may_be_fast = !in_frame && !entropy;
  if (shape > (may_be_fast ? kAskFast : kColumns) || (in_frame && shape == kAskAny))
    return fail(code, "%s: predictor %d, allowed: %s1 (chain), 2 (lorenzo2d), 3 (lorenzo3d), 4 (columns)%s", name,
                shape, in_frame ? "" : "0 (auto), ", may_be_fast ? ", 5 (fast)" : "");
  if (entropy) {
    const int highest = in_frame ? 3 : 2;
    if (parameters[1] > highest || (in_frame && parameters[1] == 0))
      return fail(code, "%s: coder %d, allowed: %s", name, parameters[1],
                  in_frame ? "1 (rans), 2 (huffman with a gap array), 3 (huffman)" : "0 (rans), 2 (huffman)");
    if (!in_frame && parameters[2] > 2)
      return fail(code, "%s: gap_array %d, allowed: 0 (true), 2 (false)", name, parameters[2]);
    if (!in_frame && parameters[2] == 2 && parameters[1] != 2)
      return fail(code, "%s: gap_array 2 (false) goes with coder 2 (huffman) only", name);
    if (in_frame && parameters[3] > kMostGroupLog2)
      return fail(code, "%s: groups of 2^%d tiles, allowed: 0 to %u", name, parameters[3], kMostGroupLog2);
  } else if (parameters[1] > 2 || (in_frame && parameters[1] == 0)) {
    return fail(code, "%s: outliers %d, allowed: %s1 (on), 2 (off)", name, parameters[1], in_frame ? "" : "0 (auto), ");
  }
  const int lowest = shape == kChain ? 0 : 1;
  if (in_frame && (parameters[2] < lowest || parameters[2] > kOrders[shape]))
    return fail(code, "%s: order %d, allowed for this tile shape: %d to %d", name, parameters[2], lowest,
                kOrders[shape]);
  if (rank >= 0 && rank < kRanks[shape])
    return fail(code, "%s: predictor %d needs data of rank %d or more, this has rank %d", name, shape, kRanks[shape],
                rank);
  return kOk;
}

// particles: their order, and arrays that are to be laid in another (docs/format.md, section 12.1).
Status check_particles(const std::array<std::uint8_t, kParameterBytes>& parameters, const Shape& shape, bool in_frame) {
  const Code code = in_frame ? Code::corrupt : Code::invalid_argument;
  for (std::size_t i = 1; i < parameters.size(); ++i)
    if (parameters[i] != 0) return fail(code, "particles: parameter byte %zu is %d, must be 0", i, parameters[i]);
  if (parameters[0] > 2)
    return fail(code, "particles: order %d, allowed: 0 (kept), 1 (tile), 2 (chunk)", parameters[0]);
  if (coordinates_of(shape.rank, shape.dims) != 0) return kOk;
  if (in_frame || parameters[0] != 0)
    return fail(
        code, "particles: %s needs positions, arrays (N, 2) or (N, 3); the last dimension is %llu, the rank %d",
        in_frame ? "a frame" : "any order but 0 (kept)",
        static_cast<unsigned long long>(shape.rank > 0 ? shape.dims[static_cast<std::size_t>(shape.rank - 1)] : 0),
        shape.rank);
  return kOk;
}

// progressive: how its errors were found.
Status check_progressive(const std::array<std::uint8_t, kParameterBytes>& parameters, bool in_frame) {
  const Code code = in_frame ? Code::corrupt : Code::invalid_argument;
  for (std::size_t i = 1; i < parameters.size(); ++i)
    if (parameters[i] != 0) return fail(code, "progressive: parameter byte %zu is %d, must be 0", i, parameters[i]);
  if (in_frame ? parameters[0] != 1 && parameters[0] != 2 : parameters[0] != 0 && parameters[0] != 2)
    return fail(code, "progressive: errors %d, allowed: %d (measured), 2 (bounds)", parameters[0], in_frame ? 1 : 0);
  return kOk;
}

// A power of two of which half is a double.
bool is_progressive_step(double bound, double step, Dtype dtype) {
  int exponent = 0;
  return std::frexp(step, &exponent) == 0.5 && bound == step / 2 && exponent > (dtype == Dtype::f32 ? -149 : -1073);
}

Status check_parameters(const registry::CodecRow& codec, const std::array<std::uint8_t, kParameterBytes>& parameters,
                        int rank, Code code) {
  if (codec.id == registry::kCodecHierarchicalDelta || codec.id == registry::kCodecLorenzo)
    return check_predictor(codec, parameters, rank, code == Code::corrupt);
  if (codec.id == registry::kCodecProgressive) return check_progressive(parameters, code == Code::corrupt);
  for (std::size_t i = 2; i < parameters.size(); ++i)
    if (parameters[i] != 0) return fail(code, "%s: parameter byte %zu is %d, must be 0", codec.name, i, parameters[i]);
  const bool has_mode = codec.id == registry::kCodecCuszp2;
  if (parameters[0] >= (has_mode ? kModes : 1))
    return fail(
        code,
        has_mode ? "%s: mode %d, allowed: 0 (outlier), 1 (plain), 2 (fixed)" : "%s: parameter byte 0 is %d, must be 0",
        codec.name, parameters[0]);
  if (parameters[1] > kMaxBlockDims)
    return fail(code, "%s: block_dims %d, allowed: 1, 2, 3", codec.name, parameters[1]);
  if (rank >= 0 && parameters[1] > (rank > 1 ? rank : 1))
    return fail(code, "%s: block_dims %d needs data of at least that rank, this has rank %d", codec.name, parameters[1],
                rank);
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
  if (info.format_version < codec->format_version)
    return fail(Code::corrupt, "corrupt frame: codec %s in format %d, it came with %d", codec->name,
                info.format_version, codec->format_version);
  if ((info.codec == registry::kCodecCuszp2 || info.codec == registry::kCodecLossless) && info.parameters[1] == 0)
    return fail(Code::corrupt, "corrupt frame: block dimensions 0, allowed: 1, 2, 3");
  if (info.codec == registry::kCodecParticles)
    PYF_TRY(check_particles(info.parameters, info.shape, true));
  else
    PYF_TRY(check_parameters(*codec, info.parameters, info.shape.rank, Code::corrupt));
  // hierarchical_delta is bit-exact where it has no step
  const bool quantised = info.codec != registry::kCodecLossless && !info.stored_raw &&
                         !(info.codec == registry::kCodecHierarchicalDelta && info.step == 0);
  if (!quantised && (info.step != 0 || info.bound != 0))
    return fail(Code::corrupt, "corrupt frame: a bit-exact frame with a bound or a step");
  if (quantised) {
    if (!(info.step > 0) || !(info.bound > 0))
      return fail(Code::corrupt, "corrupt frame: a quantised frame without bound or step");
    const bool may_be_pointwise =
        info.codec == registry::kCodecHierarchicalDelta || info.codec == registry::kCodecLorenzo;
    if (info.pointwise && (!may_be_pointwise || !is_float(info.dtype)))
      return fail(Code::corrupt, "corrupt frame: codec %s, dtype %s with a pointwise relative bound", codec->name,
                  dtype_name(info.dtype));
    if (info.pointwise && info.bound >= 1)
      return fail(Code::corrupt, "corrupt frame: a pointwise relative bound of %g", info.bound);
    if (!is_float(info.dtype) && !is_integer_step(info.bound, info.step, dtype_bytes(info.dtype)))
      return fail(Code::corrupt, "corrupt frame: a bound of %g and a step of %g of integers, dtype %s", info.bound,
                  info.step, dtype_name(info.dtype));
    if (info.codec == registry::kCodecProgressive) {
      if (!is_progressive_step(info.bound, info.step, info.dtype))
        return fail(Code::corrupt,
                    "corrupt frame: a bound of %g and a step of %g, which must be twice that and a power "
                    "of two",
                    info.bound, info.step);
      return kOk;
    }
    if (!info.pointwise && info.dtype == Dtype::f32 && static_cast<double>(static_cast<float>(info.step)) != info.step)
      return fail(Code::corrupt, "corrupt frame: the step is not a value of the frame's dtype");
  } else if (info.has_sentinel || info.pointwise) {
    return fail(Code::corrupt, "corrupt frame: a bit-exact frame with a sentinel or a pointwise relative bound");
  }
  return kOk;
}

Status check_request(const Request& request) noexcept {
  const registry::CodecRow* codec = find_codec(request.codec);
  if (codec == nullptr)
    return fail(Code::invalid_argument,
                "codec id %d is unknown, allowed: 1 (cuszp2), 2 (lossless), 3 (hierarchical_delta), 4 (lorenzo), "
                "5 (particles), 6 (progressive)",
                request.codec);
  if (dtype_bytes(request.dtype) == 0)
    return fail(Code::invalid_argument, "dtype code %d is unknown, allowed: 1 to 10", static_cast<int>(request.dtype));
  if ((codec->dtype_mask >> static_cast<unsigned>(request.dtype) & 1) == 0) {
    char allowed[128];
    list_dtypes(codec->dtype_mask, allowed, sizeof allowed);
    return fail(Code::unsupported, "%s cannot compress dtype %s, allowed: %s", codec->name, dtype_name(request.dtype),
                allowed);
  }
  const auto mode = static_cast<unsigned>(request.bound_mode);
  if (mode > 31 || (codec->bound_mask >> mode & 1) == 0) {
    char allowed[128];
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
    return fail(Code::invalid_argument, "%s takes no bound, but one of %g is given", codec->name, request.bound);
  if (request.shape.rank < 0 || request.shape.rank > kMaxRank)
    return fail(Code::invalid_argument, "rank %d, allowed: 0 to %d", request.shape.rank, kMaxRank);
  if (request.codec == registry::kCodecParticles)
    PYF_TRY(check_particles(request.parameters, request.shape, false));
  else
    PYF_TRY(check_parameters(*codec, request.parameters, request.shape.rank, Code::invalid_argument));
  std::uint64_t count = 0;
  if (!value_count(request.shape, &count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  if (count * dtype_bytes(request.dtype) > kMaxChunkBytes)
    return fail(Code::unsupported, "%llu bytes in one frame, at most %llu: use smaller chunks",
                static_cast<unsigned long long>(count * dtype_bytes(request.dtype)),
                static_cast<unsigned long long>(kMaxChunkBytes));
  return kOk;
}

Status check_decode(const FrameInfo& info, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                    std::size_t value_bytes) noexcept {
  if (info.frame_bytes > frame_bytes)
    return fail(Code::truncated, "truncated frame: %zu bytes of %llu", frame_bytes,
                static_cast<unsigned long long>(info.frame_bytes));
  if (info.frame_bytes < frame_bytes)
    return fail(Code::corrupt, "corrupt frame: %zu bytes, the header says %llu", frame_bytes,
                static_cast<unsigned long long>(info.frame_bytes));
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
  if (codec == registry::kCodecHierarchicalDelta) {
    // the chain is held to speed, unless the caller says otherwise
    const int asked = info.parameters[0];
    if (info.parameters[1] == 0) info.parameters[1] = asked == kChain || asked == kAskFast ? 2 : 1;
    if (asked == kAskAny || asked == kAskFast) info.parameters[0] = kChain;  // until it is chosen
    info.parameters[2] = 1;
  } else if (codec == registry::kCodecLorenzo) {
    const bool huffman = info.parameters[1] == 2, gaps = info.parameters[2] != 2;
    info.parameters[1] = !huffman ? 1 : gaps ? 2 : 3;
    info.parameters[0] = info.parameters[0] == 0 ? kChain : info.parameters[0];  // until it is chosen
    info.parameters[2] = 1;
  } else if (codec == registry::kCodecProgressive) {
    info.parameters[0] = info.parameters[0] == 2 ? 2 : 1;
  } else if (codec != registry::kCodecParticles) {
    if (info.parameters[1] == 0) info.parameters[1] = 1;
    if (codec == registry::kCodecLossless) info.parameters[0] = 0;
  }
  info.shape = request.shape;
  info.header_bytes = header_bytes(request.shape.rank);
  info.value_count = count;
  info.value_bytes = count * dtype_bytes(request.dtype);
  return info;
}

FrameInfo stand_in(const FrameInfo& info) noexcept {
  FrameInfo other = info;
  other.codec = registry::kCodecHierarchicalDelta;
  other.parameters = {info.parameters[0], 1, 1};
  return other;
}

void finish_header(const FrameInfo& info, std::uint8_t* out) noexcept {
  write_header(info, *find_codec(info.codec), out);
}

}  // namespace pyfilter
