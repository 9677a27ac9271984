// SPDX-License-Identifier: BSD-3-Clause
// The order of particles with the fewest bytes: by the keys of the whole chunk, then of each tile. The sort is stable,
// with special particles last, so that sorting again changes nothing, and threads and devices agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "particles/codes.hpp"
#include "particles/plan.hpp"

PYF_BEGIN_TARGET

// Sorts `count` entries by `bits` bits from bit 32 on; `other` has the same size. The result is in `entries`.
template <unsigned kDigit>
inline void sort_by_digits(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits) {
  constexpr std::uint32_t kValues = 1u << kDigit, kMostPasses = (kMostKeyBits + kDigit) / kDigit;
  std::uint32_t counts[kMostPasses][kValues] = {};
  const unsigned passes = (bits + kDigit - 1) / kDigit;
  const auto digit = [](std::uint64_t entry, unsigned pass) { return entry >> (32 + pass * kDigit) & (kValues - 1); };
  for (std::size_t i = 0; i < count; ++i)
    for (unsigned pass = 0; pass < passes; ++pass) ++counts[pass][digit(entries[i], pass)];
  std::uint64_t *from = entries, *to = other;
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::uint32_t* const next = counts[pass];
    if (next[digit(from[0], pass)] == count) continue;  // all entries have the same digit
    std::uint32_t sum = 0;
    for (std::uint32_t value = 0; value < kValues; ++value) {
      const std::uint32_t here = next[value];
      next[value] = sum;
      sum += here;
    }
    for (std::size_t i = 0; i < count; ++i) to[next[digit(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, count * sizeof *entries);
}

// The same with the digit size of the fewest passes, limited by the cost of counters for a tile.
inline void sort_entries(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits) {
  if (bits > 16 && bits <= 20)
    sort_by_digits<10>(entries, other, count, bits);
  else if (bits > 20 && bits <= 22)
    sort_by_digits<11>(entries, other, count, bits);
  else
    sort_by_digits<8>(entries, other, count, bits);
}

// Sorts the indices of `count` particles of a tile, at most kTileParticles, stably by keys of `bits` bits. space.order
// gets the indices, space.other_keys the keys in that order. A radix sort with two digits, or three if the particles
// are too few for many counters.
template <class T>
inline void sort_keys(std::uint32_t count, unsigned bits, TileSpace<T>& space) {
  const unsigned passes = count >= kTileParticles / 4 ? 2 : 3, width = std::max(1u, (bits + passes - 1) / passes);
  const std::size_t values = std::size_t{1} << width;
  const std::uint32_t mask = static_cast<std::uint32_t>(values - 1), *__restrict const keys = space.keys;
  std::uint16_t* __restrict const counters = space.counters;
  std::memset(counters, 0, passes * values * sizeof *counters);
  const auto count_digits = [&](std::uint32_t key) {
    for (unsigned pass = 0; pass < passes; ++pass) ++counters[pass * values + (key >> pass * width & mask)];
  };
  // four counters: neighbours often share their highest digit, and would wait for each other's counter
  const std::uint32_t quarter = count / 4;
  for (std::uint32_t i = 0; i < quarter; ++i)
    for (std::uint32_t part = 0; part < 4; ++part) count_digits(keys[part * quarter + i]);
  for (std::uint32_t i = 4 * quarter; i < count; ++i) count_digits(keys[i]);
  bool sorted = false;  // space.order holds the order by earlier digits
  for (unsigned pass = 0; pass < passes; ++pass) {
    std::uint16_t* __restrict const next = counters + pass * values;
    const unsigned shift = pass * width;
    if (next[keys[0] >> shift & mask] == count) continue;  // all entries have the same digit
    std::uint16_t sum = 0;
    for (std::size_t value = 0; value < values; ++value) {
      const std::uint16_t here = next[value];
      next[value] = sum;
      sum = static_cast<std::uint16_t>(sum + here);
    }
    const std::uint16_t* __restrict const from = space.order;
    std::uint16_t* __restrict const to = space.other_order;
    if (sorted) {
      for (std::uint32_t i = 0; i < count; ++i) to[next[keys[from[i]] >> shift & mask]++] = from[i];
    } else {
      for (std::uint32_t i = 0; i < count; ++i) to[next[keys[i] >> shift & mask]++] = static_cast<std::uint16_t>(i);
    }
    std::swap(space.order, space.other_order);
    sorted = true;
  }
  for (std::uint32_t i = 0; !sorted && i < count; ++i) space.order[i] = static_cast<std::uint16_t>(i);
  for (std::uint32_t i = 0; i < count; ++i) space.other_keys[i] = keys[space.order[i]];
}

// Keys of `count` particles of a tile at space.values, in their own extent: space.keys.
template <class T, int D>
struct TileKeys {
  using Code = typename FloatTraits<T>::Code;
  Code origin[3] = {};
  unsigned width[3] = {};
  KeyLayout layout;
  std::uint32_t specials;

  TileKeys(const Quantizer<T>& p, std::uint32_t count, TileSpace<T>& space) {
    specials = code_particles<T, D>(p, space.values, count, space.q, space.special);
    const auto is_special = [&](std::uint32_t i) { return (space.special[i / 32] >> i % 32 & 1) != 0; };
    Extent<Code> extents[3];
    if (specials == 0) {
      for (int d = 0; d < D; ++d) extents[d].add(space.q[d], count);
    } else {
      for (std::uint32_t i = 0; i < count; ++i)
        for (int d = 0; d < D && !is_special(i); ++d) extents[d].add(space.q[d] + i, 1);
    }
    for (int d = 0; d < D; ++d) {
      origin[d] = static_cast<Code>(extents[d].low);
      width[d] = extents[d].width();
    }
    layout = make_layout(width, lowest_shift(width));
    make_keys<Code, D>(layout, space.q, origin, count, space.keys);
    for (std::uint32_t i = 0; specials != 0 && i < count; ++i)
      if (is_special(i)) space.keys[i] = static_cast<std::uint32_t>(kLastKey);
  }
  unsigned bits() const { return specials == 0 ? layout.bits() : kMostKeyBits + 1; }
};

// Orders particles[0 .. count) of one tile (indices into the chunk).
template <class T, int D>
inline void order_tile(const ParticlePlan& plan, const void* values, std::uint32_t* particles, std::uint32_t count,
                       void* scratch) {
  TileSpace<T> space(scratch);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  for (std::uint32_t i = 0; i < count; ++i)
    std::memcpy(space.values + i * D, from + std::size_t{particles[i]} * D * sizeof(T), D * sizeof(T));
  const TileKeys<T, D> keys(quantizer_of<T>(plan), count, space);
  sort_keys(count, keys.bits(), space);
  for (std::uint32_t i = 0; i < count; ++i) space.gaps[i] = particles[space.order[i]];
  std::memcpy(particles, space.gaps, count * sizeof *particles);
}

// The number of movable particles among a tile's `count`, the first of which is number `first`.
inline std::uint32_t movable_particles(const ParticlePlan& plan, std::uint64_t first, std::uint32_t count) {
  const std::uint64_t movable = plan.sorted_particles > first ? plan.sorted_particles - first : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(movable, count));
}

inline constexpr std::uint32_t kAhead = 32;  // prefetch distance, in particles

// Gathers the particles of a tile into space.values: movable ones in the chunk's order.
template <class T, int D>
inline void take_tile(const ParticlePlan& plan, const void* values, std::uint64_t first, std::uint32_t count,
                      std::uint32_t movable, TileSpace<T>& space) {
  const auto* const from = static_cast<const std::uint8_t*>(values);
  const std::uint32_t taken = plan.entries != nullptr ? movable : 0;
  const auto at = [&](std::uint32_t i) { return from + (plan.entries[first + i] & 0xFFFFFFFFu) * D * sizeof(T); };
  for (std::uint32_t i = 0; i < taken; ++i) {
    if (i + kAhead < taken) {
      const std::uint8_t* const ahead = at(i + kAhead);
      __builtin_prefetch(ahead);
      __builtin_prefetch(ahead + D * sizeof(T) - 1);
    }
    std::memcpy(space.values + i * D, at(i), D * sizeof(T));
  }
  std::memcpy(space.values + std::size_t{taken} * D, from + (first + taken) * D * sizeof(T),
              std::size_t{count - taken} * D * sizeof(T));
}

// The entries of a tile may be unsorted among themselves: particles with equal keys in the tile get the chunk's order
// here. Keys with shift 0 separate all particles that the chunk's keys separate.
template <class T>
inline void settle_equals(const std::uint64_t* entries, std::uint32_t count, TileSpace<T>& space) {
  const std::uint32_t* const keys = space.other_keys;
  const auto before = [entries](std::uint16_t a, std::uint16_t b) { return entries[a] < entries[b]; };
  std::uint32_t falls = 0;
  for (std::uint32_t i = 1; i < count; ++i)
    falls |= (keys[i] == keys[i - 1] ? 1u : 0u) & (before(space.order[i], space.order[i - 1]) ? 1u : 0u);
  if (falls == 0) return;
  for (std::uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && keys[end] == keys[i];) ++end;
    std::uint16_t *const from = space.order + i, *const to = space.order + end;
    if (end - i > 1 && !std::is_sorted(from, to, before)) std::sort(from, to, before);
  }
}

// Permutes the first `movable` particles at space.values into space.order.
template <class T, int D>
inline void lay_in_order(std::uint32_t count, std::uint32_t movable, TileSpace<T>& space) {
  for (std::uint32_t i = 0; i < movable; ++i)
    std::memcpy(space.other_values + i * D, space.values + std::size_t{space.order[i]} * D, D * sizeof(T));
  std::memcpy(space.other_values + std::size_t{movable} * D, space.values + std::size_t{movable} * D,
              std::size_t{count - movable} * D * sizeof(T));
  std::swap(space.values, space.other_values);
}

// The lowest and highest codes of a chunk's ordinary particles along each axis.
template <class T, int D>
inline void find_extents(const Quantizer<T>& p, const std::uint8_t* values, std::uint32_t count,
                         Extent<typename FloatTraits<T>::Code> (&extents)[3]) {
  using Code = typename FloatTraits<T>::Code;
  using S = std::make_signed_t<Code>;
  constexpr std::size_t kLanesOfAxes =
      std::size_t{8} * D;  // a multiple of D that fills vectors: each lane keeps its axis
  S low[kLanesOfAxes], high[kLanesOfAxes];
  for (std::size_t j = 0; j < kLanesOfAxes; ++j) {
    low[j] = extents[0].low;
    high[j] = extents[0].high;
  }
  for (std::uint32_t from = 0; from < count; from += kBatch) {
    alignas(64) Code codes[std::size_t{kBatch} * D];
    std::uint32_t special[kBatch / 32];
    const std::uint32_t here = std::min(kBatch, count - from);
    if (code_batch<T, D>(p, values + std::size_t{from} * D * sizeof(T), here, codes, special) == 0) {
      for (std::size_t i = 0; i < std::size_t{kBatch} * D; i += kLanesOfAxes) {
        for (std::size_t j = 0; j < kLanesOfAxes; ++j) {
          const auto code = static_cast<S>(codes[i + j]);
          low[j] = code < low[j] ? code : low[j];
          high[j] = code > high[j] ? code : high[j];
        }
      }
      continue;
    }
    for (std::uint32_t i = 0; i < here; ++i)
      for (int d = 0; d < D && (special[i / 32] >> i % 32 & 1) == 0; ++d)
        extents[d].add(codes + i * D + static_cast<std::uint32_t>(d), 1);
  }
  for (std::size_t j = 0; j < kLanesOfAxes; ++j) {
    extents[j % D].low = std::min(extents[j % D].low, low[j]);
    extents[j % D].high = std::max(extents[j % D].high, high[j]);
  }
}

// Makes entries (key, index) of all particles of a chunk, with keys in its extent. The driver sorts them.
template <class T, int D>
inline void order_chunk(const ParticlePlan& plan, const void* values, std::uint32_t count, std::uint64_t* entries,
                        void* scratch) {
  using Code = typename FloatTraits<T>::Code;
  const Quantizer<T> p = quantizer_of<T>(plan);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  TileSpace<T> space(scratch);
  Extent<Code> extents[3];
  find_extents<T, D>(p, from, count, extents);
  unsigned width[3] = {};
  Code origin[3] = {};
  for (int d = 0; d < D; ++d) {
    origin[d] = static_cast<Code>(extents[d].low);
    width[d] = extents[d].width();
  }
  const KeyLayout layout = make_layout(width, lowest_shift(width));
  for (std::uint32_t first = 0; first < count; first += kTileParticles) {
    const std::uint32_t here = std::min(kTileParticles, count - first);
    const std::uint32_t specials =
        code_particles<T, D>(p, from + std::size_t{first} * D * sizeof(T), here, space.q, space.special);
    make_keys<Code, D>(layout, space.q, origin, here, space.keys);
    std::uint64_t* const to = entries + first;
    for (std::uint32_t i = 0; i < here; ++i) to[i] = std::uint64_t{space.keys[i]} << 32 | (first + i);
    for (std::uint32_t i = 0; specials != 0 && i < here; ++i)
      if ((space.special[i / 32] >> i % 32 & 1) != 0) to[i] = kLastKey << 32 | (first + i);
  }
}

PYF_END_TARGET
