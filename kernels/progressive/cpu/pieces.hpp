// SPDX-License-Identifier: BSD-3-Clause
// The pieces of all tiles of a chunk during encoding, in one block of memory, tile by tile in the order of completion.
// Segments are made of them (docs/format.md, section 13.4).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/cpu_driver.hpp"
#include "core/target.hpp"
#include "progressive/cpu/points.hpp"
#include "progressive/cpu/tile_words.hpp"
#include "progressive/head.hpp"
#include "progressive/memory.hpp"
#include "progressive/tile.hpp"

PYF_BEGIN_TARGET

struct Pieces {
  // Of a tile: the start of its pieces, the highest plane first, and the number of planes above plane 0.
  struct Tile {
    std::uint64_t start;
    std::uint32_t planes;
  };
  const ProgressiveLayout& layout;
  std::uint64_t tiles = 0, first_tile[kMostUnits];
  std::uint64_t most;  // the largest number of pieces of a tile, including their end
  Memory<Tile> tile;
  Memory<std::uint32_t> offsets;  // of a tile's pieces from its start
  std::uint8_t* bytes;            // of all pieces
  std::size_t limit;
  std::atomic<std::size_t> used{0};
  std::atomic<bool> no_memory{false}, full{false};

  // `most_planes`: the most planes of any tile. Pieces are appended to `to` while they have fewer than `limit` bytes in
  // all.
  Pieces(const ProgressiveLayout& l, int most_planes, std::uint8_t* to, std::size_t limit_)
      : layout(l), most(static_cast<std::uint64_t>(most_planes) + 2), bytes(to), limit(limit_) {
    for (int u = 0; u < layout.units; ++u) {
      first_tile[u] = tiles;
      tiles += layout.unit[u].tiles;
    }
    tile = allocate_memory<Tile>(tiles + 1);
    offsets = allocate_memory<std::uint32_t>(tiles * most + 1);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  const Tile& of(int u, std::uint64_t number) const { return tile[first_tile[u] + number]; }
  // The piece of plane `p`, which the tile may not have: sets its start in `bytes`, returns its size.
  std::uint32_t piece(int u, std::uint64_t number, int p, std::uint64_t* start) const {
    const Tile& t = of(u, number);
    if (t.planes == 0 || p >= static_cast<int>(t.planes)) return 0;
    const std::uint32_t* const at =
        offsets.get() + (first_tile[u] + number) * most + (static_cast<int>(t.planes) - 1 - p);
    *start = t.start + at[0];
    return at[1] - at[0];
  }
  // The size of a segment: a bit for each tile, the sizes of non-empty pieces, and the pieces.
  std::uint64_t segment_bytes(int u, int p) const {
    const std::uint64_t n = layout.unit[u].tiles;
    std::uint64_t total = 0, filled = 0, start;
    for (std::uint64_t t = 0; t < n; ++t) {
      const std::uint32_t size = piece(u, t, p, &start);
      total += size;
      filled += size != 0;
    }
    return n == 1 || total == 0 ? total : (n + 7) / 8 + 2 * filled + total;
  }
  void write_segment(int u, int p, std::uint64_t size, std::uint8_t* out) const {
    const std::uint64_t n = layout.unit[u].tiles;
    if (size == 0) return;
    std::uint8_t *entry = out + (n + 7) / 8, *to = out;
    std::uint64_t start = 0;
    if (n > 1) {
      std::memset(out, 0, (n + 7) / 8);
      for (std::uint64_t t = 0; t < n; ++t) {
        const std::uint32_t here = piece(u, t, p, &start);
        if (here == 0) continue;
        out[t / 8] = static_cast<std::uint8_t>(out[t / 8] | 1u << (t % 8));
        store_le(entry, static_cast<std::uint16_t>(here));
        entry += 2;
      }
      to = entry;
    }
    for (std::uint64_t t = 0; t < n; ++t) {
      const std::uint32_t here = piece(u, t, p, &start);
      std::memcpy(to, bytes + start, here);
      to += here;
    }
  }
};

struct TileScratch {
  TilePlanes planes;
  PositionClasses classes;
  std::uint8_t out[(kMostPlanes + 1) * kMostPieceBytes];
};

// Encodes all pieces of a tile.
template <class Int>
inline void encode_tile(Pieces& pieces, int u, std::uint64_t number, const Points<Int>& q, bool cubic,
                        const Limits<Int>& limits) {
  auto* const scratch = reinterpret_cast<TileScratch*>(thread_scratch(sizeof(TileScratch)));
  if (scratch == nullptr) {
    pieces.no_memory = true;
    return;
  }
  const ProgressiveUnit& unit = pieces.layout.unit[u];
  const std::size_t step = q.step(unit);
  const int planes = load_tile<Int>(
      unit, number,
      [&](const TilePosition& position, std::uint32_t count, Int* to) {
        visit_points(q, unit, cubic, position, count,
                     [&](const Neighbours<Int>& from, const Int* target, std::uint64_t n, std::uint64_t before) {
                       coefficients_of_run(from, limits, target, n, step, to + before);
                     });
      },
      scratch->planes);
  std::uint32_t* offset = pieces.offsets.get() + (pieces.first_tile[u] + number) * pieces.most;
  std::uint8_t* to = scratch->out;
  for (int p = planes - 1; p >= (planes != 0 ? -1 : 0); --p) {
    *offset++ = static_cast<std::uint32_t>(to - scratch->out);
    to += encode_piece(scratch->planes, form_of(unit), p, scratch->classes, to);
  }
  *offset = static_cast<std::uint32_t>(to - scratch->out);
  const auto size = static_cast<std::size_t>(to - scratch->out);
  const std::size_t start = pieces.used.fetch_add(size, std::memory_order_relaxed);
  pieces.tile[pieces.first_tile[u] + number] = {start, static_cast<std::uint32_t>(planes)};
  if (size > pieces.limit || start > pieces.limit - size)
    pieces.full = true;
  else
    std::memcpy(pieces.bytes + start, scratch->out, size);
}

// Encodes all pieces of all tiles, and counts the planes of each unit.
template <class Int>
inline void encode_tiles(Pieces& pieces, const Points<Int>& q, const Limits<Int>& limits, ProgressiveHead& head) {
  const ProgressiveLayout& layout = pieces.layout;
  in_parallel(pieces.tiles, 4, [&](std::uint64_t t) {
    if (pieces.no_memory || pieces.full) return;
    int u = layout.units - 1;
    while (pieces.first_tile[u] > t) --u;
    encode_tile(pieces, u, t - pieces.first_tile[u], q, head.cubic[u], limits);
  });
  if (pieces.no_memory || pieces.full) return;
  for (int u = 0; u < layout.units; ++u) {
    std::uint32_t planes = 0;
    for (std::uint64_t t = 0; t < layout.unit[u].tiles; ++t) planes = std::max(planes, pieces.of(u, t).planes);
    head.planes[u] = static_cast<int>(planes);
    if (planes != 0) head.segments += head.planes[u] + 1;
  }
}

PYF_END_TARGET
