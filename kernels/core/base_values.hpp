// SPDX-License-Identifier: BSD-3-Clause
// Derived types (docs/format.md, section 16): no codec knows them. Values of a derived type are encoded as an array of
// a base type. The frame's header names the derived type and the array's own shape.
//
//   type        base type   array of the base type
//   c64, c128   f32, f64    the first dimension doubled: all real parts, then all imaginary parts
//   b8          u8          the same bytes
//   f16, bf16   i16         bit for bit: the same bits, of negative numbers all but the sign flipped: integers in the
//                           order of the values, so that neighbours have small differences
//               f32         with a bound: the same values (half_values.hpp)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The bit pattern of a 16-bit float as an integer in the order of the values, and back.
constexpr std::uint16_t ordered_half(std::uint16_t bits) {
  return (bits & 0x8000u) != 0 ? static_cast<std::uint16_t>(bits ^ 0x7FFFu) : bits;
}

// Which complex values the sentinel of the base array is not enough for: it would change a fill value, or turn another
// value with the same sentinel into the fill value.
struct SentinelTest {
  bool never = true;                          // no value
  bool two = false;                           // fill values: both of their parts need a sentinel
  std::uint32_t at = 0;                       // the part that is the sentinel: 0 real, 1 imaginary
  std::uint64_t fill[2] = {};                 // bit patterns of both parts
  std::uint64_t magnitude = 0, infinity = 0;  // bit patterns: all but the sign; infinity

  // `parts`: bit patterns of a value.
  constexpr bool fails(std::uint64_t real, std::uint64_t imaginary) const {
    const std::uint64_t sentinel = at == 0 ? real : imaginary, other = at == 0 ? imaginary : real;
    if (sentinel != fill[at]) return false;
    if (other == fill[1 - at]) return two;
    return (other & magnitude) < infinity;  // finite
  }
};
SentinelTest sentinel_test(const Request& request) noexcept;

// The request for the base array. The sentinel of a complex fill value is its real part. It is the imaginary part if
// the real one is 0 or not finite, and the imaginary one is neither.
Request base_request(const Request& request) noexcept;
// What a header says, as the codec sees it: dtype, shape and number of values of the base array.
FrameInfo base_info(const FrameInfo& info) noexcept;

// Whether both parts of the fill value need a sentinel, and different ones: they are finite, different and not 0.
bool needs_two_sentinels(const Request& request) noexcept;
// Whether values must be encoded bit for bit: one of them fails sentinel_test().
bool needs_exact(const Request& request, const void* values, std::uint64_t count) noexcept;
// Copies the values that are not the fill value, and returns their number.
std::uint64_t without_fill(const Request& request, const void* values, std::uint64_t count, void* out) noexcept;
// The same request, bit for bit.
Request exact_request(const Request& request) noexcept;

// Memory for the base array of `bytes` bytes, or nullptr.
std::unique_ptr<std::uint8_t[]> base_memory(std::size_t bytes) noexcept;
// Converts `count` values of a derived type to the base array, and back: unless they are complex, also in place.
void to_base(Dtype dtype, const void* values, std::uint64_t count, void* base) noexcept;
void from_base(Dtype dtype, const void* base, std::uint64_t count, void* values) noexcept;

// The header of the request's frame for the frame of a base array, of which the header is read. Writes at most
// header_bytes(kMaxRank) bytes. *derived_bytes: size of the request's frame.
Status derived_header(const Request& request, const void* frame, std::size_t frame_bytes, void* header,
                      std::size_t* derived_bytes) noexcept;
// Turns the frame of a base array, in memory of max_frame_bytes(request), into the frame of the request.
Status name_derived(const Request& request, void* frame, std::size_t* frame_bytes) noexcept;
// The reverse, to new memory of *base_bytes bytes. The frame must be of the request's dtype.
Status base_frame(const Request& request, const void* frame, std::size_t frame_bytes,
                  std::unique_ptr<std::uint8_t[]>* base, std::size_t* base_bytes) noexcept;

}  // namespace pyfilter
