// SPDX-License-Identifier: BSD-3-Clause
// Encodes a chunk of 16-bit floats that was written in parts (updated_halves.hpp; half_values.hpp has the bounds).
//
// A kept value z was decoded as the f32 y and rounded. y takes its place among the values to be encoded, with the old
// frame's step s. So it gets its old code.
//
//   the new bound needs a smaller step   s / 2^i: y is on this grid, too
//   it allows a larger one               m * s, m odd: an original is within m * s / 2 of the value decoded (see
//                                        updated_chunk.cpp). Not if the old frame has errors of a larger step.
//
// The new frame is decoded and every value is checked. If one fails, the chunk is encoded bit for bit.
#include "core/updated_halves.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/half_values.hpp"
#include "core/kept_values.hpp"
#include "core/request.hpp"

namespace pyfilter {
namespace {

constexpr double kBeyond = 0x1p-6;  // a step too wide by this: the few values beyond the bound are stored verbatim

// A frame whose error bound is larger, in steps, holds values from before its step was halved.
constexpr double kOneStep = 0.95;

using Wide = std::unique_ptr<float[]>;

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

// A frame from which values may have been decoded.
struct Origin {
  FrameInfo info;
  FrameBytes frame = {};
  std::unique_ptr<std::uint8_t[]> base;  // the frame of f32
  std::size_t base_bytes = 0;
  Wide exact, rounded;  // as decoded; the 16-bit values
  Comparison found;
  float step = 0;  // of a grid of multiples, else 0

  // Whether value i comes from this frame and is not its original: that was stored verbatim if it is not on the grid.
  bool is_kept(std::uint64_t i, float now) const {
    if (found.kept == 0 || !same_bits(rounded[i], now)) return false;
    if (step == 0) return true;
    const float code = std::nearbyint(exact[i] / step);
    return code * step == exact[i];
  }
};

Status open_origin(const Request& request, const Request& base, const float* now, std::uint64_t count,
                   const FrameBytes& frame, Origin& origin) {
  FrameInfo& info = origin.info;
  PYF_TRY(frame_info(frame.bytes, frame.size, &info));
  PYF_TRY(base_frame(request, frame.bytes, frame.size, &origin.base, &origin.base_bytes));
  if (info.value_count != count)
    return fail(Code::invalid_argument, "the frame to be updated holds %llu values, %llu are given",
                static_cast<unsigned long long>(info.value_count), static_cast<unsigned long long>(count));
  const bool pointwise = request.bound_mode == Bound::pointwise_relative;
  if (info.error_bound() == 0 || (has_half_bound(info) && info.pointwise != pointwise)) return kOk;
  origin.frame = frame;
  origin.exact = wide_memory(count);
  origin.rounded = wide_memory(count);
  const auto halves = base_memory(count * dtype_bytes(request.dtype));
  if (!origin.exact || !origin.rounded || !halves) return no_wide_memory(count);
  if (has_half_bound(info)) {
    PYF_TRY(decode(origin.base.get(), origin.base_bytes, origin.exact.get(), count * sizeof(float)));
    narrow(request.dtype, origin.exact.get(), count, halves.get());
    if (!pointwise && !codec_of(info.codec)->closed_loop) origin.step = static_cast<float>(info.step);
  } else {
    PYF_TRY(decode(frame.bytes, frame.size, halves.get(), count * dtype_bytes(request.dtype)));
    widen(request.dtype, halves.get(), count, origin.exact.get());
  }
  widen(request.dtype, halves.get(), count, origin.rounded.get());
  origin.found = compare<float>(base, origin.rounded.get(), now, count, info.error_bound());
  return kOk;
}

// The absolute error bound of the values kept from a frame.
double largest_error(const Origin& origin, const float* now, std::uint64_t count) {
  const double bound = origin.info.error_bound();
  if (!origin.info.pointwise) return bound;
  double largest = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    if (std::isfinite(now[i]) && origin.is_kept(i, now[i])) largest = std::max(largest, std::fabs(double{now[i]}));
  return largest * bound / (1 - bound);
}

using Origins = std::array<Origin, kMostOrigins>;

// The step for the new frame, and how far a kept value may move before it is rounded.
struct Grid {
  double step = 0, may_move = 0;
};
Grid choose_grid(const FrameInfo& old, double bound, double largest) {
  Grid grid{old.step, 0};
  while (grid.step > 2 * bound * (1 + kBeyond)) grid.step /= 2;
  if (grid.step < old.step || old.error_bound() > kOneStep * old.step || codec_of(old.codec)->closed_loop) return grid;
  const double roundings = largest * 0x1p-22;
  const double steps = std::floor((bound - roundings) * (1 - 0x1p-20) / old.step + 0.5) - 1;  // to each side
  if (!(steps >= 1) || steps > 511) return grid;
  grid.step = static_cast<float>((2 * steps + 1) * old.step);
  grid.may_move = steps * old.step * (1 + 0x1p-20) + roundings;
  return grid;
}

// Whether each value of `after` keeps its promise; `decoded` are the same values before they were rounded.
bool keeps(const Request& base, const Origins& origins, const float* now, const float* decoded, const float* after,
           std::uint64_t count, double bound, double may_move) {
  const auto fill = std::bit_cast<float>(static_cast<std::uint32_t>(base.fill));
  const bool pointwise = base.bound_mode == Bound::pointwise_relative;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (same_bits(now[i], after[i])) continue;
    if (base.has_fill && (same_bits(now[i], fill) || (fill != 0 && same_bits(after[i], fill)))) return false;
    const auto value = static_cast<double>(now[i]);
    bool kept = false;
    for (const Origin& origin : origins)
      if (origin.is_kept(i, now[i])) {
        kept = true;
        if (!(std::fabs(static_cast<double>(decoded[i]) - static_cast<double>(origin.exact[i])) <= may_move) ||
            may_move == 0)
          return false;
      }
    const double most = pointwise ? bound * std::fabs(value) : bound;
    if (!kept && !(std::fabs(static_cast<double>(after[i]) - value) <= most)) return false;
  }
  return true;
}

// Encodes with the bound and step of `choice`. Leaves *bytes 0 if a value does not keep its promise.
Status try_grid(const Request& request, const Request& choice, const Request& base, const Origins& origins,
                const float* now, std::uint64_t count, double bound, double may_move,
                std::unique_ptr<std::uint8_t[]>& frame, std::size_t* bytes) {
  const std::size_t room = max_frame_bytes(choice), wide_bytes = count * sizeof(float);
  frame = base_memory(room);
  const Wide mixed = wide_memory(count), after = wide_memory(count);
  const auto halves = base_memory(count * dtype_bytes(request.dtype));
  if (!frame || !mixed || !after || !halves) return no_wide_memory(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    mixed[i] = now[i];
    for (const Origin& origin : origins)
      if (origin.is_kept(i, now[i])) {
        mixed[i] = origin.exact[i];
        break;
      }
  }
  std::size_t made = 0;
  if (!encode_on_cpu(choice, mixed.get(), wide_bytes, frame.get(), room, &made).ok()) return kOk;
  PYF_TRY(decode(frame.get(), made, mixed.get(), wide_bytes));
  narrow(request.dtype, mixed.get(), count, halves.get());
  widen(request.dtype, halves.get(), count, after.get());
  FrameInfo info;
  PYF_TRY(name_half_frame(request, bound, frame.get(), &made, &info));
  if (has_half_bound(info) && keeps(base, origins, now, mixed.get(), after.get(), count, bound, may_move))
    *bytes = made;
  return kOk;
}

// Encodes with the old frame's grid. Leaves *bytes 0 if that is not possible.
Status encode_on_grid(const Request& request, const Request& base, const Origins& origins, const float* now,
                      std::uint64_t count, double bound, double error, std::unique_ptr<std::uint8_t[]>& frame,
                      std::size_t* bytes) {
  *bytes = 0;
  const FrameInfo& old = origins[0].info;
  const HalfExtremes extremes = find_half_extremes(base, now, count);
  double low = 0, high = 0;
  if (!has_half_bound(old) || !(bound > 0) || may_become_fill(base, extremes, bound) ||
      !find_value_range(base, now, count, &low, &high))
    return kOk;
  const double largest = std::max(std::fabs(low), std::fabs(high));
  Request choice = base;
  if (old.codec != request.codec) {
    choice.codec = old.codec;
    choice.parameters = {};
  }
  if (request.bound_mode != Bound::pointwise_relative && error > bound) choice.carried_bound = error;
  if (codec_of(old.codec)->closed_loop) {
    choice.origin = origins[0].base.get();
    choice.origin_bytes = origins[0].base_bytes;
  }
  if (request.bound_mode == Bound::pointwise_relative) {  // the old frame has one of two steps
    for (const double of_f32 : {closer_pointwise(request.dtype, bound), bound / 2}) {
      choice.bound = of_f32;
      if (*bytes == 0) PYF_TRY(try_grid(request, choice, base, origins, now, count, bound, 0, frame, bytes));
    }
    return kOk;
  }
  choice.bound_mode = Bound::absolute;
  choice.bound = half_bound_of(request.dtype, bound, largest).of_f32;
  const Grid grid = choose_grid(old, choice.bound, largest);
  choice.step = grid.step;
  // with the old step or a smaller one, values are nearer than the bound
  const double rounded = half_error_of(request.dtype, grid.step / 2 + largest * 0x1p-22, largest);
  const double kept = std::clamp(rounded, std::min(error, bound), bound);
  return try_grid(request, choice, base, origins, now, count, kept, grid.may_move, frame, bytes);
}

}  // namespace

Status encode_updated_halves(const Request& request, const void* values, std::size_t value_bytes,
                             const FrameBytes* frames, std::size_t frame_count, void* out, std::size_t capacity,
                             std::size_t* out_bytes, bool* kept) noexcept {
  const std::uint64_t count = value_bytes / dtype_bytes(request.dtype);
  const Request base = base_request(request);
  const Wide now = wide_memory(count);
  if (!now) return no_wide_memory(count);
  widen(request.dtype, values, count, now.get());
  Origins origins;
  PYF_TRY(open_origins(frames, frame_count, origins, [&](const FrameBytes& frame, Origin& origin) {
    return open_origin(request, base, now.get(), count, frame, origin);
  }));
  const Origin& most = origins[0];
  *kept = most.found.kept != 0;
  if (!*kept) {
    double bound = 0;
    *kept = zeros_are_ends(base, now.get(), count, origins, &bound);
    return *kept ? encode_on_cpu(with_bound(request, bound), values, value_bytes, out, capacity, out_bytes) : kOk;
  }
  if (most.frame.size <= capacity && std::memcmp(most.rounded.get(), now.get(), count * sizeof(float)) == 0) {
    std::memcpy(out, most.frame.bytes, most.frame.size);
    *out_bytes = most.frame.size;
    return kOk;
  }
  double error = 0;
  for (const Origin& origin : origins)
    if (origin.found.kept != 0) error = std::max(error, largest_error(origin, now.get(), count));
  const int kept_ends = origins[1].found.kept != 0 ? 2 : most.found.kept_ends;
  const double bound =
      certain_bound(base, now.get(), count, error, most.info.bound, most.found.keeps_extremes, kept_ends);
  std::unique_ptr<std::uint8_t[]> lossy;
  std::size_t lossy_bytes = 0;
  PYF_TRY(encode_on_grid(request, base, origins, now.get(), count, bound, error, lossy, &lossy_bytes));
  Request exact = exact_request(request);
  exact.carried_bound = error;
  return write_shorter(exact, values, count, lossy.get(), lossy_bytes, out, capacity, out_bytes);
}

}  // namespace pyfilter
