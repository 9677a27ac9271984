// SPDX-License-Identifier: BSD-3-Clause
// Special blocks: blocks with missing data, NaN, infinities or misfits (docs/format.md, 4.5). Their other values are
// quantised as usual; a special value takes the code before it, so its difference is 0.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/masks.hpp"
#include "stages/quantize.hpp"
#include "stages/rate.hpp"

PYF_BEGIN_TARGET

// Masks of a block, made by the encoder; masks == 0: an ordinary block.
struct SpecialBlock {
  unsigned masks;
  std::uint64_t sentinel, nan, verbatim;

  std::uint8_t verbatim_count() const { return static_cast<std::uint8_t>(__builtin_popcountll(verbatim)); }
};

// Collects the misfits that quantize() flags in a block. Baseline and AVX-512 collect only the lanes that have misfits:
// few blocks have misfits, so this is faster there.
#if defined(PYF_LEVEL_AVX2)
inline constexpr bool kMisfitsInPlace = true;
#else
inline constexpr bool kMisfitsInPlace = false;
#endif

template <class Code>
class MisfitNotes {
 public:
  KFN void operator()(const Code (&flags)[kLanes<Code>], std::size_t from) {
    if constexpr (kMisfitsInPlace)
      bits_ |= flag_bits<static_cast<int>(kLanes<Code>)>(flags) << from;
    else
      for (std::size_t lane = 0; lane < kLanes<Code>; ++lane) lanes_[lane] |= flags[lane];
  }
  // Not 0 if the block has misfits.
  KFN std::uint64_t bits() const { return kMisfitsInPlace ? bits_ : flag_bits<static_cast<int>(kLanes<Code>)>(lanes_); }

 private:
  std::uint64_t bits_ = 0;
  Code lanes_[kLanes<Code>] = {};
};

// Up to this many misfits are handled one by one.
inline constexpr int kFewMisfits = 4;

// Replaces a misfit's code by a neighbouring code if that one keeps the bound; the value is then no misfit.
template <int B, class T, class Values>
KFN std::uint64_t take_neighbours(const Quantizer<T>& p, const Values* x, typename FloatTraits<T>::Code* q,
                                  std::uint64_t misfits) {
  if (__builtin_popcountll(misfits) <= kFewMisfits) {
    for (std::uint64_t rest = misfits; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      if (neighbour_fits<T>(p, x[i], q[i])) misfits &= ~(std::uint64_t{1} << i);
    }
    return misfits;
  }
  alignas(64) typename FloatTraits<T>::Code flags[B], next[B];
  find_reached<B>(p, x, flags);
  if ((flag_bits<B>(flags) & misfits) == 0) return misfits;
  find_neighbours<B>(p, x, q, next, flags);
  const std::uint64_t better = flag_bits<B>(flags) & misfits;
  copy_masked<B>(q, better, next);
  return misfits & ~better;
}

// Sorts the misfits of a block into its masks; returns the mask of its plain values.
template <int B, class T, class Values>
[[gnu::noinline]] inline std::uint64_t sort_special(const Quantizer<T>& p, const Values* x,
                                                    typename FloatTraits<T>::Code* q, std::uint64_t misfits,
                                                    SpecialBlock& block) {
  using Code = typename FloatTraits<T>::Code;
  constexpr std::uint64_t kAll = ~std::uint64_t{0} >> (64 - B);
  block.nan = block.verbatim = 0;
  block.sentinel = p.has_sentinel ? equal_bits<B>(x, p.sentinel_bits) : 0;
  if (block.sentinel == kAll) {  // the inside of a land mask: no codes are written
    block.masks = kMaskSentinel;
    return 0;
  }
  if constexpr (!kMisfitsInPlace) {
    alignas(64) Code flags[B];
    find_misfits<B>(p, x, q, flags);
    misfits = flag_bits<B>(flags);
  }
  misfits &= ~block.sentinel;
  if (misfits != 0) {
    block.nan = equal_bits<B>(x, FloatTraits<T>::kQuietNan) & ~block.sentinel;
    block.verbatim = take_neighbours<B>(p, x, q, misfits & ~block.nan);
  }
  block.masks = (block.sentinel != 0 ? kMaskSentinel : 0) | (block.nan != 0 ? kMaskNan : 0) |
                (block.verbatim != 0 ? kMaskVerbatim : 0);
  return ~(block.sentinel | block.nan | block.verbatim) & kAll;
}

// sort_special(), and codes for the special values.
template <int B, class T, class Values>
KFN void note_special(const Quantizer<T>& p, const Values* x, typename FloatTraits<T>::Code* q, std::uint64_t misfits,
                      SpecialBlock& block) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint64_t plain = sort_special<B>(p, x, q, misfits, block);
  if (plain != 0) [[likely]]
    forward_fill<B>(q, plain);
  else
    fill_masked<B>(q, ~std::uint64_t{0} >> (64 - B), Code{0});
}

// The rate code of a special block whose planes have rate `inner`.
template <class T, int B>
inline std::uint8_t special_rate(const SpecialBlock& block, std::uint8_t inner) {
  return special_rate(block.sentinel == ~std::uint64_t{0} >> (64 - B), block.masks, block.verbatim_count(), sizeof(T),
                      B, kRates[inner]);
}

// The most bytes in front of a special block's planes: three masks and all values, and what a wide store writes beyond
// them.
template <class T, int B>
inline constexpr std::size_t kSpecialBytes = 3 * 8 + B * sizeof(T) + 32;

// Writes the masks and verbatim values of a block with rate code 247 to 255; returns the address of its planes. Wide
// stores may write beyond that address; the planes overwrite the excess.
template <class T, int B, class Values>
KFN std::uint8_t* write_special(const SpecialBlock& block, std::uint8_t rate, const Values* x, std::uint8_t* out) {
  if (rate == kRateSentinel) return out;
  if (rate == kRateVerbatim) {
    std::memcpy(out, x, B * sizeof(T));
    return out + B * sizeof(T);
  }
  for (const std::uint64_t mask : {block.sentinel, block.nan, block.verbatim}) {
    store_le(out, mask);
    out += mask != 0 ? B / 8 : 0;
  }
  if (block.verbatim != 0) gather_masked<B, typename FloatTraits<T>::Code>(x, block.verbatim, out);
  return out + block.verbatim_count() * sizeof(T);
}

struct SpecialMasks {
  std::uint64_t sentinel = 0, nan = 0, verbatim = 0;
  std::uint32_t bytes = 0;  // of the masks

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
  using Code = typename FloatTraits<T>::Code;
  if (masks.sentinel != 0) fill_masked<B>(x, masks.sentinel, p.sentinel_bits);
  if (masks.nan != 0) fill_masked<B>(x, masks.nan, Code{FloatTraits<T>::kQuietNan});
  if (masks.verbatim != 0) scatter_masked<B, Code>(x, masks.verbatim, verbatim);
}

PYF_END_TARGET
