// SPDX-License-Identifier: BSD-3-Clause
// The points of all grids of a chunk in one array, each at its final position, and the passes over them
// (docs/format.md, section 13.3). A pass predicts runs of points, and subtracts predictions to make coefficients or
// adds them to restore points. A pass writes its own points only, so it needs no other memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"
#include "progressive/layout.hpp"
#include "progressive/memory.hpp"
#include "progressive/tile.hpp"
#include "progressive/transform.hpp"

namespace pyfilter {

// Point (z, y, x) of grid k is point (z, y, x) * 2^(k - finest) of grid `finest`, which the array holds.
template <class Int>
struct Points {
  Int* at;
  const ProgressiveLayout& layout;
  int finest;

  KFN Int* point(int level, std::uint64_t z, std::uint64_t y, std::uint64_t x) const {
    const Extents whole = layout.grids[finest];
    const int s = level - finest;
    return at + (((z << s) * whole.y + (y << s)) * whole.x + (x << s));
  }
  // The distance between neighbouring points of a unit, or of its known points, in a row.
  KFN std::size_t step(const ProgressiveUnit& unit) const { return std::size_t{2} << (unit.level - finest); }
};

inline constexpr std::uint64_t kRunPoints = 512;  // the most points of a run that needs a buffer

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Visits points first to first + count - 1 of row (z, y) of a unit in runs with one stencil. Calls visit(neighbours,
// first point, number of points, number of points before); points are q.step(unit) apart.
template <class Int, class Visit>
KFN void visit_run(const Points<Int>& q, const ProgressiveUnit& unit, bool cubic, std::uint64_t z, std::uint64_t y,
                   std::uint64_t first, std::uint64_t count, Visit&& visit) {
  const int k = unit.level;
  const Extents g = q.layout.grids[k];
  if (unit.axis == 0) {
    const auto known = [&](std::uint64_t i) { return q.point(k, 2 * i, 2 * y, 2 * first); };
    visit(neighbours_of<Int>(z, half_up(g.z), cubic, known), q.point(k, 2 * z + 1, 2 * y, 2 * first), count, 0);
  } else if (unit.axis == 1) {
    const auto known = [&](std::uint64_t i) { return q.point(k, z, 2 * i, 2 * first); };
    visit(neighbours_of<Int>(y, half_up(g.y), cubic, known), q.point(k, z, 2 * y + 1, 2 * first), count, 0);
  } else {
    Int* const row = q.point(k, z, y, 0);
    const std::size_t step = q.step(unit);
    along_x<Int>([&](std::uint64_t i) { return row + i * step; }, half_up(g.x), first, count, cubic,
                 [&](const Neighbours<Int>& from, std::uint64_t j, std::uint64_t n) {
                   visit(from, row + j * step + step / 2, n, j - first);
                 });
  }
}

// The same for points from a position of a tile on, where several rows of the unit may have become one.
template <class Int, class Visit>
KFN void visit_points(const Points<Int>& q, const ProgressiveUnit& unit, bool cubic, const TilePosition& position,
                      std::uint64_t count, Visit&& visit) {
  if (unit.tiled.x == unit.shape.x && unit.tiled.y == unit.shape.y)
    return visit_run(q, unit, cubic, position.z, position.y, position.x, count, visit);
  const std::uint64_t first = position.number(unit);
  std::uint64_t row = first / unit.shape.x, x = first % unit.shape.x, z = row / unit.shape.y, y = row % unit.shape.y;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t n = count - done < unit.shape.x - x ? count - done : unit.shape.x - x;
    visit_run(q, unit, cubic, z, y, x, n,
              [&](const Neighbours<Int>& from, Int* target, std::uint64_t some, std::uint64_t before) {
                visit(from, target, some, done + before);
              });
    done += n;
    x = 0;
    if (++y == unit.shape.y) y = 0, ++z;
  }
}

template <Stencil S, class Int, class Step>
KFN void predict_points(const Neighbours<Int> from, const Limits<Int> limits, std::size_t count, Step step,
                        Int* __restrict to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = clamp_to(limits, predict_at<S>(from, i * step));
}

template <class Int, class Step>
KFN void predict_points(const Neighbours<Int>& from, const Limits<Int>& limits, std::size_t count, Step step, Int* to) {
  switch (from.stencil) {
    case Stencil::copy:
      return predict_points<Stencil::copy>(from, limits, count, step, to);
    case Stencil::linear:
      return predict_points<Stencil::linear>(from, limits, count, step, to);
    case Stencil::quadratic:
      return predict_points<Stencil::quadratic>(from, limits, count, step, to);
    case Stencil::cubic:
      return predict_points<Stencil::cubic>(from, limits, count, step, to);
  }
}

// Calls use(step) with the step as a constant if it is small.
template <class Use>
KFN void with_step(std::size_t step, Use&& use) {
  if (step == 2)
    use(std::integral_constant<std::size_t, 2>{});
  else if (step == 4)
    use(std::integral_constant<std::size_t, 4>{});
  else
    use(step);
}

// The coefficients of a run; missing points have coefficient 0.
template <class Int>
inline void coefficients_of_run(const Neighbours<Int>& from, const Limits<Int>& limits, const Int* target,
                                std::size_t count, std::size_t steps, Int* __restrict out) {
  const auto go = [&from, &limits, target, out](auto step, auto n) {
    predict_points(from, limits, n, step, out);
    for (std::size_t i = 0; i < n; ++i) out[i] = target[i * step] - out[i];
  };
  with_step(steps, [&](auto step) {
    if (count == 32)  // a word of a tile
      go(step, std::integral_constant<std::size_t, 32>{});
    else
      go(step, count);
  });
}

// The inverse: restores points from coefficients.
template <class Int>
inline void restore_run(const Neighbours<Int>& from, const Limits<Int>& limits, const Int* coefficients,
                        std::size_t count, std::size_t steps, Int* target) {
  alignas(64) Int made[kRunPoints];
  with_step(steps, [&](auto step) {
    predict_points(from, limits, count, step, made);
    if (coefficients != nullptr)
      for (std::size_t i = 0; i < count; ++i) made[i] = clamp_to(limits, static_cast<Int>(made[i] + coefficients[i]));
    for (std::size_t i = 0; i < count; ++i) target[i * step] = made[i];
  });
}

// Replaces the missing points of a unit by their predictions; those of coarser units are replaced already.
template <class Int>
inline void fill_missing(const Points<Int>& q, const ProgressiveUnit& unit, bool cubic, const Limits<Int>& limits) {
  const std::size_t step = q.step(unit);
  const auto fill = [&](const Neighbours<Int>& from, Int* target, std::uint64_t count, std::uint64_t /*before*/) {
    alignas(64) Int made[kRunPoints];
    with_step(step, [&](auto every) {
      std::uint32_t found = 0;
      for (std::uint64_t i = 0; i < count; ++i) found += target[i * every] == kMissing<Int> ? 1 : 0;
      if (found == 0) return;
      predict_points(from, limits, count, every, made);
      for (std::uint64_t i = 0; i < count; ++i) {
        const Int value = target[i * every];
        target[i * every] = value == kMissing<Int> ? made[i] : value;
      }
    });
  };
  in_parallel(unit.shape.z * unit.shape.y, rows_at_once(unit.shape.x), [&](std::uint64_t row) {
    for (std::uint64_t x = 0; x < unit.shape.x; x += kRunPoints) {
      const std::uint64_t n = unit.shape.x - x < kRunPoints ? unit.shape.x - x : kRunPoints;
      visit_run(q, unit, cubic, row / unit.shape.y, row % unit.shape.y, x, n, fill);
    }
  });
}

// Whether cubic interpolation leaves smaller coefficients than linear, in a sample of the unit's rows.
template <class Int>
inline bool prefers_cubic(const Points<Int>& q, const ProgressiveUnit& unit, const Limits<Int>& limits) {
  constexpr std::uint64_t kValues = kBasisValues;
  const std::uint64_t rows = unit.shape.z * unit.shape.y, across = (unit.shape.x + kValues - 1) / kValues;
  const std::uint64_t every = rows * across / kBasisRuns + 1;
  std::uint64_t bits[2] = {0, 0};
  const std::size_t step = q.step(unit);
  for (std::uint64_t i = 0; i < rows * across; i += every) {
    const std::uint64_t row = i / across, x = i % across * kValues;
    const std::uint64_t count = unit.shape.x - x < kValues ? unit.shape.x - x : kValues;
    for (int cubic = 0; cubic < 2; ++cubic) {
      visit_run(q, unit, cubic != 0, row / unit.shape.y, row % unit.shape.y, x, count,
                [&](const Neighbours<Int>& from, const Int* target, std::uint64_t n, std::uint64_t /*before*/) {
                  Int out[kValues];
                  predict_points(from, limits, n, step, out);
                  for (std::uint64_t j = 0; j < n; ++j)
                    out[j] = target[j * step] == kMissing<Int> ? 0 : target[j * step] - out[j];
                  bits[cubic] += row_bits(out, n);
                });
    }
  }
  return bits[1] < bits[0];
}

PYF_END_TARGET
