// SPDX-License-Identifier: BSD-3-Clause
// Linear quantisation with a proven bound (docs/format.md, section 6; FORMAT.md of codec 1 has the proof).
//
// One fused multiply-add to the magic number M rounds x / step to an integer and leaves it in the float's own bits:
// t = fma(x, 1 / step, M), q = bits(t) - bits(M), x' = (t - M) * step. The map q <-> t is one to one over all bit
// patterns, so x' is the decoder's result for any x. One comparison decides: |x - x'| <= bound.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/target.hpp"

namespace pyfilter {

template <class T>
struct FloatTraits;

template <>
struct FloatTraits<float> {
  using Code = std::uint32_t;
  static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  static constexpr Code kMagicBits = 0x4B400000u, kQuietNan = 0x7FC00000u;
  static constexpr int kFractionBits = 23;
  // Twice the bound is reduced by this fraction to make the step: see step_of().
  static constexpr float kShrink = 0.0078125f;  // 2^-7
};

template <>
struct FloatTraits<double> {
  using Code = std::uint64_t;
  static constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr Code kMagicBits = 0x4338000000000000ull, kQuietNan = 0x7FF8000000000000ull;
  static constexpr int kFractionBits = 52;
  static constexpr double kShrink = 0.000244140625;  // 2^-12
};

// The quantiser of a chunk, for encoder and decoder.
template <class T>
struct Quantizer {
  T step, inverse_step, bound;
  T reach;     // values below this magnitude are rounded to integers by the magic number
  T sentinel;  // a NaN if there is none: NaN equals nothing
  typename FloatTraits<T>::Code sentinel_bits;
  bool has_sentinel;
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

// The step for a bound. It depends on the bound alone, so decoded values lie on the grid of the next encoding and
// survive any number of rewrites unchanged. Twice the bound would be the widest step. The roundings of x / step and q *
// step would push values half-way between two quanta over the bound, so the step is slightly smaller.
template <class T>
KFN T step_of(T bound) {
  return (bound + bound) - (bound + bound) * FloatTraits<T>::kShrink;
}

template <class T>
KFN Quantizer<T> make_quantizer(T bound, T step, bool has_sentinel, typename FloatTraits<T>::Code sentinel_bits) {
  constexpr T kReach = static_cast<T>(typename FloatTraits<T>::Code{1} << (FloatTraits<T>::kFractionBits - 1));
  Quantizer<T> p;
  p.step = step;
  p.inverse_step = 1 / step;
  p.bound = bound;
  p.reach = kReach * step;
  p.has_sentinel = has_sentinel;
  p.sentinel_bits = has_sentinel ? sentinel_bits : 0;
  constexpr auto kNone = FloatTraits<T>::kQuietNan;
  p.sentinel = std::bit_cast<T>(has_sentinel ? sentinel_bits : kNone);
  return p;
}

#if defined(__CUDA_ARCH__)
KFN float fused(float x, float y, float z) { return __fmaf_rn(x, y, z); }
KFN double fused(double x, double y, double z) { return __fma_rn(x, y, z); }
KFN float absolute(float x) { return fabsf(x); }
KFN double absolute(double x) { return fabs(x); }
#else
KFN float fused(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
KFN double fused(double x, double y, double z) { return __builtin_fma(x, y, z); }
KFN float absolute(float x) { return __builtin_fabsf(x); }
KFN double absolute(double x) { return __builtin_fabs(x); }
#endif

// One quantised value: its magic form t (with the code in its bits), its decoded value, and two tests of whether the
// code is usable.
template <class T>
KFN T magic_form(const Quantizer<T>& p, T x) {
  return fused(x, p.inverse_step, FloatTraits<T>::kMagic);
}
template <class T>
KFN typename FloatTraits<T>::Code code_of(T magic_form) {
  return std::bit_cast<typename FloatTraits<T>::Code>(magic_form) - FloatTraits<T>::kMagicBits;
}
template <class T>
KFN T decoded_value(T step, T magic_form) {
  return (magic_form - FloatTraits<T>::kMagic) * step;
}
template <class T>
KFN T value_of_code(T step, typename FloatTraits<T>::Code code) {
  return decoded_value(step,
                       std::bit_cast<T>(static_cast<typename FloatTraits<T>::Code>(code + FloatTraits<T>::kMagicBits)));
}
template <class T>
KFN bool keeps_bound(const Quantizer<T>& p, T x, T decoded) {
  return absolute(x - decoded) <= p.bound;
}
template <class T>
KFN bool in_reach(const Quantizer<T>& p, T x) {
  return absolute(x) < p.reach;
}

// Lanes in which misfits are recorded; every CPU level has enough vector registers for this many.
#if defined(PYF_LEVEL_AVX2)
template <class Code>
inline constexpr std::size_t kLanes = 128 / sizeof(Code);
#else
template <class Code>
inline constexpr std::size_t kLanes = 16;
#endif

// Codes of N values, written whether the code fits or not. note(flags, from) is called for each kLanes<Code> values,
// from index `from` on. A flag has all bits set for a possible misfit: beyond the bound or reach, NaN, infinite, the
// sentinel, or decoding to the sentinel. Otherwise it is 0.
template <bool kHasSentinel, std::size_t N, class T, class Values, class Note>
KFN void quantize(const Quantizer<T>& p, const Values* x, typename FloatTraits<T>::Code* q, Note&& note) {
  using Code = typename FloatTraits<T>::Code;
  for (std::size_t from = 0; from < N; from += kLanes<Code>) {
    alignas(64) Code flags[kLanes<Code>];
    for (std::size_t lane = 0; lane < kLanes<Code>; ++lane) {
      const std::size_t i = from + lane;
      const T value = x[i], t = magic_form(p, value), decoded = decoded_value(p.step, t);
      const bool beyond = !keeps_bound(p, value, decoded), far = !in_reach(p, value);
      bool misfit = beyond | far;
      if constexpr (kHasSentinel) misfit = misfit | (value == p.sentinel) | (decoded == p.sentinel);
      flags[lane] = static_cast<Code>(0 - static_cast<Code>(misfit));
      q[i] = code_of(t);
    }
    note(flags, from);
  }
}

// Sets flags[i] to all ones where quantize()'s code does not give x[i] back, else to 0.
template <std::size_t N, class T, class Values>
KFN void find_misfits(const Quantizer<T>& p, const Values* x, const typename FloatTraits<T>::Code* q,
                      typename FloatTraits<T>::Code (&flags)[N]) {
  using Code = typename FloatTraits<T>::Code;
  for (std::size_t i = 0; i < N; ++i) {
    const T value = x[i], decoded = value_of_code(p.step, q[i]);
    const bool fits = keeps_bound(p, value, decoded) & in_reach(p, value) & !(decoded == p.sentinel);
    flags[i] = static_cast<Code>(0 - static_cast<Code>(!fits));
  }
}

// Sets flags[i] to all ones where x[i] is in reach, else to 0.
template <std::size_t N, class T, class Values>
KFN void find_reached(const Quantizer<T>& p, const Values* x, typename FloatTraits<T>::Code (&flags)[N]) {
  using Code = typename FloatTraits<T>::Code;
  for (std::size_t i = 0; i < N; ++i) flags[i] = static_cast<Code>(0 - static_cast<Code>(in_reach(p, T{x[i]})));
}

// The neighbouring code on x's side, for values that rounding put just outside the bound. True if the neighbour keeps
// the bound.
template <class T>
KFN bool neighbour_fits(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  using Code = typename FloatTraits<T>::Code;
  const T decoded = value_of_code(p.step, q);
  const auto next = static_cast<Code>(x > decoded ? q + 1 : q - 1);
  const T other = value_of_code(p.step, next);
  const bool fits = in_reach(p, x) & keeps_bound(p, x, other) & !(other == p.sentinel);
  q = fits ? next : q;
  return fits;
}

// Sets flags[i] to all ones where the neighbour of q[i] is better (neighbour_fits()), and next[i] to that neighbour.
template <std::size_t N, class T, class Values>
KFN void find_neighbours(const Quantizer<T>& p, const Values* x, const typename FloatTraits<T>::Code* q,
                         typename FloatTraits<T>::Code (&next)[N], typename FloatTraits<T>::Code (&flags)[N]) {
  using Code = typename FloatTraits<T>::Code;
  for (std::size_t i = 0; i < N; ++i) {
    Code code = q[i];
    flags[i] = static_cast<Code>(0 - static_cast<Code>(neighbour_fits<T>(p, x[i], code)));
    next[i] = code;
  }
}

// Values of N codes plus `offset`.
template <class T, std::size_t N, class Values>
KFN void dequantize(T step, const typename FloatTraits<T>::Code (&q)[N], typename FloatTraits<T>::Code offset,
                    Values* x) {
  using Traits = FloatTraits<T>;
  const auto bias = static_cast<typename Traits::Code>(offset + Traits::kMagicBits);
  for (std::size_t i = 0; i < N; ++i)
    x[i] = (std::bit_cast<T>(static_cast<typename Traits::Code>(q[i] + bias)) - Traits::kMagic) * step;
}

PYF_END_TARGET
