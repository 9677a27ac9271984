// SPDX-License-Identifier: BSD-3-Clause
// A chunk to the payload of a progressive frame (docs/format.md, section 13), on the CPU.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/status.hpp"
#include "core/target.hpp"
#include "core/types.hpp"
#include "progressive/choices.hpp"
#include "progressive/head.hpp"
#include "progressive/hierarchy.hpp"
#include "progressive/order.hpp"
#include "progressive/scan.hpp"
#include "progressive/specials.hpp"
#include "progressive/tile.hpp"
#include "progressive/values.hpp"

PYF_BEGIN_TARGET

// Integers of all values, in the rows of level 0. Returns false where the largest would not come back finite.
template <class T, class Int>
inline bool fill_integers(const T* values, const std::uint8_t* kinds, int exponent, const Hierarchy<Int>& h,
                          ProgressiveHead& head, bool& all_special) {
  const Extents g = h.layout.grids[0];
  const PowerOfTwo scale(-exponent), step(exponent);
  std::atomic<std::int64_t> low{INT64_MAX}, high{INT64_MIN};
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    constexpr std::uint64_t kPart = 1024;
    Int part[kPart];
    Int lowest = std::numeric_limits<Int>::max(), highest = std::numeric_limits<Int>::min();
    Int* const even = h.layout.levels != 0 ? h.even_row(0, row / g.y, row % g.y) : h.root + row * g.x;
    Int* const odd = h.layout.levels != 0 ? h.odd_row(0, row / g.y, row % g.y) : nullptr;
    for (std::uint64_t x = 0; x < g.x; x += kPart) {
      const std::uint64_t count = std::min(kPart, g.x - x);
      const T* const from = values + row * g.x + x;
      to_integers(from, count, scale, part);
      if (kinds == nullptr) {
        for (std::uint64_t i = 0; i < count; ++i) {
          lowest = std::min(lowest, part[i]);
          highest = std::max(highest, part[i]);
        }
      } else {
        const std::uint8_t* const kind = kinds + row * g.x + x;
        for (std::uint64_t i = 0; i < count; ++i) {
          if (kind[i] != kPlain) {
            part[i] = kMissing<Int>;
            continue;
          }
          lowest = std::min(lowest, part[i]);
          highest = std::max(highest, part[i]);
        }
      }
      if (odd != nullptr)
        split_row(part, count, even + x / 2, odd + x / 2);
      else
        std::copy_n(part, count, even + x);
    }
    if (lowest > highest) return;
    for (std::int64_t seen = low; lowest < seen && !low.compare_exchange_weak(seen, lowest);) continue;
    for (std::int64_t seen = high; highest > seen && !high.compare_exchange_weak(seen, highest);) continue;
  });
  all_special = low > high;
  head.low = all_special ? 0 : low.load();
  head.high = all_special ? 0 : high.load();
  const double most = static_cast<double>(std::numeric_limits<T>::max());
  return absolute(step.times(static_cast<double>(head.low))) <= most &&
         absolute(step.times(static_cast<double>(head.high))) <= most;
}

// The pieces of all tiles, and what they take.
struct Pieces {
  const ProgressiveLayout& layout;
  const ProgressiveHead& head;
  std::uint64_t tiles = 0;
  std::uint64_t first_tile[kMostUnits], first_size[kMostUnits];
  Memory<std::uint8_t*> bytes;    // of a tile, all its pieces from the highest plane down
  Memory<std::uint32_t> offsets;  // of its pieces there, and their end

  Pieces(const ProgressiveLayout& l, const ProgressiveHead& d) : layout(l), head(d) {
    std::uint64_t pieces = 0;
    for (int u = 0; u < layout.units; ++u) {
      first_tile[u] = tiles;
      first_size[u] = pieces;
      tiles += layout.unit[u].tiles;
      pieces += layout.unit[u].tiles * static_cast<std::uint64_t>(head.planes[u] + 2);
    }
    bytes = allocate_memory<std::uint8_t*>(tiles + 1);
    offsets = allocate_memory<std::uint32_t>(pieces + 1);
    if (bytes) std::fill_n(bytes.get(), tiles, nullptr);
  }
  ~Pieces() {
    for (std::uint64_t t = 0; bytes && t < tiles; ++t) std::free(bytes[t]);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  // Plane p's is number planes - 1 - p of a tile.
  std::uint32_t* of_tile(int u, std::uint64_t tile) const {
    return offsets.get() + first_size[u] + tile * static_cast<std::uint64_t>(head.planes[u] + 2);
  }
  std::uint32_t piece_bytes(int u, std::uint64_t tile, int p) const {
    const std::uint32_t* const at = of_tile(u, tile) + (head.planes[u] - 1 - p);
    return at[1] - at[0];
  }
  // Of a segment: the pieces of all tiles behind a bit for each and the sizes of those that are not empty.
  std::uint64_t segment_bytes(int u, int p) const {
    const std::uint64_t n = layout.unit[u].tiles;
    std::uint64_t total = 0, filled = 0;
    for (std::uint64_t t = 0; t < n; ++t) {
      const std::uint32_t size = piece_bytes(u, t, p);
      total += size;
      filled += size != 0;
    }
    return n == 1 || total == 0 ? total : (n + 7) / 8 + 2 * filled + total;
  }
  void write_segment(int u, int p, std::uint64_t size, std::uint8_t* out) const {
    const std::uint64_t n = layout.unit[u].tiles;
    if (size == 0) return;
    std::uint8_t *entry = out + (n + 7) / 8, *to = out;
    if (n > 1) {
      std::memset(out, 0, (n + 7) / 8);
      for (std::uint64_t t = 0; t < n; ++t) {
        const std::uint32_t piece = piece_bytes(u, t, p);
        if (piece == 0) continue;
        out[t / 8] = static_cast<std::uint8_t>(out[t / 8] | 1u << (t % 8));
        store_le(entry, static_cast<std::uint16_t>(piece));
        entry += 2;
      }
      to = entry;
    }
    for (std::uint64_t t = 0; t < n; ++t) {
      const std::uint32_t size_here = piece_bytes(u, t, p);
      std::memcpy(to, bytes[first_tile[u] + t] + of_tile(u, t)[head.planes[u] - 1 - p], size_here);
      to += size_here;
    }
  }
};

struct TileScratch {
  TilePlanes planes;
  PositionClasses classes;
  std::uint8_t out[(kMostPlanes + 1) * kMostPieceBytes];
};

// All pieces of a tile; false without memory.
template <class Int>
inline bool encode_tile_pieces(const Pieces& pieces, int u, std::uint64_t tile, const Int* coefficients) {
  auto* const scratch = reinterpret_cast<TileScratch*>(thread_scratch(sizeof(TileScratch)));
  if (scratch == nullptr) return false;
  const ProgressiveUnit& unit = pieces.layout.unit[u];
  const int planes = pieces.head.planes[u];
  load_tile(unit, coefficients + unit.first, tile, planes, scratch->planes);
  std::uint32_t* offset = pieces.of_tile(u, tile);
  std::uint8_t* to = scratch->out;
  for (int p = planes - 1; p >= -1; --p) {
    *offset++ = static_cast<std::uint32_t>(to - scratch->out);
    to += encode_piece(scratch->planes, form_of(unit), p, scratch->classes, to);
  }
  *offset = static_cast<std::uint32_t>(to - scratch->out);
  const auto total = static_cast<std::size_t>(to - scratch->out);
  auto* const kept = static_cast<std::uint8_t*>(std::malloc(total + 1));
  if (kept == nullptr) return false;
  std::memcpy(kept, scratch->out, total);
  pieces.bytes[pieces.first_tile[u] + tile] = kept;
  return true;
}

template <class Int>
inline bool encode_units(const Pieces& pieces, const Int* coefficients) {
  std::atomic<bool> good{true};
  const ProgressiveLayout& layout = pieces.layout;
  in_parallel(pieces.tiles, 4, [&](std::uint64_t t) {
    int u = layout.units - 1;
    while (pieces.first_tile[u] > t) --u;
    if (pieces.head.planes[u] == 0) return;
    if (!encode_tile_pieces(pieces, u, t - pieces.first_tile[u], coefficients)) good = false;
  });
  return good;
}

// The largest error of the integers for a reader that has units down to `state`. Measured on the values themselves.
template <class Int>
inline std::uint64_t measure_error(const Hierarchy<Int>& original, const Hierarchy<Int>& work,
                                   const ProgressiveHead& head, const Int* coefficients, const std::uint8_t* kinds,
                                   const int* state) {
  const ProgressiveLayout& layout = original.layout;
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  std::copy_n(original.root, layout.roots, work.root);
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    const Int* const from = coefficients + unit.first;
    const int planes = head.planes[u], p = state[u];
    if (u == 0 || layout.unit[u - 1].level != unit.level) raise_level(work, unit.level);
    inverse_unit_made(work, unit, head.cubic[u], limits, [&](std::uint64_t first, std::uint64_t count, Int* known) {
      for (std::uint64_t i = 0; i < count; ++i) known[i] = known_part(from[first + i], planes, p);
    });
  }
  const Extents g = layout.grids[0];
  std::atomic<std::uint64_t> largest{0};
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    Int most = 0;
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t z = row / g.y, y = row % g.y, count = half == 0 ? half_up(g.x) : g.x / 2;
      const Int* const a = half == 0 ? original.even_row(0, z, y) : original.odd_row(0, z, y);
      const Int* const b = half == 0 ? work.even_row(0, z, y) : work.odd_row(0, z, y);
      if (kinds == nullptr) {
        for (std::uint64_t i = 0; i < count; ++i)
          most = std::max(most, static_cast<Int>(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]));
      } else {
        const std::uint8_t* const kind = kinds + row * g.x + static_cast<std::uint64_t>(half);
        for (std::uint64_t i = 0; i < count; ++i)
          if (kind[2 * i] == kPlain) most = std::max(most, static_cast<Int>(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]));
      }
    }
    const auto found = static_cast<std::uint64_t>(most);
    for (std::uint64_t seen = largest; found > seen && !largest.compare_exchange_weak(seen, found);) continue;
  });
  return largest;
}

PYF_END_TARGET
