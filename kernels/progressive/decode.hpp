// SPDX-License-Identifier: BSD-3-Clause
// The payload of a progressive frame, or the first segments of it, to values (docs/format.md, section 13), on the CPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/status.hpp"
#include "core/target.hpp"
#include "core/types.hpp"
#include "progressive/head.hpp"
#include "progressive/hierarchy.hpp"
#include "progressive/specials.hpp"
#include "progressive/tile.hpp"
#include "progressive/values.hpp"

PYF_BEGIN_TARGET

// Where the pieces of a unit are: of plane p and tile t, place[(planes - 1 - p) * tiles + t].
struct PiecePlace {
  std::uint64_t offset;
  std::uint32_t size;
};

// The places of a segment's pieces; false where its bytes contradict themselves.
inline bool place_pieces(const std::uint8_t* payload, const ProgressiveSegment& segment, std::uint64_t tiles,
                         PiecePlace* place) {
  for (std::uint64_t t = 0; t < tiles; ++t) place[t] = {segment.offset, 0};
  if (segment.size == 0) return true;
  if (tiles == 1) {
    place[0] = {segment.offset, static_cast<std::uint32_t>(segment.size)};
    return segment.size <= kMostPieceBytes;
  }
  const std::uint64_t mask_bytes = (tiles + 7) / 8;
  if (segment.size < mask_bytes) return false;
  const std::uint8_t* const mask = payload + segment.offset;
  std::uint64_t filled = 0;
  for (std::uint64_t i = 0; i < mask_bytes; ++i) filled += count_bits(mask[i]);
  if (tiles % 8 != 0 && mask[mask_bytes - 1] >> (tiles % 8) != 0) return false;
  if (filled == 0 || (segment.size - mask_bytes) / 2 < filled) return false;
  const std::uint8_t* entry = mask + mask_bytes;
  std::uint64_t offset = mask_bytes + 2 * filled;
  for (std::uint64_t t = 0; t < tiles; ++t) {
    if ((mask[t / 8] >> (t % 8) & 1) == 0) continue;
    const auto size = load_le<std::uint16_t>(entry);
    entry += 2;
    if (size == 0 || size > segment.size - offset) return false;
    place[t] = {segment.offset + offset, size};
    offset += size;
  }
  return offset == segment.size;
}

struct DecodeScratch {
  TilePlanes planes;
  PositionClasses classes;
};

// What decode_tile_pieces returns but for the plane of a damaged piece.
inline constexpr int kTileDecoded = -2, kTileNoMemory = -3;

// A tile of a unit, of which the pieces down to plane `last` are there.
template <class Int>
inline int decode_tile_pieces(const std::uint8_t* payload, const ProgressiveUnit& unit, int planes, int last,
                              std::uint64_t tile, const PiecePlace* place, Int* coefficients) {
  auto* const scratch = reinterpret_cast<DecodeScratch*>(thread_scratch(sizeof(DecodeScratch)));
  if (scratch == nullptr) return kTileNoMemory;
  TilePlanes& t = scratch->planes;
  std::memset(t.plane, 0, static_cast<std::size_t>(planes) * sizeof t.plane[0]);
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    std::uint32_t count;
    word_place(unit, tile, w, &count);
    t.valid[w] = count == 32 ? ~0u : (1u << count) - 1;
    t.sign[w] = t.known[w] = t.before[w] = 0;
  }
  for (int p = planes - 1; p >= last; --p) {
    const PiecePlace& piece = place[static_cast<std::uint64_t>(planes - 1 - p) * unit.tiles + tile];
    if (!decode_piece(t, form_of(unit), p, scratch->classes, payload + piece.offset, piece.size)) return p;
  }
  put_middles(t, last);
  store_tile(unit, coefficients, tile, planes, t);
  return kTileDecoded;
}

// Values of the grid of `level` (0: all) of a frame whose first `segments` segments are at `payload`, of those of units
// from that level up; others are not looked at.
template <class T>
inline Status decode_progressive(const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout,
                                 const ProgressiveHead& head, const ProgressiveSegment* segments, int count, int level,
                                 void* out) {
  using Int = typename ProgressiveTraits<T>::Int;
  using Code = typename FloatTraits<T>::Code;
  const auto no_memory = [] { return fail(pyfilter::Code::no_memory, "no memory for the integers of a chunk"); };
  Hierarchy<Int> h(layout);
  std::uint64_t largest = 1, places = 1;
  int last[kMostUnits];
  std::uint64_t first_place[kMostUnits];
  for (int u = 0; u < layout.units; ++u) last[u] = head.planes[u];
  for (int i = 0; i < count; ++i) last[segments[i].unit] = segments[i].plane;
  for (int u = 0; u < layout.units; ++u) {
    largest = layout.unit[u].shape.count() > largest ? layout.unit[u].shape.count() : largest;
    first_place[u] = places;
    if (layout.unit[u].level >= level)
      places += layout.unit[u].tiles * static_cast<std::uint64_t>(head.planes[u] - last[u]);
  }
  const Memory<Int> coefficients = allocate_memory<Int>(largest);
  const Memory<PiecePlace> place = allocate_memory<PiecePlace>(places);
  if (!h.memory || !coefficients || !place) return no_memory();
  for (int i = 0; i < count; ++i) {
    const ProgressiveSegment& s = segments[i];
    const ProgressiveUnit& unit = layout.unit[s.unit];
    if (unit.level < level) continue;
    const std::uint64_t at =
        first_place[s.unit] + unit.tiles * static_cast<std::uint64_t>(head.planes[s.unit] - 1 - s.plane);
    if (!place_pieces(payload, s, unit.tiles, place.get() + at))
      return fail(pyfilter::Code::corrupt, "corrupt frame: the sizes of segment %d", i);
  }
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  for (std::uint64_t i = 0; i < layout.roots; ++i) {
    h.root[i] = load_le<Int>(payload + head.roots_at + sizeof(Int) * i);
    if (h.root[i] < limits.low || h.root[i] > limits.high)
      return fail(pyfilter::Code::corrupt, "corrupt frame: value %llu of its coarsest grid",
                  static_cast<unsigned long long>(i));
  }
  std::atomic<int> failed{kTileDecoded};  // of one of the tiles; the text belongs to this thread
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    if (unit.level < level) continue;
    if (u == 0 || layout.unit[u - 1].level != unit.level) raise_level(h, unit.level);
    if (last[u] == head.planes[u]) {
      std::memset(coefficients.get(), 0, static_cast<std::size_t>(unit.shape.count()) * sizeof(Int));
    } else {
      in_parallel(unit.tiles, 4, [&](std::uint64_t tile) {
        if (failed != kTileDecoded) return;
        const int result = decode_tile_pieces(payload, unit, head.planes[u], last[u], tile,
                                              place.get() + first_place[u], coefficients.get());
        if (result != kTileDecoded) failed = result;
      });
      if (failed == kTileNoMemory) return no_memory();
      if (failed != kTileDecoded)
        return fail(pyfilter::Code::corrupt, "corrupt frame: a piece of plane %d of unit %d", failed.load(), u);
    }
    inverse_unit(h, unit, head.cubic[u], limits, coefficients.get());
  }

  const Extents whole = layout.grids[0], g = layout.grids[level];
  const PowerOfTwo step(exponent_above(info.step) - 1);
  auto* const values = static_cast<std::uint8_t*>(out);
  const auto sentinel = static_cast<Code>(info.sentinel);
  std::atomic<bool> out_of_memory{false};
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    Int* const integers = reinterpret_cast<Int*>(thread_scratch(static_cast<std::size_t>(g.x) * sizeof(Int)));
    if (integers == nullptr) {
      out_of_memory = true;
      return;
    }
    join_level_row(h, level, row / g.y, row % g.y, integers);
    std::uint8_t* const to = values + row * g.x * sizeof(T);
    if (info.has_sentinel) {
      for (std::uint64_t x = 0; x < g.x; ++x)
        store_le(to + x * sizeof(T), beside_sentinel(to_value<T>(integers[x], step), sentinel));
    } else {
      for (std::uint64_t x = 0; x < g.x; ++x) store_le(to + x * sizeof(T), to_value<T>(integers[x], step));
    }
  });
  if (out_of_memory) return no_memory();
  if (head.special_bytes == 0) return kOk;
  const Memory<std::uint8_t> kinds = allocate_memory<std::uint8_t>(whole.count());
  if (!kinds) return no_memory();
  std::memset(kinds.get(), 0, static_cast<std::size_t>(whole.count()));
  const std::uint64_t every = std::uint64_t{1} << level;
  PYF_TRY(read_specials(payload + head.specials_at, head.special_bytes, whole.count(), whole.x, info.has_sentinel,
                        sizeof(T), kinds.get(), [&](std::uint64_t at, const std::uint8_t* value) {
                          const std::uint64_t x = at % whole.x, y = at / whole.x % whole.y, z = at / whole.x / whole.y;
                          if (x % every != 0 || y % every != 0 || z % every != 0) return;
                          std::memcpy(values + ((z / every * g.y + y / every) * g.x + x / every) * sizeof(T), value,
                                      sizeof(T));
                        }));
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    const std::uint8_t* const kind = kinds.get() + ((row / g.y * whole.y + row % g.y) * every) * whole.x;
    for (std::uint64_t x = 0; x < g.x; ++x)
      if (kind[x * every] == kMissingValue) store_le(values + (row * g.x + x) * sizeof(T), sentinel);
  });
  return kOk;
}

PYF_END_TARGET
