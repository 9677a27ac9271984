// SPDX-License-Identifier: BSD-3-Clause
// The order of particles that takes the fewest bytes: along the keys of the whole chunk, then of each tile. A stable
// sort, special particles last, so that an order once made is made again, and threads and devices agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "particles/encode.hpp"

PYF_BEGIN_TARGET

// Sorts `count` entries by their bits from 32 to 32 + bits; `other` has as much room. The result is in `entries`.
template <unsigned kDigit>
inline void sort_entries(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits) {
  const std::uint64_t* const result = entries;
  std::uint64_t *from = entries, *to = other;
  for (unsigned shift = 32; shift < 32 + bits; shift += kDigit) {
    std::uint32_t place[1u << kDigit] = {};
    for (std::size_t i = 0; i < count; ++i) ++place[from[i] >> shift & ((1u << kDigit) - 1)];
    std::uint32_t sum = 0;
    bool one = false;  // all have the same digit
    for (std::uint32_t& entry : place) {
      one = one || entry == count;
      const std::uint32_t here = entry;
      entry = sum;
      sum += here;
    }
    if (one) continue;
    for (std::size_t i = 0; i < count; ++i) to[place[from[i] >> shift & ((1u << kDigit) - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != result) std::memcpy(entries, from, count * sizeof *entries);
}

// Key of a special particle: above all others (kMostKeyBits).
inline constexpr std::uint64_t kLastKey = std::uint64_t{1} << kMostKeyBits;

template <class T>
inline Quantizer<T> quantizer_of(const Plan& plan) {
  return make_quantizer(static_cast<T>(plan.bound), static_cast<T>(plan.step), plan.has_sentinel,
                        static_cast<typename FloatTraits<T>::Code>(plan.sentinel));
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

// Lays particles[0 .. count) of one tile (indices into the chunk) in order.
template <class T, int D>
inline void order_tile(const Plan& plan, const void* values, std::uint32_t* particles, std::uint32_t count,
                       void* scratch) {
  TileSpace<T> space(scratch);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  for (std::uint32_t i = 0; i < count; ++i)
    std::memcpy(space.values + i * D, from + std::size_t{particles[i]} * D * sizeof(T), D * sizeof(T));
  auto* const entries = reinterpret_cast<std::uint64_t*>(static_cast<std::uint8_t*>(scratch) + kParticleScratchBytes);
  const unsigned bits = tile_entries<T, D>(quantizer_of<T>(plan), count, space, entries);
  sort_entries<8>(entries, entries + kTileParticles, count, bits);
  std::uint32_t* const sorted = space.gaps;
  for (std::uint32_t i = 0; i < count; ++i) sorted[i] = particles[entries[i] & 0xFFFFFFFFu];
  std::memcpy(particles, sorted, count * sizeof *particles);
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

// Sorts all particles of a chunk by the keys of its extent; `entries` has room for twice as many. Indices are the low
// halves of the result.
template <class T, int D>
inline void order_chunk(const Plan& plan, const void* values, std::uint32_t count, std::uint64_t* entries,
                        void* scratch) {
  using Code = typename FloatTraits<T>::Code;
  const Quantizer<T> p = quantizer_of<T>(plan);
  TileSpace<T> space(scratch);
  const auto is_special = [&](std::uint32_t i) { return (space.special[i / 32] >> i % 32 & 1) != 0; };
  Extent<Code> extents[3];
  bool any = false;
  code_chunk<T, D>(p, values, count, space, [&](std::uint32_t, std::uint32_t here, std::uint32_t specials) {
    any = any || specials != 0;
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
  sort_entries<12>(entries, entries + count, count, any ? kMostKeyBits + 1 : layout.bits());
}

// Whether a tile is in an order that its keys can be coded in.
template <class T, int D>
inline bool is_ordered(const Plan& plan, const void* values, std::uint64_t number, void* scratch) {
  TileSpace<T> space(scratch);
  const std::uint64_t first = number * kTileParticles, particles = plan.grid.values / D;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kTileParticles, particles - first));
  std::memcpy(space.values, static_cast<const std::uint8_t*>(values) + first * D * sizeof(T),
              std::size_t{count} * D * sizeof(T));
  return CodedTile<T, D>(quantizer_of<T>(plan), space.values, count, space).ordered;
}

PYF_END_TARGET
