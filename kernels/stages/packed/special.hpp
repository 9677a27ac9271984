// SPDX-License-Identifier: BSD-3-Clause
// Special values of packed tiles (docs/format.md, section 7.2), as stages/special.hpp has them for block tiles. Frames
// with a pointwise relative bound also have masks of zeros and of negative values. Missing values (equal to the
// sentinel) are stored by missing.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/logarithm.hpp"
#include "stages/special.hpp"

namespace pyfilter {

inline constexpr unsigned kMaskZero = 8, kMaskNegative = 16;

// Bytes of a block's verbatim values, rounded up to words.
constexpr KFN std::uint32_t verbatim_bytes(std::uint32_t count, std::uint32_t value_bytes) {
  return (count * value_bytes + 3) / 4 * 4;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

struct PackedSpecial : SpecialBlock {
  std::uint32_t zero, negative;

  std::uint32_t missing() const { return static_cast<std::uint32_t>(sentinel); }
};

// Sorts the misfits of a block into its masks.
template <class T>
[[gnu::noinline]] inline void sort_packed(const LogQuantizer<T>& p, const T (&x)[32],
                                          typename FloatTraits<T>::Code (&q)[32], std::uint64_t /*misfits*/,
                                          PackedSpecial& block) {
  using Code = typename FloatTraits<T>::Code;
  block.zero = block.negative = 0;
  block.nan = block.verbatim = 0;
  block.sentinel = p.has_sentinel ? equal_bits<32>(x, p.sentinel_bits) : 0;
  block.masks = kMaskSentinel;
  if (block.sentinel == 0xFFFFFFFFu) return;
  alignas(64) Code misfit[32], zero[32], negative[32];  // all ones or 0
  log_misfits(p, x, q, misfit);
  for (int i = 0; i < 32; ++i) {
    zero[i] = static_cast<Code>(0 - static_cast<Code>(x[i] == 0));
    negative[i] = static_cast<Code>(0 - static_cast<Code>(is_negative(x[i])));
  }
  block.zero = static_cast<std::uint32_t>(flag_bits<32>(zero) & ~block.sentinel);
  block.nan = equal_bits<32>(x, FloatTraits<T>::kQuietNan) & ~block.sentinel;
  block.verbatim = flag_bits<32>(misfit) & ~(block.sentinel | block.nan | block.zero);
  block.negative = static_cast<std::uint32_t>(flag_bits<32>(negative) & ~(block.sentinel | block.nan | block.verbatim));
  block.masks = (block.sentinel != 0 ? kMaskSentinel : 0) | (block.nan != 0 ? kMaskNan : 0) |
                (block.verbatim != 0 ? kMaskVerbatim : 0) | (block.zero != 0 ? kMaskZero : 0) |
                (block.negative != 0 ? kMaskNegative : 0);
}

template <class T>
KFN void sort_packed(const Quantizer<T>& p, const T (&x)[32], typename FloatTraits<T>::Code (&q)[32],
                     std::uint64_t misfits, PackedSpecial& block) {
  block.zero = block.negative = 0;
  sort_special<32>(p, static_cast<const T*>(x), static_cast<typename FloatTraits<T>::Code*>(q), misfits,
                   static_cast<SpecialBlock&>(block));
}

// Writes masks, in the order of their bits, and verbatim values of a block; returns the address of its planes. Wide
// stores may write beyond that address; the planes overwrite the excess. The last word of verbatim values of one or two
// bytes is padded with zeros.
[[gnu::noinline]] inline std::uint8_t* write_packed_special(const PackedSpecial& block, std::uint32_t value_bytes,
                                                            const void* x, std::uint8_t* out) {
  const std::uint32_t masks[4] = {static_cast<std::uint32_t>(block.nan), static_cast<std::uint32_t>(block.verbatim),
                                  block.zero, block.negative};
  for (const std::uint32_t mask : masks) {
    store_le(out, mask);
    out += mask != 0 ? 4 : 0;
  }
  if (block.verbatim == 0) return out;
  const std::uint32_t bytes = verbatim_bytes(block.verbatim_count(), value_bytes);
  if (value_bytes == 8) {
    gather_masked<32, std::uint64_t>(x, block.verbatim, out);
  } else if (value_bytes == 4) {
    gather_masked<32, std::uint32_t>(x, block.verbatim, out);
  } else {
    store_le(out + bytes - 4, std::uint32_t{0});
    std::uint8_t* to = out;
    for (std::uint64_t rest = block.verbatim; rest != 0; rest &= rest - 1, to += value_bytes)
      std::memcpy(to,
                  static_cast<const std::uint8_t*>(x) + value_bytes * static_cast<std::uint32_t>(__builtin_ctzll(rest)),
                  value_bytes);
  }
  return out + bytes;
}

struct PackedMasks {
  std::uint32_t words[5];  // by mask bit; left uninitialised, since a tile has many blocks
  std::uint32_t bytes;     // of the masks

  std::uint32_t verbatim_count() const { return static_cast<std::uint32_t>(__builtin_popcount(words[2])); }
};

inline PackedMasks read_packed_masks(unsigned present, const std::uint8_t* from) {
  PackedMasks masks{};
  for (unsigned bit = 0; bit < 5; ++bit) {
    if ((present >> bit & 1) == 0) continue;
    masks.words[bit] = load_le<std::uint32_t>(from + masks.bytes);
    masks.bytes += 4;
  }
  return masks;
}

// Sets a block's missing values to the sentinel's bits. U: the unsigned integer of a value's width.
template <class U>
KFN void fill_missing(std::uint32_t mask, U sentinel, U (&x)[32]) {
  if constexpr (sizeof(U) >= 4)
    fill_masked<32>(x, mask, sentinel);
  else
    for (; mask != 0; mask &= mask - 1) x[__builtin_ctz(mask)] = sentinel;
}

// Applies signs and zeros to decoded magnitudes.
template <class U>
KFN void apply_signs(std::uint32_t zero, std::uint32_t negative, U (&x)[32]) {
  constexpr int kTop = 8 * sizeof(U) - 1;
  for (int i = 0; i < 32; ++i) {
    const U kept = x[i] & (U{zero >> i & 1} - 1) & ~(U{1} << kTop);
    x[i] = kept | static_cast<U>(negative >> i & 1) << kTop;
  }
}

// Of overlapping masks the last in this order wins: negative and zero, missing, NaN, verbatim. `signs`: blocks may have
// masks of signs and zeros. `negative`: the tile's flag.
template <class U>
[[gnu::noinline]] inline void apply_packed_masks(bool signs, U sentinel, const PackedMasks& masks,
                                                 const std::uint8_t* verbatim, bool negative, U (&x)[32]) {
  if constexpr (sizeof(U) >= 4) {
    using Float = std::conditional_t<sizeof(U) == 8, double, float>;
    if (signs) apply_signs(masks.words[3], negative ? ~masks.words[4] : masks.words[4], x);
    if (masks.words[0] != 0) fill_masked<32>(x, masks.words[0], sentinel);
    if (masks.words[1] != 0) fill_masked<32>(x, masks.words[1], U{FloatTraits<Float>::kQuietNan});
    if (masks.words[2] != 0) scatter_masked<32, U>(x, masks.words[2], verbatim);
  } else {
    fill_missing(masks.words[0], sentinel, x);
    for (std::uint32_t rest = masks.words[2]; rest != 0; rest &= rest - 1, verbatim += sizeof(U))
      std::memcpy(&x[__builtin_ctz(rest)], verbatim, sizeof(U));
  }
}

PYF_END_TARGET
