// SPDX-License-Identifier: BSD-3-Clause
// Rows of the hierarchical basis (docs/format.md, section 13.3): predictions of points from their neighbours along an
// axis, coefficients and back, in integers. One source for encoder and decoder; every function works on whole rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/bits.hpp"
#include "core/target.hpp"

namespace pyfilter {

// How a point is predicted: from its neighbour before, the mean of both, or a polynomial of degree two or three.
enum class Stencil { copy, linear, quadratic, cubic };

// The rows that predict a row, by the stencil: copy {a}, linear {a, b}, quadratic {a at the end, b, c beyond b},
// cubic {a, b nearest, c beyond a, d beyond b}.
template <class Int>
struct Neighbours {
  Stencil stencil = Stencil::copy;
  const Int *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

// The neighbours of target `j` of a pass, of which `evens` rows or values are known; `at(i)` is known number i.
template <class Int, class At>
KFN Neighbours<Int> neighbours_of(std::uint64_t j, std::uint64_t evens, bool cubic, At&& at) {
  if (j + 1 >= evens) return {Stencil::copy, at(j)};
  if (cubic && j >= 1 && j + 2 < evens) return {Stencil::cubic, at(j), at(j + 1), at(j - 1), at(j + 2)};
  if (cubic && j + 2 < evens) return {Stencil::quadratic, at(j), at(j + 1), at(j + 2)};
  if (cubic && j >= 1) return {Stencil::quadratic, at(j + 1), at(j), at(j - 1)};
  return {Stencil::linear, at(j), at(j + 1)};
}

// Marks a value that is missing until its prediction takes its place.
template <class Int>
inline constexpr Int kMissing = std::numeric_limits<Int>::min();

// A unit's basis is chosen by runs of its rows, so many of so many values.
inline constexpr std::uint64_t kBasisRuns = 48, kBasisValues = 128;

// All values of a chunk are in this range, predictions are brought into it.
template <class Int>
struct Limits {
  Int low, high;
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

template <class Int>
KFN Int clamp_to(const Limits<Int>& limits, Int v) {
  v = v < limits.low ? limits.low : v;
  return v > limits.high ? limits.high : v;
}

template <Stencil S, class Int>
KFN Int predict(Int a, Int b, Int c, Int d) {
  if constexpr (S == Stencil::copy) return a;
  if constexpr (S == Stencil::linear) return static_cast<Int>((a + b + 1) >> 1);
  if constexpr (S == Stencil::quadratic) return static_cast<Int>((3 * a + 6 * b - c + 4) >> 3);
  const Int near = a + b, far = c + d;
  return static_cast<Int>((near + ((near - far + 8) >> 3)) >> 1);
}

template <Stencil S, class Int>
KFN Int predict_at(const Neighbours<Int>& from, std::size_t i) {
  constexpr bool kTwo = S != Stencil::copy, kThree = S == Stencil::quadratic || S == Stencil::cubic;
  return predict<S, Int>(from.a[i], kTwo ? from.b[i] : 0, kThree ? from.c[i] : 0, S == Stencil::cubic ? from.d[i] : 0);
}

// A coefficient from its prediction. What is missing becomes that.
template <class Int>
KFN Int forward_value(const Limits<Int>& limits, Int predicted, Int& target) {
  const Int p = clamp_to(limits, predicted);
  target = target == kMissing<Int> ? p : target;
  return target - p;
}

// And back. A target is brought into the range too: that never takes it away from the value that it stands for.
template <class Int>
KFN Int inverse_value(const Limits<Int>& limits, Int predicted, Int coefficient) {
  return clamp_to(limits, static_cast<Int>(clamp_to(limits, predicted) + coefficient));
}

// Coefficients of a row of targets.
template <Stencil S, class Int>
KFN void forward_row(const Neighbours<Int>& from, const Limits<Int>& limits, std::size_t count, Int* target, Int* out) {
  for (std::size_t i = 0; i < count; ++i) {
    Int t = target[i];
    out[i] = forward_value(limits, predict_at<S>(from, i), t);
    target[i] = t;
  }
}

template <Stencil S, class Int>
KFN void inverse_row(const Neighbours<Int>& from, const Limits<Int>& limits, std::size_t count, const Int* coefficients,
                     Int* target) {
  for (std::size_t i = 0; i < count; ++i) target[i] = inverse_value(limits, predict_at<S>(from, i), coefficients[i]);
}

// By any stencil.
template <class Int>
KFN Int predict_by(const Neighbours<Int>& from, std::size_t i) {
  switch (from.stencil) {
    case Stencil::copy:
      return predict_at<Stencil::copy>(from, i);
    case Stencil::linear:
      return predict_at<Stencil::linear>(from, i);
    case Stencil::quadratic:
      return predict_at<Stencil::quadratic>(from, i);
    case Stencil::cubic:
      break;
  }
  return predict_at<Stencil::cubic>(from, i);
}

// Of target `j`, as neighbours_of() has them; most have all.
template <class Int, class At>
KFN Int predict_target(std::uint64_t j, std::uint64_t evens, bool cubic, At&& at) {
  if (j == 0 || j + 2 >= evens) return predict_by(neighbours_of<Int>(j, evens, cubic, at), 0);
  return cubic ? predict<Stencil::cubic>(*at(j), *at(j + 1), *at(j - 1), *at(j + 2))
               : predict<Stencil::linear>(*at(j), *at(j + 1), Int{0}, Int{0});
}

template <class Int>
inline void forward_row(const Neighbours<Int>& from, const Limits<Int>& limits, std::size_t count, Int* target,
                        Int* out) {
  switch (from.stencil) {
    case Stencil::copy:
      return forward_row<Stencil::copy>(from, limits, count, target, out);
    case Stencil::linear:
      return forward_row<Stencil::linear>(from, limits, count, target, out);
    case Stencil::quadratic:
      return forward_row<Stencil::quadratic>(from, limits, count, target, out);
    case Stencil::cubic:
      return forward_row<Stencil::cubic>(from, limits, count, target, out);
  }
}

template <class Int>
inline void inverse_row(const Neighbours<Int>& from, const Limits<Int>& limits, std::size_t count,
                        const Int* coefficients, Int* target) {
  switch (from.stencil) {
    case Stencil::copy:
      return inverse_row<Stencil::copy>(from, limits, count, coefficients, target);
    case Stencil::linear:
      return inverse_row<Stencil::linear>(from, limits, count, coefficients, target);
    case Stencil::quadratic:
      return inverse_row<Stencil::quadratic>(from, limits, count, coefficients, target);
    case Stencil::cubic:
      return inverse_row<Stencil::cubic>(from, limits, count, coefficients, target);
  }
}

// Along x the neighbours of a row's targets are in one row of known values: the ends one by one, the rest at once.
// `row(neighbours, first, count)` does targets first to first + count - 1.
template <class Int, class Row>
KFN void along_x(const Int* even, std::size_t evens, std::size_t count, bool cubic, Row&& row) {
  const auto at = [even](std::uint64_t i) { return even + i; };
  std::size_t j = 0;
  while (j < count) {
    const Neighbours<Int> from = neighbours_of<Int>(j, evens, cubic, at);
    std::size_t run = 1;
    if (from.stencil == Stencil::cubic)
      run = evens - 2 - j;
    else if (from.stencil == Stencil::linear && !cubic)
      run = evens - 1 - j;
    if (run > count - j) run = count - j;
    row(from, j, run);
    j += run;
  }
}

template <class Int>
inline void split_row(const Int* row, std::size_t count, Int* even, Int* odd) {
  const std::size_t pairs = count / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    even[i] = row[2 * i];
    odd[i] = row[2 * i + 1];
  }
  if (count % 2 != 0) even[pairs] = row[count - 1];
}

template <class Int>
inline void join_row(const Int* even, const Int* odd, std::size_t count, Int* row) {
  const std::size_t pairs = count / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    row[2 * i] = even[i];
    row[2 * i + 1] = odd[i];
  }
  if (count % 2 != 0) row[count - 1] = even[pairs];
}

// Bits that a coefficient needs, one more.
template <class Int>
KFN std::uint64_t coefficient_bits(Int d) {
  const auto m = static_cast<std::uint64_t>(d < 0 ? -d : d);
  return static_cast<std::uint64_t>(bit_width(2 * m + 1));
}
template <class Int>
inline std::uint64_t row_bits(const Int* coefficients, std::size_t count) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) bits += coefficient_bits(coefficients[i]);
  return bits;
}

PYF_END_TARGET
