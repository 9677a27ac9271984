// SPDX-License-Identifier: BSD-3-Clause
// Narrow codes (stages/packed/narrow.hpp): codes of 64 bits shortened to 32, and values quantised to 32 bits at once,
// a vector at a time, with the tests that all of them are ordinary and narrow put off to the end.
#pragma once

#include <bit>
#include <cstdint>

#include "core/target.hpp"
#include "stages/quantize.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// The low halves of 32 codes. Returns the OR of all codes + `above`.
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
// The codes of quantize() (stages/quantize.hpp) of values that all have one. What is tested is what quantize() tests:
// the largest error, the largest value, whether any is the sentinel or decodes to it.
template <class T>
class NarrowQuantizer;

template <>
class NarrowQuantizer<float> {
 public:
  explicit KFN NarrowQuantizer(const Quantizer<float>& p, int /*bits*/)
      : inverse_(all_of(p.inverse_step)),
        step_(all_of(p.step)),
        sentinel_(all_of(p.sentinel)),
        bound_(p.bound),
        reach_(std::bit_cast<std::uint32_t>(p.reach)),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = kPer<float>;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const F32 magic = all_of(FloatTraits<float>::kMagic);
    const F32 x = load<float>(from), t = fused(x, inverse_, magic), decoded = (t - magic) * step_;
    // of a NaN the maximum is the other one: such errors have values that are NaN or infinite
    error_ = larger_magnitude(x - decoded, error_);
    far_ = larger((U32)x & 0x7FFFFFFFu, far_);
    if constexpr (kSentinel) same_ = either(same_, either(equal(x, sentinel_), equal(decoded, sentinel_)));
    store(to, (U32)t - (U32)magic);
  }
  // Whether all values so far have codes.
  [[nodiscard]] KFN bool fits() const {
    const auto misfits = either(above(error_, all_of(bound_)), above(far_, all_of(reach_ - 1)));
    return lane_bits(either(misfits, same_)) == 0;
  }

 private:
  F32 inverse_, step_, sentinel_;
  F32 error_{};
  U32 far_{};  // bits of |x|: those of NaNs and infinities are the largest
  Lanes<std::uint32_t> same_{};
  float bound_;
  std::uint32_t reach_;
  bool has_sentinel_;
};

// Codes are narrow where those of magic forms, of a magic number so much larger that no narrow code is below 0, have no
// other bits; NaNs and infinities have. The low half of a magic form is that of its code.
template <>
class NarrowQuantizer<double> {
 public:
  static_assert(static_cast<std::uint32_t>(FloatTraits<double>::kMagicBits) == 0);

  // `bits` of a code and a sign may be shortened.
  explicit KFN NarrowQuantizer(const Quantizer<double>& p, int bits)
      : inverse_(all_of(p.inverse_step)),
        step_(all_of(p.step)),
        sentinel_(all_of(p.sentinel)),
        magic_(all_of(FloatTraits<double>::kMagic + static_cast<double>(std::uint64_t{1} << bits))),
        above_(all_of(1u << bits)),
        bits_(bits),
        bound_(p.bound),
        has_sentinel_(p.has_sentinel) {}

  static constexpr int kAtOnce = kPer<float>;
  [[nodiscard]] KFN bool has_sentinel() const { return has_sentinel_; }
  template <bool kSentinel>
  KFN void take(const void* from, std::uint32_t* to) {
    const auto* const x = static_cast<const double*>(from);
    const U64 low = half<kSentinel>(x), high = half<kSentinel>(x + kPer<double>);
    store(to, low_halves(low, high) - above_);
  }
  [[nodiscard]] KFN bool fits() const {
    const auto wide = sharing(seen_, all_of(~((std::uint64_t{2} << bits_) - 1)));
    return lane_bits(either(above(error_, all_of(bound_)), either(wide, same_))) == 0;
  }

 private:
  template <bool kSentinel>
  KFN U64 half(const double* from) {
    const F64 x = load(from), t = fused(x, inverse_, magic_), decoded = (t - magic_) * step_;
    error_ = larger_magnitude(x - decoded, error_);
    seen_ |= (U64)t ^ all_of(FloatTraits<double>::kMagicBits);
    if constexpr (kSentinel) same_ = either(same_, either(equal(x, sentinel_), equal(decoded, sentinel_)));
    return (U64)t;
  }

  F64 inverse_, step_, sentinel_, magic_;
  U32 above_;
  F64 error_{};
  U64 seen_{};  // bits of codes
  Lanes<std::uint64_t> same_{};
  int bits_;
  double bound_;
  bool has_sentinel_;
};
#endif

PYF_END_TARGET
