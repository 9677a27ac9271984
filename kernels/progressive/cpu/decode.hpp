// SPDX-License-Identifier: BSD-3-Clause
// The payload of a progressive frame, or its first segments, to values (docs/format.md, section 13), on the CPU.
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
#include "progressive/cpu/points.hpp"
#include "progressive/cpu/tile_words.hpp"
#include "progressive/head.hpp"
#include "progressive/memory.hpp"
#include "progressive/specials.hpp"
#include "progressive/tile.hpp"
#include "progressive/values.hpp"

PYF_BEGIN_TARGET

// The location of a piece. Of plane p and tile t: pieces[(planes - 1 - p) * tiles + t].
struct PieceLocation {
  std::uint64_t offset;
  std::uint32_t size;
};

// Locates the pieces of a segment; false if its bytes contradict themselves.
inline bool locate_pieces(const std::uint8_t* payload, const ProgressiveSegment& segment, std::uint64_t tiles,
                          PieceLocation* pieces) {
  for (std::uint64_t t = 0; t < tiles; ++t) pieces[t] = {segment.offset, 0};
  if (segment.size == 0) return true;
  if (tiles == 1) {
    pieces[0] = {segment.offset, static_cast<std::uint32_t>(segment.size)};
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
    pieces[t] = {segment.offset + offset, size};
    offset += size;
  }
  return offset == segment.size;
}

struct DecodeScratch {
  TilePlanes planes;
  PieceScratch piece;
};

// Results of decode_tile_pieces other than the plane of a damaged piece.
inline constexpr int kTileDecoded = -2, kTileNoMemory = -3;

// Decodes a tile of a unit from its pieces down to plane `last`, and adds its coefficients to predictions from earlier
// units.
template <class Int>
inline int decode_tile_pieces(const std::uint8_t* payload, const Points<Int>& q, const ProgressiveUnit& unit,
                              bool cubic, const Limits<Int>& limits, int planes, int last, std::uint64_t tile,
                              const PieceLocation* pieces) {
  auto* const scratch = reinterpret_cast<DecodeScratch*>(thread_scratch(sizeof(DecodeScratch)));
  if (scratch == nullptr) return kTileNoMemory;
  TilePlanes& t = scratch->planes;
  std::memset(t.plane, 0, static_cast<std::size_t>(planes) * sizeof t.plane[0]);
  const TilePosition origin = tile_origin(unit, tile);
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    std::uint32_t count;
    word_position(unit, origin, w, &count);
    t.valid[w] = first_bits(count);
    t.sign[w] = t.known[w] = t.before[w] = 0;
  }
  for (int p = planes - 1; p >= last; --p) {
    const PieceLocation& piece = pieces[static_cast<std::uint64_t>(planes - 1 - p) * unit.tiles + tile];
    if (!decode_piece(t, form_of(unit), p, scratch->piece, payload + piece.offset, piece.size)) return p;
  }
  if (last < planes) put_middles(t, last);
  const std::size_t step = q.step(unit);
  store_tile<Int>(unit, tile, planes, t, [&](const TilePosition& at, std::uint32_t count, const Int* coefficients) {
    visit_points(q, unit, cubic, at, count,
                 [&](const Neighbours<Int>& from, Int* target, std::uint64_t n, std::uint64_t before) {
                   restore_run(from, limits, coefficients == nullptr ? nullptr : coefficients + before, n, step,
                               target);
                 });
  });
  return kTileDecoded;
}

// Converts integers of grid `level` to values, in place or from `integers` to `values`.
template <class T, class Int>
inline void finish_values(const FrameInfo& info, const Int* integers, std::uint64_t count, std::uint8_t* values) {
  using Code = typename FloatTraits<T>::Code;
  constexpr std::uint64_t kPart = 1024;
  const PowerOfTwo step(exponent_above(info.step) - 1);
  const auto sentinel = static_cast<Code>(info.sentinel);
  in_parallel((count + kPart - 1) / kPart, 16, [&](std::uint64_t number) {
    const std::uint64_t first = number * kPart, n = count - first < kPart ? count - first : kPart;
    alignas(64) Int from[kPart];
    alignas(64) T to[kPart];
    std::memcpy(from, integers + first, static_cast<std::size_t>(n) * sizeof(Int));
    if (info.has_sentinel) {
      for (std::uint64_t i = 0; i < n; ++i) to[i] = beside_sentinel(to_value<T>(from[i], step), sentinel);
    } else {
      for (std::uint64_t i = 0; i < n; ++i) to[i] = to_value<T>(from[i], step);
    }
    std::memcpy(values + first * sizeof(T), to, static_cast<std::size_t>(n) * sizeof(T));
  });
}

// Writes special values to their positions in the grid of `level`.
template <class T>
inline Status place_specials(const FrameInfo& info, const std::uint8_t* from, std::uint64_t bytes,
                             const ProgressiveLayout& layout, int level, std::uint8_t* values) {
  using Code = typename FloatTraits<T>::Code;
  const Extents whole = layout.grids[0], g = layout.grids[level];
  const Memory<std::uint64_t> mask = allocate_memory<std::uint64_t>(mask_words(whole.count()) + 1);
  if (!mask) return fail(pyfilter::Code::no_memory, "no memory for the special values of a chunk");
  std::memset(mask.get(), 0, static_cast<std::size_t>(mask_words(whole.count()) + 1) * sizeof(std::uint64_t));
  const std::uint64_t every = std::uint64_t{1} << level;
  PYF_TRY(read_specials(from, bytes, whole.count(), whole.x, info.has_sentinel, sizeof(T), mask.get(),
                        [&](std::uint64_t at, const std::uint8_t* value) {
                          const std::uint64_t x = at % whole.x, y = at / whole.x % whole.y, z = at / whole.x / whole.y;
                          if (x % every != 0 || y % every != 0 || z % every != 0) return;
                          std::memcpy(values + ((z / every * g.y + y / every) * g.x + x / every) * sizeof(T), value,
                                      sizeof(T));
                        }));
  const auto sentinel = static_cast<Code>(info.sentinel);
  if (level == 0) {
    in_parallel(mask_words(whole.count()), 4096, [&](std::uint64_t w) {
      for (std::uint64_t word = mask[w]; word != 0; word &= word - 1) {
        const std::uint64_t i = 64 * w + static_cast<std::uint64_t>(__builtin_ctzll(word));
        if (i < whole.count()) store_le(values + i * sizeof(T), sentinel);
      }
    });
    return kOk;
  }
  in_parallel(g.z * g.y, rows_at_once(g.x), [&](std::uint64_t row) {
    const std::uint64_t first = ((row / g.y * whole.y + row % g.y) * every) * whole.x;
    for (std::uint64_t x = 0; x < g.x; ++x)
      if (mask_bit(mask.get(), first + x * every)) store_le(values + (row * g.x + x) * sizeof(T), sentinel);
  });
  return kOk;
}

// Decodes the values of the grid of `level` (0: all) of a frame whose first `segments` segments are at `payload`.
// Segments of units below that level are not read. The integers use the memory of the values.
template <class T>
inline Status decode_progressive(const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout,
                                 const ProgressiveHead& head, const ProgressiveSegment* segments, int count, int level,
                                 void* out) {
  using Int = typename ProgressiveTraits<T>::Int;
  const auto no_memory = [] { return fail(pyfilter::Code::no_memory, "no memory for the pieces of a chunk"); };
  const Extents g = layout.grids[level], coarsest = layout.grids[layout.levels];
  Memory<Int> aligned;
  if (reinterpret_cast<std::uintptr_t>(out) % alignof(Int) != 0) {
    aligned = allocate_memory<Int>(g.count());
    if (!aligned) return no_memory();
  }
  const Points<Int> q{aligned ? aligned.get() : static_cast<Int*>(out), layout, level};
  std::uint64_t most_pieces = 1;
  int last[kMostUnits];
  for (int u = 0; u < layout.units; ++u) last[u] = head.planes[u];
  for (int i = 0; i < count; ++i) last[segments[i].unit] = segments[i].plane;
  for (int u = 0; u < layout.units; ++u) {
    const std::uint64_t here = layout.unit[u].tiles * static_cast<std::uint64_t>(head.planes[u] - last[u]);
    if (layout.unit[u].level >= level && here > most_pieces) most_pieces = here;
  }
  const Memory<PieceLocation> pieces = allocate_memory<PieceLocation>(most_pieces);  // of one unit at a time
  if (!pieces) return no_memory();
  const Limits<Int> limits{static_cast<Int>(head.low), static_cast<Int>(head.high)};
  for (std::uint64_t i = 0; i < layout.roots; ++i) {
    const Int root = load_le<Int>(payload + head.roots_at + sizeof(Int) * i);
    if (root < limits.low || root > limits.high)
      return fail(pyfilter::Code::corrupt, "corrupt frame: value %llu of its coarsest grid is out of range",
                  static_cast<unsigned long long>(i));
    *q.point(layout.levels, i / (coarsest.y * coarsest.x), i / coarsest.x % coarsest.y, i % coarsest.x) = root;
  }
  std::atomic<int> failed{kTileDecoded};  // the result of a failed tile; the error text belongs to this thread
  for (int u = 0; u < layout.units; ++u) {
    const ProgressiveUnit& unit = layout.unit[u];
    if (unit.level < level) continue;
    for (int i = 0; i < count; ++i) {
      const ProgressiveSegment& s = segments[i];
      if (s.unit != u) continue;
      const std::uint64_t at = unit.tiles * static_cast<std::uint64_t>(head.planes[u] - 1 - s.plane);
      if (!locate_pieces(payload, s, unit.tiles, pieces.get() + at))
        return fail(pyfilter::Code::corrupt, "corrupt frame: the piece sizes of segment %d are invalid", i);
    }
    const bool nothing = last[u] == head.planes[u];  // all coefficients of the unit are 0
    const int planes = nothing ? 0 : head.planes[u], lowest = nothing ? 0 : last[u];
    in_parallel(unit.tiles, 4, [&](std::uint64_t tile) {
      if (failed != kTileDecoded) return;
      const int result =
          decode_tile_pieces(payload, q, unit, head.cubic[u], limits, planes, lowest, tile, pieces.get());
      if (result != kTileDecoded) failed = result;
    });
    if (failed == kTileNoMemory) return no_memory();
    if (failed != kTileDecoded)
      return fail(pyfilter::Code::corrupt, "corrupt frame: a piece of plane %d of unit %d is invalid", failed.load(),
                  u);
  }
  auto* const values = static_cast<std::uint8_t*>(out);
  finish_values<T>(info, q.at, g.count(), values);
  if (head.special_bytes == 0) return kOk;
  return place_specials<T>(info, payload + head.specials_at, head.special_bytes, layout, level, values);
}

PYF_END_TARGET
