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

// The prediction of a point: a copy of the neighbour before, the mean of both, or a polynomial of degree two or three.
enum class Stencil { copy, linear, quadratic, cubic };

// The rows that predict a row, by stencil: copy {a}, linear {a, b}, quadratic {a at the end, b, c beyond b}, cubic {a,
// b nearest, c beyond a, d beyond b}.
template <class Int>
struct Neighbours {
  Stencil stencil = Stencil::copy;
  const Int *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

// The neighbours of target `j` of a pass with `evens` known rows or values; `at(i)` is known number i.
template <class Int, class At>
KFN Neighbours<Int> neighbours_of(std::uint64_t j, std::uint64_t evens, bool cubic, At&& at) {
  if (j + 1 >= evens) return {Stencil::copy, at(j)};
  if (cubic && j >= 1 && j + 2 < evens) return {Stencil::cubic, at(j), at(j + 1), at(j - 1), at(j + 2)};
  if (cubic && j + 2 < evens) return {Stencil::quadratic, at(j), at(j + 1), at(j + 2)};
  if (cubic && j >= 1) return {Stencil::quadratic, at(j + 1), at(j), at(j - 1)};
  return {Stencil::linear, at(j), at(j + 1)};
}

// Marks a missing value until its prediction replaces it.
template <class Int>
inline constexpr Int kMissing = std::numeric_limits<Int>::min();

// A unit's basis is chosen from this many runs of its rows, of this many values.
inline constexpr std::uint64_t kBasisRuns = 48, kBasisValues = 128;

// All values of a chunk are in this range; predictions are clamped to it.
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

// v / 2^kShift, rounded down, for v of at most 62 bits: before AVX-512, x86's vector registers have no arithmetic shift
// of 64-bit numbers.
template <int kShift, class Int>
KFN Int halved(Int v) {
#if !defined(__CUDA_ARCH__)
  if constexpr (sizeof(Int) == 8) {
    constexpr std::uint64_t kAbove = std::uint64_t{1} << 61;
    return static_cast<Int>(((static_cast<std::uint64_t>(v) + kAbove) >> kShift) - (kAbove >> kShift));
  }
#endif
  return static_cast<Int>(v >> kShift);
}

template <Stencil S, class Int>
KFN Int predict(Int a, Int b, Int c, Int d) {
  if constexpr (S == Stencil::copy) return a;
  if constexpr (S == Stencil::linear) return halved<1>(static_cast<Int>(a + b + 1));
  if constexpr (S == Stencil::quadratic) return halved<3>(static_cast<Int>(3 * a + 6 * b - c + 4));
  const Int near = a + b, far = c + d;
  return halved<1>(static_cast<Int>(near + halved<3>(static_cast<Int>(near - far + 8))));
}

template <Stencil S, class Int>
KFN Int predict_at(const Neighbours<Int>& from, std::size_t i) {
  constexpr bool kTwo = S != Stencil::copy, kThree = S == Stencil::quadratic || S == Stencil::cubic;
  return predict<S, Int>(from.a[i], kTwo ? from.b[i] : 0, kThree ? from.c[i] : 0, S == Stencil::cubic ? from.d[i] : 0);
}

// A coefficient from its prediction. A missing value becomes its prediction.
template <class Int>
KFN Int forward_value(const Limits<Int>& limits, Int predicted, Int& target) {
  const Int p = clamp_to(limits, predicted);
  target = target == kMissing<Int> ? p : target;
  return target - p;
}

// The inverse. The target is clamped to the range, too: that never moves it away from its true value.
template <class Int>
KFN Int inverse_value(const Limits<Int>& limits, Int predicted, Int coefficient) {
  return clamp_to(limits, static_cast<Int>(clamp_to(limits, predicted) + coefficient));
}

// For any stencil.
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

// The prediction of target `j` from neighbours_of(); most targets have all neighbours.
template <class Int, class At>
KFN Int predict_target(std::uint64_t j, std::uint64_t evens, bool cubic, At&& at) {
  if (j == 0 || j + 2 >= evens) return predict_by(neighbours_of<Int>(j, evens, cubic, at), 0);
  return cubic ? predict<Stencil::cubic>(*at(j), *at(j + 1), *at(j - 1), *at(j + 2))
               : predict<Stencil::linear>(*at(j), *at(j + 1), Int{0}, Int{0});
}

// Visits points along x, from `start` on, by their stencils: the ends one by one, the rest at once. `at(i)` is known
// number i of `evens` in the row; row(neighbours, first, count).
template <class Int, class At, class Row>
KFN void along_x(At&& at, std::uint64_t evens, std::uint64_t start, std::uint64_t count, bool cubic, Row&& row) {
  for (std::uint64_t j = start, end = start + count; j < end;) {
    const Neighbours<Int> from = neighbours_of<Int>(j, evens, cubic, at);
    std::uint64_t run = 1;
    if (from.stencil == Stencil::cubic)
      run = evens - 2 - j;
    else if (from.stencil == Stencil::linear && !cubic)
      run = evens - 1 - j;
    if (run > end - j) run = end - j;
    row(from, j, run);
    j += run;
  }
}

// Bits of a coefficient, plus one.
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
