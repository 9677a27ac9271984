// SPDX-License-Identifier: BSD-3-Clause
// Particles to codes of their coordinates, axis by axis, and the set of special particles. A special particle has a
// coordinate without a code (NaN, infinite, out of reach, the sentinel).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "particles/key.hpp"
#include "particles/plan.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

// Particles coded together: their values fill whole vectors.
inline constexpr std::uint32_t kBatch = 128;

// The code of a value that quantize() flags as a possible misfit. Returns whether it has one.
template <class T>
KFN bool second_look(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  if (p.has_sentinel && x == p.sentinel) return false;
  return neighbour_fits(p, x, q);
}

// The code of a single value, as quantize() makes it; false if second_look() is needed.
template <bool kHasSentinel, class T>
KFN bool first_code(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  const T t = magic_form(p, x), decoded = decoded_value(p.step, t);
  q = code_of(t);
  bool fits = keeps_bound(p, x, decoded) & in_reach(p, x);
  if constexpr (kHasSentinel) fits = fits & !(x == p.sentinel) & !(decoded == p.sentinel);
  return fits;
}

// The same for a value in reach, or NaN.
template <class T>
KFN bool code_in_reach(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  const T t = magic_form(p, x);
  q = code_of(t);
  return keeps_bound(p, x, decoded_value(p.step, t));
}

// The code of a value; false if it has none.
template <bool kHasSentinel, class T>
KFN bool code_value(const Quantizer<T>& p, T x, typename FloatTraits<T>::Code& q) {
  return first_code<kHasSentinel>(p, x, q) || second_look(p, x, q);
}

template <class T>
inline Quantizer<T> quantizer_of(const ParticlePlan& plan) {
  return make_quantizer(static_cast<T>(plan.bound), static_cast<T>(plan.step), plan.has_sentinel,
                        static_cast<typename FloatTraits<T>::Code>(plan.sentinel));
}

// The parts of a tile's scratch memory.
template <class T>
struct TileSpace {
  using Code = typename FloatTraits<T>::Code;
  Code* q[3];
  T* values;
  T* other_values;
  std::uint32_t *keys, *gaps, *counts, *special;
  std::uint32_t* other_keys;
  std::uint16_t *order, *other_order, *counters;  // for sorting (order.hpp)

  explicit TileSpace(void* scratch) {
    auto* next = static_cast<std::uint8_t*>(scratch);
    for (T** part : {&values, &other_values}) {
      *part = reinterpret_cast<T*>(next);
      next += 3 * kTileParticles * sizeof(T);
    }
    for (auto& axis : q) {
      axis = reinterpret_cast<Code*>(next);
      next += kTileParticles * sizeof(Code);
    }
    for (std::uint32_t** part : {&keys, &gaps, &counts, &special, &other_keys}) {
      *part = reinterpret_cast<std::uint32_t*>(next);
      next += kTileParticles * sizeof(std::uint32_t);
    }
    for (std::uint16_t** part : {&order, &other_order, &counters}) {
      *part = reinterpret_cast<std::uint16_t*>(next);
      next += kTileParticles * sizeof(std::uint16_t);
    }
  }
};
inline constexpr std::size_t kCounters = std::size_t{2} << 13;  // behind the other members of a TileSpace
static_assert(kTileParticles * (9 * sizeof(std::uint64_t) + 5 * sizeof(std::uint32_t) + 2 * sizeof(std::uint16_t)) +
                  kCounters * sizeof(std::uint16_t) <=
              kParticleScratchBytes);

// Codes of up to kBatch particles with D coordinates each, at any address, interleaved as in the array; the last
// particle is repeated as padding. Special particles have arbitrary codes, and a bit in special[i / 32]. Returns the
// number of special particles.
template <class T, int D>
inline std::uint32_t code_batch(const Quantizer<T>& p, const void* x, std::uint32_t count,
                                typename FloatTraits<T>::Code (&codes)[std::size_t{kBatch} * D],
                                std::uint32_t* special) {
  using Code = typename FloatTraits<T>::Code;
  constexpr std::size_t kValues = std::size_t{kBatch} * D;
  alignas(64) T copied[kValues];
  const T* values = static_cast<const T*>(x);
  if (count < kBatch || reinterpret_cast<std::uintptr_t>(x) % alignof(T) != 0) {
    std::memcpy(copied, x, sizeof(T) * D * count);
    for (std::size_t i = std::size_t{count} * D; i < kValues; ++i) copied[i] = copied[i - D];
    values = copied;
  }
  Code any = 0;
  const auto note = [&any](const Code(&misfit)[kLanes<Code>], std::size_t) {
    for (std::size_t i = 0; i < kLanes<Code>; ++i) any |= misfit[i];
  };
  if (p.has_sentinel)
    quantize<true, kValues>(p, values, codes, note);
  else
    quantize<false, kValues>(p, values, codes, note);
  for (std::uint32_t w = 0; w < kBatch / 32; ++w) special[w] = 0;
  if (any == 0) [[likely]]
    return 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    bool fits = true;
    for (std::size_t v = std::size_t{i} * D; v < (std::size_t{i} + 1) * D; ++v)
      fits &= p.has_sentinel ? code_value<true>(p, values[v], codes[v]) : code_value<false>(p, values[v], codes[v]);
    if (!fits) special[i / 32] |= 1u << i % 32;
  }
  std::uint32_t specials = 0;
  for (std::uint32_t w = 0; w < kBatch / 32; ++w)
    specials += static_cast<std::uint32_t>(__builtin_popcount(special[w]));
  return specials;
}

// The same for any number of particles, axis by axis. The code arrays are rounded up to a multiple of 128.
template <class T, int D>
inline std::uint32_t code_particles(const Quantizer<T>& p, const void* x, std::uint32_t count,
                                    typename FloatTraits<T>::Code* const (&q)[3], std::uint32_t* special) {
  using Code = typename FloatTraits<T>::Code;
  std::uint32_t specials = 0;
  for (std::uint32_t from = 0; from < count; from += kBatch) {
    alignas(64) Code codes[std::size_t{kBatch} * D];
    specials += code_batch<T, D>(p, static_cast<const std::uint8_t*>(x) + std::size_t{from} * D * sizeof(T),
                                 std::min(kBatch, count - from), codes, special + from / 32);
    for (std::uint32_t i = 0; i < kBatch; ++i)
      for (int d = 0; d < D; ++d) q[d][from + i] = codes[i * D + static_cast<std::uint32_t>(d)];
  }
  return specials;
}

// The lowest code of an axis, and the bits of the highest code above it.
template <class Code>
struct Extent {
  std::make_signed_t<Code> low = std::numeric_limits<std::make_signed_t<Code>>::max(),
                           high = std::numeric_limits<std::make_signed_t<Code>>::min();

  KFN void add(const Code* q, std::uint32_t count) {
    using S = std::make_signed_t<Code>;
    S lowest = low, highest = high;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto code = static_cast<S>(q[i]);
      lowest = code < lowest ? code : lowest;
      highest = code > highest ? code : highest;
    }
    low = lowest;
    high = highest;
  }
  KFN unsigned width() const {
    return high < low
               ? 0
               : static_cast<unsigned>(bit_width(static_cast<Code>(static_cast<Code>(high) - static_cast<Code>(low))));
  }
};

// The segment number of a code along an axis with lowest code `low`.
template <class Code>
KFN std::uint32_t segment_of(Code code, Code low, unsigned shift) {
  return static_cast<std::uint32_t>(static_cast<Code>(code - low) >> shift);
}

// Keys of `count` particles; `origin`: the lowest code of each axis. All in locals, so that the loop vectorises.
template <class Code, int D>
inline void make_keys(const KeyLayout& given, Code* const (&q)[3], const Code (&origin)[3], std::uint32_t count,
                      std::uint32_t* __restrict keys) {
  const KeyLayout layout = given;
  const unsigned shift = layout.shift;
  const Code* __restrict const a = q[layout.axis[0]];
  const Code* __restrict const b = q[layout.axis[1]];
  const Code* __restrict const c = q[layout.axis[2]];
  const Code low_a = origin[layout.axis[0]], low_b = origin[layout.axis[1]], low_c = origin[layout.axis[2]];
  const auto number = [shift](Code code, Code low) { return segment_of(code, low, shift); };
  if (D == 3 && layout.three != 0) {
    for (std::uint32_t i = 0; i < count; ++i)
      keys[i] = key_by_width<true>(layout, number(a[i], low_a), number(b[i], low_b), number(c[i], low_c));
  } else {
    for (std::uint32_t i = 0; i < count; ++i)
      keys[i] = key_by_width<false>(layout, number(a[i], low_a), number(b[i], low_b), 0);
  }
}

PYF_END_TARGET
