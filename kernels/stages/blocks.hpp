// SPDX-License-Identifier: BSD-3-Clause
// Where the values of a block lie in the array (docs/format.md, section 4.1): loading with the edge repeated as
// padding, storing with padding dropped and only the wanted range of indices written.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/prefetch.hpp"
#include "core/target.hpp"
#include "stages/difference.hpp"

PYF_BEGIN_TARGET

// Coordinates of a block, stepped through in block order.
struct BlockCursor {
  std::uint64_t index = 0, outer = 0, bz = 0, by = 0, bx = 0;
};

template <int D>
KFN BlockCursor block_at(const Grid& grid, std::uint64_t index) {
  BlockCursor c;
  c.index = index;
  if constexpr (D > 1) {
    c.bx = index % grid.gx;
    std::uint64_t rest = index / grid.gx;
    c.by = rest % grid.gy;
    rest /= grid.gy;
    c.bz = rest % grid.gz;
    c.outer = rest / grid.gz;
  }
  return c;
}

// By `blocks` blocks, not beyond the first of the next row of blocks.
template <int D>
KFN void advance(const Grid& grid, BlockCursor& c, std::uint64_t blocks = 1) {
  c.index += blocks;
  if constexpr (D > 1) {
    c.bx += blocks;
    if (c.bx < grid.gx) return;
    c.bx = 0;
    if (++c.by < grid.gy) return;
    c.by = 0;
    if (++c.bz < grid.gz) return;
    c.bz = 0;
    ++c.outer;
  }
}

// Bytes-typed access: chunk buffers may have any alignment.
template <class T>
KFN const std::uint8_t* value_at(const void* values, std::uint64_t index) {
  return static_cast<const std::uint8_t*>(values) + index * sizeof(T);
}

// A value at any address.
template <class T>
using Loose [[gnu::aligned(1), gnu::may_alias]] = T;

template <class T>
KFN const Loose<T>* loose_values(const void* values, std::uint64_t index) {
  return reinterpret_cast<const Loose<T>*>(value_at<T>(values, index));
}

// 1-D: `count` blocks from the cursor on have no padding.
KFN bool whole_blocks(const Grid& grid, const BlockCursor& c, int count) {
  return (c.index + static_cast<std::uint64_t>(count)) * 32 <= grid.values;
}

// Where a 2-D or 3-D block starts, how it lies, and how much of it is inside the array.
template <int D>
struct BlockBox {
  static constexpr std::uint64_t L = D == 2 ? 8 : 4;
  std::uint64_t first, row_stride, slab_stride;  // in values
  std::uint64_t columns, rows, slabs;            // inside the array

  KFN BlockBox(const Grid& grid, const BlockCursor& c) {
    const std::uint64_t z0 = D == 3 ? c.bz * L : 0, y0 = c.by * L, x0 = c.bx * L;
    row_stride = grid.nx;
    slab_stride = grid.nx * grid.ny;
    first = (c.outer * grid.nz + z0) * slab_stride + y0 * row_stride + x0;
    columns = std::min(L, grid.nx - x0);
    rows = std::min(L, grid.ny - y0);
    slabs = D == 3 ? std::min(L, grid.nz - z0) : 1;
  }
  KFN bool interior() const { return columns == L && rows == L && (D == 2 || slabs == L); }
  KFN std::uint64_t row_at(std::uint64_t row) const {
    return D == 2 ? first + row * row_stride : first + row / L * slab_stride + row % L * row_stride;
  }
};

// A 1-D block that may reach beyond the array's end.
template <class T>
KFN void load_last(const Grid& grid, const void* values, std::uint64_t block, T* x) {
  const std::uint64_t first = block * 32;
  const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(32, grid.values - first));
  std::memcpy(x, value_at<T>(values, first), here * sizeof(T));
  for (std::size_t i = here; i < 32; ++i) x[i] = x[here - 1];
}

// Where the rows of a 2-D or 3-D block start, in bytes from the first one. Rows and slabs outside the array are the
// last one inside.
template <int D, class T>
struct RowPlaces {
  static constexpr std::uint64_t L = BlockBox<D>::L, kRows = 64 / L;
  std::uint64_t row[L], slab[kRows / L];

  KFN explicit RowPlaces(const BlockBox<D>& box) {
    for (std::uint64_t i = 0; i < L; ++i) row[i] = std::min(i, box.rows - 1) * box.row_stride * sizeof(T);
    for (std::uint64_t i = 0; i < kRows / L; ++i) slab[i] = std::min(i, box.slabs - 1) * box.slab_stride * sizeof(T);
  }
  KFN std::uint64_t at(std::uint64_t i) const { return slab[i / L] + row[i % L]; }
};

// The same of a block whose rows and slabs are all inside.
template <int D, class T>
struct InnerRowPlaces {
  static constexpr std::uint64_t L = BlockBox<D>::L;
  std::uint64_t row_stride, slab_stride;

  KFN explicit InnerRowPlaces(const BlockBox<D>& box)
      : row_stride(box.row_stride * sizeof(T)), slab_stride(box.slab_stride * sizeof(T)) {}
  KFN std::uint64_t at(std::uint64_t i) const { return (D == 2 ? 0 : i / L * slab_stride) + i % L * row_stride; }
};

// Blocks one after another along a row of blocks, with all their columns inside the array.
template <int D, class T, class Places>
KFN void load_columns(const std::uint8_t* first, const Places& places, std::uint64_t blocks, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  constexpr int kRowBytes = L * sizeof(T), kJoined = kJoinedRows<kRowBytes>;
  for (std::uint64_t b = 0; b < blocks; ++b, first += kRowBytes, x += 64) {
    for (std::uint64_t i = 0; i < 64 / L; i += kJoined) {
      const std::uint8_t* rows[kJoined];
      for (std::uint64_t k = 0; k < kJoined; ++k) rows[k] = first + places.at(i + k);
      join_rows<kRowBytes>(rows, reinterpret_cast<std::uint8_t*>(x + i * L));
    }
  }
}

// A block with `columns` columns inside the array, which is `nx` values wide.
template <int D, class T>
[[gnu::noinline]] inline void load_edge(const std::uint8_t* first, const RowPlaces<D, T>& places, std::uint64_t columns,
                                        std::uint64_t nx, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  for (std::uint64_t i = 0; i < 64 / L; ++i, x += L) {
    const std::uint8_t* row = first + places.at(i);
    if (nx >= L) {  // the last L values, and L times the last one: what is wanted begins inside
      T last[2 * L];
      std::memcpy(last, row - (L - columns) * sizeof(T), L * sizeof(T));
      for (std::uint64_t k = 0; k < L; ++k) last[L + k] = last[L - 1];
      std::memcpy(x, last + (L - columns), L * sizeof(T));
    } else {
      const Loose<T>* from = loose_values<T>(row, 0);
      for (std::uint64_t k = 0; k < L; ++k) x[k] = from[std::min(k, columns - 1)];
    }
  }
}

// Up to `count` 2-D or 3-D blocks from the cursor on, as many as share their rows: they differ in their first column
// only. Returns how many.
template <int D, class T>
KFN int load_run(const Grid& grid, const void* values, const BlockCursor& c, int count, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  const BlockBox<D> box(grid, c);
  const std::uint64_t run = std::min(static_cast<std::uint64_t>(count), grid.gx - c.bx);
  const std::uint8_t* first = value_at<T>(values, box.first);
  const std::uint64_t inside = grid.nx - c.bx * L, whole = std::min(run, inside / L);
  if (box.rows == L && (D == 2 || box.slabs == L)) [[likely]]
    load_columns<D>(first, InnerRowPlaces<D, T>(box), whole, x);
  else
    load_columns<D>(first, RowPlaces<D, T>(box), whole, x);
  if (whole < run)
    load_edge<D>(first + whole * L * sizeof(T), RowPlaces<D, T>(box), inside % L, grid.nx, x + whole * 64);
  return static_cast<int>(run);
}

// Prefetches up to `count` blocks from the cursor on, and moves it behind them: rows are too many streams for hardware
// prefetchers, and short ones end soon. kStored: they are stored to, not loaded.
template <int D, class T, bool kStored = false>
KFN void prefetch_blocks(const Grid& grid, const void* values, BlockCursor& c, int count) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  for (auto left = static_cast<std::uint64_t>(count); left != 0 && c.index < grid.blocks;) {
    const BlockBox<D> box(grid, c);
    const RowPlaces<D, T> places(box);
    const std::uint64_t run = std::min(left, grid.gx - c.bx);
    const std::uint8_t* first = value_at<T>(values, box.first);
    for (std::uint64_t ahead = 0; ahead < run * L * sizeof(T); ahead += 64)
      for (std::uint64_t i = 0; i < 64 / L; ++i) __builtin_prefetch(first + places.at(i) + ahead, kStored ? 1 : 0);
    advance<D>(grid, c, run);
    left -= run;
  }
}

// Stores `count` values with indices from `index` on, as far as they lie in [start, stop).
template <class T>
KFN void store_run(const T* x, std::uint64_t index, std::uint64_t count, std::uint64_t start, std::uint64_t stop,
                   void* out) {
  const std::uint64_t from = std::max(index, start), to = std::min(index + count, stop);
  if (from >= to) return;
  std::memcpy(static_cast<std::uint8_t*>(out) + (from - start) * sizeof(T), x + (from - index),
              static_cast<std::size_t>(to - from) * sizeof(T));
}

// Stores a block of which `columns` up to kColumns columns are inside the array: copies of a size that is known.
template <int kColumns, int D, class T>
KFN void store_columns(const BlockBox<D>& box, const T* x, void* out) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  if constexpr (kColumns > 1) {
    if (box.columns < kColumns) return store_columns<kColumns - 1>(box, x, out);
  }
  for (std::uint64_t slab = 0; slab < box.slabs; ++slab)
    for (std::uint64_t row = 0; row < box.rows; ++row)
      std::memcpy(static_cast<std::uint8_t*>(out) + box.row_at(slab * L + row) * sizeof(T), x + (slab * L + row) * L,
                  kColumns * sizeof(T));
}

template <int D, class T>
[[gnu::noinline]] inline void store_edge(const BlockBox<D>& box, const T* x, void* out) {
  store_columns<static_cast<int>(BlockBox<D>::L)>(box, x, out);
}

template <int D, class T>
KFN void store_block(const Grid& grid, const T* x, const BlockCursor& c, std::uint64_t start, std::uint64_t stop,
                     void* out) {
  if constexpr (D == 1) {
    const std::uint64_t first = c.index * 32;
    store_run(x, first, std::min<std::uint64_t>(32, grid.values - first), start, stop, out);
  } else {
    const BlockBox<D> box(grid, c);
    constexpr std::uint64_t L = BlockBox<D>::L;
    if (start == 0 && stop == grid.values) {
      if (!box.interior()) return store_edge(box, x, out);
      for (std::uint64_t row = 0; row < 64 / L; ++row)
        std::memcpy(static_cast<std::uint8_t*>(out) + box.row_at(row) * sizeof(T), x + row * L, L * sizeof(T));
      return;
    }
    for (std::uint64_t slab = 0; slab < box.slabs; ++slab)
      for (std::uint64_t row = 0; row < box.rows; ++row)
        store_run(x + (slab * L + row) * L, box.row_at(slab * L + row), box.columns, start, stop, out);
  }
}

// Where a whole block goes if its place is in one piece and wanted completely, else nullptr.
template <int D, class T>
KFN Loose<T>* whole_place(const BlockCursor& c, std::uint64_t start, std::uint64_t stop, void* out) {
  if constexpr (D != 1) return nullptr;
  const std::uint64_t first = c.index * 32;
  if (first < start || first + 32 > stop) return nullptr;
  return reinterpret_cast<Loose<T>*>(static_cast<std::uint8_t*>(out) + (first - start) * sizeof(T));
}

PYF_END_TARGET
