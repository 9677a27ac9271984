// SPDX-License-Identifier: BSD-3-Clause
// Bits of a piece (docs/format.md, section 13.5), lowest first, and words whose bits a mask picks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
#include <immintrin.h>
#endif

PYF_BEGIN_TARGET

KFN std::uint32_t count_bits(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(word));
#endif
}

// The bits of `word` that `mask` picks, side by side from bit 0 on, and back.
KFN std::uint32_t gather_bits(std::uint32_t word, std::uint32_t mask) {
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
  return _pext_u32(word, mask);
#else
  std::uint32_t out = 0;
  for (std::uint32_t at = 1; mask != 0; mask &= mask - 1, at += at)
    if ((word & mask & (0u - mask)) != 0) out |= at;
  return out;
#endif
}
KFN std::uint64_t gather_bits(std::uint64_t word, std::uint64_t mask) {
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
  return _pext_u64(word, mask);
#else
  const auto low = static_cast<std::uint32_t>(mask);
  return gather_bits(static_cast<std::uint32_t>(word), low) |
         static_cast<std::uint64_t>(
             gather_bits(static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(mask >> 32)))
             << count_bits(low);
#endif
}
KFN std::uint32_t scatter_bits(std::uint32_t bits, std::uint32_t mask) {
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
  return _pdep_u32(bits, mask);
#else
  std::uint32_t out = 0;
  for (; mask != 0; mask &= mask - 1, bits >>= 1)
    if ((bits & 1) != 0) out |= mask & (0u - mask);
  return out;
#endif
}

KFN std::uint64_t scatter_bits(std::uint64_t bits, std::uint64_t mask) {
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
  return _pdep_u64(bits, mask);
#else
  const auto low = static_cast<std::uint32_t>(mask);
  const std::uint64_t above = count_bits(low) == 32 ? bits >> 32 : bits >> count_bits(low);
  return scatter_bits(static_cast<std::uint32_t>(bits), low) |
         static_cast<std::uint64_t>(
             scatter_bits(static_cast<std::uint32_t>(above), static_cast<std::uint32_t>(mask >> 32)))
             << 32;
#endif
}

// Writes up to seven bytes behind its end.
class BitsOut {
 public:
  explicit BitsOut(std::uint8_t* to) : to_(to), start_(to) {}

  // Up to 32 bits, and nothing above them.
  KFN void put(std::uint32_t value, std::uint32_t bits) {
    held_ |= static_cast<std::uint64_t>(value) << count_;
    count_ += bits;
    store_le(to_, held_);  // whole bytes are done, the rest is written again
    to_ += count_ / 8;
    held_ >>= count_ & ~7u;
    count_ &= 7;
  }
  // Up to 64 bits, and nothing above them.
  KFN void put_long(std::uint64_t value, std::uint32_t bits) {
    held_ |= value << count_;
    store_le(to_, held_);
    const std::uint32_t total = count_ + bits;
    if (total < 64) {
      to_ += total / 8;
      held_ >>= total & ~7u;
    } else {
      to_ += 8;
      held_ = count_ != 0 ? value >> (64 - count_) : 0;
    }
    count_ = total & 7;
  }
  // A run of zeros: its quotient by 2^k in zero bits and a one, its last k bits.
  KFN void put_run(std::uint32_t run, std::uint32_t k) {
    std::uint32_t zeros = run >> k;
    for (; zeros >= 16; zeros -= 16) put(0, 16);
    put((1u | (run & ((1u << k) - 1)) << 1) << zeros, zeros + 1 + k);
  }
  // Fills the last byte; how many there are.
  std::size_t finish() {
    if (count_ != 0) *to_++ = static_cast<std::uint8_t>(held_);
    return static_cast<std::size_t>(to_ - start_);
  }

 private:
  std::uint8_t *to_, *start_;
  std::uint64_t held_ = 0;
  std::uint32_t count_ = 0;
};

// Behind the end bits are 0; at_end() says whether it was passed.
class BitsIn {
 public:
  BitsIn(const std::uint8_t* from, std::size_t bytes) : from_(from), bits_(8 * bytes) {}

  KFN std::uint32_t take(std::uint32_t bits) {
    const std::uint64_t value = peek() & ((std::uint64_t{1} << bits) - 1);
    at_ += bits;
    return static_cast<std::uint32_t>(value);
  }
  // Up to 64 bits.
  KFN std::uint64_t take_long(std::uint32_t bits) {
    std::uint64_t value = peek();
    const std::size_t byte = at_ / 8, shift = at_ % 8;
    if (shift + bits > 64 && byte + 8 < bits_ / 8) value |= static_cast<std::uint64_t>(from_[byte + 8]) << (64 - shift);
    at_ += bits;
    return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
  }
  // A run, or `most` + 1 where it is longer than `most`.
  KFN std::uint32_t take_run(std::uint32_t k, std::uint32_t most) {
    std::uint32_t zeros = 0;
    std::uint64_t held = peek() & 0xFFFFFFFFu;
    while (held == 0) {
      zeros += 32;
      at_ += 32;
      if (zeros > most || at_ >= bits_) return most + 1;
      held = peek() & 0xFFFFFFFFu;
    }
    const auto more = static_cast<std::uint32_t>(__builtin_ctzll(held));
    at_ += more + 1;
    zeros += more;
    if (zeros > most >> k) return most + 1;
    return zeros << k | take(k);
  }
  // Everything is read but zeros of the last byte.
  bool at_end() const {
    if (at_ > bits_ || bits_ - at_ >= 8) return false;
    return at_ == bits_ || from_[at_ / 8] >> (at_ % 8) == 0;
  }

 private:
  // At least 57 bits from here on.
  KFN std::uint64_t peek() const {
    const std::size_t byte = at_ / 8, bytes = bits_ / 8;
    std::uint64_t held = 0;
    if (byte + 8 <= bytes)
      held = load_le<std::uint64_t>(from_ + byte);
    else
      for (std::size_t i = byte; i < bytes; ++i) held |= static_cast<std::uint64_t>(from_[i]) << (8 * (i - byte));
    return held >> (at_ % 8);
  }

  const std::uint8_t* from_;
  std::size_t bits_, at_ = 0;
};

PYF_END_TARGET
