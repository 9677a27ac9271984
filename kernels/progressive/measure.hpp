// SPDX-License-Identifier: BSD-3-Clause
// The largest errors that readers are left with, measured: what the decoder makes of the first segments, block by block
// of the array, for all readers at once, so that little memory is needed and none of it is far away. A block needs a
// few points around it at each level. Readers to whose largest error it cannot add are passed over.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cpu_driver.hpp"
#include "core/target.hpp"
#include "progressive/choices.hpp"
#include "progressive/head.hpp"
#include "progressive/measured_runs.hpp"
#include "progressive/points.hpp"
#include "progressive/scan.hpp"
#include "progressive/tile.hpp"

namespace pyfilter {

// A reader: of unit u it has the segments down to that of plane state[u].
struct Cut {
  int segment = 0;  // the last one
  std::int8_t state[kMostUnits] = {};
  std::atomic<std::uint64_t> error{0};  // the largest one of an ordinary value
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

// A block, with what it needs of all levels.
template <class T, class Int>
class MeasuredBlock {
 public:
  using Run = MeasuredRun<Int>;
  // What one needs room for.
  struct Room {
    std::uint64_t runs = 0, numbers = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(runs * sizeof(Run) + numbers * sizeof(Int)); }
  };
  static Room room(const ProgressiveLayout& layout, Extents block) {
    Room total;
    std::uint64_t side[3] = {block.z, block.y, block.x}, made[3] = {0, 0, 0};
    for (int k = 0; k < layout.levels; ++k) {
      const Extents g = layout.grids[k + 1];
      const std::uint64_t evens[3] = {g.z, g.y, g.x};
      std::uint64_t next[3];
      for (int a = 0; a < 3; ++a) next[a] = std::min(evens[a], side[a] / 2 + 4);
      const std::uint64_t rows[3] = {(side[0] / 2 + 1) * next[1], side[0] * (side[1] / 2 + 1), side[0] * side[1]};
      const std::uint64_t points[3] = {rows[0] * next[2], rows[1] * next[2], rows[2] * (side[2] / 2 + 1)};
      for (int a = 0; a < 3; ++a) {
        total.numbers += 3 * points[a];  // coefficients, what is known of them, integers
        made[a] = std::max(made[a], a == 2 ? side[2] / 2 + 1 : points[a]);
      }
      total.numbers += next[0] * next[1] * next[2];  // grid k + 1
      total.runs += rows[0] + rows[1] + 4 * rows[2];
      for (int a = 0; a < 3; ++a) side[a] = next[a];
    }
    total.numbers += made[0] + made[1] + made[2];
    return total;
  }

  MeasuredBlock(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
                const Region& block, const Room& room, std::uint8_t* bytes)
      : q_(q), layout_(q.layout), head_(head), limits_{static_cast<Int>(head.low), static_cast<Int>(head.high)} {
    auto* const runs = reinterpret_cast<Run*>(bytes);
    memory_ = reinterpret_cast<Int*>(bytes + room.runs * sizeof(Run));
    const auto take = [&](std::uint64_t count) { return std::exchange(memory_, memory_ + count); };
    region_[0] = block;
    for (int k = 0; k < layout_.levels; ++k) {
      const Extents g = layout_.grids[k + 1];
      const std::uint64_t evens[3] = {g.z, g.y, g.x};
      for (int a = 0; a < 3; ++a)
        coarser_range(region_[k].lo[a], region_[k].hi[a], evens[a], &region_[k + 1].lo[a], &region_[k + 1].hi[a]);
      grid_[k + 1] = take(region_[k + 1].count());
    }
    std::uint64_t made[3] = {0, 0, 0};
    for (int u = 0; u < layout_.units; ++u) {
      const int axis = layout_.unit[u].axis;
      part_[u] = part_of(layout_.unit[u]);
      const std::uint64_t count = part_[u].count();
      made[axis] = std::max(made[axis], axis == 2 ? part_[u].extent(2) : count);
      coefficients_[u] = take(count);
      known_[u] = take(count);
      originals_[u] = take(count);
      known_plane_[u] = kMostPlanes;
      load_unit(u, kind, values);
    }
    for (int a = 0; a < 3; ++a) made_[a] = take(made[a]);
    Run* run = runs;
    for (int u = 0; u < layout_.units; ++u) {
      runs_[u] = run;
      run = plan_unit(u, run);
      run_count_[u] = static_cast<std::size_t>(run - runs_[u]);
    }
    const Region& r = region_[layout_.levels];
    Int* to = grid_[layout_.levels];
    for (std::uint64_t z = r.lo[0]; z < r.hi[0]; ++z)
      for (std::uint64_t y = r.lo[1]; y < r.hi[1]; ++y)
        for (std::uint64_t x = r.lo[2]; x < r.hi[2]; ++x) *to++ = *q.point(layout_.levels, z, y, x);
  }

  // Moves the error of a reader up to that of its values in this block.
  void measure(Cut& cut) {
    std::uint64_t local[kMostUnits], found = 0, reach = 0;  // errors of coefficients, ordinary values, all points
    bool some[kMostUnits];
    for (int u = 0; u < layout_.units; ++u) {
      const int planes = head_.planes[u], plane = cut.state[u];
      const std::uint64_t largest = largest_[u];
      some[u] = largest != 0 && (plane < 0 || (plane < planes && largest >> plane != 0));
      local[u] = plane < 0 ? 0 : some[u] ? coefficient_error(planes, plane) : largest;
    }
    for (int u = 0; u < layout_.units; ++u) {
      if (u == 0 || layout_.unit[u].level == 0 || layout_.unit[u].level != layout_.unit[u - 1].level) {
        std::uint64_t bound = reach;  // of all points, with those of `found` among them
        for (int v = u; v < layout_.units; ++v) bound = error_after_pass(bound, head_.cubic[v], local[v]);
        if (bound <= cut.error.load(std::memory_order_relaxed)) break;
      }
      const auto largest = static_cast<std::uint64_t>(make_unit(u, some[u], cut.state[u]));
      found = std::max(found, largest);
      reach =
          marked_[u] ? std::max(reach, error_after_pass(reach, head_.cubic[u], local[u])) : std::max(reach, largest);
    }
    for (std::uint64_t seen = cut.error; found > seen && !cut.error.compare_exchange_weak(seen, found);) continue;
  }

 private:
  // The points of a unit that are needed: rows (z, y) and columns as the unit has them.
  Region part_of(const ProgressiveUnit& unit) const {
    const Region &fine = region_[unit.level], &coarse = region_[unit.level + 1];
    Region part;
    for (int a = 0; a < 3; ++a) {
      const Region& r = a < unit.axis ? fine : coarse;
      part.lo[a] = a == unit.axis ? fine.lo[a] / 2 : r.lo[a];
      part.hi[a] = a == unit.axis ? fine.hi[a] / 2 : r.hi[a];
    }
    return part;
  }

  // Coefficients and integers of a unit.
  void load_unit(int u, const KindOf<T>* kind, const void* values) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const Region& part = part_[u];
    const std::uint64_t n = part.extent(2);
    Int *c = coefficients_[u], *t = originals_[u];
    const std::size_t step = q_.step(unit);
    Int highest = 0, lowest = 0;
    bool marked = false;
    for (std::uint64_t z = part.lo[0]; z < part.hi[0]; ++z) {
      for (std::uint64_t y = part.lo[1]; y < part.hi[1]; ++y, c += n, t += n) {
        visit_run(q_, unit, head_.cubic[u], z, y, part.lo[2], n,
                  [&](const Neighbours<Int>& from, const Int* target, std::uint64_t some, std::uint64_t before) {
                    coefficients_of_run(from, limits_, target, some, step, c + before);
                    for (std::uint64_t i = 0; i < some; ++i) t[before + i] = target[i * step];
                    for (std::uint64_t i = 0; kind != nullptr && i < some; ++i) {
                      const auto at = static_cast<std::uint64_t>(target - q_.at) + i * step;
                      if ((*kind)(value_at<T>(values, at)) == kPlain) continue;
                      t[before + i] = kMissing<Int>;
                      marked = true;
                    }
                  });
        for (std::uint64_t i = 0; i < n; ++i) {
          highest = c[i] > highest ? c[i] : highest;
          lowest = c[i] < lowest ? c[i] : lowest;
        }
      }
    }
    largest_[u] = static_cast<std::uint64_t>(highest > -lowest ? highest : -lowest);
    marked_[u] = marked;
  }

  // The runs of a unit, which are the same for all readers.
  Run* plan_unit(int u, Run* run) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const int level = unit.level;
    const Extents g = layout_.grids[level];
    const Region& part = part_[u];
    const std::uint64_t n = part.extent(2);
    const bool cubic = head_.cubic[u];
    unit_of_[unit.axis] = u;
    std::uint64_t first = 0;
    if (n == 0) return run;
    for (std::uint64_t z = part.lo[0]; z < part.hi[0]; ++z) {
      for (std::uint64_t y = part.lo[1]; y < part.hi[1]; ++y, first += n) {
        if (unit.axis == 2) {
          const Int* const even = even_row(level, z, y);
          const std::uint64_t left = region_[level + 1].lo[2];
          along_x<Int>([&](std::uint64_t i) { return even + (i - left); }, half_up(g.x), part.lo[2], n, cubic,
                       [&](const Neighbours<Int>& from, std::uint64_t j, std::uint64_t count) {
                         const std::uint64_t before = j - part.lo[2];
                         *run++ = {from, made_[2] + before, first + before, count};
                       });
        } else {
          const auto known = [&](std::uint64_t i) {
            return unit.axis == 0 ? even_row(level, 2 * i, 2 * y) : even_row(level, z, 2 * i);
          };
          *run++ = {neighbours_of<Int>(unit.axis == 0 ? z : y, half_up(unit.axis == 0 ? g.z : g.y), cubic, known),
                    made_[unit.axis] + first, first, n};
        }
      }
    }
    return run;
  }

  // Row (z, y) of the even points of a level, from the first that its region needs on.
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

  // What a reader makes of a unit; the largest error of its ordinary values.
  Int make_unit(int u, bool some, int plane) {
    const ProgressiveUnit& unit = layout_.unit[u];
    const Int* const known = plane < 0 ? coefficients_[u] : known_[u];
    if (some && plane >= 0 && plane != known_plane_[u]) {
      const KnownPart<Int> part(plane);
      const std::uint64_t count = part_[u].count();
      const Int* const from = coefficients_[u];
      Int* __restrict const to = known_[u];
      for (std::uint64_t i = 0; i < count; ++i) to[i] = part(from[i]);
      known_plane_[u] = plane;
    }
    const Run* const runs = runs_[u];
    const std::size_t count = run_count_[u];
    const bool joins = unit.axis == 2 && unit.level != 0;
    unit_of_[unit.axis] = u;
    Int most = 0;
    for (std::size_t i = 0, next; i < count; i = next) {
      // rows that are joined share the memory of the run
      for (next = i + 1; next < count && !joins && runs[next].from.stencil == runs[i].from.stencil;) ++next;
      const Int here = measure_runs(some, marked_[u], runs + i, next - i, limits_, known, originals_[u]);
      most = here > most ? here : most;
      if (joins && (runs[i].first + runs[i].count) % part_[u].extent(2) == 0)
        join_row(unit.level, runs[i].first / part_[u].extent(2));
    }
    const Extents g = layout_.grids[unit.level];
    const bool no_odd = joins ? count == 0 : g.x == 1 && (unit.axis == 1 || g.y == 1);
    if (no_odd && unit.level != 0)
      for (std::uint64_t row = 0; row < region_[unit.level].extent(0) * region_[unit.level].extent(1); ++row)
        join_row(unit.level, row);
    return most;
  }

  // Even and odd points to row number `row` of the level's grid.
  void join_row(int level, std::uint64_t row) {
    const Region& r = region_[level];
    const std::uint64_t from = region_[level + 1].lo[2], x0 = r.lo[2], n = r.extent(2), odd = x0 % 2;
    const Int* const even = even_row(level, r.lo[0] + row / r.extent(1), r.lo[1] + row % r.extent(1));
    Int* __restrict const to = grid_[level] + row * n;
    if (odd != 0) to[0] = made_[2][0];
    const Int *const e = even + ((x0 + odd) / 2 - from), *const o = made_[2] + odd;
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
  Int *memory_, *grid_[kMostLevels + 1], *coefficients_[kMostUnits], *known_[kMostUnits], *originals_[kMostUnits];
  Int* made_[3];
  Run* runs_[kMostUnits];
  std::size_t run_count_[kMostUnits];
  int known_plane_[kMostUnits];
  std::uint64_t largest_[kMostUnits];
  bool marked_[kMostUnits];
  int unit_of_[3] = {0, 0, 0};  // that rows are in made_ of
};

// Errors of all readers. False without memory.
template <class T, class Int>
inline bool measure_errors(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
                           Cut* cuts, int count) {
  const ProgressiveLayout& layout = q.layout;
  const Extents whole = layout.grids[0], block = block_extents<Int>(whole);
  const std::uint64_t nz = tiles_along(whole.z, block.z), ny = tiles_along(whole.y, block.y),
                      nx = tiles_along(whole.x, block.x);
  const auto room = MeasuredBlock<T, Int>::room(layout, block);
  std::atomic<bool> good{true};
  in_parallel(nz * ny * nx, 1, [&](std::uint64_t number) {
    std::uint8_t* const memory = thread_scratch(room.bytes());
    if (memory == nullptr) {
      good = false;
      return;
    }
    const std::uint64_t x = number % nx * block.x, y = number / nx % ny * block.y, z = number / nx / ny * block.z;
    const Region region{
        {z, y, x}, {std::min(z + block.z, whole.z), std::min(y + block.y, whole.y), std::min(x + block.x, whole.x)}};
    MeasuredBlock<T, Int> here(q, head, kind, values, region, room, memory);
    for (int i = 0; i < count; ++i) here.measure(cuts[i]);
  });
  return good;
}

PYF_END_TARGET
