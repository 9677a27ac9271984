// SPDX-License-Identifier: BSD-3-Clause
// The bit-exact map: codes are the values' bit patterns. Patterns of floats are rearranged so that codes order as
// values do.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

// Value: the unsigned integer of the value's width. A float's bits become an integer that orders as the float does.
template <class U, bool kFloat>
struct BitMap {
  using Value = U;
  using Code = std::conditional_t<sizeof(U) == 8, std::uint64_t, std::uint32_t>;
  static constexpr bool kHasSpecial = false;
  static constexpr unsigned kMasks = 0;
  static constexpr Code kBias = 0;

  BitMap() = default;
  explicit BitMap(const Plan&) {}

  // Differences of 8- and 16-bit integers are taken modulo their width, so they never need more bit planes than the
  // width.
  static KFN Code wrap(Code difference) {
    return static_cast<Code>(
        static_cast<std::make_signed_t<Code>>(static_cast<std::make_signed_t<U>>(static_cast<U>(difference))));
  }

  // `floats`: all ones for floats; 0 for integers, whose bits are their codes.
  static KFN Code fold(Code bits, Code floats = static_cast<Code>(~Code{0})) {
    using S = std::make_signed_t<Code>;
    return bits ^ (static_cast<Code>(static_cast<S>(bits) >> (8 * sizeof(Code) - 1)) >> 1 & floats);
  }

  static KFN Code encode_biased(Value value) {
    return kFloat ? fold(static_cast<Code>(value)) : wrap(static_cast<Code>(value));
  }
  static KFN Value decode_biased(Code code) { return static_cast<Value>(kFloat ? fold(code) : code); }

  template <std::size_t N, class Values, class Note>
  KFN void encode(const Values* x, Code* q, Note&& /*note*/) const {
    for (std::size_t i = 0; i < N; ++i) q[i] = encode_biased(x[i]);
  }

  template <std::size_t N, class Values>
  KFN void decode(const Code (&q)[N], Code offset, Values* x) const {
    for (std::size_t i = 0; i < N; ++i) x[i] = decode_biased(static_cast<Code>(q[i] + offset));
  }
};

// The bit-exact map of floats.
template <class T>
using ExactMap = BitMap<typename FloatTraits<T>::Code, true>;

PYF_END_TARGET
