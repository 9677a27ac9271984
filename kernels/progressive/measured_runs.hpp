// SPDX-License-Identifier: BSD-3-Clause
// Parts of grids, and runs of points as a reader makes them, with the errors that they have (measure.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"
#include "progressive/layout.hpp"
#include "progressive/transform.hpp"

namespace pyfilter {

// Points lo to hi - 1 of a grid, along z, y, x.
struct Region {
  std::uint64_t lo[3], hi[3];
  KFN std::uint64_t extent(int axis) const { return hi[axis] - lo[axis]; }
  KFN std::uint64_t count() const { return extent(0) * extent(1) * extent(2); }
};

// The points of the next coarser grid, of `evens` along an axis, that lo to hi - 1 come from.
KFN void coarser_range(std::uint64_t lo, std::uint64_t hi, std::uint64_t evens, std::uint64_t* from,
                       std::uint64_t* to) {
  *from = lo / 2 > 1 ? lo / 2 - 1 : 0;
  *to = hi / 2 + 2 < evens ? hi / 2 + 2 : evens;
}

// Blocks of so many points at most, longest along x; of narrow arrays fewer, since rows cost something, too.
template <class Int>
KFN Extents block_extents(Extents whole) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 18, kRows = 4096, kLonger = 8;
  const std::uint64_t most = kBytes / sizeof(Int) < kRows * whole.x ? kBytes / sizeof(Int) : kRows * whole.x;
  Extents b = whole;
  const auto halve = [](std::uint64_t& side) { side = (side / 2 + 1) / 2 * 2; };
  while (b.count() > most) {
    if (b.x > kLonger * b.y && b.x > kLonger * b.z)
      halve(b.x);
    else if (b.y >= b.z && b.y > 2)
      halve(b.y);
    else if (b.z > 2)
      halve(b.z);
    else
      halve(b.x);
  }
  return b;
}

// Points of a row that are predicted alike.
template <class Int>
struct MeasuredRun {
  Neighbours<Int> from;
  Int* to;
  std::uint64_t first, count;  // among those of its unit
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

// What a reader makes of runs that have the same stencil, with the coefficients that it knows of (kSome: any at all);
// the largest error. `original` is kMissing where it does not count (kMarked).
template <Stencil S, bool kSome, bool kMarked, class Int>
inline Int measure_runs(const MeasuredRun<Int>* runs, std::size_t count, const Limits<Int>& all_limits,
                        const Int* known, const Int* original) {
  const Limits<Int> limits = all_limits;
  Int highest = 0, lowest = 0;  // of errors with their signs: 64-bit magnitudes are slow before AVX-512
  for (std::size_t r = 0; r < count; ++r) {
    const MeasuredRun<Int> run = runs[r];  // a copy: what is written might be its count otherwise
    const Int *const c = known + run.first, *const o = original + run.first;
    Int* __restrict const to = run.to;
    for (std::size_t i = 0; i < run.count; ++i) {
      Int v = clamp_to(limits, predict_at<S>(run.from, i));
      if constexpr (kSome) v = clamp_to(limits, static_cast<Int>(v + c[i]));
      to[i] = v;
      const Int t = kMarked && o[i] == kMissing<Int> ? v : o[i];
      const Int error = t - v;
      highest = error > highest ? error : highest;
      lowest = error < lowest ? error : lowest;
    }
  }
  return highest > -lowest ? highest : -lowest;
}

template <class Int>
inline Int measure_runs(bool some, bool marked, const MeasuredRun<Int>* runs, std::size_t count,
                        const Limits<Int>& limits, const Int* known, const Int* original) {
  const auto with = [&](auto stencil, auto is_some, auto is_marked) {
    return measure_runs<decltype(stencil)::value, decltype(is_some)::value, decltype(is_marked)::value>(
        runs, count, limits, known, original);
  };
  const auto go = [&](auto stencil) {
    if (marked)
      return some ? with(stencil, std::true_type{}, std::true_type{})
                  : with(stencil, std::false_type{}, std::true_type{});
    return some ? with(stencil, std::true_type{}, std::false_type{})
                : with(stencil, std::false_type{}, std::false_type{});
  };
  switch (runs->from.stencil) {
    case Stencil::copy:
      return go(std::integral_constant<Stencil, Stencil::copy>{});
    case Stencil::linear:
      return go(std::integral_constant<Stencil, Stencil::linear>{});
    case Stencil::quadratic:
      return go(std::integral_constant<Stencil, Stencil::quadratic>{});
    case Stencil::cubic:
      break;
  }
  return go(std::integral_constant<Stencil, Stencil::cubic>{});
}

PYF_END_TARGET
