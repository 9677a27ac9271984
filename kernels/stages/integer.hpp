// SPDX-License-Identifier: BSD-3-Clause
// Quantisation of integers (docs/format.md, section 6). Signed and unsigned types of a width share the code; only the
// quantiser's parameters differ. With step 1 it is the map of bit-exact frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/quantize.hpp"

namespace pyfilter {

template <class U>
using IntegerCode = std::conditional_t<sizeof(U) == 8, std::uint64_t, std::uint32_t>;

// The integer quantiser of a chunk, for encoder and decoder. U: the unsigned type of the values' width.
template <class U>
struct IntegerQuantizer {
  using Code = IntegerCode<U>;
  Code step, reciprocal;           // floor((2^W - 1) / step)
  Code half;                       // step / 2: the largest remainder that is rounded down
  Code top;                        // the sign bit of a signed type narrower than a code, else 0
  Code is_signed;                  // all ones or 0
  Code lowest, highest;            // of the type
  Code lowest_code, highest_code;  // as signed integers: products of codes outside this range overflow the type
  int wrap_shift;                  // unused bits of differences taken modulo 2^(8 w)
  U sentinel_bits;
  bool has_sentinel;
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

template <class U>
KFN IntegerQuantizer<U> make_integer_quantizer(Dtype dtype, double step, bool has_sentinel, std::uint64_t sentinel) {
  using Code = IntegerCode<U>;
  using Signed = std::make_signed_t<Code>;
  constexpr int kCodeBits = 8 * sizeof(Code), kBits = 8 * sizeof(U);
  const bool is_signed = is_signed_integer(dtype), exact = step == 0;
  IntegerQuantizer<U> p;
  p.step = exact ? Code{1} : static_cast<Code>(static_cast<std::uint64_t>(step));
  p.reciprocal = static_cast<Code>(~Code{0} / p.step);
  p.half = p.step / 2;
  p.top = is_signed && kBits < kCodeBits ? Code{1} << (kBits - 1) : Code{0};
  p.is_signed = is_signed ? static_cast<Code>(~Code{0}) : Code{0};
  const Code values = static_cast<Code>(static_cast<U>(~U{0}));  // all ones
  p.highest = is_signed ? values >> 1 : values;
  p.lowest = is_signed ? static_cast<Code>(~p.highest) : Code{0};
  p.highest_code = p.highest / p.step;
  p.lowest_code = is_signed ? static_cast<Code>(0 - (p.highest + Code{1}) / p.step) : Code{0};
  if (exact) {  // no limit applies: the value is the code's low bits
    p.highest_code = static_cast<Code>(~Code{0}) >> 1;
    p.lowest_code = static_cast<Code>(~p.highest_code);
  }
  p.wrap_shift = exact ? kCodeBits - kBits : 0;
  p.has_sentinel = has_sentinel;
  p.sentinel_bits = static_cast<U>(has_sentinel ? sentinel : 0);
  static_assert(sizeof(Signed) == sizeof(Code));
  return p;
}

KFN std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
KFN std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

// The multiple of the step nearest to a value, in steps. high_product() is the quotient or one less, so the remainder
// is below twice the step.
template <class U>
KFN IntegerCode<U> integer_code(const IntegerQuantizer<U>& p, U value) {
  using Code = IntegerCode<U>;
  using Signed = std::make_signed_t<Code>;
  const Code x = static_cast<Code>((static_cast<Code>(value) ^ p.top) - p.top);
  const Code sign = static_cast<Code>(static_cast<Signed>(x) >> (8 * sizeof(Code) - 1)) & p.is_signed;
  const Code magnitude = static_cast<Code>((x ^ sign) - sign);
  const Code quotient = high_product(magnitude, p.reciprocal), rest = magnitude - quotient * p.step;
  const Code code = quotient + static_cast<Code>(rest > p.half) + static_cast<Code>(rest > p.half + p.step);
  return static_cast<Code>((code ^ sign) - sign);
}

// The decoder's value of a code: its multiple of the step, limited to the type's range.
template <class U>
KFN U integer_value(const IntegerQuantizer<U>& p, IntegerCode<U> code) {
  using Signed = std::make_signed_t<IntegerCode<U>>;
  const bool below = static_cast<Signed>(code) < static_cast<Signed>(p.lowest_code);
  const bool above = static_cast<Signed>(code) > static_cast<Signed>(p.highest_code);
  const IntegerCode<U> product = code * p.step;
  return static_cast<U>(below ? p.lowest : above ? p.highest : product);
}

template <class U>
struct IntegerMap {
  using Value = U;
  using Code = IntegerCode<U>;
  static constexpr bool kHasSpecial = true;
  static constexpr unsigned kMasks = 5;  // sentinel, verbatim; integers have no NaN
  static constexpr Code kBias = 0;
  IntegerQuantizer<U> quantizer;

  explicit IntegerMap(const Plan& plan)
      : quantizer(make_integer_quantizer<U>(plan.dtype, plan.step, plan.has_sentinel, plan.sentinel)) {}

  KFN Code wrap(Code difference) const {
    if constexpr (sizeof(U) == sizeof(Code)) return difference;
    using Signed = std::make_signed_t<Code>;
    const Code up = static_cast<Code>(difference << quantizer.wrap_shift);
    return static_cast<Code>(static_cast<Signed>(up) >> quantizer.wrap_shift);
  }
  KFN Value decode_biased(Code code) const { return integer_value(quantizer, code); }

  // Like quantize(): flags are all ones where a value is the sentinel or would decode to it.
  template <std::size_t N, class Values, class Note>
  KFN void encode(const Values* x, Code* q, Note&& note) const {
    const IntegerQuantizer<U> p = quantizer;  // a copy: stores to q cannot change it
    for (std::size_t i = 0; i < N; ++i) q[i] = integer_code(p, static_cast<U>(x[i]));
    if (!p.has_sentinel) return;
    for (std::size_t from = 0; from < N; from += kLanes<Code>) {
      alignas(64) Code flags[kLanes<Code>];
      for (std::size_t lane = 0; lane < kLanes<Code>; ++lane) {
        const U value = x[from + lane];
        const bool misfit = (value == p.sentinel_bits) | (integer_value(p, q[from + lane]) == p.sentinel_bits);
        flags[lane] = static_cast<Code>(0 - static_cast<Code>(misfit));
      }
      note(flags, from);
    }
  }

  template <std::size_t N, class Values>
  KFN void decode(const Code (&q)[N], Code offset, Values* x) const {
    const IntegerQuantizer<U> p = quantizer;
    for (std::size_t i = 0; i < N; ++i) x[i] = integer_value(p, static_cast<Code>(q[i] + offset));
  }
};

// Lowest and highest value other than the fill value; false if there are none. Signed values are shifted so that the
// lowest of the type is 0: callers need only the difference.
template <class U>
inline bool integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                          std::uint64_t* high) {
  constexpr std::size_t kBatch = 64;
  const U top = is_signed_integer(request.dtype) ? static_cast<U>(U{1} << (8 * sizeof(U) - 1)) : U{0};
  const U fill = static_cast<U>(static_cast<U>(request.fill) ^ top);
  const bool has_fill = request.has_fill, without_zeros = request.without_zeros;
  const auto* from = static_cast<const std::uint8_t*>(values);
  alignas(64) U lows[kBatch], highs[kBatch];
  for (std::size_t i = 0; i < kBatch; ++i) {
    lows[i] = static_cast<U>(~U{0});
    highs[i] = 0;
  }
  for (std::uint64_t first = 0; first < count; first += kBatch) {
    alignas(64) U x[kBatch];
    const auto here = static_cast<std::size_t>(count - first < kBatch ? count - first : kBatch);
    std::memcpy(x, from + first * sizeof(U), here * sizeof(U));
    for (std::size_t i = here; i < kBatch; ++i) x[i] = x[0];
    for (std::size_t i = 0; i < kBatch; ++i) {
      const U value = static_cast<U>(x[i] ^ top);
      const bool counts = !((has_fill & (value == fill)) | (without_zeros & (value == top)));
      const U at_low = counts ? value : static_cast<U>(~U{0}), at_high = counts ? value : U{0};
      lows[i] = at_low < lows[i] ? at_low : lows[i];
      highs[i] = at_high > highs[i] ? at_high : highs[i];
    }
  }
  U lowest = lows[0], highest = highs[0];
  for (std::size_t i = 1; i < kBatch; ++i) {
    lowest = lows[i] < lowest ? lows[i] : lowest;
    highest = highs[i] > highest ? highs[i] : highest;
  }
  *low = lowest;
  *high = highest;
  return lowest <= highest && count != 0;
}

PYF_END_TARGET
