// SPDX-License-Identifier: BSD-3-Clause
// Refining passes (docs/format.md, section 14.4). The points of a lattice whose coordinates have the same parities are
// a class. The class of even coordinates is known; each turn codes another class.
//
// A class has at most 16 rows. Two halves of it are coded side by side, 16 lanes each: of a volume's planes, of a
// plane's columns. (A line's runs are 32 rows.) In a half, rows go side by side as in the first pass (layout.hpp), each
// a step behind the one above.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adaptive/tile.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kHalf = kRows / 2;  // lanes of a half

KFN std::uint32_t refining_turns(TileKind kind) { return (1u << static_cast<std::uint32_t>(kind)) - 1; }
// The classes in the order of their turns, as parities: those with fewer odd coordinates first.
KFN std::uint32_t parity_of_turn(TileKind kind, std::uint32_t turn) {
  return kind != TileKind::volume ? turn : turn == 3 ? 4 : turn == 4 ? 3 : turn;
}

// The arrays of a lattice's classes.
struct Refinement {
  static constexpr std::uint32_t kMargin = 2;  // neighbours outside, along each axis
  static constexpr std::uint32_t kLineMargin = 8;

  TileKind kind = TileKind::line;
  std::uint32_t planes = 1, rows = 1, columns = 1;  // of the lattice
  std::uint32_t lead = 0, period = 0, stride = 0;   // steps before a row, from plane to plane; cells of a step
  std::uint32_t half = 0;                           // planes or columns of the first half
  std::uint32_t group_cells = 0, class_cells = 0;   // from half to half, from class to class
  std::uint32_t first_cell = 0;

  Refinement() = default;
  KFN Refinement(TileKind k, std::uint32_t z, std::uint32_t y, std::uint32_t x)
      : kind(k), planes(z), rows(y), columns(x) {
    lead = is_line() ? kLineMargin : kMargin;
    period = columns_of(0) + 2 * lead;
    stride = is_line() ? kRows : kHalf + 2 * kMargin;
    half = is_line() ? 0 : ((is_volume() ? planes_of(0) : columns_of(0)) + 1) / 2;
    group_cells = is_line() ? kHalf : (is_volume() ? half * period : half) * stride;
    const std::uint32_t before = (is_volume() ? kMargin * period : 0) + 2 * kLineMargin;
    first_cell = before * stride + kMargin;
    const std::uint32_t steps_of_both = is_volume() ? (2 * half + kMargin) * period : is_line() ? period : 2 * half;
    class_cells = (before + steps_of_both + 2 * kRows) * stride;
  }

  KFN bool is_line() const { return kind == TileKind::line; }
  KFN bool is_volume() const { return kind == TileKind::volume; }
  KFN std::uint32_t skew() const { return is_line() ? 0 : 1; }
  KFN std::uint32_t classes() const { return 1 + refining_turns(kind); }
  KFN static std::uint32_t odd(std::uint32_t parity, std::uint32_t axis) { return parity >> axis & 1; }
  KFN static std::uint32_t part(std::uint32_t n, std::uint32_t odd) { return (n + 1 - odd) / 2; }
  // The extents of a class.
  KFN std::uint32_t planes_of(std::uint32_t parity) const { return is_volume() ? part(planes, odd(parity, 2)) : 1; }
  KFN std::uint32_t rows_of(std::uint32_t parity) const { return is_line() ? rows : part(rows, odd(parity, 1)); }
  KFN std::uint32_t columns_of(std::uint32_t parity) const { return part(columns, odd(parity, 0)); }

  KFN std::size_t floats() const { return std::size_t{class_cells} * classes(); }
  KFN std::uint32_t steps() const {  // of a turn
    return (is_volume() ? half * period : is_line() ? period : lead + half) + skew() * (rows_of(0) - 1);
  }
  // The cell of lane 0 at a step.
  KFN CellIndex cell_of_step(std::uint32_t parity, std::uint32_t step) const {
    return static_cast<CellIndex>(parity * class_cells + first_cell + step * stride);
  }
  KFN CellIndex cell_of_lane(std::uint32_t lane) const {  // from that of lane 0
    return static_cast<CellIndex>(lane % kHalf + lane / kHalf * group_cells);
  }
  // The cell of a point of a class, or of one outside.
  KFN CellIndex cell(std::uint32_t parity, std::int32_t z, std::int32_t y, std::int32_t x) const {
    const std::int32_t step = z * static_cast<std::int32_t>(period) + static_cast<std::int32_t>(lead) + x +
                              static_cast<std::int32_t>(skew()) * y;
    return cell_of_step(parity, 0) + static_cast<CellIndex>(step * static_cast<std::int32_t>(stride) + y);
  }
  // The step and the lane of a point of a class.
  KFN void find(std::uint32_t z, std::uint32_t y, std::uint32_t x, std::uint32_t* step, std::uint32_t* lane) const {
    const bool behind = !is_line() && (is_volume() ? z : x) >= half;
    const std::uint32_t from = behind ? half : 0;
    *step = (is_volume() ? z - from : 0) * period + lead + x - (is_volume() ? 0 : from) + skew() * y;
    *lane = y + (behind ? kHalf : 0);
  }
  // A neighbour's class, and its place in it from the value's own.
  struct Neighbour {
    std::uint32_t parity;
    std::int32_t z, y, x;
  };
  KFN Neighbour neighbour(std::uint32_t parity, Tap tap) const {
    const auto along = [&](std::uint32_t axis, std::int32_t by) {
      return static_cast<std::int32_t>(odd(parity, axis)) + by;
    };
    const std::int32_t z = along(2, tap.z), y = along(1, tap.y), x = along(0, tap.x);
    return {static_cast<std::uint32_t>((z & 1) << 2 | (y & 1) << 1 | (x & 1)), z >> 1, y >> 1, x >> 1};
  }
  KFN CellIndex distance(std::uint32_t parity, Tap tap) const {
    const Neighbour n = neighbour(parity, tap);
    return cell(n.parity, n.z, n.y, n.x) - cell(parity, 0, 0, 0);
  }
};

// A row of the known class, or one outside of the lattice that has copies of the nearest row.
struct KnownRow {
  std::int32_t z, y, columns;  // its place; its values, of which a line's runs may have different numbers
  std::size_t from, by;        // the first value in the dense array, and the way to the next
  bool is_inside;

  // number: below known_rows()
  KFN KnownRow(const Refinement& shape, const Dense& dense, const Lattice& lattice, std::uint32_t number) {
    const std::uint32_t high = height(shape), row = number % high, plane = number / high;
    z = static_cast<std::int32_t>(plane) - (shape.is_volume() ? kMargin : 0);
    y = static_cast<std::int32_t>(row) - (shape.is_line() ? 0 : kMargin);
    const std::uint32_t near_z = nearest(z, shape.planes_of(0)), near_y = nearest(y, shape.rows_of(0));
    is_inside = z == static_cast<std::int32_t>(near_z) && y == static_cast<std::int32_t>(near_y);
    columns = static_cast<std::int32_t>(shape.is_line() ? (lattice.lengths[near_y] + 1) / 2 : shape.columns_of(0));
    from = lattice.index(dense, 2 * near_z, shape.is_line() ? near_y : 2 * near_y, 0);
    by = std::size_t{2} << lattice.shift_x;
  }
  KFN static std::uint32_t known_rows(const Refinement& shape) {
    return (shape.is_volume() ? shape.planes_of(0) + 2 * Refinement::kMargin : 1) * height(shape);
  }
  // The number of n that is nearest to i.
  KFN static std::uint32_t nearest(std::int32_t i, std::uint32_t n) {
    return i < 0 ? 0 : i >= static_cast<std::int32_t>(n) ? n - 1 : static_cast<std::uint32_t>(i);
  }

 private:
  static constexpr auto kMargin = static_cast<std::int32_t>(Refinement::kMargin);

  KFN static std::uint32_t height(const Refinement& shape) {
    return shape.rows_of(0) + (shape.is_line() ? 0 : 2 * Refinement::kMargin);
  }
};

// The lanes' places in a class at a step.
struct RefinedPlace {
  Ints x, z;
  Ints first, end, last_plane;  // x is from `first` to before `end`
  std::int32_t after, period;

  // lengths: of the lattice's rows.
  PYF_ON_LANES RefinedPlace(const Refinement& shape, std::uint32_t parity, const std::uint32_t* lengths)
      : after(static_cast<std::int32_t>(shape.columns_of(0) + shape.lead)),
        period(static_cast<std::int32_t>(shape.period)) {
    const auto all = [](std::uint32_t n) { return Ints::all(static_cast<std::int32_t>(n)); };
    const Ints lanes = Ints::lanes(), behind = lanes >= all(kHalf), y = lanes & all(kHalf - 1);
    z = Ints::all(0);
    last_plane = Ints::all(0);
    first = Ints::all(0);
    if (shape.is_line()) {
      x = Ints::all(0) - all(shape.lead);
      end = shift_right(Ints::load(reinterpret_cast<const std::int32_t*>(lengths)), 1);
      return;
    }
    x = Ints::all(0) - all(shape.lead) - y;
    end = all(shape.columns_of(parity));
    if (shape.is_volume()) {
      z = behind & all(shape.half);
      const std::uint32_t planes = shape.planes_of(parity), least = planes < shape.half ? planes : shape.half;
      last_plane = select(behind, all(planes), all(least)) - Ints::all(1);
    } else {
      first = behind & all(shape.half);
      x = x + first;
      const std::uint32_t least = shape.half < shape.columns_of(parity) ? shape.half : shape.columns_of(parity);
      end = select(behind, end, all(least));
      after = 0x7FFFFFFF;
    }
    end = end & (y < all(shape.rows_of(parity)));
  }
  PYF_ON_LANES Ints active() const { return (x >= first) & (x < end) & (last_plane >= z); }
  PYF_ON_LANES void next() {
    x = x + Ints::all(1);
    const Ints wrapped = x == Ints::all(after);
    x = x - (wrapped & Ints::all(period));
    z = z - wrapped;
  }
};

// What earlier turns foretell of a step's values. It can be found before the step before is coded.
struct Ahead {
  Floats sum, near, range, sizes;
  Ints set;
};
// `refining`: the pass in memory (cpu/refining.hpp, cuda/refining.cuh). `from`: the values and sizes beside the step.
template <class Refining, class Beside>
PYF_ON_LANES Ahead look_ahead(const Refining& refining, const Beside& from) {
  const auto& pass = *refining.pass;
  Ahead ahead;
  ahead.near = Floats::all(0);
  Floats low = Floats::all(3e38f), high = Floats::all(-3e38f);
  const auto widen = [&](std::uint32_t axis) {
    if ((refining.parity >> axis & 1) == 0) return;
    const Floats behind = from.behind(axis);
    ahead.near = from.before(axis);
    low = least(low, least(ahead.near, behind));
    high = most(high, most(ahead.near, behind));
  };
  widen(2);
  widen(1);
  widen(0);
  ahead.range = high - low;
  ahead.set = Ints::all(static_cast<std::int32_t>(refining.parity));
  if (pass.classes > 1) ahead.set = ahead.set + ((ahead.range >= Floats::all(pass.thresholds[0])) & Ints::all(8));
  ahead.sum = from.weighted_values(ahead.set);
  ahead.sizes = from.weighted_sizes();
  return ahead;
}
// Adds what earlier steps of the turn foretell. `at`: the step's cell.
template <class Refining>
PYF_ON_LANES Expected expect_refined(const Refining& refining, CellIndex at, const Ahead& ahead) {
  Expected e;
  e.range = ahead.range;
  e.set = ahead.set;
  e.value = add_own_values(refining, at, ahead.set, ahead.sum);
  e.distance = absolute(e.value - ahead.near);
  e.sizes = add_own_sizes(refining, at, ahead.sizes);
  return e;
}

// The substitute for special values: the mean of the neighbours along the first odd axis.
template <class Refining>
PYF_ON_LANES Floats stand_in_refined(const Refining& refining, CellIndex at) {
  const std::uint32_t axis = (refining.parity & 1) != 0 ? 0 : (refining.parity & 2) != 0 ? 1 : 2;
  const Floats both =
      load_cells(refining.values, at, refining.before[axis]) + load_cells(refining.values, at, refining.behind[axis]);
  return both * Floats::all(0.5f);
}

// A step of a turn, as WaveStep is one of the first pass.
template <class Refining>
struct RefinedStep {
  Refining& refining;
  std::uint32_t step;
  CellIndex cell;  // of lane 0

  PYF_ON_LANES RefinedStep(Refining& r, std::uint32_t s)
      : refining(r), step(s), cell(r.shape.cell_of_step(r.parity, s)) {}

  PYF_ON_LANES CellIndex at() const { return cell; }
  PYF_ON_LANES Expected expect() const {
    return expect_refined(refining, cell, look_ahead(refining, refining.beside(cell)));
  }
  PYF_ON_LANES Ints level(const Expected& e) const {
    const Floats of_range = Floats::all(refining.scale_of_range()),
                 distance = Floats::all(refining.scale_of_distance());
    return level_of(fused(distance, e.distance, fused(of_range, e.range, e.sizes)) *
                    look_up(refining.pass->factors, e.set));
  }
  PYF_ON_LANES Floats stand_in() const { return stand_in_refined(refining, cell); }
  PYF_ON_LANES void store(std::uint32_t, const Ints& active, const Floats& values) const {
    store_cells(refining.values, cell, active, values);
  }
  PYF_ON_LANES void store_sizes(const Ints& active, const Floats& sizes) const {
    store_cells(refining.sizes, cell, active, sizes);
  }
  PYF_ON_LANES LatticePoint point(std::uint32_t lane) const {
    const Refinement& shape = refining.shape;
    const std::uint32_t p = refining.parity, y = shape.is_line() ? lane : lane % kHalf, group = lane / kHalf,
                        along = step - shape.skew() * y, x_odd = Refinement::odd(p, 0);
    if (shape.is_line()) return {0, y, 2 * (along - shape.lead) + x_odd};
    const std::uint32_t y_all = 2 * y + Refinement::odd(p, 1);
    if (!shape.is_volume()) return {0, y_all, 2 * (along - shape.lead + group * shape.half) + x_odd};
    return {2 * (along / shape.period + group * shape.half) + Refinement::odd(p, 2), y_all,
            2 * (along % shape.period - shape.lead) + x_odd};
  }

  PYF_ON_LANES std::uint32_t& mask() const { return refining.masks_of(refining.parity)[step]; }
  // The masks of the six neighbours whose codes are the first features; 0 in another half and outside.
  PYF_ON_LANES MaskNeighbours near_masks() const {
    MaskNeighbours near;
    for (std::uint32_t i = 0; i < 6; ++i) near.words[i] = masks_at(refining.codes[i]);
    return near;
  }

 private:
  PYF_ON_LANES std::uint32_t masks_at(Tap tap) const {
    const Refinement& shape = refining.shape;
    const Refinement::Neighbour n = shape.neighbour(refining.parity, tap);
    const std::int32_t there = static_cast<std::int32_t>(step) + n.z * static_cast<std::int32_t>(shape.period) + n.x +
                               static_cast<std::int32_t>(shape.skew()) * n.y;
    if (there < 0 || there >= static_cast<std::int32_t>(shape.steps())) return 0;
    const std::uint32_t word = refining.masks_of(n.parity)[there];
    constexpr std::uint32_t kEach = 0x10001u;
    if (n.y < 0) return word << -n.y & ~(kEach * ((1u << -n.y) - 1));
    return n.y > 0 ? word >> n.y & ~(kEach * (0x10000u - (0x10000u >> n.y))) : word;
  }
};

PYF_END_TARGET
