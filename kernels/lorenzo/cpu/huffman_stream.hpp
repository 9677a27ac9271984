// SPDX-License-Identifier: BSD-3-Clause
// Huffman streams of a group (docs/format.md, section 8.7) on the CPU: blocks of residuals to codewords and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/huffman.hpp"

PYF_BEGIN_TARGET

// Writes a stream's words, highest bit first, and notes where the first codeword of each 1024 bits starts.
class HuffmanWriter {
 public:
  HuffmanWriter(std::uint8_t* words, std::uint8_t* gaps) : words_(words), gaps_(gaps) {}

  // Writes up to 32 bits.
  KFN void put(std::uint32_t value, std::uint32_t bits) {
    held_ = held_ << bits | value;
    count_ += bits;
    if (count_ < 32) return;
    count_ -= 32;
    store_le(words_ + 4 * written_, static_cast<std::uint32_t>(held_ >> count_));
    ++written_;
  }
  // Notes that a codeword starts here.
  KFN void start() {
    const std::uint64_t at = 32 * written_ + count_;
    if (at < next_gap_) return;
    *gaps_++ = static_cast<std::uint8_t>(at - next_gap_);
    next_gap_ += kGapBits;
  }
  // Fills the last word; returns the number of words.
  std::uint32_t finish() {
    if (count_ != 0) put(0, 32 - count_);
    if (next_gap_ < 32 * written_) *gaps_ = static_cast<std::uint8_t>(kNoGap);
    return static_cast<std::uint32_t>(written_);
  }

 private:
  std::uint8_t *words_, *gaps_;
  std::uint64_t held_ = 0, written_ = 0, next_gap_ = 0;
  std::uint32_t count_ = 0;
};

template <class Code>
KFN void put_raw(HuffmanWriter& out, Code value, std::uint32_t bits) {
  if (sizeof(Code) == 8 && bits > 32) {
    out.put(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) >> 32) & ((1u << (bits - 32)) - 1), bits - 32);
    bits = 32;
  }
  if (bits == 0) return;
  out.put(static_cast<std::uint32_t>(value) & (~0u >> (32 - bits)), bits);
}

// Encodes the residuals of `count` contiguous blocks. Two direct residuals become one codeword if their pair has a
// codeword.
template <class Code>
[[gnu::noinline]] inline void encode_blocks(const HuffmanCodes& codes, const Code* z, std::uint32_t count,
                                            HuffmanWriter& out) {
  const Code* const end = z + 32 * count;
  while (z < end) {
    out.start();
    const Code here = z[0], next = end - z > 1 ? z[1] : Code{kDirectSymbols};
    const bool direct = (here | next) < kDirectSymbols;
    const std::uint32_t both = kPairs + (static_cast<std::uint32_t>(16 * here + next) & 255);
    const bool pair = direct & (codes.length[both] != 0);
    const bool narrow = here >> 31 == 0;
    const std::uint32_t symbol =
        narrow ? symbol_of_narrow(static_cast<std::uint32_t>(here)) : symbol_of(here);  // most residuals take no branch
    const std::uint32_t codeword = pair ? both : symbol, raw = pair ? 0 : raw_bits(symbol);
    const std::uint32_t length = codes.length[codeword];
    if (length == 0 || length + raw > 32 || codeword == kEscape) [[unlikely]] {
      const bool escaped = length == 0 || codeword == kEscape;
      out.put(codes.code[escaped ? kEscape : codeword], codes.length[escaped ? kEscape : codeword]);
      if (escaped) out.put(symbol, kEscapeBits);
      put_raw(out, here, raw);
    } else {
      out.put(std::uint32_t{codes.code[codeword]} << raw | (static_cast<std::uint32_t>(here) & ((1u << raw) - 1)),
              length + raw);
    }
    z += pair ? 2 : 1;
  }
}

// Counts codewords as if every pair had a codeword.
template <class Code>
[[gnu::noinline]] inline void count_codewords(const Code* z, std::uint32_t count, std::uint32_t* counts) {
  const Code* const end = z + 32 * count;
  while (z < end) {
    const Code here = z[0], next = end - z > 1 ? z[1] : Code{kDirectSymbols};
    if ((here | next) < kDirectSymbols) {
      ++counts[kPairs + static_cast<std::uint32_t>(16 * here + next)];
      z += 2;
    } else {
      ++counts[symbol_of(here)];
      ++z;
    }
  }
}

class HuffmanReader {
 public:
  HuffmanReader() = default;
  // `gaps`: nullptr if the stream has no gap array.
  HuffmanReader(const std::uint8_t* words, std::uint32_t count, const std::uint8_t* gaps)
      : words_(words), gaps_(gaps), count_(count) {
    take(0);
    take(0);
  }

  // Whether only zeros of the last word are left, and all gaps were right.
  bool at_end() const {
    const std::uint64_t left = 32ull * count_ - position();
    if (failed_ || position() > 32ull * count_ || left >= 32 || (left != 0 && held_ >> (64 - left) != 0)) return false;
    return gaps_ == nullptr || next_gap_ >= 32ull * count_ || *gaps_ == kNoGap;
  }

  // Reads the residuals of `count` contiguous blocks; returns false if the stream is damaged.
  template <class Code>
  [[gnu::noinline]] bool read(const HuffmanTables& tables, std::uint32_t code_bits, std::uint32_t count, Code* z) {
    Code* const end = z + 32 * count;
    while (z < end && !failed_) {
      // fast path: no end of blocks or words can be reached, and no gap must be checked
      std::uint64_t safe = 32ull * count_;
      if (gaps_ != nullptr && next_gap_ < safe) safe = next_gap_;
      while (end - z >= 4 && position() + kMostCodeBits + 32 <= safe) {
        const std::uint64_t next = held_ >> (64 - kMostCodeBits);
        const std::uint32_t entry = tables.residuals[next];
        if (huffman_count(entry) != 0) {
          z[0] = static_cast<Code>(entry & 0xFFF);
          for (int k = 1; k < 4; ++k) z[k] = static_cast<Code>(entry >> (8 + 4 * k) & 15);
          z += huffman_count(entry);
          take(huffman_bits(entry));
          continue;
        }
        const std::uint32_t symbol = tables.codewords[next] & 511, raw = raw_bits(symbol);
        if (symbol >= symbols_of_width(32)) break;  // escapes, and residuals of more than 32 bits
        take(tables.codewords[next] >> 9);
        *z++ = static_cast<Code>(smallest_of<Code>(symbol) + static_cast<Code>(held_ >> 1 >> (63 - raw)));
        take(raw);
      }
      if (z < end) read_one(tables, code_bits, end, z);
    }
    return !failed_;
  }

 private:
  std::uint64_t position() const { return 32 * next_ - have_; }

  // Drops up to 32 bits. held_ keeps at least 32, from its highest bit on; bits beyond the end are 0.
  KFN void take(std::uint32_t bits) {
    held_ <<= bits;
    have_ -= bits;
    if (have_ >= 32) return;
    const std::uint64_t word = next_ < count_ ? load_le<std::uint32_t>(words_ + 4 * next_) : 0;
    held_ |= word << (32 - have_);
    have_ += 32;
    ++next_;
  }
  KFN std::uint64_t take_raw(std::uint32_t bits) {
    std::uint64_t value = 0;
    for (std::uint32_t left = bits; left != 0;) {
      const std::uint32_t here = left > 32 ? left - 32 : left;
      value = value << here | held_ >> (64 - here);
      take(here);
      left -= here;
    }
    return value;
  }

  // Reads one codeword with its raw bits.
  template <class Code>
  KFN void read_one(const HuffmanTables& tables, std::uint32_t code_bits, const Code* end, Code*& z) {
    const std::uint64_t at = position();
    if (gaps_ != nullptr && at >= next_gap_ && at < 32ull * count_) {
      failed_ = failed_ || *gaps_++ != at - next_gap_;
      next_gap_ += kGapBits;
    }
    const std::uint32_t entry = tables.codewords[held_ >> (64 - kMostCodeBits)], codeword = entry & 511;
    take(entry >> 9);
    if (codeword >= kPairs) {
      failed_ = failed_ || end - z < 2;
      *z++ = static_cast<Code>(codeword >> 4 & 15);
      if (z < end) *z++ = static_cast<Code>(codeword & 15);
    } else {
      const std::uint32_t symbol = codeword == kEscape ? static_cast<std::uint32_t>(take_raw(kEscapeBits)) : codeword;
      failed_ = failed_ || symbol >= symbols_of_width(code_bits);
      if (failed_) return;
      *z++ = static_cast<Code>(smallest_of<Code>(symbol) + static_cast<Code>(take_raw(raw_bits(symbol))));
    }
    failed_ = failed_ || position() > 32ull * count_;
  }

  const std::uint8_t *words_ = nullptr, *gaps_ = nullptr;
  std::uint32_t count_ = 0, have_ = 0;
  std::uint64_t held_ = 0, next_ = 0, next_gap_ = 0;
  bool failed_ = false;
};

PYF_END_TARGET
