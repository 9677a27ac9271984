// SPDX-License-Identifier: BSD-3-Clause
// The order of particles that takes the fewest bytes: along the keys of the whole chunk, then of each tile. A stable
// sort, special particles last, so that an order once made is made again, and threads and devices agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "particles/codes.hpp"

PYF_BEGIN_TARGET

// Sorts `count` entries by their bits from 32 to 32 + bits; `other` has as much room. The result is in `entries`.
template <unsigned kDigit>
inline void sort_by_digits(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits) {
  constexpr std::uint32_t kValues = 1u << kDigit, kMostPasses = (kMostKeyBits + kDigit) / kDigit;
  std::uint32_t places[kMostPasses][kValues] = {};
  const unsigned passes = (bits + kDigit - 1) / kDigit;
  const auto digit = [](std::uint64_t entry, unsigned pass) { return entry >> (32 + pass * kDigit) & (kValues - 1); };
  for (std::size_t i = 0; i < count; ++i)
    for (unsigned pass = 0; pass < passes; ++pass) ++places[pass][digit(entries[i], pass)];
  std::uint64_t *from = entries, *to = other;
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::uint32_t* const place = places[pass];
    if (place[digit(from[0], pass)] == count) continue;  // all have the same digit
    std::uint32_t sum = 0;
    for (std::uint32_t value = 0; value < kValues; ++value) {
      const std::uint32_t here = place[value];
      place[value] = sum;
      sum += here;
    }
    for (std::size_t i = 0; i < count; ++i) to[place[digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, count * sizeof *entries);
}

// The same with digits of as many bits as take the fewest passes, but for more counters than a tile is worth.
inline void sort_entries(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits) {
  if (bits > 16 && bits <= 20)
    sort_by_digits<10>(entries, other, count, bits);
  else if (bits > 20 && bits <= 22)
    sort_by_digits<11>(entries, other, count, bits);
  else
    sort_by_digits<8>(entries, other, count, bits);
}

// Entries (key, index) of a tile's particles: those of `count` particles at space.values, from their own extent.
template <class T, int D>
inline unsigned tile_entries(const Quantizer<T>& p, std::uint32_t count, TileSpace<T>& space, std::uint64_t* entries) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint32_t specials = code_particles<T, D>(p, space.values, count, space.q, space.special);
  const auto is_special = [&](std::uint32_t i) { return (space.special[i / 32] >> i % 32 & 1) != 0; };
  Extent<Code> extents[3];
  if (specials == 0) {
    for (int d = 0; d < D; ++d) extents[d].add(space.q[d], count);
  } else {
    for (std::uint32_t i = 0; i < count; ++i)
      for (int d = 0; d < D && !is_special(i); ++d) extents[d].add(space.q[d] + i, 1);
  }
  unsigned width[3] = {};
  Code origin[3] = {};
  for (int d = 0; d < D; ++d) {
    origin[d] = static_cast<Code>(extents[d].low);
    width[d] = extents[d].width();
  }
  const KeyLayout layout = make_layout(width, lowest_shift(width));
  make_keys<Code, D>(layout, space.q, origin, count, space.keys);
  for (std::uint32_t i = 0; i < count; ++i) entries[i] = std::uint64_t{space.keys[i]} << 32 | i;
  if (specials == 0) return layout.bits();
  for (std::uint32_t i = 0; i < count; ++i)
    if (is_special(i)) entries[i] = kLastKey << 32 | i;
  return kMostKeyBits + 1;
}

// Lays the first `count` particles at space.values in order; entries have their indices in low halves.
template <class T, int D>
inline void sort_tile(const Plan& plan, std::uint32_t count, TileSpace<T>& space) {
  const unsigned bits = tile_entries<T, D>(quantizer_of<T>(plan), count, space, space.entries);
  sort_entries(space.entries, space.entries + kTileParticles, count, bits);
}

// Lays particles[0 .. count) of one tile (indices into the chunk) in order.
template <class T, int D>
inline void order_tile(const Plan& plan, const void* values, std::uint32_t* particles, std::uint32_t count,
                       void* scratch) {
  TileSpace<T> space(scratch);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  for (std::uint32_t i = 0; i < count; ++i)
    std::memcpy(space.values + i * D, from + std::size_t{particles[i]} * D * sizeof(T), D * sizeof(T));
  sort_tile<T, D>(plan, count, space);
  for (std::uint32_t i = 0; i < count; ++i) space.gaps[i] = particles[space.entries[i] & 0xFFFFFFFFu];
  std::memcpy(particles, space.gaps, count * sizeof *particles);
}

inline constexpr std::uint32_t kAhead = 32;  // particles that are asked for before they are taken

// The values of a tile, in the order that the plan asks for, at space.values.
template <class T, int D>
inline void take_tile(const Plan& plan, const void* values, std::uint64_t first, std::uint32_t count,
                      TileSpace<T>& space) {
  const auto* const from = static_cast<const std::uint8_t*>(values);
  const std::uint64_t movable = plan.sorted_particles > first ? plan.sorted_particles - first : 0;
  const auto sorted = static_cast<std::uint32_t>(std::min<std::uint64_t>(movable, count));
  if (plan.entries != nullptr) {
    const auto at = [&](std::uint32_t i) { return from + (plan.entries[first + i] & 0xFFFFFFFFu) * D * sizeof(T); };
    for (std::uint32_t i = 0; i < sorted; ++i) {
      if (i + kAhead < sorted) __builtin_prefetch(at(i + kAhead));
      std::memcpy(space.values + i * D, at(i), D * sizeof(T));
    }
    std::memcpy(space.values + std::size_t{sorted} * D, from + (first + sorted) * D * sizeof(T),
                std::size_t{count - sorted} * D * sizeof(T));
  } else {
    std::memcpy(space.values, from + first * D * sizeof(T), std::size_t{count} * D * sizeof(T));
  }
  if (sorted == 0) return;
  sort_tile<T, D>(plan, sorted, space);
  for (std::uint32_t i = 0; i < sorted; ++i)
    std::memcpy(space.other_values + i * D, space.values + (space.entries[i] & 0xFFFFFFFFu) * D, D * sizeof(T));
  std::memcpy(space.other_values + std::size_t{sorted} * D, space.values + std::size_t{sorted} * D,
              std::size_t{count - sorted} * D * sizeof(T));
  std::swap(space.values, space.other_values);
}

// Codes of all particles of a chunk, a tile at a time: each(first, count, specials) with codes and bits in `space`.
template <class T, int D, class Each>
inline void code_chunk(const Quantizer<T>& p, const void* values, std::uint32_t count, TileSpace<T>& space,
                       Each&& each) {
  for (std::uint32_t first = 0; first < count; first += kTileParticles) {
    const std::uint32_t here = std::min(kTileParticles, count - first);
    std::memcpy(space.values, static_cast<const std::uint8_t*>(values) + std::size_t{first} * D * sizeof(T),
                std::size_t{here} * D * sizeof(T));
    const std::uint32_t specials = code_particles<T, D>(p, space.values, here, space.q, space.special);
    each(first, here, specials);
  }
}

// Entries (key, index) of all particles of a chunk, by the keys of its extent. The driver sorts them.
template <class T, int D>
inline void order_chunk(const Plan& plan, const void* values, std::uint32_t count, std::uint64_t* entries,
                        void* scratch) {
  using Code = typename FloatTraits<T>::Code;
  const Quantizer<T> p = quantizer_of<T>(plan);
  TileSpace<T> space(scratch);
  const auto is_special = [&](std::uint32_t i) { return (space.special[i / 32] >> i % 32 & 1) != 0; };
  Extent<Code> extents[3];
  code_chunk<T, D>(p, values, count, space, [&](std::uint32_t, std::uint32_t here, std::uint32_t specials) {
    for (int d = 0; d < D; ++d) {
      if (specials == 0) {
        extents[d].add(space.q[d], here);
        continue;
      }
      for (std::uint32_t i = 0; i < here; ++i)
        if (!is_special(i)) extents[d].add(space.q[d] + i, 1);
    }
  });
  unsigned width[3] = {};
  Code origin[3] = {};
  for (int d = 0; d < D; ++d) {
    origin[d] = static_cast<Code>(extents[d].low);
    width[d] = extents[d].width();
  }
  const KeyLayout layout = make_layout(width, lowest_shift(width));
  code_chunk<T, D>(p, values, count, space, [&](std::uint32_t first, std::uint32_t here, std::uint32_t specials) {
    make_keys<Code, D>(layout, space.q, origin, here, space.keys);
    for (std::uint32_t i = 0; i < here; ++i) entries[first + i] = std::uint64_t{space.keys[i]} << 32 | (first + i);
    for (std::uint32_t i = 0; specials != 0 && i < here; ++i)
      if (is_special(i)) entries[first + i] = kLastKey << 32 | (first + i);
  });
}

PYF_END_TARGET
