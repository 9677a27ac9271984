// SPDX-License-Identifier: BSD-3-Clause
// Types that the whole library shares: element types, requests, and the fields of a frame's header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pyfilter {

inline constexpr int kMaxRank = 32;  // HDF5's own limit (H5S_MAX_RANK)
inline constexpr int kParameterBytes = 8;
// Offsets in a frame's directory have 31 bits and count words (docs/format.md, section 4.2).
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{7} << 30;

// Codes as in registry.json; they are part of the frame format.
enum class Dtype : std::uint8_t {
  none = 0,
  f32 = 1,
  f64 = 2,
  i8 = 3,
  u8 = 4,
  i16 = 5,
  u16 = 6,
  i32 = 7,
  u32 = 8,
  i64 = 9,
  u64 = 10,
  c64 = 11,
  c128 = 12,
  b8 = 13,
  f16 = 14,
  bf16 = 15
};

enum class Bound : std::uint8_t { none = 0, absolute = 1, relative = 2, pointwise_relative = 3, psnr = 4 };

// Bytes of one value, 0 for an unknown code.
constexpr std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::b8:
      return 1;
    case Dtype::i16:
    case Dtype::u16:
    case Dtype::f16:
    case Dtype::bf16:
      return 2;
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::u32:
      return 4;
    case Dtype::f64:
    case Dtype::i64:
    case Dtype::u64:
    case Dtype::c64:
      return 8;
    case Dtype::c128:
      return 16;
    case Dtype::none:
      break;
  }
  return 0;
}

// The type that codecs see: they encode values of a derived type as values of its base type (core/base_values.hpp).
constexpr Dtype base_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::c64:
      return Dtype::f32;
    case Dtype::c128:
      return Dtype::f64;
    case Dtype::b8:
      return Dtype::u8;
    case Dtype::f16:
    case Dtype::bf16:
      return Dtype::i16;
    default:
      return dtype;
  }
}
constexpr bool is_derived(Dtype dtype) { return base_dtype(dtype) != dtype; }
constexpr bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }
constexpr bool is_complex(Dtype dtype) { return dtype == Dtype::c64 || dtype == Dtype::c128; }

constexpr bool is_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f64; }
constexpr bool is_signed_integer(Dtype dtype) {
  return dtype == Dtype::i8 || dtype == Dtype::i16 || dtype == Dtype::i32 || dtype == Dtype::i64;
}

struct Shape {
  int rank = 0;  // 0 is a scalar: one value
  std::array<std::uint64_t, kMaxRank> dims{};
};

// What to encode and how: the input of encode().
struct Request {
  std::uint8_t codec = 0;  // registry.json id
  Dtype dtype = Dtype::none;
  Bound bound_mode = Bound::none;
  double bound = 0.0;  // absolute: in the unit of the data; relative: fraction of the value range;
  // pointwise_relative: fraction of each value; psnr: in dB
  std::array<std::uint8_t, kParameterBytes> parameters{};  // zero means the default (registry.json)
  bool has_fill = false;
  std::uint64_t fill = 0;            // bit pattern of the fill value, of a complex one its real part, zero-extended
  std::uint64_t fill_imaginary = 0;  // of a complex fill value its imaginary part
  bool without_zeros = false;        // zeros do not count for the range: HDF5 pads edge chunks with them beside `fill`
  bool source_big_endian = false;    // recorded in the frame; values given here are always in host order
  Shape shape;
  // The fields below are set by updated_chunk.hpp only, never by a caller; such requests are encoded on the CPU.
  // The step for floating-point values, at most the step that follows from the absolute bound; 0: that step.
  double step = 0.0;
  double carried_bound = 0.0;  // largest error that the values have before this encoding
  // The frame of the same codec that some of the values were decoded from: these keep their bits (Codec::closed_loop).
  const void* origin = nullptr;
  std::size_t origin_bytes = 0;
};

// Fields of a frame's header (docs/format.md, section 3).
struct FrameInfo {
  std::uint8_t format_version = 0;
  std::uint8_t codec = 0;
  Dtype dtype = Dtype::none;
  bool stored_raw = false;
  bool source_big_endian = false;
  bool pointwise = false;  // the bound is relative to each value, the step is of log2 |x|
  bool has_sentinel = false;
  std::uint64_t sentinel = 0;  // of the base type
  double bound = 0.0;          // resolved absolute bound; 0 means bit-exact
  double step = 0.0;           // distance of the decoded values of neighbouring codes
  double carried_bound = 0.0;  // if above `bound`: the error bound of values that were decoded and encoded again
  std::array<std::uint8_t, kParameterBytes> parameters{};
  Shape shape;
  std::uint64_t header_bytes = 0;
  std::uint64_t frame_bytes = 0;
  std::uint64_t value_count = 0;
  std::uint64_t value_bytes = 0;  // value_count * dtype_bytes

  // Largest distance of a decoded value from the value that was written first.
  double error_bound() const { return carried_bound > bound ? carried_bound : bound; }
};

}  // namespace pyfilter
