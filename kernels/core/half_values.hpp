// SPDX-License-Identifier: BSD-3-Clause
// Floats of 16 bits (f16, bf16) with a bound: a chunk is encoded as f32, decoded, and rounded to 16 bits
// (docs/format.md, section 16). Without a bound they are integers (base_values.hpp).
//
// Let x be a value, y the f32 that is decoded, z the 16-bit float nearest to y. x is a 16-bit float, too, so z is not
// farther from y than x is. Hence |z - x| <= 2 |y - x|. Rounding moves y by at most half a unit in the last place, h.
// Hence |z - x| <= |y - x| + h. So the f32 are encoded with the larger of bound / 2 and bound - h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// A 16-bit float as f32: exact, NaNs with their payload.
constexpr float widened(Dtype dtype, std::uint16_t half) {
  if (dtype == Dtype::bf16) return std::bit_cast<float>(std::uint32_t{half} << 16);
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16, rest = half & 0x7FFFu;
  if (rest >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
  // as f32, these bits are the value times 2^-112, subnormal ones too
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f));
}

// The nearest 16-bit float, ties to even. Finite values do not become infinite: the largest one is nearer.
constexpr std::uint16_t narrowed(Dtype dtype, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
  const bool brain = dtype == Dtype::bf16;
  const unsigned shift = brain ? 16 : 13;
  const std::uint32_t infinite = brain ? 0x7F80u : 0x7C00u;
  std::uint32_t half = 0;
  if (rest >= 0x7F800000u) {
    const std::uint32_t payload = rest >> shift & (infinite ^ 0x7FFFu);
    half = infinite | payload;
    if (rest > 0x7F800000u && payload == 0) half |= 1;  // stays a NaN
  } else if (!brain && rest < 0x38800000u) {            // subnormal: the sum with 0.5 rounds to multiples of 2^-24
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3F000000u;
  } else {
    const std::uint32_t biased = brain ? rest : rest - 0x38000000u;
    half = (biased + (1u << (shift - 1)) - 1 + (biased >> shift & 1)) >> shift;
    if (half >= infinite) half = infinite - 1;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Whether values are 16-bit floats with a bound: they are encoded as f32.
inline bool has_half_bound(const Request& request) noexcept {
  return is_half(request.dtype) && request.bound_mode != Bound::none;
}
// The same for a frame.
inline bool has_half_bound(const FrameInfo& info) noexcept {
  return is_half(info.dtype) && !info.stored_raw && info.step != 0;
}

// Memory for the f32 of `count` values, or nullptr; the error for nullptr.
std::unique_ptr<float[]> wide_memory(std::uint64_t count) noexcept;
Status no_wide_memory(std::uint64_t count) noexcept;

void widen(Dtype dtype, const void* halves, std::uint64_t count, float* values) noexcept;
void narrow(Dtype dtype, const float* values, std::uint64_t count, void* halves) noexcept;

// The bound of the 16-bit values, and the one that their f32 are encoded with; 0 if there is none.
struct HalfBound {
  double of_halves = 0, of_f32 = 0;
};
// Of a bound for values up to the magnitude `largest`.
HalfBound half_bound_of(Dtype dtype, double bound, double largest) noexcept;
// The other way round: what 16-bit values keep if their f32 keep `bound`.
double half_error_of(Dtype dtype, double bound, double largest) noexcept;
// The pointwise bound of the f32 if none is rounded to a subnormal number: rounding moves it by a small fraction.
double closer_pointwise(Dtype dtype, double bound) noexcept;
// What the bound depends on. An encoder need not compute what its request does not use.
struct HalfExtremes {
  bool found = false;                                          // a finite value that is not the fill value
  double low = 0, high = 0;                                    // the smallest and the largest of these
  double least = std::numeric_limits<double>::infinity();      // smallest magnitude above 0
  double from_fill = std::numeric_limits<double>::infinity();  // from the fill value to the nearest other one
};
HalfExtremes find_half_extremes(const Request& base, const float* values, std::uint64_t count) noexcept;
// Of a request for f32 (base_request) and values with these extremes.
HalfBound half_bound(const Request& base, Dtype dtype, const HalfExtremes& extremes) noexcept;
// Whether a value that is not the fill value is so near to it that it may become it.
bool may_become_fill(const Request& base, const HalfExtremes& extremes, double bound) noexcept;
// Whether `bound` pays: frames of more bytes than this may be longer than bit-exact ones.
constexpr std::size_t surely_shorter(std::size_t value_bytes) { return value_bytes / 2; }
// Turns the header of an f32 frame into that of a frame of 16-bit floats with `bound`; nothing behind it is read. If
// the frame is bit-exact, it stays as it is.
Status name_half_frame(const Request& request, double bound, void* frame, std::size_t* frame_bytes,
                       FrameInfo* info) noexcept;

// Writes the shorter one of a frame with a bound and of the frame of `exact`, the bit-exact request. The second one is
// not made if the first has less than a byte a value. `lossy_bytes` 0: there is no frame with a bound.
Status write_shorter(const Request& exact, const void* values, std::uint64_t count, const std::uint8_t* lossy,
                     std::size_t lossy_bytes, void* frame, std::size_t frame_capacity,
                     std::size_t* frame_bytes) noexcept;

// Encodes values of a request with has_half_bound(): bit for bit if that is shorter, or if another value could become
// the fill value. The frame's bound is that of the 16-bit values.
Status encode_halves(const Request& request, const void* values, std::uint64_t count, void* frame,
                     std::size_t frame_capacity, std::size_t* frame_bytes) noexcept;

}  // namespace pyfilter
