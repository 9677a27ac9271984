// SPDX-License-Identifier: BSD-3-Clause
// A block of the array with the surrounding points that it needs at each level: the values that readers decode, and
// their largest errors (measure.hpp). Readers whose largest error the block cannot raise are skipped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "core/target.hpp"
#include "progressive/choices.hpp"
#include "progressive/cpu/measured_finest.hpp"
#include "progressive/cpu/measured_memory.hpp"
#include "progressive/cpu/measured_runs.hpp"
#include "progressive/cpu/points.hpp"
#include "progressive/head.hpp"
#include "progressive/memory.hpp"
#include "progressive/scan.hpp"

PYF_BEGIN_TARGET

// A block and its points of all levels.
template <class T, class Int>
class MeasuredBlock {
 public:
  using Run = MeasuredRun<Int>;
  using Finest = FinestGrid<T, Int>;
  static constexpr std::uint64_t kPadding = kChunkPadding;
  static constexpr double kLikely = 0.75;
  using Sizes = MeasuredSizes<Int>;
  static Sizes sizes(const ProgressiveLayout& layout, Extents block) { return measured_sizes<T, Int>(layout, block); }

  MeasuredBlock(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
                const Region& block, const Sizes& sizes, std::uint8_t* bytes)
      : q_(q), layout_(q.layout), head_(head), limits_{static_cast<Int>(head.low), static_cast<Int>(head.high)} {
    auto* const runs = reinterpret_cast<Run*>(bytes);
    memory_ = reinterpret_cast<Int*>(bytes + sizes.runs * sizeof(Run));
    const auto take = [&](std::uint64_t count) { return std::exchange(memory_, memory_ + count); };
    // Padding beside the rows of known points enters predictions that are discarded; it must not be large enough to
    // overflow.
    const auto take_padded = [&](std::uint64_t count, std::uint64_t cleared) {
      Int* const from = take(count + 2 * kPadding);
      std::memset(from, 0, (cleared + kPadding) * sizeof *from);
      std::memset(from + kPadding + count, 0, kPadding * sizeof *from);
      return from + kPadding;
    };
    region_[0] = block;
    for (int k = 0; k < layout_.levels; ++k) {
      const Extents g = layout_.grids[k + 1];
      const std::uint64_t evens[3] = {g.z, g.y, g.x};
      for (int a = 0; a < 3; ++a)
        coarser_range(region_[k].lo[a], region_[k].hi[a], evens[a], &region_[k + 1].lo[a], &region_[k + 1].hi[a]);
      const Region& r = region_[k + 1];
      const std::uint64_t row = row_entries<T, Int>(layout_, k + 1, r.extent(2)),
                          count = r.extent(0) * r.extent(1) * row;
      grid_[k + 1] = take_padded(count, 0);
      for (std::uint64_t i = row; row != r.extent(2) && i <= count; i += row)
        std::fill(grid_[k + 1] + (i - (row - r.extent(2))), grid_[k + 1] + i, limits_.low);
    }
    std::uint64_t made[3] = {0, 0, 0};
    units_ = layout_.units;
    while (Finest::serves(layout_) && units_ != 0 && layout_.unit[units_ - 1].level == 0) --units_;
    for (int u = 0; u < units_; ++u) {
      const ProgressiveUnit& unit = layout_.unit[u];
      part_[u] = needed_of(unit);
      const std::uint64_t count = points_[u] = stored_points(u);
      if (unit.axis != 2 || unit.level != 0)
        made[unit.axis] = std::max(made[unit.axis], part_[u].extent(0) * part_[u].extent(1) * pitch(unit.level));
      coefficients_[u] = take(count);
      originals_[u] = take(count);
      load_unit(u, kind, values);
    }
    for (int a = 0; a < 3; ++a) made_[a] = take_padded(made[a], made[a]);
    Run* run = runs;
    for (int u = 0; u < units_; ++u) {
      runs_[u] = run;
      run = plan_unit(u, run);
      run_count_[u] = static_cast<std::size_t>(run - runs_[u]);
    }
    const Region& r = region_[layout_.levels];
    Int* to = grid_[layout_.levels];
    for (std::uint64_t z = r.lo[0]; z < r.hi[0]; ++z)
      for (std::uint64_t y = r.lo[1]; y < r.hi[1]; ++y, to += row_entries<T, Int>(layout_, layout_.levels, r.extent(2)))
        for (std::uint64_t x = r.lo[2]; x < r.hi[2]; ++x) to[x - r.lo[2]] = *q.point(layout_.levels, z, y, x);
    if (units_ == layout_.units) return;
    finest_.emplace(q, head, kind, values, region_[0], region_[1], memory_);
    for (int u = units_; u < layout_.units; ++u) largest_[u] = finest_->largest(layout_.unit[u].axis);
  }

  // Raises a reader's error to the largest error of this block's values, or to an error with the same code.
  void measure(MeasuredReader& reader, std::uint64_t conversion) {
    std::uint64_t local[kMostUnits], found = 0, reach = 0;  // errors of coefficients, of ordinary values, of all points
    std::uint64_t all = 0;                                  // the bound before anything is known
    bool some[kMostUnits];
    const std::uint64_t before = as_in_table(reader.error.load(std::memory_order_relaxed), conversion);
    for (int u = 0; u < layout_.units; ++u) {
      const int planes = head_.planes[u], plane = reader.state[u];
      const std::uint64_t largest = largest_[u];
      some[u] = largest != 0 && (plane < 0 || (plane < planes && largest >> plane != 0));
      local[u] = plane < 0 ? 0 : some[u] ? coefficient_error(planes, plane) : largest;
    }
    for (int u = 0; u < layout_.units; ++u) {
      if (u == 0 || layout_.unit[u].level == 0 || layout_.unit[u].level != layout_.unit[u - 1].level) {
        std::uint64_t bound = reach;  // of all points, including those of `found`
        for (int v = u; v < layout_.units; ++v) bound = error_after_pass(bound, head_.cubic[v], local[v]);
        if (u == 0) all = bound;
        if (bound <= std::max(found, before)) break;
      }
      if (u == units_) {
        std::int8_t planes[3] = {-1, -1, -1};
        for (int v = u; v < layout_.units; ++v) planes[layout_.unit[v].axis] = reader.state[v];
        found = std::max(found, before);
        // the first guess for a reader: the same fraction of its bound as the previous reader's error
        const auto range = static_cast<double>(head_.high - head_.low);
        const double guess = before != 0 ? 0 : std::min(range, kLikely * part_of_bound_ * static_cast<double>(all));
        found = static_cast<std::uint64_t>(finest_->measure(
            planes, grid_[1], static_cast<Int>(as_in_table(found, conversion)), static_cast<Int>(guess),
            [&](Int error) { return static_cast<Int>(as_in_table(static_cast<std::uint64_t>(error), conversion)); }));
        break;
      }
      const auto largest = static_cast<std::uint64_t>(make_unit(u, some[u], reader.state[u]));
      found = std::max(found, largest);
      reach =
          marked_[u] ? std::max(reach, error_after_pass(reach, head_.cubic[u], local[u])) : std::max(reach, largest);
    }
    if (all != 0) part_of_bound_ = static_cast<double>(std::max(found, before)) / static_cast<double>(all);
    if (found <= before) return;
    raise_to(reader.error, found);
  }

 private:
  // The needed points of a unit: rows (z, y) and columns in the unit's grid.
  Region needed_of(const ProgressiveUnit& unit) const {
    const Region &fine = region_[unit.level], &coarse = region_[unit.level + 1];
    Region part;
    for (int a = 0; a < 3; ++a) {
      const Region& r = a < unit.axis ? fine : coarse;
      part.lo[a] = a == unit.axis ? fine.lo[a] / 2 : r.lo[a];
      part.hi[a] = a == unit.axis ? fine.hi[a] / 2 : r.hi[a];
    }
    return part;
  }

  // Known points of a row of a level. Rows of a unit's points are as long: along x, the odd point behind each known
  // one, whether needed or not.
  std::uint64_t pitch(int level) const { return region_[level + 1].extent(2); }

  // The points of a row along x with another stencil than most: they are stored behind all others of the unit.
  struct Ends {
    std::uint64_t j[kMostEnds];
    int count = 0;
  };
  Ends ends_of(int u) const {
    const std::uint64_t evens = half_up(layout_.grids[layout_.unit[u].level].x);
    const auto at = [](std::uint64_t) -> const Int* { return nullptr; };
    Ends ends;
    for (const std::uint64_t j : {std::uint64_t{0}, evens - 2, evens - 1}) {  // evens is 1 at least
      const bool again = ends.count != 0 && ends.j[ends.count - 1] == j;
      if (again || j < part_[u].lo[2] || j >= part_[u].hi[2]) continue;
      if (neighbours_of<Int>(j, evens, head_.cubic[u], at).stencil != most_of(u)) ends.j[ends.count++] = j;
    }
    return ends;
  }
  Stencil most_of(int u) const { return head_.cubic[u] ? Stencil::cubic : Stencil::linear; }

  // Number of stored points of a unit.
  std::uint64_t stored_points(int u) const {
    const ProgressiveUnit& unit = layout_.unit[u];
    const std::uint64_t rows = part_[u].extent(0) * part_[u].extent(1);
    return rows * (pitch(unit.level) + (unit.axis == 2 ? static_cast<std::uint64_t>(ends_of(u).count) : 0));
  }

  // Index of row (z, y) of a unit. Along x the rows of even y come first in each plane, as in the grid that they are
  // made from.
  std::uint64_t row_number(int u, std::uint64_t z, std::uint64_t y) const {
    const Region& part = part_[u];
    const std::uint64_t first = (z - part.lo[0]) * part.extent(1);
    if (layout_.unit[u].axis != 2) return first + (y - part.lo[1]);
    return first + (y % 2 == 0 ? y / 2 - half_up(part.lo[1]) : even_rows(part) + y / 2 - part.lo[1] / 2);
  }
  static std::uint64_t even_rows(const Region& part) { return half_up(part.hi[1]) - half_up(part.lo[1]); }

  // Loads the coefficients and integers of a unit.
  void load_unit(int u, const KindOf<T>* kind, const void* values) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const Region& part = part_[u];
    const bool along_x = unit.axis == 2;
    const std::uint64_t n = part.extent(2), rows = part.extent(0) * part.extent(1), row = pitch(unit.level);
    const std::uint64_t left = along_x ? part.lo[2] - region_[unit.level + 1].lo[2] : 0;
    const Ends ends = along_x ? ends_of(u) : Ends{};
    const std::size_t step = q_.step(unit);
    bool marked = false;
    const std::uint64_t all = points_[u];
    if (along_x) {
      std::memset(coefficients_[u], 0, all * sizeof(Int));
      std::fill_n(originals_[u], all, kMissing<Int>);
    }
    const auto load = [&](const Neighbours<Int>& from, const Int* target, std::uint64_t some, std::uint64_t index) {
      Int *const c = coefficients_[u] + index, *const t = originals_[u] + index;
      coefficients_of_run(from, limits_, target, some, step, c);
      with_step(step, [&](auto every) {
        for (std::uint64_t i = 0; i < some; ++i) t[i] = target[i * every];
      });
      if (kind == nullptr) return;
      constexpr std::uint64_t kPart = 256;
      const KindOf<T> kinds = *kind;
      for (std::uint64_t first = 0; first < some; first += kPart) {
        const std::uint64_t count = std::min(kPart, some - first);
        const auto at = static_cast<std::uint64_t>(target - q_.at) + first * step;
        T here[kPart];
        with_step(step, [&](auto every) {
          for (std::uint64_t i = 0; i < count; ++i) here[i] = value_at<T>(values, at + i * every);
        });
        Int* const to = t + first;
        std::uint32_t special = 0;
        if (kinds.in_reach) {
          for (std::uint64_t i = 0; i < count; ++i) {
            if (kinds(here[i]) == kPlain) continue;
            to[i] = kMissing<Int>;
            ++special;
          }
        } else {
          for (std::uint64_t i = 0; i < count; ++i) {
            const bool is = kinds.is_missing_or_verbatim(here[i]);
            to[i] = is ? kMissing<Int> : to[i];
            special += is ? 1 : 0;
          }
        }
        marked = marked || special != 0;
      }
    };
    for (std::uint64_t z = part.lo[0]; z < part.hi[0]; ++z) {
      for (std::uint64_t y = part.lo[1]; y < part.hi[1]; ++y) {
        const std::uint64_t number = row_number(u, z, y);
        visit_run(q_, unit, head_.cubic[u], z, y, part.lo[2], n,
                  [&](const Neighbours<Int>& from, const Int* target, std::uint64_t some, std::uint64_t before) {
                    int end = 0;
                    while (end < ends.count && ends.j[end] != part.lo[2] + before) ++end;
                    load(from, target, some,
                         end < ends.count ? rows * (row + static_cast<std::uint64_t>(end)) + number
                                          : number * row + left + before);
                  });
      }
    }
    Int highest = 0, lowest = 0;
    for (std::uint64_t i = 0; i < all; ++i) {
      const Int c = coefficients_[u][i];
      highest = c > highest ? c : highest;
      lowest = c < lowest ? c : lowest;
    }
    largest_[u] = static_cast<std::uint64_t>(highest > -lowest ? highest : -lowest);
    marked_[u] = marked;
  }

  // Plans the runs of a unit, which are the same for all readers.
  Run* plan_unit(int u, Run* const runs) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const int level = unit.level, axis = unit.axis;
    const Extents g = layout_.grids[level];
    const Region& part = part_[u];
    const std::uint64_t row = pitch(level), rows = part.extent(0) * part.extent(1);
    unit_of_[axis] = u;
    Run* end = runs;
    if (part.count() == 0) return end;
    if (axis != 2) {
      for (std::uint64_t z = part.lo[0]; z < part.hi[0]; ++z) {
        for (std::uint64_t y = part.lo[1]; y < part.hi[1]; ++y) {
          const auto known = [&](std::uint64_t i) {
            return axis == 0 ? even_row(level, 2 * i, 2 * y) : even_row(level, z, 2 * i);
          };
          const std::uint64_t first = row_number(u, z, y) * row;
          const auto from =
              neighbours_of<Int>(axis == 0 ? z : y, half_up(axis == 0 ? g.z : g.y), head_.cubic[u], known);
          end = add_run(runs, end, {from, made_[axis] + first, first, row, 1});
        }
      }
      return end;
    }
    const Ends ends = ends_of(u);
    const bool stored = level != 0;
    const std::uint64_t left = region_[level + 1].lo[2];
    const auto each_row = [&](auto&& add) {
      for (std::uint64_t z = part.lo[0]; z < part.hi[0]; ++z)
        for (std::uint64_t odd = 0; odd < 2; ++odd)
          for (std::uint64_t y = part.lo[1] + (part.lo[1] + odd) % 2; y < part.hi[1]; y += 2)
            add(even_row(level, z, y), row_number(u, z, y));
    };
    if (static_cast<std::uint64_t>(ends.count) != part.extent(2)) {
      each_row([&](const Int* even, std::uint64_t number) {
        Neighbours<Int> from{most_of(u), even, even + 1};
        if (head_.cubic[u]) {
          from.c = even - 1;
          from.d = even + 2;
        }
        end = add_run(runs, end, {from, stored ? made_[2] + number * row : nullptr, number * row, row, 1});
      });
    }
    for (int e = 0; e < ends.count; ++e) {
      each_row([&](const Int* even, std::uint64_t number) {
        const auto from = neighbours_of<Int>(ends.j[e], half_up(g.x), head_.cubic[u],
                                             [&](std::uint64_t i) { return even + (i - left); });
        end = add_run(runs, end,
                      {from, stored ? made_[2] + number * row + (ends.j[e] - left) : nullptr,
                       rows * (row + static_cast<std::uint64_t>(e)) + number, 1, row});
      });
    }
    return end;
  }

  // Row (z, y) of the even points of a level, from its region's first point on.
  const Int* even_row(int level, std::uint64_t z, std::uint64_t y) const {
    const Region& coarse = region_[level + 1];
    const std::uint64_t n = coarse.extent(2);
    if (y % 2 != 0) {
      const Region& part = part_[unit_of_[1]];
      return made_[1] + ((z - part.lo[0]) * part.extent(1) + (y / 2 - part.lo[1])) * n;
    }
    if (z % 2 != 0) {
      const Region& part = part_[unit_of_[0]];
      return made_[0] + ((z / 2 - part.lo[0]) * part.extent(1) + (y / 2 - part.lo[1])) * n;
    }
    return grid_[level + 1] + ((z / 2 - coarse.lo[0]) * coarse.extent(1) + (y / 2 - coarse.lo[1])) * n;
  }

  // Makes a reader's values of a unit; returns the largest error of its ordinary values.
  Int make_unit(int u, bool some, int plane) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const KnownPart<Int> known(some ? plane : -1);
    const Run* const runs = runs_[u];
    const std::size_t count = run_count_[u];
    unit_of_[unit.axis] = u;
    Int most = 0;
    for (std::size_t i = 0, next; i < count; i = next) {
      const auto alike = [&](const Run& run) {
        return run.from.stencil == runs[i].from.stencil && (run.step == 1) == (runs[i].step == 1);
      };
      for (next = i + 1; next < count && alike(runs[next]);) ++next;
      const Int here = measure_runs(some, marked_[u] || unit.axis == 2, runs + i, next - i, limits_, known,
                                    coefficients_[u], originals_[u]);
      most = here > most ? here : most;
    }
    const Extents g = layout_.grids[unit.level];
    if (unit.level != 0 && (unit.axis == 2 || (g.x == 1 && (unit.axis == 1 || g.y == 1)))) {
      const Region& r = region_[unit.level];
      for (std::uint64_t z = r.lo[0]; z < r.hi[0]; ++z)
        for (std::uint64_t y = r.lo[1]; y < r.hi[1]; ++y)
          join_row(unit.level, z, y, g.x == 1 ? 0 : row_number(u, z, y));
    }
    return most;
  }

  // Merges even and odd points into a row of the level's grid; the odd points are row `number` of their unit.
  void join_row(int level, std::uint64_t z, std::uint64_t y, std::uint64_t number) {
    const Region& r = region_[level];
    const std::uint64_t from = region_[level + 1].lo[2], x0 = r.lo[2], n = r.extent(2), odd = x0 % 2;
    const Int* const even = even_row(level, z, y);
    const Int* const made = made_[2] + number * pitch(level);  // starts with the point behind known point `from`
    Int* __restrict const to =
        grid_[level] + ((z - r.lo[0]) * r.extent(1) + (y - r.lo[1])) * row_entries<T, Int>(layout_, level, n);
    if (odd != 0) to[0] = made[x0 / 2 - from];
    const Int *const e = even + ((x0 + odd) / 2 - from), *const o = made + ((x0 + odd) / 2 - from);
    const std::uint64_t pairs = (n - odd) / 2;
    for (std::uint64_t i = 0; i < pairs; ++i) {
      to[odd + 2 * i] = e[i];
      to[odd + 2 * i + 1] = o[i];
    }
    if ((n - odd) % 2 != 0) to[n - 1] = e[pairs];
  }

  const Points<Int>& q_;
  const ProgressiveLayout& layout_;
  const ProgressiveHead& head_;
  const Limits<Int> limits_;
  Region region_[kMostLevels + 1], part_[kMostUnits];
  Int *memory_, *grid_[kMostLevels + 1], *coefficients_[kMostUnits], *originals_[kMostUnits];
  Int* made_[3];
  Run* runs_[kMostUnits];
  std::size_t run_count_[kMostUnits];
  std::uint64_t points_[kMostUnits];
  std::uint64_t largest_[kMostUnits];
  bool marked_[kMostUnits];
  int unit_of_[3] = {0, 0, 0};  // the unit whose rows are in made_
  int units_;                   // the finest level's units are in finest_
  std::optional<Finest> finest_;
  double part_of_bound_ = 0;
};

PYF_END_TARGET
