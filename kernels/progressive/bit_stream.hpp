// SPDX-License-Identifier: BSD-3-Clause
// The bits of a piece (docs/format.md, section 13.5), lowest first, and selection of a word's bits by a mask.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
#include <immintrin.h>
#endif

namespace pyfilter {

inline constexpr std::size_t kBitsPadding = 16;  // bytes, behind the input of PaddedBitsIn

alignas(64) inline constexpr std::uint16_t kBitNumbers[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                              11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                              22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

}  // namespace pyfilter

PYF_BEGIN_TARGET

KFN std::uint32_t count_bits(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(word));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(word));
#endif
}

// Gathers the bits of `word` selected by `mask`, side by side from bit 0 on; and the inverse.
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

// A bit for each of 64 words of 64 bits that is not 0.
inline std::uint64_t filled_words(const std::uint8_t* words) {
  std::uint64_t filled = 0;
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
  for (std::size_t i = 0; i < 64; i += 4) {
    const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 8 * i));
    const __m256i empty = _mm256_cmpeq_epi64(four, _mm256_setzero_si256());
    filled |= static_cast<std::uint64_t>(15 ^ _mm256_movemask_pd(_mm256_castsi256_pd(empty))) << i;
  }
#else
  for (std::size_t i = 0; i < 64; ++i) filled |= std::uint64_t{load_le<std::uint64_t>(words + 8 * i) != 0} << i;
#endif
  return filled;
}

#if defined(PYF_LEVEL_AVX512)
// Lists the positions of the ones in `count` words, 64 at most, and returns their number. `to` needs space for 32 more,
// and 64 words must be readable.
inline std::uint32_t list_ones(const std::uint8_t* words, std::uint32_t count, std::uint16_t* to) {
  std::uint32_t ones = 0;
  const __m512i low_numbers = _mm512_load_si512(kBitNumbers),
                high_numbers = _mm512_add_epi16(low_numbers, _mm512_set1_epi16(32));
  std::uint64_t filled = filled_words(words);
  if (count < 64) filled &= (std::uint64_t{1} << count) - 1;
  for (; filled != 0; filled &= filled - 1) {
    const auto w = static_cast<std::uint32_t>(__builtin_ctzll(filled));
    const __m512i first = _mm512_set1_epi16(static_cast<short>(64 * w));
    const auto word = load_le<std::uint64_t>(words + 8 * w);
    const auto low = static_cast<std::uint32_t>(word), high = static_cast<std::uint32_t>(word >> 32);
    _mm512_storeu_si512(to + ones, _mm512_maskz_compress_epi16(low, _mm512_add_epi16(low_numbers, first)));
    ones += count_bits(low);
    _mm512_storeu_si512(to + ones, _mm512_maskz_compress_epi16(high, _mm512_add_epi16(high_numbers, first)));
    ones += count_bits(high);
  }
  return ones;
}
#endif

// Writes up to 15 bytes beyond its end. Branch-free in the bits: the number of bits that a mask selects from a word is
// as good as random.
class BitsOut {
 public:
  explicit BitsOut(std::uint8_t* to) : from_(to), to_(to) {}

  // Appends up to 64 bits; the bits of `value` above them must be 0.
  KFN void put(std::uint64_t value, std::uint32_t bits) {
    const std::uint64_t word = held_ | value << at_, next = at_ + bits, full = next >> 6;
    store_le(to_, word);
    held_ = (value >> 1) >> (63 - at_) | (word & (full - 1));  // the first term is 0 while the word is not full
    to_ += 8 * full;
    at_ = next & 63;
  }
  // Appends a run of zeros: its quotient by 2^k as zero bits and a one, then its last k bits; k is 15 at most.
  KFN void put_run(std::uint32_t run, std::uint32_t k) {
    std::uint32_t zeros = run >> k;
    for (; zeros >= 32; zeros -= 32) put(0, 32);
    put(static_cast<std::uint64_t>(1u | (run & ((1u << k) - 1)) << 1) << zeros, zeros + 1 + k);
  }
  // Fills the last byte; returns the number of bytes.
  std::size_t finish() {
    if (at_ != 0) store_le(to_, held_);
    return static_cast<std::size_t>(to_ - from_) + static_cast<std::size_t>((at_ + 7) / 8);
  }

 private:
  std::uint8_t *from_, *to_;
  std::uint64_t held_ = 0, at_ = 0;  // the bits of the unfinished word, and their number
};

// Reads bits followed by kBitsPadding bytes of zeros; reads beyond the padding return zeros.
class PaddedBitsIn {
 public:
  PaddedBitsIn(const void* from, std::size_t bytes) : from_(static_cast<const std::uint8_t*>(from)), bytes_(bytes) {}

  // Returns the next 64 bits and advances by `bits`.
  KFN std::uint64_t take(std::uint32_t bits) {
    const std::uint8_t* const from = here();
    const std::uint64_t shift = at_ & 7, low = load_le<std::uint64_t>(from) >> shift;
    at_ += bits;
    return low | static_cast<std::uint64_t>(from[8]) << (63 - shift) << 1;
  }
  // Returns at least the next kPeeked bits.
  static constexpr std::uint32_t kPeeked = 57;
  KFN std::uint64_t peek() const { return load_le<std::uint64_t>(here()) >> (at_ & 7); }
  KFN void skip(std::uint64_t bits) { at_ += bits; }
  // Reads a run; returns `most` + 1 if it is longer than `most`.
  std::uint32_t take_run(std::uint32_t k, std::uint32_t most) {
    std::uint64_t zeros = 0, held = peek();
    for (; held == 0; held = peek()) {
      zeros += kPeeked;
      at_ += kPeeked;
      if (zeros > most || at_ > 8 * bytes_) return most + 1;
    }
    const auto more = static_cast<std::uint32_t>(__builtin_ctzll(held));
    at_ += more + 1;
    zeros += more;
    if (zeros > most >> k) return most + 1;
    const auto low = static_cast<std::uint32_t>(peek() & ((std::uint64_t{1} << k) - 1));
    at_ += k;
    return static_cast<std::uint32_t>(zeros) << k | low;
  }
  // Whether everything is read except zeros of the last byte.
  bool at_end() const {
    if (at_ > 8 * bytes_ || 8 * bytes_ - at_ >= 8) return false;
    return at_ == 8 * bytes_ || from_[at_ / 8] >> (at_ % 8) == 0;
  }

 private:
  KFN const std::uint8_t* here() const { return from_ + (at_ / 8 < bytes_ ? at_ / 8 : bytes_); }

  const std::uint8_t* from_;
  std::uint64_t bytes_, at_ = 0;
};

// Bits beyond the end are 0; at_end() tells whether a read went beyond.
class BitsIn {
 public:
  BitsIn(const std::uint8_t* from, std::size_t bytes) : from_(from), bits_(8 * bytes) {}

  KFN std::uint32_t take(std::uint32_t bits) {
    const std::uint64_t value = peek() & ((std::uint64_t{1} << bits) - 1);
    at_ += bits;
    return static_cast<std::uint32_t>(value);
  }
  // Reads a run; returns `most` + 1 if it is longer than `most`.
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
  // Whether everything is read except zeros of the last byte.
  bool at_end() const {
    if (at_ > bits_ || bits_ - at_ >= 8) return false;
    return at_ == bits_ || from_[at_ / 8] >> (at_ % 8) == 0;
  }

 private:
  // Returns at least the next 57 bits.
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
