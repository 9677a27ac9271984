// SPDX-License-Identifier: BSD-3-Clause
// Encodes a chunk that was written in parts (updated_chunk.hpp).
//
//   A   the error bound of the old frame: its values are within A of the values that were written
//   B   the bound of the request for the chunk's present values
//   s   the step of the old frame
//
// Values that were not written again keep their value, or move by at most B - A:
//
//   B < A        step s / 2^i: old values are multiples of this step, new values keep B, the frame carries A.
//                i is 0 if B is only just below A: decoded extremes may lie closer together than originals.
//   A <= B       step m * s, m odd; m is 1 up to B = 3 A. An interval of width m * s is a union of intervals of
//                width s. So an old value gets the code of its original, within m * s / 2.
//   closed loop  (Codec::closed_loop) Below 2 A: step s, the old frame is the request's origin.
//                From 2 A on: bound B - A.
//   no step      (the old frame is bit-exact, or its steps are powers of two) Bound B - A: errors add up to B.
//   otherwise    bit-exact, the frame carries A
//
// The new frame is decoded and compared with the old values. If one of them moved too far, the chunk is encoded
// bit-exactly.
#include "core/updated_chunk.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/bound.hpp"
#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/half_values.hpp"
#include "core/kept_values.hpp"
#include "core/request.hpp"
#include "core/updated_halves.hpp"
#include "core/with_type.hpp"
#include "registry_table.hpp"

namespace pyfilter {
namespace {

// Margins for the step and the sums below: larger than their roundings, too small to cost compression.
constexpr double kBelow = 1 - 0x1p-40;
constexpr double kBeyond = 0x1p-7;
constexpr double kHighestMultiple = 1023;  // of a step; above it, adding up the bounds costs next to nothing

// The request for the encoder: `bound` for all values, and a step with which old values stay where possible.
Request choose(const Request& asked, const FrameInfo& old, double bound, double largest) {
  const double error = old.error_bound(), step = old.step;
  const bool powers_of_two = codec_of(old.codec)->powers_of_two;
  Request request = asked;
  request.bound_mode = Bound::absolute;
  request.bound = bound;
  request.carried_bound = error;
  const bool closed_loop = codec_of(old.codec)->closed_loop, grid = step > 0 && !powers_of_two;
  // The codec that chose the grid keeps to it; a codec that is asked for may have chosen another one.
  if (old.codec != asked.codec && codec_of(asked.codec)->closed_loop) {
    request.codec = old.codec;
    request.parameters = {};
  }
  const auto add_up = [&] {
    request.bound = (bound - error) * kBelow;
    request.carried_bound = bound;
    if (powers_of_two) {  // half of a step: a power of two
      int exponent = 0;
      std::frexp(request.bound, &exponent);
      request.bound = std::ldexp(0.5, exponent);
      request.carried_bound = error + request.bound;
    }
  };
  if (bound < error) {
    if (step == 0 || bound == 0) {
      request.bound = 0;
    } else if (powers_of_two) {
      request.bound = std::min(bound, step / 2);  // steps are powers of two
    } else if (closed_loop) {
      request.step = step;
      for (double kept = old.bound; kept > bound; kept /= 2) request.step /= 2;
    } else if (!is_float(asked.dtype)) {  // steps are odd integers: s / 2^i is none
      request.bound = bound >= old.bound ? old.bound : 0;
    } else {
      request.step = step;
      // a step slightly too wide is allowed: the few values beyond the bound are stored verbatim, below 1 bit a value
      const double most = bound * (1 + kBeyond);
      while (request.step / 2 > most) request.step /= 2;
    }
    return request;
  }
  if (!grid) {
    if (powers_of_two && bound < 3 * error && step > 0)
      request.bound = step / 2;  // a power of two: the same grid
    else if (bound > error * (1 + 0x1p-10))
      add_up();
    else
      request.bound = 0;
    return request;
  }
  if (closed_loop) {
    if (bound < 2 * error) {
      request.bound = old.bound;
      request.step = step;
    } else {
      add_up();
    }
    return request;
  }
  const double roundings = is_float(asked.dtype) ? largest * (asked.dtype == Dtype::f32 ? 0x1p-22 : 0x1p-50) : 0;
  double multiple = std::floor(((bound - error) * kBelow - roundings) / step) * 2 + 1;
  if (!is_float(asked.dtype)) multiple = std::floor((bound - error) / step) * 2 + 1;
  if (multiple > kHighestMultiple) {
    add_up();
    if (!is_float(asked.dtype)) request.bound = std::floor(request.bound);
  } else if (multiple < 3) {
    request.bound = old.bound;
    request.step = is_float(asked.dtype) ? step : 0;
  } else if (is_float(asked.dtype)) {
    request.step =
        asked.dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(multiple * step)) : multiple * step;
  } else {
    request.bound = (multiple * step - 1) / 2;
  }
  return request;
}

// A bit-exact request, for the codec that takes every dtype.
Request exact_request(const Request& asked, double error) {
  Request request = exact_request(asked);
  request.carried_bound = error;
  return request;
}

// A frame from which values may have been decoded, and these values.
struct Origin {
  FrameInfo info;
  const void* frame = nullptr;
  std::unique_ptr<std::uint8_t[]> values;
  Comparison found;
};

// Decodes `frame` and counts the values that were kept from it: none if the frame is exact, which needs no care.
Status open_origin(const Request& request, const void* values, std::size_t value_bytes, const FrameBytes& frame,
                   Origin& origin) {
  FrameInfo& info = origin.info;
  PYF_TRY(frame_info(frame.bytes, frame.size, &info));
  if (info.error_bound() == 0 || info.pointwise) return kOk;
  if (info.dtype != request.dtype || info.value_bytes != value_bytes)
    return fail(Code::invalid_argument,
                "the frame to be updated holds %llu bytes of dtype %s, the values are %zu of %s",
                static_cast<unsigned long long>(info.value_bytes), dtype_name(info.dtype), value_bytes,
                dtype_name(request.dtype));
  origin.frame = frame.bytes;
  origin.values.reset(new (std::nothrow) std::uint8_t[value_bytes]);
  if (!origin.values) return fail(Code::no_memory, "no memory for the %zu bytes that a chunk had before", value_bytes);
  PYF_TRY(decode(frame.bytes, frame.size, origin.values.get(), value_bytes));
  origin.found = with_type(request.dtype, [&]<class T>() {
    return compare<T>(request, origin.values.get(), values, info.value_count, info.error_bound());
  });
  return kOk;
}

// Whether the values kept from `origin` are still within `bound` of their originals after decoding the new frame.
bool keeps(const Request& request, const Origin& origin, const void* values, const void* decoded, double bound) {
  if (origin.found.kept == 0) return true;
  const double may_move = std::max(0.0, (bound - origin.info.error_bound()) * (1 + 0x1p-40));
  return with_type(request.dtype, [&]<class T>() {
    return moved_within<T>(origin.values.get(), values, decoded, origin.info.value_count, may_move);
  });
}

// Encodes values of which some come from `origins`; origins[0] has the most kept values.
Status encode_beside(const Request& request, const void* values, std::size_t value_bytes,
                     const std::array<Origin, kMostOrigins>& origins, void* out, std::size_t capacity,
                     std::size_t* out_bytes) {
  const FrameInfo& old = origins[0].info;
  const Comparison& found = origins[0].found;
  if (std::memcmp(origins[0].values.get(), values, value_bytes) == 0 && old.frame_bytes <= capacity) {
    std::memcpy(out, origins[0].frame, static_cast<std::size_t>(old.frame_bytes));
    *out_bytes = static_cast<std::size_t>(old.frame_bytes);
    return kOk;
  }
  double error = 0;
  for (const Origin& origin : origins)
    if (origin.found.kept != 0) error = std::max(error, origin.info.error_bound());
  // values kept from the other frame are not exact either
  const int kept_ends = origins[1].found.kept != 0 ? 2 : found.kept_ends;
  const double bound =
      certain_bound(request, values, old.value_count, error, old.bound, found.keeps_extremes, kept_ends);
  Request choice = choose(request, old, bound, std::max(std::fabs(found.low), std::fabs(found.high)));
  choice.carried_bound = std::max(choice.carried_bound, error);
  if (choice.step > 0 && codec_of(old.codec)->closed_loop) {
    choice.origin = origins[0].frame;
    choice.origin_bytes = static_cast<std::size_t>(old.frame_bytes);
  }
  if (choice.bound > 0 && encode_on_cpu(choice, values, value_bytes, out, capacity, out_bytes).ok()) {
    const std::unique_ptr<std::uint8_t[]> after(new (std::nothrow) std::uint8_t[value_bytes]);
    if (!after) return fail(Code::no_memory, "no memory for the %zu bytes of a chunk that is checked", value_bytes);
    FrameInfo made;
    PYF_TRY(frame_info(out, *out_bytes, &made));
    PYF_TRY(decode(out, *out_bytes, after.get(), value_bytes));
    if (std::all_of(origins.begin(), origins.end(), [&](const Origin& origin) {
          return keeps(request, origin, values, after.get(), made.error_bound());
        }))
      return kOk;
  }
  return encode_on_cpu(exact_request(request, error), values, value_bytes, out, capacity, out_bytes);
}

// Values of a derived type: their base array beside the base arrays of the old frames.
Status encode_derived(const Request& request, const void* values, std::size_t value_bytes, const FrameBytes* frames,
                      std::size_t frame_count, void* out, std::size_t capacity, std::size_t* out_bytes, bool* kept) {
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  if (needs_exact(request, values, count)) {  // bit for bit: the frame carries the errors
    double error = 0;
    for (std::size_t i = 0; i < frame_count; ++i) {
      FrameInfo info;
      PYF_TRY(frame_info(frames[i].bytes, frames[i].size, &info));
      error = std::max(error, info.pointwise ? 0 : info.error_bound());
    }
    *kept = error > 0;
    return *kept ? encode_on_cpu(exact_request(request, error), values, value_bytes, out, capacity, out_bytes) : kOk;
  }
  std::array<std::unique_ptr<std::uint8_t[]>, kMostFrames> memory;
  std::array<FrameBytes, kMostFrames> of_base{};
  for (std::size_t i = 0; i < frame_count; ++i) {
    PYF_TRY(base_frame(request, frames[i].bytes, frames[i].size, &memory[i], &of_base[i].size));
    of_base[i].bytes = memory[i].get();
  }
  const auto base = base_memory(value_bytes);
  if (!base) return fail(Code::no_memory, "no memory for %zu bytes of values", value_bytes);
  to_base(request.dtype, values, count, base.get());
  PYF_TRY(encode_updated(base_request(request), base.get(), value_bytes, of_base.data(), frame_count, out, capacity,
                         out_bytes, kept));
  return *kept ? name_derived(request, out, out_bytes) : kOk;
}

}  // namespace

bool may_move_values(const Request& request) noexcept {
  const Codec* const codec = codec_of(request.codec);  // nullptr: the request is not checked yet
  return follows_range(request.bound_mode) ||
         (request.bound_mode == Bound::absolute && codec != nullptr && codec->closed_loop) || has_half_bound(request);
}

Status encode_updated(const Request& asked, const void* values, std::size_t value_bytes, const FrameBytes* frames,
                      std::size_t frame_count, void* out, std::size_t capacity, std::size_t* out_bytes,
                      bool* kept) noexcept {
  const FpEnvironment environment;
  *kept = false;
  PYF_TRY(check_request(asked));
  if (!may_move_values(asked)) return kOk;
  if (has_half_bound(asked))
    return encode_updated_halves(without_psnr(asked), values, value_bytes, frames, frame_count, out, capacity,
                                 out_bytes, kept);
  if (is_derived(asked.dtype))
    return encode_derived(asked, values, value_bytes, frames, frame_count, out, capacity, out_bytes, kept);
  const Request request = without_psnr(asked);
  std::array<Origin, kMostOrigins> origins;
  PYF_TRY(open_origins(frames, frame_count, origins, [&](const FrameBytes& frame, Origin& origin) {
    return open_origin(request, values, value_bytes, frame, origin);
  }));
  *kept = origins[0].found.kept != 0;
  if (*kept) return encode_beside(request, values, value_bytes, origins, out, capacity, out_bytes);
  double bound = 0;
  *kept = zeros_are_ends(request, values, value_bytes / dtype_bytes(request.dtype), origins, &bound);
  return *kept ? encode_on_cpu(with_bound(request, bound), values, value_bytes, out, capacity, out_bytes) : kOk;
}

Status encode_beside_old(const Request& request, const OldFrames& old, const void* values, std::size_t value_bytes,
                         void* out, std::size_t capacity, std::size_t* out_bytes) noexcept {
  std::array<FrameBytes, kMostFrames> frames{};
  auto* end = std::copy_n(old.cached.begin(), old.cached_count, frames.begin());
  if (old.similar.bytes != nullptr) *end++ = old.similar;
  const auto count = static_cast<std::size_t>(end - frames.begin());
  bool kept = false;
  if (count != 0)
    PYF_TRY(encode_updated(request, values, value_bytes, frames.data(), count, out, capacity, out_bytes, &kept));
  return kept ? kOk : encode(request, values, value_bytes, out, capacity, out_bytes);
}

}  // namespace pyfilter
