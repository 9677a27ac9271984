// SPDX-License-Identifier: BSD-3-Clause
// The levels of a chunk in memory, and the passes over them (docs/format.md, section 13.3). Rows of a level are kept as
// their even and their odd values, so that every pass runs along whole rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/settings.hpp"
#include "core/target.hpp"
#include "core/threads.hpp"
#include "progressive/layout.hpp"
#include "progressive/transform.hpp"

namespace pyfilter {

struct FreeMemory {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using Memory = std::unique_ptr<T[], FreeMemory>;

template <class T>
inline Memory<T> allocate_memory(std::uint64_t count) {
  const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 127) / 64 * 64;
  return Memory<T>(static_cast<T*>(std::aligned_alloc(64, bytes)));
}

// work(i) for all i below `count`, in pieces of `grain`, over threads.
template <class Work>
inline void in_parallel(std::uint64_t count, std::uint64_t grain, Work&& work) {
  struct Job {
    Work& work;
    std::uint64_t count, grain;
  } job{work, count, grain};
  parallel_for(
      resolved_threads(), (count + grain - 1) / grain,
      [](void* context, std::uint64_t piece) {
        const Job& j = *static_cast<Job*>(context);
        const std::uint64_t last = (piece + 1) * j.grain < j.count ? (piece + 1) * j.grain : j.count;
        for (std::uint64_t i = piece * j.grain; i < last; ++i) j.work(i);
      },
      &job);
}
inline std::uint64_t rows_at_once(std::uint64_t row) { return row >= 65536 ? 1 : 65536 / (row + 1) + 1; }

template <class Int>
struct Hierarchy {
  const ProgressiveLayout& layout;
  Memory<Int> memory;
  Int *even[kMostLevels], *odd[kMostLevels], *root = nullptr;

  explicit Hierarchy(const ProgressiveLayout& l) : layout(l) {
    std::uint64_t total = layout.roots;
    for (int k = 0; k < layout.levels; ++k) total += layout.grids[k].count();
    memory = allocate_memory<Int>(total);
    if (!memory) return;
    root = memory.get();
    Int* at = root + layout.roots;
    for (int k = 0; k < layout.levels; ++k) {
      const Extents g = layout.grids[k];
      even[k] = at;
      odd[k] = at + g.z * g.y * half_up(g.x);
      at += g.count();
    }
  }
  Int* even_row(int k, std::uint64_t z, std::uint64_t y) const {
    const Extents g = layout.grids[k];
    return even[k] + (z * g.y + y) * half_up(g.x);
  }
  Int* odd_row(int k, std::uint64_t z, std::uint64_t y) const {
    const Extents g = layout.grids[k];
    return odd[k] + (z * g.y + y) * (g.x / 2);
  }
};

}  // namespace pyfilter

PYF_BEGIN_TARGET

template <class Int>
inline void join_level_row(const Hierarchy<Int>& h, int k, std::uint64_t z, std::uint64_t y, Int* to) {
  const Extents g = h.layout.grids[k];
  if (k < h.layout.levels) return join_row(h.even_row(k, z, y), h.odd_row(k, z, y), g.x, to);
  for (std::uint64_t x = 0; x < g.x; ++x) to[x] = h.root[(z * g.y + y) * g.x + x];
}

template <class Int>
inline void split_level_row(const Hierarchy<Int>& h, int k, std::uint64_t z, std::uint64_t y, const Int* from) {
  const Extents g = h.layout.grids[k];
  if (k < h.layout.levels) return split_row(from, g.x, h.even_row(k, z, y), h.odd_row(k, z, y));
  for (std::uint64_t x = 0; x < g.x; ++x) h.root[(z * g.y + y) * g.x + x] = from[x];
}

// Copies the values of level k + 1 into level k, where they are the even values of even rows, or back.
template <class Int>
inline void raise_level(const Hierarchy<Int>& h, int k) {
  const Extents g = h.layout.grids[k + 1];
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    join_level_row(h, k + 1, row / g.y, row % g.y, h.even_row(k, 2 * (row / g.y), 2 * (row % g.y)));
  });
}
template <class Int>
inline void lower_level(const Hierarchy<Int>& h, int k) {
  const Extents g = h.layout.grids[k + 1];
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    split_level_row(h, k + 1, row / g.y, row % g.y, h.even_row(k, 2 * (row / g.y), 2 * (row % g.y)));
  });
}

// Row number `row` of a unit: visit(neighbours, first target of the row, how many, targets, coefficient number).
template <class Int, class Visit>
KFN void visit_row(const Hierarchy<Int>& h, const ProgressiveUnit& unit, bool cubic, std::uint64_t row, Visit&& visit) {
  const int k = unit.level;
  const Extents g = h.layout.grids[k];
  const std::uint64_t z = row / unit.shape.y, y = row % unit.shape.y, at = row * unit.shape.x;
  if (unit.axis == 0) {
    const auto known = [&](std::uint64_t i) { return h.even_row(k, 2 * i, 2 * y); };
    visit(neighbours_of<Int>(z, half_up(g.z), cubic, known), unit.shape.x, h.even_row(k, 2 * z + 1, 2 * y), at);
  } else if (unit.axis == 1) {
    const auto known = [&](std::uint64_t i) { return h.even_row(k, z, 2 * i); };
    visit(neighbours_of<Int>(y, half_up(g.y), cubic, known), unit.shape.x, h.even_row(k, z, 2 * y + 1), at);
  } else {
    Int* const target = h.odd_row(k, z, y);
    along_x(h.even_row(k, z, y), half_up(g.x), unit.shape.x, cubic,
            [&](const Neighbours<Int>& from, std::size_t first, std::size_t count) {
              visit(from, count, target + first, at + first);
            });
  }
}

// Coefficients of a unit; *any is the OR of their magnitudes.
template <class Int>
inline void forward_unit(const Hierarchy<Int>& h, const ProgressiveUnit& unit, bool cubic, const Limits<Int>& limits,
                         Int* coefficients, std::uint64_t* any) {
  std::atomic<std::uint64_t> all{0};
  const std::uint64_t rows = unit.shape.z * unit.shape.y;
  in_parallel(rows, rows_at_once(unit.shape.x), [&](std::uint64_t row) {
    Int together = 0;
    visit_row(h, unit, cubic, row,
              [&](const Neighbours<Int>& from, std::uint64_t count, Int* target, std::uint64_t at) {
                Int* const out = coefficients + at;
                forward_row(from, limits, count, target, out);
                for (std::uint64_t i = 0; i < count; ++i) together |= out[i] < 0 ? -out[i] : out[i];
              });
    all.fetch_or(static_cast<std::uint64_t>(together), std::memory_order_relaxed);
  });
  *any = all;
}

template <class Int>
inline void inverse_unit(const Hierarchy<Int>& h, const ProgressiveUnit& unit, bool cubic, const Limits<Int>& limits,
                         const Int* coefficients) {
  in_parallel(unit.shape.z * unit.shape.y, rows_at_once(unit.shape.x), [&](std::uint64_t row) {
    visit_row(h, unit, cubic, row,
              [&](const Neighbours<Int>& from, std::uint64_t count, Int* target, std::uint64_t at) {
                inverse_row(from, limits, count, coefficients + at, target);
              });
  });
}

// The same with coefficients that are made as they are needed: fill(first, count, to), up to kMadeAtOnce at once.
inline constexpr std::uint64_t kMadeAtOnce = 512;

template <class Int, class Fill>
inline void inverse_unit_made(const Hierarchy<Int>& h, const ProgressiveUnit& unit, bool cubic,
                              const Limits<Int>& limits, Fill&& fill) {
  in_parallel(unit.shape.z * unit.shape.y, rows_at_once(unit.shape.x), [&](std::uint64_t row) {
    visit_row(h, unit, cubic, row,
              [&](const Neighbours<Int>& from, std::uint64_t count, Int* target, std::uint64_t at) {
                alignas(64) Int made[kMadeAtOnce];
                for (std::uint64_t i = 0; i < count; i += kMadeAtOnce) {
                  const std::uint64_t n = count - i < kMadeAtOnce ? count - i : kMadeAtOnce;
                  const auto moved = [i](const Int* p) { return p == nullptr ? p : p + i; };
                  fill(at + i, n, made);
                  inverse_row(Neighbours<Int>{from.stencil, moved(from.a), moved(from.b), moved(from.c), moved(from.d)},
                              limits, n, made, target + i);
                }
              });
  });
}

// Whether cubic interpolation leaves smaller coefficients than linear does, by a sample of the unit's rows.
template <class Int>
inline bool prefers_cubic(const Hierarchy<Int>& h, const ProgressiveUnit& unit, const Limits<Int>& limits) {
  constexpr std::uint64_t kValues = kBasisValues;
  const std::uint64_t rows = unit.shape.z * unit.shape.y, across = (unit.shape.x + kValues - 1) / kValues;
  const std::uint64_t every = rows * across / kBasisRuns + 1;
  std::uint64_t bits[2] = {0, 0};
  Int target_copy[kValues], out[kValues];
  for (std::uint64_t i = 0; i < rows * across; i += every) {
    const std::uint64_t row = i / across, piece = i % across * kValues;
    for (int cubic = 0; cubic < 2; ++cubic) {
      visit_row(h, unit, cubic != 0, row,
                [&](const Neighbours<Int>& from, std::uint64_t count, Int* target, std::uint64_t at) {
                  const std::uint64_t first = at - row * unit.shape.x;  // in the row
                  const std::uint64_t start = piece > first ? piece - first : 0;
                  if (start >= count || first >= piece + kValues) return;
                  const std::uint64_t stop = piece + kValues - first < count ? piece + kValues - first : count;
                  const auto moved = [start](const Int* p) { return p == nullptr ? p : p + start; };
                  const Neighbours<Int> here{from.stencil, moved(from.a), moved(from.b), moved(from.c), moved(from.d)};
                  for (std::uint64_t j = start; j < stop; ++j) target_copy[j - start] = target[j];
                  forward_row(here, limits, stop - start, target_copy, out);
                  bits[cubic] += row_bits(out, stop - start);
                });
    }
  }
  return bits[1] < bits[0];
}

PYF_END_TARGET
