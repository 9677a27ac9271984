// SPDX-License-Identifier: BSD-3-Clause
// The map of quantised floats: codes are multiples of the step (docs/format.md, section 6); values without a code
// within the bound are flagged.
#pragma once

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

template <class T>
struct QuantizingMap {
  using Value = T;
  using Code = typename FloatTraits<T>::Code;
  static constexpr bool kHasSpecial = true;
  static constexpr unsigned kMasks = 7;  // kinds of masks that special blocks of packed tiles may have
  // A biased code is the magic form's bit pattern. The bias cancels in differences.
  static constexpr Code kBias = FloatTraits<T>::kMagicBits;
  Quantizer<T> quantizer;

  explicit KFN QuantizingMap(const Quantizer<T>& ready) : quantizer(ready) {}
  KFN QuantizingMap(double bound, double step, bool has_sentinel, std::uint64_t sentinel)
      : quantizer(
            make_quantizer(static_cast<T>(bound), static_cast<T>(step), has_sentinel, static_cast<Code>(sentinel))) {}
  explicit QuantizingMap(const Plan& plan) : QuantizingMap(plan.bound, plan.step, plan.has_sentinel, plan.sentinel) {}

  static KFN Code wrap(Code difference) { return difference; }
  KFN Value decode_biased(Code code) const { return decoded_value(quantizer.step, std::bit_cast<T>(code)); }

  template <std::size_t N, class Values, class Note>
  KFN void encode(const Values* x, Code* q, Note&& note) const {
    if (quantizer.has_sentinel)
      quantize<true, N>(quantizer, x, q, note);
    else
      quantize<false, N>(quantizer, x, q, note);
  }

  template <std::size_t N, class Values>
  KFN void decode(const Code (&q)[N], Code offset, Values* x) const {
    dequantize(quantizer.step, q, offset, x);
  }
};

PYF_END_TARGET
