// SPDX-License-Identifier: BSD-3-Clause
// Regions of grids, and runs of points as a reader decodes them, with their errors (measure.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"
#include "progressive/choices.hpp"
#include "progressive/layout.hpp"
#include "progressive/transform.hpp"

namespace pyfilter {

// Points lo to hi - 1 of a grid, along z, y, x.
struct Region {
  std::uint64_t lo[3], hi[3];
  KFN std::uint64_t extent(int axis) const { return hi[axis] - lo[axis]; }
  KFN std::uint64_t count() const { return extent(0) * extent(1) * extent(2); }
};

// The points of the next coarser grid, of `evens` along an axis, from which points lo to hi - 1 are predicted.
KFN void coarser_range(std::uint64_t lo, std::uint64_t hi, std::uint64_t evens, std::uint64_t* from,
                       std::uint64_t* to) {
  *from = lo / 2 > 1 ? lo / 2 - 1 : 0;
  *to = hi / 2 + 2 < evens ? hi / 2 + 2 : evens;
}

// Blocks of points of at most this many bytes, longest along x; narrow arrays get smaller blocks, since rows have a
// cost, too.
template <class Int>
KFN Extents block_extents(Extents whole, std::uint64_t bytes) {
  constexpr std::uint64_t kRows = 4096, kLonger = 8;
  const std::uint64_t most = bytes / sizeof(Int) < kRows * whole.x ? bytes / sizeof(Int) : kRows * whole.x;
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

// Points with one stencil, `step` apart: consecutive in a row, or one in each row.
template <class Int>
struct MeasuredRun {
  Neighbours<Int> from;
  Int* to;                     // nullptr: the points are not needed
  std::uint64_t first, count;  // index in the unit, whose points are consecutive
  std::size_t step;
};

// Appends to the last run if the points follow it without a gap, else starts a run. Returns the end of the runs.
template <class Int>
KFN MeasuredRun<Int>* add_run(MeasuredRun<Int>* runs, MeasuredRun<Int>* end, const MeasuredRun<Int>& next) {
  if (end != runs) {
    MeasuredRun<Int>& last = end[-1];
    const std::uint64_t n = last.count, far = n * last.step;
    const auto follows = [far](const Int* from, const Int* to) {
      return from == nullptr ? to == nullptr : from + far == to;
    };
    const Neighbours<Int>&a = last.from, &b = next.from;
    if (a.stencil == b.stencil && last.step == next.step && last.first + n == next.first && follows(last.to, next.to) &&
        follows(a.a, b.a) && follows(a.b, b.b) && follows(a.c, b.c) && follows(a.d, b.d)) {
      last.count += next.count;
      return end;
    }
  }
  *end = next;
  return end + 1;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Computes a reader's points of runs with one stencil; kSome: it has some planes of the coefficients. Returns the
// largest error. `original` is kMissing if the point is not ordinary (kMarked). Steps are 1, or any (kSteps); then, or
// if kStored is true, the points are stored.
template <Stencil S, bool kSome, bool kMarked, bool kStored, bool kSteps, class Int>
KFN Int measure_runs(const MeasuredRun<Int>* runs, std::size_t count, const Limits<Int>& all_limits,
                     const KnownPart<Int>& all_known, const Int* coefficients, const Int* original) {
  const Limits<Int> limits = all_limits;
  const KnownPart<Int> known = all_known;
  Int highest = 0, lowest = 0;  // errors with signs: 64-bit magnitudes are slow before AVX-512
  for (std::size_t r = 0; r < count; ++r) {
    const MeasuredRun<Int> run = runs[r];  // a copy: stores may alias its count
    const Int *const c = coefficients + run.first, *const o = original + run.first;
    Int* __restrict const to = run.to;
    const std::size_t step = kSteps ? run.step : 1;
    for (std::size_t i = 0; i < run.count; ++i) {
      Int v = clamp_to(limits, predict_at<S>(run.from, i * step));
      if constexpr (kSome) v = clamp_to(limits, static_cast<Int>(v + known(c[i])));
      if constexpr (kStored) {
        if (!kSteps || to != nullptr) to[i * step] = v;
      }
      const Int t = kMarked && o[i] == kMissing<Int> ? v : o[i];
      const Int error = t - v;
      highest = error > highest ? error : highest;
      lowest = error < lowest ? error : lowest;
    }
  }
  return highest > -lowest ? highest : -lowest;
}

// The same for runs with steps, the ends of rows: few points, so the code is to be small.
template <Stencil S, bool kSome, class Int>
[[gnu::cold, gnu::noinline]] Int measure_ends(const MeasuredRun<Int>* runs, std::size_t count,
                                              const Limits<Int>& limits, const KnownPart<Int>& known,
                                              const Int* coefficients, const Int* original) {
  return measure_runs<S, kSome, true, true, true>(runs, count, limits, known, coefficients, original);
}

template <class Int>
inline Int measure_runs(bool some, bool marked, const MeasuredRun<Int>* runs, std::size_t count,
                        const Limits<Int>& limits, const KnownPart<Int>& known, const Int* coefficients,
                        const Int* original) {
  using Yes = std::true_type;
  using No = std::false_type;
  const bool steps = runs->step != 1, stored = runs->to != nullptr;
  const auto with = [&](auto stencil, auto is_some, auto is_marked, auto is_stored) {
    return measure_runs<decltype(stencil)::value, decltype(is_some)::value, decltype(is_marked)::value,
                        decltype(is_stored)::value, false>(runs, count, limits, known, coefficients, original);
  };
  const auto by_coefficients = [&](auto stencil, auto is_some) {
    if (steps)
      return measure_ends<decltype(stencil)::value, decltype(is_some)::value>(runs, count, limits, known, coefficients,
                                                                              original);
    if (!stored) return with(stencil, is_some, Yes{}, No{});
    return marked ? with(stencil, is_some, Yes{}, Yes{}) : with(stencil, is_some, No{}, Yes{});
  };
  const auto go = [&](auto stencil) { return some ? by_coefficients(stencil, Yes{}) : by_coefficients(stencil, No{}); };
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
