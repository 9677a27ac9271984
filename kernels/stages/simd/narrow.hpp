// SPDX-License-Identifier: BSD-3-Clause
// Narrow codes (stages/packed/narrow.hpp), a vector at a time: shortens 64-bit codes to 32 bits, and quantises values
// to 32-bit codes. A single test at the end tells whether all values are ordinary and all codes narrow.
#pragma once

#include <bit>
#include <cstdint>

#include "core/target.hpp"
#include "stages/quantize.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// Shortens 32 codes to their low halves. Returns the OR of all codes + `above`.
KFN std::uint64_t shorten_codes(const std::uint64_t* codes, std::uint64_t above, std::uint32_t* to) {
#if defined(PYF_VECTORS)
  const U64 add = all_of(above);
  U64 any{};
  for (int i = 0; i < 32; i += kPer<std::uint32_t>) {
    const U64 low = load(codes + i), high = load(codes + i + kPer<std::uint64_t>);
    any |= (low + add) | (high + add);
    store(to + i, low_halves(low, high));
  }
  return or_of(any);
#else
  std::uint64_t any = 0;
  for (int i = 0; i < 32; ++i) any |= codes[i] + above;
  for (int i = 0; i < 32; ++i) to[i] = static_cast<std::uint32_t>(codes[i]);
  return any;
#endif
}

#if defined(PYF_VECTORS)
// Computes the codes of quantize() (stages/quantize.hpp) for values that all have one. fits() makes quantize()'s tests:
// the largest error, the largest value, and whether a value is the sentinel or decodes to it.
// Codes of doubles are the low halves of magic forms. The magic number is so much larger than quantize()'s that no
// narrow code is below 0. A code is narrow if its form has no other bits; forms of NaN and infinity have some.
template <class T>
class NarrowQuantizer {
  using Traits = FloatTraits<T>;
  using Code = typename Traits::Code;
  static constexpr bool kShortened = sizeof(T) == 8;
  static_assert(!kShortened || static_cast<std::uint32_t>(Traits::kMagicBits) == 0);

 public:
  static constexpr int kAtOnce = kPer<std::uint32_t>;

  // `bits`: codes with this many bits and a sign may be shortened.
  explicit KFN NarrowQuantizer(const Quantizer<T>& p, int bits)
      : inverse_(all_of(p.inverse_step)),
        step_(all_of(p.step)),
        sentinel_(all_of(p.sentinel)),
        magic_(all_of(Traits::kMagic + (kShortened ? static_cast<T>(std::uint64_t{1} << bits) : T{0}))),
        bits_(bits),
        bound_(p.bound),
        reach_(std::bit_cast<Code>(p.reach)),
        has_sentinel_(p.has_sentinel) {}

  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const auto* const x = static_cast<const T*>(from);
    const Vector<Code> t = magic_forms<kSentinel>(x);
    if constexpr (kShortened)
      store(to, low_halves(t, magic_forms<kSentinel>(x + kPer<T>)) - all_of(1u << bits_));
    else
      store(to, t - all_of(Traits::kMagicBits));
  }
  // Whether all values so far have codes.
  [[nodiscard]] KFN bool fits() const {
    Lanes<Code> misfits = either(above(error_, all_of(bound_)), same_);
    if constexpr (kShortened)
      misfits = either(misfits, sharing(seen_, all_of(~((std::uint64_t{2} << bits_) - 1))));
    else
      misfits = either(misfits, above(seen_, all_of(reach_ - 1)));
    return lane_bits(misfits) == 0;
  }

 private:
  template <bool kSentinel>
  KFN Vector<Code> magic_forms(const T* from) {
    const Vector<T> x = load<T>(static_cast<const void*>(from)), t = fused(x, inverse_, magic_);
    const Vector<T> decoded = (t - magic_) * step_;
    // if the error is NaN the other operand is taken; such errors come from values that are NaN or infinite
    error_ = larger_magnitude(x - decoded, error_);
    if constexpr (kShortened)
      seen_ |= (Vector<Code>)t ^ all_of(Traits::kMagicBits);
    else
      seen_ = larger((Vector<Code>)x & 0x7FFFFFFFu, seen_);
    if constexpr (kSentinel) same_ = either(same_, either(equal(x, sentinel_), equal(decoded, sentinel_)));
    return (Vector<Code>)t;
  }

  Vector<T> inverse_, step_, sentinel_, magic_, error_{};
  Vector<Code> seen_{};  // OR of the codes' bits; or bits of the largest |x|, where NaN and infinity are the largest
  Lanes<Code> same_{};
  int bits_;
  T bound_;
  Code reach_;
  bool has_sentinel_;
};
#endif

PYF_END_TARGET
