// SPDX-License-Identifier: BSD-3-Clause
// Offsets of a block's values in the array (docs/format.md, section 4.1). Loading repeats the edge as padding; storing
// drops the padding and writes only indices in the requested range.
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

// Advances by `blocks` blocks, at most to the first block of the next row of blocks.
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

// Reads and writes by bytes: chunk buffers may have any alignment.
template <class T>
KFN const std::uint8_t* value_at(const void* values, std::uint64_t index) {
  return static_cast<const std::uint8_t*>(values) + index * sizeof(T);
}

// A value at an unaligned address.
template <class T>
using Loose [[gnu::aligned(1), gnu::may_alias]] = T;

template <class T>
KFN const Loose<T>* loose_values(const void* values, std::uint64_t index) {
  return reinterpret_cast<const Loose<T>*>(value_at<T>(values, index));
}

// 1-D: none of the `count` blocks from the cursor on has padding.
KFN bool whole_blocks(const Grid& grid, const BlockCursor& c, int count) {
  return (c.index + static_cast<std::uint64_t>(count)) * 32 <= grid.values;
}

// The box of a 2-D or 3-D block: its first value, its strides, and its extent inside the array.
template <int D>
struct BlockBox {
  static constexpr std::uint64_t L = D == 2 ? 8 : 4;
  std::uint64_t first, row_stride, slab_stride;  // in values
  std::uint64_t columns, rows, slabs;            // of the block, inside the array

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

// Loads a 1-D block that may reach beyond the array's end.
template <class T>
KFN void load_last(const Grid& grid, const void* values, std::uint64_t block, T* x) {
  const std::uint64_t first = block * 32;
  const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(32, grid.values - first));
  std::memcpy(x, value_at<T>(values, first), here * sizeof(T));
  for (std::size_t i = here; i < 32; ++i) x[i] = x[here - 1];
}

// Byte offsets of the rows of a 2-D or 3-D block from its first row. Rows and slabs outside the array repeat the last
// one inside.
template <int D, class T>
struct RowOffsets {
  static constexpr std::uint64_t L = BlockBox<D>::L, kRows = 64 / L;
  std::uint64_t row[L], slab[kRows / L];

  KFN explicit RowOffsets(const BlockBox<D>& box) {
    for (std::uint64_t i = 0; i < L; ++i) row[i] = std::min(i, box.rows - 1) * box.row_stride * sizeof(T);
    for (std::uint64_t i = 0; i < kRows / L; ++i) slab[i] = std::min(i, box.slabs - 1) * box.slab_stride * sizeof(T);
  }
  KFN std::uint64_t at(std::uint64_t i) const { return slab[i / L] + row[i % L]; }
};

// Row offsets of a block whose rows and slabs are all inside the array.
template <int D, class T>
struct InnerRowOffsets {
  static constexpr std::uint64_t L = BlockBox<D>::L;
  std::uint64_t row_stride, slab_stride;

  KFN explicit InnerRowOffsets(const BlockBox<D>& box)
      : row_stride(box.row_stride * sizeof(T)), slab_stride(box.slab_stride * sizeof(T)) {}
  KFN std::uint64_t at(std::uint64_t i) const { return (D == 2 ? 0 : i / L * slab_stride) + i % L * row_stride; }
};

// Loads consecutive blocks of a row of blocks, with all columns inside the array.
template <int D, class T, class Offsets>
KFN void load_columns(const std::uint8_t* first, const Offsets& offsets, std::uint64_t blocks, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  constexpr int kRowBytes = L * sizeof(T), kJoined = kJoinedRows<kRowBytes>;
  for (std::uint64_t b = 0; b < blocks; ++b, first += kRowBytes, x += 64) {
    for (std::uint64_t i = 0; i < 64 / L; i += kJoined) {
      const std::uint8_t* rows[kJoined];
      for (std::uint64_t k = 0; k < kJoined; ++k) rows[k] = first + offsets.at(i + k);
      join_rows<kRowBytes>(rows, reinterpret_cast<std::uint8_t*>(x + i * L));
    }
  }
}

// Loads a block with `columns` columns inside the array, which is `nx` values wide.
template <int D, class T>
[[gnu::noinline]] inline void load_edge(const std::uint8_t* first, const RowOffsets<D, T>& offsets,
                                        std::uint64_t columns, std::uint64_t nx, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  for (std::uint64_t i = 0; i < 64 / L; ++i, x += L) {
    const std::uint8_t* row = first + offsets.at(i);
    if (nx >= L) {  // load the row's last L values, then L copies of the last value; the block's row starts inside
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

// Loads up to `count` 2-D or 3-D blocks of one row of blocks from the cursor on. Their boxes differ in the first column
// only. Returns the number loaded.
template <int D, class T>
KFN int load_run(const Grid& grid, const void* values, const BlockCursor& c, int count, T* x) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  const BlockBox<D> box(grid, c);
  const std::uint64_t run = std::min(static_cast<std::uint64_t>(count), grid.gx - c.bx);
  const std::uint8_t* first = value_at<T>(values, box.first);
  const std::uint64_t inside = grid.nx - c.bx * L, whole = std::min(run, inside / L);
  if (box.rows == L && (D == 2 || box.slabs == L)) [[likely]]
    load_columns<D>(first, InnerRowOffsets<D, T>(box), whole, x);
  else
    load_columns<D>(first, RowOffsets<D, T>(box), whole, x);
  if (whole < run)
    load_edge<D>(first + whole * L * sizeof(T), RowOffsets<D, T>(box), inside % L, grid.nx, x + whole * 64);
  return static_cast<int>(run);
}

// Prefetches up to `count` blocks from the cursor on, and advances the cursor. Rows are too many streams for hardware
// prefetchers, and short rows end before a prefetcher starts. kStored: prefetch for stores, not loads.
template <int D, class T, bool kStored = false>
KFN void prefetch_blocks(const Grid& grid, const void* values, BlockCursor& c, int count) {
  constexpr std::uint64_t L = BlockBox<D>::L;
  for (auto left = static_cast<std::uint64_t>(count); left != 0 && c.index < grid.blocks;) {
    const BlockBox<D> box(grid, c);
    const RowOffsets<D, T> offsets(box);
    const std::uint64_t run = std::min(left, grid.gx - c.bx);
    const std::uint8_t* first = value_at<T>(values, box.first);
    for (std::uint64_t ahead = 0; ahead < run * L * sizeof(T); ahead += 64)
      for (std::uint64_t i = 0; i < 64 / L; ++i) __builtin_prefetch(first + offsets.at(i) + ahead, kStored ? 1 : 0);
    advance<D>(grid, c, run);
    left -= run;
  }
}

// Stores `count` values with indices from `index` on; values with indices outside [start, stop) are dropped.
template <class T>
KFN void store_run(const T* x, std::uint64_t index, std::uint64_t count, std::uint64_t start, std::uint64_t stop,
                   void* out) {
  const std::uint64_t from = std::max(index, start), to = std::min(index + count, stop);
  if (from >= to) return;
  std::memcpy(static_cast<std::uint8_t*>(out) + (from - start) * sizeof(T), x + (from - index),
              static_cast<std::size_t>(to - from) * sizeof(T));
}

// Stores a block with `columns` (up to kColumns) columns inside the array, by copies of a size known at compile time.
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

// The address of a whole block if its values are contiguous and all requested, else nullptr.
template <int D, class T>
KFN Loose<T>* whole_block_at(const BlockCursor& c, std::uint64_t start, std::uint64_t stop, void* out) {
  if constexpr (D != 1) return nullptr;
  const std::uint64_t first = c.index * 32;
  if (first < start || first + 32 > stop) return nullptr;
  return reinterpret_cast<Loose<T>*>(static_cast<std::uint8_t*>(out) + (first - start) * sizeof(T));
}

PYF_END_TARGET
