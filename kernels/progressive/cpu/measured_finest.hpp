// SPDX-License-Identifier: BSD-3-Clause
// The finest level of a block, where few points can have an error that matters (measure.hpp). Its rows are chunks of
// points. Two numbers bound a chunk's errors (error_after_pass): its largest coefficient, and the errors of the points
// that it is predicted from. The bound also covers points predicted from the chunk. A chunk is computed only if its
// bound exceeds the largest error so far. That error only grows, so no larger error is missed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "progressive/cpu/measured_chunks.hpp"
#include "progressive/cpu/measured_runs.hpp"
#include "progressive/cpu/points.hpp"
#include "progressive/head.hpp"
#include "progressive/scan.hpp"

PYF_BEGIN_TARGET

template <class T, class Int>
class FinestGrid {
 public:
  // 1-D and 2-D: checking bounds costs as much as computing every point, since the next grid has half or a quarter of
  // the points.
  static bool serves(const ProgressiveLayout& layout) {
    const Extents whole = layout.grids[0];
    return whole.z > 1 && whole.y > 1 && whole.x >= 2 * kChunk;
  }

  // Numbers that a block stores for `fine` points predicted from `coarse` ones.
  static std::uint64_t numbers(Extents fine, Extents coarse) {
    std::uint64_t total = kChunk;
    FinestArrays<Int>().allocate(fine, coarse, [&total](std::uint64_t count) {
      total += (count + kChunk - 1) / kChunk * kChunk;
      return static_cast<Int*>(nullptr);
    });
    return total;
  }

  FinestGrid(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
             const Region& fine, const Region& coarse, Int* memory)
      : q_(q),
        head_(head),
        kind_(kind),
        values_(values),
        limits_{static_cast<Int>(head.low), static_cast<Int>(head.high)},
        fine_(fine),
        coarse_(coarse),
        columns_(coarse.extent(2)),
        chunks_((columns_ + kChunk - 1) / kChunk),
        pitch_(chunks_ * kChunk),
        rows_(coarse.extent(1)),
        odd_rows_(fine.hi[1] / 2 - fine.lo[1] / 2) {
    const ProgressiveLayout& layout = q.layout;
    for (int u = 0; u < layout.units; ++u)
      if (layout.unit[u].level == 0) unit_[layout.unit[u].axis] = u;
    while (reinterpret_cast<std::uintptr_t>(memory) % 64 != 0) ++memory;
    at_.allocate({fine.extent(0), fine.extent(1), fine.extent(2)},
                 {coarse.extent(0), coarse.extent(1), coarse.extent(2)}, [&memory](std::uint64_t count) {
                   Int* const from = memory;
                   memory += (count + kChunk - 1) / kChunk * kChunk;
                   return from;
                 });
    const auto clear = [](Int* from, std::uint64_t count) { std::fill_n(from, count, Int{0}); };
    clear(at_.made[0], rows_ * pitch_ + 2 * kChunkPadding);
    clear(at_.made[1], odd_rows_ * pitch_ + 2 * kChunkPadding);
    clear(at_.error, rows_ * pitch_ + 2 * kChunkPadding);
    clear(at_.around[0], padded_rows() * chunks_);
    clear(at_.above, coarse.extent(0) * padded_rows() * chunks_);
    load();
  }

  // The largest coefficient along an axis.
  std::uint64_t largest(int axis) const { return static_cast<std::uint64_t>(largest_[axis]); }

  // Returns the largest error of an ordinary value if it is above `unnoticed`, else `unnoticed`. The reader has the
  // planes down to planes_left[axis] of each unit. `known`: the points of the next grid, in rows of whole chunks, with
  // kChunkPadding numbers before and behind. Entries that are no points have the lowest value, so points predicted from
  // them have no error. raise(error) rounds an error up to its code. Errors above `guess` are looked for first; a guess
  // that is too high costs time only.
  template <class Raise>
  Int measure(const std::int8_t* planes_left, const Int* known, Int unnoticed, Int guess, Raise&& raise) {
    known_ = known;
    for (int a = 0; a < 3; ++a) {
      if (unit_[a] < 0) continue;
      const int planes = head_.planes[unit_[a]], plane = planes_left[a];
      plane_[a] = plane;
      some_[a] = planes != 0 && plane < planes && (plane < 0 || largest_[a] >> plane != 0);
      missing_[a] = plane < 0 ? 0 : plane < planes ? static_cast<Int>(Int{1} << plane) : largest_[a];
    }
    errors_above();
    if (guess > unnoticed) {
      most_ = guess;
      make_all(raise);
      if (most_ > guess) return most_;
    }
    most_ = unnoticed;
    make_all(raise);
    return most_;
  }

 private:
  std::uint64_t padded_rows() const { return rows_ + kRowsBefore + kRowsBehind; }

  Int* above(std::uint64_t z) const { return at_.above + (z - coarse_.lo[0]) * padded_rows() * chunks_; }
  // Index of row `y` of the next grid in its plane; of the first even or odd one.
  std::uint64_t row_of(std::uint64_t y) const { return y - coarse_.lo[1]; }
  std::uint64_t first_even() const { return row_of(half_up(fine_.lo[1])); }
  std::uint64_t even_rows() const { return half_up(fine_.hi[1]) - half_up(fine_.lo[1]); }
  std::uint64_t first_odd() const { return row_of(fine_.lo[1] / 2); }
  std::uint64_t z_row(std::uint64_t z, std::uint64_t row) const { return (z / 2 - fine_.lo[0] / 2) * rows_ + row; }
  std::uint64_t y_row(std::uint64_t z, std::uint64_t odd) const { return (z - fine_.lo[0]) * odd_rows_ + odd; }
  std::uint64_t x_row(std::uint64_t z, std::uint64_t number) const {
    return (z - fine_.lo[0]) * (even_rows() + odd_rows_) + number;
  }

  // -- once

  void load_row(int axis, std::uint64_t z, std::uint64_t y, std::uint64_t row) {
    const std::uint64_t first = axis == 2 ? fine_.lo[2] / 2 : coarse_.lo[2],
                        count = axis == 2 ? fine_.hi[2] / 2 - first : columns_, left = first - coarse_.lo[2];
    Int *const c = at_.coefficients[axis] + row * pitch_, *const o = at_.originals[axis] + row * pitch_;
    std::fill_n(c, left, Int{0});
    std::fill_n(o, left, limits_.low);
    std::fill(c + left + count, c + pitch_, Int{0});
    std::fill(o + left + count, o + pitch_, limits_.low);
    visit_run(q_, q_.layout.unit[unit_[axis]], head_.cubic[unit_[axis]], z, y, first, count,
              [&](const Neighbours<Int>& from, const Int* target, std::uint64_t some, std::uint64_t before) {
                coefficients_of_run(from, limits_, target, some, 2, c + left + before);
                for (std::uint64_t i = 0; i < some; ++i) o[left + before + i] = target[2 * i];
              });
    Int *const m = at_.error + kChunkPadding, *const to = at_.largest[axis] + row * chunks_;
    for (std::uint64_t i = 0; i < pitch_; ++i) m[i] = c[i] < 0 ? -c[i] : c[i];
    if (axis == 2)
      largest_of_chunks(m, chunks_, to);
    else
      largest_around_chunks(m, chunks_, to);
    for (std::uint64_t k = 0; k < chunks_; ++k) largest_[axis] = std::max(largest_[axis], to[k]);
  }
  void load() {
    const std::uint64_t evens = half_up(q_.layout.grids[0].x), beside = cubic(2) ? 1 : 0;
    alike_[0] = larger(fine_.lo[2] / 2, beside) - coarse_.lo[2];
    alike_[1] = std::min(fine_.hi[2] / 2, evens - 1 - beside) - coarse_.lo[2];
    for (std::uint64_t k = 0; k < rows_ * chunks_; ++k) {
      const std::uint64_t column = k % chunks_ * kChunk;
      at_.at_end[k] = column < alike_[0] || column + kChunk > alike_[1] ? 1 : 0;
    }
    for (std::uint64_t z = fine_.lo[0]; z < fine_.hi[0]; ++z) {
      for (std::uint64_t row = 0; z % 2 != 0 && row < rows_; ++row)
        load_row(0, z / 2, coarse_.lo[1] + row, z_row(z, row));
      for (std::uint64_t odd = 0; odd < odd_rows_; ++odd) load_row(1, z, fine_.lo[1] / 2 + odd, y_row(z, odd));
      for (std::uint64_t i = 0; i < even_rows(); ++i) load_row(2, z, 2 * (half_up(fine_.lo[1]) + i), x_row(z, i));
      for (std::uint64_t i = 0; i < odd_rows_; ++i)
        load_row(2, z, 2 * (fine_.lo[1] / 2 + i) + 1, x_row(z, even_rows() + i));
    }
    Int* to = at_.known;
    for (std::uint64_t z = coarse_.lo[0]; z < coarse_.hi[0]; ++z) {
      for (std::uint64_t y = coarse_.lo[1]; y < coarse_.hi[1]; ++y, to += pitch_) {
        const Int* const from = q_.point(0, 2 * z, 2 * y, 2 * coarse_.lo[2]);
        for (std::uint64_t i = 0; i < columns_; ++i) to[i] = from[2 * i];
        std::fill(to + columns_, to + pitch_, limits_.low);
      }
    }
  }

  // -- for each reader

  bool cubic(int axis) const { return head_.cubic[unit_[axis]]; }

  // Errors around chunks of the next grid.
  void errors_above() {
    Int* __restrict const error = at_.error + kChunkPadding;
    const Int *made = known_, *original = at_.known;
    const std::uint64_t count = rows_ * pitch_;
    for (std::uint64_t z = coarse_.lo[0]; z < coarse_.hi[0]; ++z, made += count, original += count) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const Int e = static_cast<Int>(original[i] - made[i]);
        error[i] = e < 0 ? -e : e;
      }
      largest_around_chunks(error, rows_ * chunks_, above(z) + kRowsBefore * chunks_);
    }
  }

  void bounds(int axis, const Int* const from[4], const Int* largest, std::uint64_t count, Int* to) const {
    if (cubic(axis))
      bounds_of_chunks<true>(from[0], from[1], from[2], from[3], largest, missing_[axis], count, to);
    else
      bounds_of_chunks<false>(from[0], from[1], from[2], from[3], largest, missing_[axis], count, to);
  }
  // Bounds of odd rows from those of their plane, which are padded.
  void bounds_of_odd_rows(std::uint64_t z, const Int* around, Int* to) const {
    const Int* const first = around + first_odd() * chunks_;  // the row before the first
    const Int* const from[4] = {first, first + chunks_, first + 2 * chunks_, first + 3 * chunks_};
    bounds(1, from, at_.largest[1] + y_row(z, 0) * chunks_, odd_rows_ * chunks_, to);
  }

  // Marks the chunks of rows to compute; `number` is the index of the first row along x.
  void want(std::uint64_t z, std::uint64_t number, const Int* around, std::uint64_t rows, std::uint8_t* to) const {
    const Int* const largest = at_.largest[2] + x_row(z, number) * chunks_;
    if (cubic(2))
      want_chunks<true>(around, largest, missing_[2], most_, rows * chunks_, to);
    else
      want_chunks<false>(around, largest, missing_[2], most_, rows * chunks_, to);
  }

  // The points of row y of the next grid in plane z.
  const Int* even_row(std::uint64_t z, std::uint64_t y) const {
    if (z % 2 != 0) return at_.made[0] + kChunkPadding + row_of(y) * pitch_;
    return known_ + ((z / 2 - coarse_.lo[0]) * rows_ + row_of(y)) * pitch_;
  }

  // Computes the marked chunks of `rows` rows from the neighbours of the first row, and the errors around chunks.
  // Chunks beside marked ones are computed, too: the next pass needs their points. `first_row`: the first row's index
  // in its unit; y_of(row): the row's y.
  template <class Raise, class Where>
  void make_rows(int axis, std::uint64_t z, const Where& y_of, std::uint64_t first_row, std::uint64_t rows,
                 const Neighbours<Int>& from, const std::uint8_t* wanted, Int* to, Int* around, Raise&& raise) {
    const std::uint64_t count = rows * chunks_;
    Int *const error = at_.error + kChunkPadding, *const most = at_.most;
    const Int* const c = at_.coefficients[axis] + first_row * pitch_;
    const Int* const o = at_.originals[axis] + first_row * pitch_;
    by_kind<Int>(from.stencil, some_[axis], plane_[axis], [&](auto stencil, auto known) {
      visit_wanted(wanted, count, 2, [&](std::uint64_t first, std::uint64_t last) {
        const std::uint64_t begin = first == 0 ? 0 : first - 1, end = std::min(last + 1, count), shift = begin * kChunk;
        errors_of_chunks<decltype(stencil)::value, true>(shifted(from, shift), limits_, known, c + shift, o + shift,
                                                         end - begin, to + shift, error + shift);
        largest_around_chunks(error + first * kChunk, last - first, most);
        // chunks at the end of a row contain points with other stencils, whose errors may exceed the bound
        if (lower_bounds(most, last - first, around + first) <= most_) return;
        for (std::uint64_t k = first; k < last; ++k)
          if (around[k] > most_) notice(z, y_of(k / chunks_), 0, k, raise);
      });
    });
  }
  static Neighbours<Int> shifted(Neighbours<Int> from, std::uint64_t by) {
    const auto move = [by](const Int* p) { return p == nullptr ? nullptr : p + by; };
    return {from.stencil, from.a + by, move(from.b), move(from.c), move(from.d)};
  }

  // Computes the errors of a chunk of points 2 * column + odd of a row, one of which may exceed all errors so far.
  template <class Raise>
  void notice(std::uint64_t z, std::uint64_t y, std::uint64_t odd, std::uint64_t chunk, Raise&& raise) {
    const Int* const error = at_.error + kChunkPadding + chunk * kChunk;
    const Extents whole = q_.layout.grids[0];
    const std::uint64_t first = (z * whole.y + y) * whole.x + 2 * (coarse_.lo[2] + chunk % chunks_ * kChunk) + odd;
    for (std::uint64_t i = 0; i < kChunk; ++i) {
      if (error[i] <= most_) continue;
      if (kind_ == nullptr || (*kind_)(value_at<T>(values_, first + 2 * i)) == kPlain) most_ = raise(error[i]);
    }
  }

  // Computes all marked chunks.
  template <class Raise>
  void make_all(Raise&& raise) {
    for (std::uint64_t z = fine_.lo[0]; z < fine_.hi[0]; ++z) {
      if (z % 2 != 0) make_plane(z, raise);
      const Int* const around = z % 2 != 0 ? at_.around[0] : above(z / 2);
      make_odd_rows(z, around, raise);
      make_odd_points(z, around, raise);
    }
  }

  // Computes the marked rows of a plane of odd z.
  template <class Raise>
  void make_plane(std::uint64_t z, Raise&& raise) {
    const Int* from[4];
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::uint64_t near = std::max(z / 2 + i, coarse_.lo[0] + 1) - 1;
      from[i] = above(std::min(near, coarse_.hi[0] - 1)) + kRowsBefore * chunks_;
    }
    Int *const padded = at_.around[0], *const around = padded + kRowsBefore * chunks_;
    bounds(0, from, at_.largest[0] + z_row(z, 0) * chunks_, rows_ * chunks_, around);
    std::uint8_t *const rows = at_.wanted[0], *const wanted = rows + kRowsBefore * chunks_, *const odd = at_.wanted[1];
    std::memset(rows, 0, padded_rows() * chunks_ + 8);
    want(z, 0, around + first_even() * chunks_, even_rows(), wanted + first_even() * chunks_);
    if (odd_rows_ != 0) {
      bounds_of_odd_rows(z, padded, at_.around[1]);
      want(z, even_rows(), at_.around[1], odd_rows_, odd);
      for (std::uint64_t r = 0; r < 4; ++r) add_wanted(odd, odd_rows_ * chunks_, rows + (first_odd() + r) * chunks_);
    }
    std::memset(wanted + rows_ * chunks_, 0, 8);
    const auto neighbours = neighbours_of<Int>(z / 2, half_up(q_.layout.grids[0].z), cubic(0), [&](std::uint64_t i) {
      return known_ + (i - coarse_.lo[0]) * rows_ * pitch_;
    });
    const auto y_of = [this](std::uint64_t row) { return 2 * (coarse_.lo[1] + row); };
    make_rows(0, z, y_of, z_row(z, 0), rows_, neighbours, wanted, at_.made[0] + kChunkPadding, around, raise);
  }

  // Computes the marked odd rows of a plane, from errors around chunks of its even rows.
  template <class Raise>
  void make_odd_rows(std::uint64_t z, const Int* padded, Raise&& raise) {
    if (odd_rows_ == 0) return;
    bounds_of_odd_rows(z, padded, at_.around[1]);
    want(z, even_rows(), at_.around[1], odd_rows_, at_.wanted[1]);
    const std::uint64_t evens = half_up(q_.layout.grids[0].y), low = fine_.lo[1] / 2;
    for (std::uint64_t odd = 0, next; odd < odd_rows_; odd = next) {
      // rows with the same stencil: all except those at the ends
      const auto neighbours =
          neighbours_of<Int>(low + odd, evens, cubic(1), [&](std::uint64_t i) { return even_row(z, i); });
      next = odd + 1;
      if (neighbours.stencil == (cubic(1) ? Stencil::cubic : Stencil::linear))
        next = std::max(next, std::min(odd_rows_, evens - (cubic(1) ? 2 : 1) - low));
      std::uint8_t* const wanted = at_.wanted[1] + odd * chunks_;
      const auto y_of = [&](std::uint64_t row) { return 2 * (low + odd + row) + 1; };
      make_rows(1, z, y_of, y_row(z, odd), next - odd, neighbours, wanted, at_.made[1] + kChunkPadding + odd * pitch_,
                at_.around[1] + odd * chunks_, raise);
    }
  }

  // Computes the odd points of all marked rows of a plane.
  template <class Raise>
  void make_odd_points(std::uint64_t z, const Int* padded, Raise&& raise) {
    const std::uint64_t first = half_up(fine_.lo[1]);
    const Int* const even = padded + (kRowsBefore + first_even()) * chunks_;
    make_points(z, 2 * first, 0, even_rows(), even_rows() == 0 ? nullptr : even_row(z, first), even, raise);
    make_points(z, fine_.lo[1] / 2 * 2 + 1, even_rows(), odd_rows_, at_.made[1] + kChunkPadding, at_.around[1], raise);
  }

  // Computes the odd points of `rows` rows, every second row from `y` on, with even points at `even`. Points near the
  // ends of a row have other stencils.
  template <class Raise>
  void make_points(std::uint64_t z, std::uint64_t y, std::uint64_t number, std::uint64_t rows, const Int* even,
                   const Int* around, Raise&& raise) {
    if (rows == 0) return;
    want(z, number, around, rows, at_.wanted[0]);
    const bool is_cubic = cubic(2);
    const std::uint64_t row = x_row(z, number) * pitch_;
    const Int *const c = at_.coefficients[2] + row, *const o = at_.originals[2] + row;
    Int* const error = at_.error + kChunkPadding;
    Neighbours<Int> from{Stencil::linear, even, even + 1};
    if (is_cubic) from = {Stencil::cubic, even, even + 1, even - 1, even + 2};
    by_kind<Int>(from.stencil, some_[2], plane_[2], [&](auto stencil, auto known) {
      visit_wanted(at_.wanted[0], rows * chunks_, 0, [&](std::uint64_t first, std::uint64_t last) {
        const std::uint64_t begin = first * kChunk;
        Int most = errors_of_chunks<decltype(stencil)::value, false>(shifted(from, begin), limits_, known, c + begin,
                                                                     o + begin, last - first,
                                                                     static_cast<Int*>(nullptr), error + begin);
        bool ends = false;
        for (std::uint64_t k = first; k < last; ++k) ends |= at_.at_end[k] != 0;
        if (ends) most = errors_of_ends(even, around, c, o, first, last);
        for (std::uint64_t k = first; most > most_ && k < last; ++k) notice(z, y + 2 * (k / chunks_), 1, k, raise);
      });
    });
  }
  // Errors of the points with other stencils at the ends of rows of these chunks. Returns the largest.
  Int errors_of_ends(const Int* even, const Int* around, const Int* c, const Int* o, std::uint64_t first,
                     std::uint64_t last) {
    const bool is_cubic = cubic(2);
    const std::uint64_t evens = half_up(q_.layout.grids[0].x), zero = coarse_.lo[2];
    const std::uint64_t begin = first * kChunk, end = last * kChunk;
    Int* const error = at_.error + kChunkPadding;
    for (std::uint64_t r = first / chunks_ * pitch_; r < end; r += pitch_) {
      for (std::uint64_t i = larger(r, begin), to = std::min(r + alike_[0], end); i < to; ++i) error[i] = 0;
      for (std::uint64_t i = larger(r + alike_[1], begin), to = std::min(r + pitch_, end); i < to; ++i) error[i] = 0;
      for (const std::uint64_t j : {std::uint64_t{0}, evens - 2, evens - 1}) {
        const std::uint64_t i = r + j - zero;
        if (j < fine_.lo[2] / 2 || j >= fine_.hi[2] / 2 || i < begin || i >= end) continue;
        if (i >= r + alike_[0] && i < r + alike_[1]) continue;
        const Int bound =
            static_cast<Int>(grown(is_cubic, around[i / kChunk]) + std::min(c[i] < 0 ? -c[i] : c[i], missing_[2]));
        if (bound > most_) error[i] = error_of_end(even + r, j, c[i], o[i]);
      }
    }
    Int most = 0;
    for (std::uint64_t i = begin; i < end; ++i) most = larger(most, error[i]);
    return most;
  }
  Int error_of_end(const Int* row, std::uint64_t j, Int coefficient, Int original) const {
    const auto neighbours = neighbours_of<Int>(j, half_up(q_.layout.grids[0].x), cubic(2),
                                               [&](std::uint64_t i) { return row + (i - coarse_.lo[2]); });
    const Int known = known_part(coefficient, some_[2] ? head_.planes[unit_[2]] : 0, some_[2] ? plane_[2] : 0);
    const Int e = static_cast<Int>(original - inverse_value(limits_, predict_by(neighbours, 0), known));
    return e < 0 ? -e : e;
  }

  const Points<Int>& q_;
  const ProgressiveHead& head_;
  const KindOf<T>* kind_;
  const void* values_;
  const Limits<Int> limits_;
  const Region fine_, coarse_;
  const std::uint64_t columns_, chunks_, pitch_, rows_, odd_rows_;
  int unit_[3] = {-1, -1, -1};
  FinestArrays<Int> at_;
  Int largest_[3] = {0, 0, 0};
  std::uint64_t alike_[2] = {0, 0};  // columns of odd points with the usual stencil: the first, and the end
  // Of the current reader.
  const Int* known_ = nullptr;
  Int most_ = 0, missing_[3] = {0, 0, 0};
  int plane_[3] = {0, 0, 0};
  bool some_[3] = {false, false, false};
};

PYF_END_TARGET
