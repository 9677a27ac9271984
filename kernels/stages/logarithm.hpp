// SPDX-License-Identifier: BSD-3-Clause
// Quantisation of log2 |x|, for bounds relative to each value (docs/format.md, section 6, with the proof of the bound).
// Signs and zeros have masks of their own (stages/packed/special.hpp).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/exp2.hpp"
#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/quantize.hpp"

namespace pyfilter {

// 2 / ln 2 * atanh(s) / s as a function of z = s^2, for |s| <= 0.1716: log2((1 + s) / (1 - s)) is s times the result.
KFN double log2_series(double z) {
  double p = 0x1.b592d3c48c41cp-3;
  p = p * z + 0x1.c46e1440404d7p-3;
  p = p * z + 0x1.0ca160627dbfcp-2;
  p = p * z + 0x1.484afb7a67652p-2;
  p = p * z + 0x1.a61762d693934p-2;
  p = p * z + 0x1.2776c50ee39dcp-1;
  p = p * z + 0x1.ec709dc3a047dp-1;
  return p * z + 0x1.71547652b82fep+1;
}

// log2 of a finite a > 0, within 2^-42; for any other a some number. The decoder does not use it.
KFN double log2_of(double a) {
  const bool tiny = a < 0x1p-1022;
  const auto bits = std::bit_cast<std::uint64_t>(tiny ? a * 0x1p54 : a);
  // splits a into an exponent and a fraction between sqrt(1/2) and sqrt(2)
  const std::uint64_t exponent = (bits + (0x3FF0000000000000ull - 0x3FE6A09E667F3BCDull)) >> 52;
  const double m = std::bit_cast<double>(bits - (exponent << 52) + 0x3FF0000000000000ull);
  const double e = std::bit_cast<double>(exponent | 0x4330000000000000ull) - (0x1p52 + 1023);
  const double s = (m - 1) / (m + 1);
  return (tiny ? e - 54 : e) + s * log2_series(s * s);
}

// The logarithmic quantiser of a chunk, for encoder and decoder.
template <class T>
struct LogQuantizer {
  using Code = typename FloatTraits<T>::Code;
  double step, inverse_step;
  double shift;  // code 0 stands for log2 |x| from shift - step / 2 to shift + step / 2
  double share;  // largest error as a fraction of |x|: slightly below the bound
  Code sentinel_bits;
  bool has_sentinel;
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

// A log error d makes a relative error between 1 - 2^-d and 2^d - 1. So codes are not centred: x' stands for x from x'
// / (1 + r) to x' / (1 - r).
template <class T>
KFN LogQuantizer<T> make_log_quantizer(double bound, double step, bool has_sentinel, std::uint64_t sentinel) {
  LogQuantizer<T> p;
  p.step = step;
  p.inverse_step = 1 / step;
  p.shift = -0.5 * log2_of(1 - bound * bound);
  p.share = bound * (1 - 0x1p-50);
  p.sentinel_bits = static_cast<typename FloatTraits<T>::Code>(sentinel);
  p.has_sentinel = has_sentinel;
  return p;
}

// The code, as a 64-bit integer, of a = |x|.
KFN std::uint64_t log_code(double shift, double inverse_step, double a) {
  const double t = (log2_of(a) - shift) * inverse_step + FloatTraits<double>::kMagic;
  return std::bit_cast<std::uint64_t>(t) - FloatTraits<double>::kMagicBits;
}
template <class T>
KFN typename FloatTraits<T>::Code log_code(const LogQuantizer<T>& p, T x) {
  return static_cast<typename FloatTraits<T>::Code>(
      log_code(p.shift, p.inverse_step, static_cast<double>(absolute(x))));
}

// The decoder's magnitude of a code.
KFN double log_magnitude(double step, std::uint64_t wide) {
  return exp2_of((std::bit_cast<double>(wide + FloatTraits<double>::kMagicBits) - FloatTraits<double>::kMagic) * step);
}
template <class T>
KFN T log_magnitude(double step, typename FloatTraits<T>::Code q) {
  using Signed = std::make_signed_t<typename FloatTraits<T>::Code>;
  return static_cast<T>(
      log_magnitude(step, static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed>(q)))));
}

template <class T>
KFN bool is_negative(T x) {
  using Code = typename FloatTraits<T>::Code;
  return std::bit_cast<Code>(x) >> (8 * sizeof(Code) - 1) != 0;
}

// Whether magnitude b is within the bound of a = |x|, and x is an ordinary value.
KFN bool log_close(double share, double a, double b, double highest, bool narrow) {
  const double scale = !narrow & (a < 0x1p-500) ? 0x1p500 : 1.0;  // exact, and prevents underflow in the products below
  return (absolute(a * scale - b * scale) <= a * scale * share) & (a > 0) & (a <= highest);
}

// Whether a code decodes to x within the bound, and no other value decodes to the sentinel.
template <class T>
KFN bool log_fits(const LogQuantizer<T>& p, T x, typename FloatTraits<T>::Code q) {
  using Code = typename FloatTraits<T>::Code;
  constexpr Code kSign = Code{1} << (8 * sizeof(Code) - 1);
  const T magnitude = log_magnitude<T>(p.step, q);
  const Code decoded = std::bit_cast<Code>(magnitude) | (std::bit_cast<Code>(x) & kSign);
  return log_close(p.share, static_cast<double>(absolute(x)), static_cast<double>(magnitude),
                   static_cast<double>(std::numeric_limits<T>::max()), sizeof(T) == 4) &
         !(p.has_sentinel & (decoded == p.sentinel_bits));
}

// Codes of many values, in loops over one type width each, which compilers vectorise.
template <class T, std::size_t N>
KFN void log_codes(const LogQuantizer<T>& p, const T (&x)[N], typename FloatTraits<T>::Code* q) {
  alignas(64) double a[N];
  alignas(64) std::uint64_t bits[N];
  for (std::size_t i = 0; i < N; ++i) a[i] = static_cast<double>(absolute(x[i]));
  for (std::size_t i = 0; i < N; ++i)
    a[i] = a[i] > 0 ? a[i] : 1;  // zeros are masked; powers that underflow would be slow
  for (std::size_t i = 0; i < N; ++i) bits[i] = log_code(p.shift, p.inverse_step, a[i]);
  for (std::size_t i = 0; i < N; ++i) q[i] = static_cast<typename FloatTraits<T>::Code>(bits[i]);
}
template <class T, std::size_t N>
KFN void log_magnitudes(double step, const typename FloatTraits<T>::Code* q, T* x) {
  using Signed = std::make_signed_t<typename FloatTraits<T>::Code>;
  alignas(64) std::uint64_t wide[N];
  alignas(64) double magnitude[N];
  for (std::size_t i = 0; i < N; ++i)
    wide[i] = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed>(q[i])));
  for (std::size_t i = 0; i < N; ++i) magnitude[i] = log_magnitude(step, wide[i]);
  for (std::size_t i = 0; i < N; ++i) x[i] = static_cast<T>(magnitude[i]);
}
// Sets misfits[i] to all ones where log_fits() fails, else to 0.
template <class T, std::size_t N>
KFN void log_misfits(const LogQuantizer<T>& p, const T (&x)[N], const typename FloatTraits<T>::Code* q,
                     typename FloatTraits<T>::Code (&misfits)[N]) {
  using Code = typename FloatTraits<T>::Code;
  constexpr Code kSign = Code{1} << (8 * sizeof(Code) - 1);
  constexpr double kHighest = static_cast<double>(std::numeric_limits<T>::max());
  alignas(64) T magnitude[N];
  alignas(64) double a[N], b[N];
  alignas(64) std::uint64_t far[N];
  log_magnitudes<T, N>(p.step, q, magnitude);
  for (std::size_t i = 0; i < N; ++i) a[i] = static_cast<double>(absolute(x[i]));
  for (std::size_t i = 0; i < N; ++i) b[i] = static_cast<double>(magnitude[i]);
  for (std::size_t i = 0; i < N; ++i)
    far[i] = static_cast<std::uint64_t>(!log_close(p.share, a[i], b[i], kHighest, sizeof(T) == 4));
  for (std::size_t i = 0; i < N; ++i) {
    const Code decoded = std::bit_cast<Code>(magnitude[i]) | (std::bit_cast<Code>(x[i]) & kSign);
    const Code misfit = static_cast<Code>(far[i]) | static_cast<Code>(p.has_sentinel & (decoded == p.sentinel_bits));
    misfits[i] = static_cast<Code>(0 - misfit);
  }
}

// The map of a pointwise relative bound: codes are those of magnitudes.
template <class T>
struct LogMap {
  using Value = T;
  using Code = typename FloatTraits<T>::Code;
  static constexpr bool kHasSpecial = true;
  static constexpr unsigned kMasks = 31;
  static constexpr Code kBias = 0;
  LogQuantizer<T> quantizer;

  KFN LogMap(double bound, double step, bool has_sentinel, std::uint64_t sentinel)
      : quantizer(make_log_quantizer<T>(bound, step, has_sentinel, sentinel)) {}
  explicit LogMap(const Plan& plan) : LogMap(plan.bound, plan.step, plan.has_sentinel, plan.sentinel) {}

  KFN Value decode_biased(Code code) const { return log_magnitude<T>(quantizer.step, code); }

  static KFN Code wrap(Code difference) { return difference; }

  // Like quantize(): flags are all ones where a value is negative or special.
  template <std::size_t N, class Values, class Note>
  KFN void encode(const Values* x, Code* q, Note&& note) const {
    alignas(64) T values[N];
    alignas(64) Code flags[N];
    for (std::size_t i = 0; i < N; ++i) values[i] = x[i];
    log_codes(quantizer, values, q);
    log_misfits(quantizer, values, q, flags);
    for (std::size_t i = 0; i < N; ++i) {
      const auto bits = std::bit_cast<Code>(values[i]);
      const bool sentinel = quantizer.has_sentinel & (bits == quantizer.sentinel_bits);
      flags[i] |= static_cast<Code>(0 - (static_cast<Code>(sentinel) | bits >> (8 * sizeof(Code) - 1)));
    }
    constexpr std::size_t kHere = kLanes<Code>;
    for (std::size_t from = 0; from < N; from += kHere)
      note(*reinterpret_cast<const Code(*)[kHere]>(flags + from), from);
  }

  template <std::size_t N, class Values>
  KFN void decode(const Code (&q)[N], Code offset, Values* x) const {
    alignas(64) Code codes[N];
    alignas(64) T decoded[N];
    for (std::size_t i = 0; i < N; ++i) codes[i] = static_cast<Code>(q[i] + offset);
    log_magnitudes<T, N>(quantizer.step, codes, decoded);
    for (std::size_t i = 0; i < N; ++i) x[i] = decoded[i];
  }
};

PYF_END_TARGET
