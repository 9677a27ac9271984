// SPDX-License-Identifier: BSD-3-Clause
// Values as integers ("numbers"), whose differences the form `ratio` stores (docs/format.md, section 15.2). A number is
// an ordered bit pattern, a multiple, or an index into a list of values. A multiple is one of an integer, or of a
// fraction, counted from a base. The remainder is the part of a value that its number does not determine. One source
// for CPU and GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/bits.hpp"
#include "core/target.hpp"

namespace pyfilter {

enum class NumberKind : std::uint8_t { pattern = 0, multiple = 1, grid = 2, dictionary = 3 };

inline constexpr std::uint32_t kMostEntries = 4096;  // in a list of values

struct NumberMap {
  NumberKind kind = NumberKind::pattern;
  bool remainders = false;  // remainders form a second stream
  bool product = false;     // grid: value = base + number * unit; otherwise value = base + number / unit
  bool changes = false;     // grid: the second stream has the changes from one remainder to the next
  bool is_float = false, is_unsigned = false;
  std::uint32_t width = 32;                   // bits of a value
  std::uint32_t shift = 0;                    // multiple, floats: low bits of the pattern that are the remainder
  std::uint64_t multiple = 1, origin = 0;     // multiple, integers: value = origin + multiple * number + remainder
  double unit = 1, base = 0;                  // grid
  std::uint32_t entries = 0;                  // dictionary
  const std::uint64_t* dictionary = nullptr;  // ordered patterns, as above_lowest() gives them, ascending
};

// The number type for values of up to 32 and of 64 bits.
template <class T>
using NumberOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// Converts a bit pattern of `map.width` bits to a signed integer in the order of values, and back.
template <class U>
KFN U ordered(const NumberMap& map, U bits) {
  using S = std::make_signed_t<U>;
  if (map.is_float) return bits ^ (static_cast<U>(static_cast<S>(bits) >> (8 * sizeof(U) - 1)) >> 1);
  const std::uint32_t unused = static_cast<std::uint32_t>(8 * sizeof(U)) - map.width;
  if (map.is_unsigned) bits ^= U{1} << (map.width - 1);
  return static_cast<U>(static_cast<S>(static_cast<U>(bits << unused)) >> unused);
}
template <class U>
KFN U pattern_of(const NumberMap& map, U number) {
  using S = std::make_signed_t<U>;
  if (map.is_float) return number ^ (static_cast<U>(static_cast<S>(number) >> (8 * sizeof(U) - 1)) >> 1);
  return map.is_unsigned ? number ^ U { 1 } << (map.width - 1) : number;
}

// Converts a signed number of `width` bits to an unsigned one, counted from the lowest, and back.
template <class U>
KFN U above_lowest(std::uint32_t width, U number) {
  return (number ^ U{1} << (width - 1)) & static_cast<U>(~U{0} >> (static_cast<std::uint32_t>(8 * sizeof(U)) - width));
}
template <class U>
KFN U from_lowest(std::uint32_t width, U above) {
  const std::uint32_t unused = static_cast<std::uint32_t>(8 * sizeof(U)) - width;
  const U number = static_cast<U>((above ^ U{1} << (width - 1)) << unused);
  return static_cast<U>(static_cast<std::make_signed_t<U>>(number) >> unused);
}

// Differences as unsigned numbers (zigzag, or counted from the lowest signed number), and back.
template <class U>
KFN U to_bin_order(bool zigzags, std::uint32_t width, U difference) {
  return zigzags ? zigzag(difference) : above_lowest(width, difference);
}
template <class U>
KFN U from_bin_order(bool zigzags, std::uint32_t width, U number) {
  return zigzags ? unzigzag(number) : from_lowest(width, number);
}

// Returns the ordered pattern of a grid point.
template <class U>
KFN U grid_point(const NumberMap& map, U number) {
  const auto k = static_cast<double>(static_cast<std::make_signed_t<U>>(number));
  const double x = (map.product ? k * map.unit : k / map.unit) + map.base;
  if constexpr (sizeof(U) == 8)
    return ordered(map, std::bit_cast<U>(x));
  else
    return ordered(map, std::bit_cast<U>(static_cast<float>(x)));
}

// Calls work.operator()<kind>(), and returns what it returns.
template <class Work>
KFN auto with_number_kind(NumberKind kind, const Work& work) {
  switch (kind) {
    case NumberKind::multiple:
      return work.template operator()<NumberKind::multiple>();
    case NumberKind::grid:
      return work.template operator()<NumberKind::grid>();
    case NumberKind::dictionary:
      return work.template operator()<NumberKind::dictionary>();
    case NumberKind::pattern:
      break;
  }
  return work.template operator()<NumberKind::pattern>();
}

// Returns the bit pattern of a value. Indices into a dictionary must have been checked.
template <NumberKind kKind, class U>
KFN U value_of_kind(const NumberMap& map, U number, U remainder) {
  if constexpr (kKind == NumberKind::multiple) {
    if (!map.is_float)
      return pattern_of(map,
                        static_cast<U>(number * static_cast<U>(map.multiple) + static_cast<U>(map.origin) + remainder));
    const bool negative = static_cast<std::make_signed_t<U>>(number) < 0;
    const U magnitude = negative ? ~number : number, sign = U{negative ? 1u : 0u} << (8 * sizeof(U) - 1);
    return static_cast<U>(magnitude << map.shift) | sign | remainder;
  } else if constexpr (kKind == NumberKind::grid) {
    return pattern_of(map, static_cast<U>(grid_point(map, number) + remainder));
  } else if constexpr (kKind == NumberKind::dictionary) {
    return pattern_of(map, from_lowest(map.width, static_cast<U>(map.dictionary[number])));
  } else {
    return pattern_of(map, number);
  }
}
template <class U>
KFN U value_of_number(const NumberMap& map, U number, U remainder) {
  return with_number_kind(map.kind, [&]<NumberKind kKind>() { return value_of_kind<kKind>(map, number, remainder); });
}

}  // namespace pyfilter
