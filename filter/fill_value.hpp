// SPDX-License-Identifier: BSD-3-Clause
// Fill values that are brought from a dataset of one type to a dataset of another.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/types.hpp"
#include "core/with_type.hpp"

namespace pyfilter::filter {

// Bit pattern, zero-extended, of the value of type `to` that equals a value of type `from`; 0: none, so no sample can
// be this fill value. Integers beyond 2^53 are converted to no other type.
inline std::uint64_t convert_fill(std::uint64_t bits, Dtype from, Dtype to) {
  if (from == to) return bits;
  if (is_derived(from) || is_derived(to)) return 0;
  return with_type(from, [&]<class From>() {
    const auto number = static_cast<double>(std::bit_cast<From>(static_cast<BitsOf<From>>(bits)));
    return with_type(to, [&]<class To>() -> std::uint64_t {
      constexpr double kLimit = 0x1p53;
      constexpr bool kFloats = std::is_floating_point_v<From> && std::is_floating_point_v<To>;
      if (!kFloats && !(number > -kLimit && number < kLimit)) return 0;
      To there{};
      if constexpr (std::is_floating_point_v<To>)
        there = static_cast<To>(number);
      else
        there = static_cast<To>(static_cast<std::int64_t>(number));
      return static_cast<double>(there) == number ? std::bit_cast<BitsOf<To>>(there) : 0;
    });
  });
}

}  // namespace pyfilter::filter
