// SPDX-License-Identifier: BSD-3-Clause
// Where the values of a block lie in the array (docs/format.md, section 4.1): loading with the edge repeated as
// padding, storing with padding dropped and only the wanted range of indices written.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
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

template <int D>
KFN void advance(const Grid& grid, BlockCursor& c) {
  ++c.index;
  if constexpr (D > 1) {
    if (++c.bx < grid.gx) return;
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

template <int D, class T>
KFN void load_block(const Grid& grid, const void* values, const BlockCursor& c, T (&x)[kBlockValues<D>]) {
  if constexpr (D == 1) {
    const std::uint64_t first = c.index * 32;
    if (first + 32 <= grid.values) {
      std::memcpy(x, value_at<T>(values, first), sizeof x);
      return;
    }
    const auto here = static_cast<std::size_t>(grid.values - first);
    std::memcpy(x, value_at<T>(values, first), here * sizeof(T));
    for (std::size_t i = here; i < 32; ++i) x[i] = x[here - 1];
  } else {
    constexpr std::uint64_t L = D == 2 ? 8 : 4;
    const std::uint64_t z0 = D == 3 ? c.bz * L : 0, y0 = c.by * L, x0 = c.bx * L;
    const bool interior = x0 + L <= grid.nx && y0 + L <= grid.ny && (D == 2 || z0 + L <= grid.nz);
    if (interior) {
      for (std::uint64_t row = 0; row < 64 / L; ++row) {
        const std::uint64_t z = D == 3 ? z0 + row / L : 0, y = y0 + row % L;
        std::memcpy(x + row * L, value_at<T>(values, ((c.outer * grid.nz + z) * grid.ny + y) * grid.nx + x0), L * sizeof(T));
      }
      return;
    }
    for (std::uint64_t i = 0; i < 64; ++i) {
      const std::uint64_t z = D == 3 ? std::min(z0 + i / (L * L), grid.nz - 1) : 0;
      const std::uint64_t y = std::min(y0 + i / L % L, grid.ny - 1), column = std::min(x0 + i % L, grid.nx - 1);
      std::memcpy(x + i, value_at<T>(values, ((c.outer * grid.nz + z) * grid.ny + y) * grid.nx + column), sizeof(T));
    }
  }
}

// Stores `count` values with indices from `index` on, as far as they lie in [start, stop).
template <class T>
KFN void store_run(const T* x, std::uint64_t index, std::uint64_t count, std::uint64_t start, std::uint64_t stop, void* out) {
  const std::uint64_t from = std::max(index, start), to = std::min(index + count, stop);
  if (from >= to) return;
  std::memcpy(static_cast<std::uint8_t*>(out) + (from - start) * sizeof(T), x + (from - index),
              static_cast<std::size_t>(to - from) * sizeof(T));
}

template <int D, class T>
KFN void store_block(const Grid& grid, const T (&x)[kBlockValues<D>], const BlockCursor& c, std::uint64_t start,
                     std::uint64_t stop, void* out) {
  if constexpr (D == 1) {
    const std::uint64_t first = c.index * 32;
    if (first >= start && first + 32 <= stop)
      std::memcpy(static_cast<std::uint8_t*>(out) + (first - start) * sizeof(T), x, sizeof x);
    else
      store_run(x, first, std::min<std::uint64_t>(32, grid.values - first), start, stop, out);
  } else {
    constexpr std::uint64_t L = D == 2 ? 8 : 4;
    const std::uint64_t z0 = D == 3 ? c.bz * L : 0, y0 = c.by * L, x0 = c.bx * L;
    const std::uint64_t columns = std::min(L, grid.nx - x0);
    const bool whole = columns == L && start == 0 && stop == grid.values;
    for (std::uint64_t row = 0; row < 64 / L; ++row) {
      const std::uint64_t z = D == 3 ? z0 + row / L : 0, y = y0 + row % L;
      if (y >= grid.ny || z >= grid.nz) continue;
      const std::uint64_t index = ((c.outer * grid.nz + z) * grid.ny + y) * grid.nx + x0;
      if (whole)
        std::memcpy(static_cast<std::uint8_t*>(out) + index * sizeof(T), x + row * L, L * sizeof(T));
      else
        store_run(x + row * L, index, columns, start, stop, out);
    }
  }
}

PYF_END_TARGET
