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

// The request for the base array. The sentinel of a complex fill value is its real part. It is the imaginary part if
// the real one is 0 or not finite, and the imaginary one is neither.
Request base_request(const Request& request) noexcept;
// What a header says, as the codec sees it: dtype, shape and number of values of the base array.
FrameInfo base_info(const FrameInfo& info) noexcept;

// Whether both parts of the fill value need a sentinel, and different ones: they are finite, different and not 0.
bool needs_two_sentinels(const Request& request) noexcept;
// Whether values must be encoded bit for bit because the base array's sentinel is not enough. It would change a fill
// value among them, or turn another value with the same sentinel into the fill value.
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

// Turns the frame of a base array, in memory of max_frame_bytes(request), into the frame of the request.
Status name_derived(const Request& request, void* frame, std::size_t* frame_bytes) noexcept;
// The reverse, to new memory of *base_bytes bytes. The frame must be of the request's dtype.
Status base_frame(const Request& request, const void* frame, std::size_t frame_bytes,
                  std::unique_ptr<std::uint8_t[]>* base, std::size_t* base_bytes) noexcept;

}  // namespace pyfilter
