// SPDX-License-Identifier: BSD-3-Clause
// Blocks with values that their code cannot give back: missing data, NaN, infinities, misfits (docs/format.md, 4.5).
// The rest of such a block is quantised as usual; a special value takes the code of the value before it, so that it
// adds nothing to the differences.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/planes.hpp"
#include "stages/quantize.hpp"
#include "stages/rate.hpp"

PYF_BEGIN_TARGET

// What an encoder notes of a block; masks == 0 is an ordinary block.
struct SpecialBlock {
  unsigned masks;
  std::uint64_t sentinel, nan, verbatim;

  std::uint8_t verbatim_count() const { return static_cast<std::uint8_t>(__builtin_popcountll(verbatim)); }
};

// Sorts the values of a block into its masks and repairs the codes of the special ones.
template <int B, class T, class Values>
[[gnu::noinline]] inline void note_special(const Quantizer<T>& p, const Values* x, typename FloatTraits<T>::Code* q,
                                           SpecialBlock& block) {
  using Code = typename FloatTraits<T>::Code;
  constexpr std::uint64_t kAll = ~std::uint64_t{0} >> (64 - B);
  block.nan = block.verbatim = 0;
  block.sentinel = p.has_sentinel ? equal_bits<B>(x, p.sentinel_bits) : 0;
  if (block.sentinel == kAll) {  // the inside of a land mask: codes will not be written
    block.masks = kMaskSentinel;
    return;
  }
  alignas(64) Code misfits[B];
  find_misfits<B>(p, x, q, misfits);
  block.verbatim = flag_bits<B>(misfits) & ~block.sentinel;
  if (block.verbatim != 0) {
    block.nan = equal_bits<B>(x, FloatTraits<T>::kQuietNan) & ~block.sentinel;
    block.verbatim &= ~block.nan;
    for (std::uint64_t rest = block.verbatim; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      if (neighbour_fits<T>(p, x[i], q[i])) block.verbatim &= ~(std::uint64_t{1} << i);
    }
  }
  block.masks = (block.sentinel != 0 ? kMaskSentinel : 0) | (block.nan != 0 ? kMaskNan : 0) |
                (block.verbatim != 0 ? kMaskVerbatim : 0);
  const std::uint64_t plain = ~(block.sentinel | block.nan | block.verbatim) & kAll;
  if (plain != 0) [[likely]]
    forward_fill<B>(q, plain);
  else
    for (int i = 0; i < B; ++i) q[i] = 0;
}

// The rate code of a special block whose planes have the rate `inner`.
template <class T, int B>
inline std::uint8_t special_rate(const SpecialBlock& block, std::uint8_t inner) {
  return special_rate(block.sentinel == ~std::uint64_t{0} >> (64 - B), block.masks, block.verbatim_count(), sizeof(T),
                      B, kRates[inner]);
}

// Keeps the values of a special block that its rate wants written: all of them, or the verbatim ones.
template <class T, int B, class Values>
KFN void keep_values(const SpecialBlock& block, std::uint8_t rate, const Values* x, T (&kept)[B]) {
  if (rate == kRateVerbatim) {
    std::memcpy(kept, x, sizeof kept);
    return;
  }
  T* to = kept;
  std::uint64_t rest = block.verbatim;
  while (rest != 0) {
    for (int k = 0; k < 4; ++k, rest &= rest - 1) {  // by fours, since few branches foresee how many there are
      std::memcpy(to, x + (rest != 0 ? __builtin_ctzll(rest) : 0), sizeof(T));
      to += rest != 0 ? 1 : 0;
    }
  }
}

// Writes what comes before the planes of a block with code 247 to 255, with the values kept of it; returns where the
// planes go. What is too much in a store is overwritten.
template <class T, int B>
inline std::uint8_t* write_special(const SpecialBlock& block, const T (&kept)[B], std::uint8_t rate,
                                   std::uint8_t* out) {
  if (rate == kRateSentinel) return out;
  if (rate == kRateVerbatim) {
    std::memcpy(out, kept, sizeof kept);
    return out + sizeof kept;
  }
  for (const std::uint64_t mask : {block.sentinel, block.nan, block.verbatim}) {
    store_le(out, mask);
    out += mask != 0 ? B / 8 : 0;
  }
  const int count = block.verbatim_count();
  for (int i = 0; i < count; i += 4) std::memcpy(out + i * sizeof(T), kept + i, 4 * sizeof(T));
  return out + count * sizeof(T);
}

struct SpecialMasks {
  std::uint64_t sentinel = 0, nan = 0, verbatim = 0;
  std::uint32_t bytes = 0;  // that the masks take

  bool any() const { return bytes != 0; }
  int verbatim_count() const { return __builtin_popcountll(verbatim); }
};

template <int B>
inline SpecialMasks read_masks(std::uint8_t rate, const std::uint8_t* from) {
  SpecialMasks masks;
  const unsigned present = rate - kRateSentinel;
  const auto take = [&](unsigned bit, std::uint64_t& mask) {
    if ((present & bit) == 0) return;
    std::uint8_t bytes[8] = {};
    std::memcpy(bytes, from + masks.bytes, B / 8);
    mask = load_le<std::uint64_t>(bytes);
    masks.bytes += B / 8;
  };
  take(kMaskSentinel, masks.sentinel);
  take(kMaskNan, masks.nan);
  take(kMaskVerbatim, masks.verbatim);
  return masks;
}

template <class T, int B>
[[gnu::noinline]] inline void apply_masks(const Quantizer<T>& p, const SpecialMasks& masks,
                                          const std::uint8_t* verbatim, T (&x)[B]) {
  // memcpy, not assignment: the bits of a NaN must not pass through a floating-point register on any target
  const auto nan = FloatTraits<T>::kQuietNan;
  for (std::uint64_t rest = masks.sentinel; rest != 0; rest &= rest - 1)
    std::memcpy(x + __builtin_ctzll(rest), &p.sentinel_bits, sizeof(T));
  for (std::uint64_t rest = masks.nan; rest != 0; rest &= rest - 1)
    std::memcpy(x + __builtin_ctzll(rest), &nan, sizeof(T));
  for (std::uint64_t rest = masks.verbatim; rest != 0; rest &= rest - 1) {
    std::memcpy(x + __builtin_ctzll(rest), verbatim, sizeof(T));
    verbatim += sizeof(T);
  }
}

PYF_END_TARGET
