// SPDX-License-Identifier: BSD-3-Clause
// Fill values that are brought from a dataset of one type to a dataset of another.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/types.hpp"

namespace pyfilter::filter {

template <class Visit>
void with_value(std::uint64_t bits, Dtype dtype, Visit&& visit) {
  switch (dtype) {
    case Dtype::f32:
      return visit(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Dtype::f64:
      return visit(std::bit_cast<double>(bits));
    case Dtype::i8:
      return visit(static_cast<std::int8_t>(bits));
    case Dtype::i16:
      return visit(static_cast<std::int16_t>(bits));
    case Dtype::i32:
      return visit(static_cast<std::int32_t>(bits));
    case Dtype::i64:
      return visit(static_cast<std::int64_t>(bits));
    case Dtype::u8:
    case Dtype::u16:
    case Dtype::u32:
    case Dtype::u64:
      return visit(bits);
    case Dtype::none:
      return;
  }
}

// Bit pattern, zero-extended, of the value of type `to` that equals a value of type `from`; 0 if there is none (no
// sample can then be that fill value). Integers beyond 2^53 become no floats.
inline std::uint64_t convert_fill(std::uint64_t bits, Dtype from, Dtype to) {
  if (from == to) return bits;
  std::uint64_t converted = 0;
  with_value(bits, from, [&](auto value) {
    with_value(0, to, [&](auto target) {
      using From = decltype(value);
      using To = decltype(target);
      constexpr double kLimit = 0x1p53;
      const auto number = static_cast<double>(value);
      if constexpr (std::is_floating_point_v<To>) {
        if (!std::is_floating_point_v<From> && !(number > -kLimit && number < kLimit)) return;
        const auto there = static_cast<To>(number);
        if (static_cast<double>(there) != number) return;
        if constexpr (sizeof(To) == 4)
          converted = std::bit_cast<std::uint32_t>(there);
        else
          converted = std::bit_cast<std::uint64_t>(there);
      } else {
        if (!(number > -kLimit && number < kLimit)) return;
        const auto whole = static_cast<std::int64_t>(number);
        const std::uint64_t kept = static_cast<std::uint64_t>(whole) & ~std::uint64_t{0} >> (64 - 8 * dtype_bytes(to));
        double there = 0;
        with_value(kept, to, [&](auto back) { there = static_cast<double>(back); });
        if (there == number) converted = kept;
      }
    });
  });
  return converted;
}

}  // namespace pyfilter::filter
