// SPDX-License-Identifier: BSD-3-Clause
// Codes of single values for the choice of a predictor (choose.hpp), on CPU and GPU.
#pragma once

#include <bit>
#include <limits>

#include "core/target.hpp"
#include "stages/integer.hpp"
#include "stages/logarithm.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

// The code of a value, and whether the value is ordinary.
template <class T>
KFN bool sampled_code(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  q = code_of(magic_form(p, x));
  return in_reach(p, x) & !(x == p.sentinel);
}
template <class T>
KFN bool sampled_code(const LogQuantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  q = log_code(p, x);
  const bool sentinel = p.has_sentinel & (std::bit_cast<typename FloatTraits<T>::Code>(x) == p.sentinel_bits);
  return (x != 0) & (absolute(x) <= std::numeric_limits<T>::max()) & !sentinel;
}
template <class U>
KFN bool sampled_code(const IntegerQuantizer<U>& p, U x, IntegerCode<U>& q) {
  q = integer_code(p, x);
  return !(p.has_sentinel & (x == p.sentinel_bits));
}

PYF_END_TARGET
