// SPDX-License-Identifier: BSD-3-Clause
// Codebooks of Huffman streams (docs/format.md, section 8.7): code lengths from counts, to bits and back, and the
// encoding and decoding tables. Integers only, so CPU and GPU agree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/entropy/tables.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// Codewords 0 to 255 are the symbols of single residuals, including the escape; codeword 256 + 16 * first + second is a
// pair of direct symbols.
inline constexpr std::uint32_t kPairs = 256, kCodewords = 512, kMostCodeBits = 12;
// Bits of a stream that a GPU thread decodes, one byte of the gap array each.
inline constexpr std::uint32_t kGapBits = 1024, kNoGap = 255;

struct Codebook {
  std::uint8_t length[kCodewords] = {};  // 0: the codeword is not used
};

struct CodebookScratch {
  std::uint64_t weight[2 * kCodewords];
  std::uint16_t parent[2 * kCodewords], order[kCodewords];
};

// The weight of a codeword: every counted codeword gets a code, and so do the escape and residual 0.
KFN std::uint32_t codeword_weight(const std::uint32_t* counts, std::uint32_t c) {
  return counts[c] != 0 ? counts[c] : c == kEscape || c == 0 ? 1u : 0u;
}

// Code lengths of at most 12 bits that leave no code unused, for the `used` codewords in s.order, sorted by weight,
// then number. The other lengths are 0 already.
KFN void assign_lengths(const std::uint32_t* counts, std::uint32_t used, CodebookScratch& s, Codebook& book) {
  // leaves are 0 to used - 1; of equal weights leaves go first. (A form with the next weights in registers gave other
  // trees on a device, compiled by nvcc 13.0, than on CPUs; tests/gpu/same_bytes.py found it.)
  for (std::uint32_t i = 0; i < used; ++i) s.weight[i] = codeword_weight(counts, s.order[i]);
  std::uint32_t leaf = 0, node = used;
  for (std::uint32_t made = used; made < 2 * used - 1; ++made) {
    std::uint32_t two[2];
    for (std::uint32_t& child : two)
      child = leaf < used && (node >= made || s.weight[leaf] <= s.weight[node]) ? leaf++ : node++;
    s.weight[made] = s.weight[two[0]] + s.weight[two[1]];
    s.parent[two[0]] = s.parent[two[1]] = static_cast<std::uint16_t>(made);
  }
  s.weight[2 * used - 2] = 0;  // weights become depths
  for (std::uint32_t i = 2 * used - 2; i-- > 0;) s.weight[i] = s.weight[s.parent[i]] + 1;
  // too long codes are cut to the longest length; others get longer, the rarest first, until the codes fit
  constexpr std::uint32_t kCodeSpace = 1u << kMostCodeBits;
  std::uint32_t taken = 0;
  for (std::uint32_t i = 0; i < used; ++i) {
    const auto depth = static_cast<std::uint32_t>(s.weight[i]);
    const std::uint32_t length = depth < kMostCodeBits ? depth : kMostCodeBits;
    book.length[s.order[i]] = static_cast<std::uint8_t>(length);
    taken += kCodeSpace >> length;
  }
  while (taken > kCodeSpace) {
    std::uint32_t i = 0;
    while (book.length[s.order[i]] == kMostCodeBits) ++i;
    taken -= kCodeSpace >> ++book.length[s.order[i]];
  }
  while (taken <
         kCodeSpace) {  // the rest goes to the most frequent codewords: it is a multiple of the rarest one's share
    for (std::uint32_t i = used; i-- > 0;) {
      std::uint8_t& length = book.length[s.order[i]];
      while (length > 1 && taken + (kCodeSpace >> length) <= kCodeSpace) taken += kCodeSpace >> length--;
    }
  }
}

inline void make_codebook(const std::uint32_t* counts, CodebookScratch& s, Codebook& book) {
  std::uint32_t used = 0;
  for (std::uint32_t c = 0; c < kCodewords; ++c) {
    book.length[c] = 0;
    const std::uint32_t weight = codeword_weight(counts, c);
    if (weight == 0) continue;
    std::uint32_t at = used++;
    for (; at > 0 && codeword_weight(counts, s.order[at - 1]) > weight; --at) s.order[at] = s.order[at - 1];
    s.order[at] = static_cast<std::uint16_t>(c);
  }
  assign_lengths(counts, used, s, book);
}

// The order of codewords in bits: single ones up to the last used one, pairs of numbers below `reach`, the escape. Each
// has a bit whether it is used; then comes the difference of its length to the last used codeword's. It is in unary, in
// the order 0, -1, 1, -2, 2 and so on.
inline constexpr std::uint32_t kFirstLength = 8, kMostLengthSteps = 2 * kMostCodeBits;

template <class Visit>
KFN void visit_codewords(std::uint32_t singles, std::uint32_t reach, Visit&& visit) {
  for (std::uint32_t c = 0; c < singles; ++c) visit(c);
  for (std::uint32_t a = 0; a < reach; ++a)
    for (std::uint32_t b = 0; b < reach; ++b) visit(kPairs + 16 * a + b);
  visit(kEscape);
}

KFN void write_codebook(const Codebook& book, BitWriter& out) {
  std::uint32_t singles = 0, reach = 0;
  for (std::uint32_t c = 0; c < kEscape; ++c)
    if (book.length[c] != 0) singles = c + 1;
  for (std::uint32_t p = 0; p < kPairs; ++p) {
    if (book.length[kPairs + p] == 0) continue;
    const std::uint32_t larger = p / 16 > p % 16 ? p / 16 : p % 16;
    if (larger >= reach) reach = larger + 1;
  }
  out.put(singles, 8);
  out.put(reach, 5);
  std::uint32_t before = kFirstLength;
  visit_codewords(singles, reach, [&](std::uint32_t c) {
    const std::uint32_t length = book.length[c];
    out.put(length != 0 ? 1 : 0, 1);
    if (length == 0) return;
    const std::uint32_t steps = length >= before ? 2 * (length - before) : 2 * (before - length) - 1;
    out.skip(steps);
    out.put(1, 1);
    before = length;
  });
}

// False if the bits are no codebook: they run out, or the codes are too many or too few.
KFN bool read_codebook(BitReader& in, Codebook& book) {
  for (std::uint8_t& length : book.length) length = 0;
  const std::uint32_t singles = in.take(8), reach = in.take(5);
  if (in.failed || singles > kEscape || reach > 16) return false;
  std::uint32_t before = kFirstLength, taken = 0;
  bool good = true;
  visit_codewords(singles, reach, [&](std::uint32_t c) {
    if (!good || in.take(1) == 0) return;
    std::uint32_t steps = 0;
    good = in.take_zeros(kMostLengthSteps, steps);
    if (!good) return;
    const std::uint32_t length = steps % 2 != 0 ? before - (steps + 1) / 2 : before + steps / 2;
    if (length < 1 || length > kMostCodeBits) {  // includes lengths below 0, which wrap
      good = false;
      return;
    }
    book.length[c] = static_cast<std::uint8_t>(length);
    taken += (1u << kMostCodeBits) >> length;
    before = length;
  });
  return good && !in.failed && taken == 1u << kMostCodeBits;
}

// Canonical codes: in the order of lengths, then of codeword numbers.
struct HuffmanCodes {
  std::uint16_t code[kCodewords];
  std::uint8_t length[kCodewords];
};
inline void make_codes(const Codebook& book, HuffmanCodes& codes) {
  std::uint32_t next = 0;
  for (std::uint32_t length = 1; length <= kMostCodeBits; ++length) {
    next <<= 1;
    for (std::uint32_t c = 0; c < kCodewords; ++c)
      if (book.length[c] == length) codes.code[c] = static_cast<std::uint16_t>(next++);
  }
  for (std::uint32_t c = 0; c < kCodewords; ++c) codes.length[c] = book.length[c];
}

// Tables by the next 12 bits of a stream. One has the first codeword. The other has a single residual with its raw
// bits, or up to four direct residuals in whole codewords. Fields of `residuals`: the first residual in 12 bits, the
// others in four bits each; their number (0 if 12 bits hold no whole residual); bits consumed.
struct HuffmanTables {
  std::uint32_t residuals[1u << kMostCodeBits];
  std::uint16_t codewords[1u << kMostCodeBits];  // codeword | bits << 9
};
KFN std::uint32_t huffman_count(std::uint32_t entry) { return entry >> 24 & 7; }
KFN std::uint32_t huffman_bits(std::uint32_t entry) { return entry >> 27; }

// Fills the entries that start with a codeword's code.
KFN void put_codeword(const HuffmanCodes& codes, std::uint32_t c, std::uint16_t* codewords) {
  const std::uint32_t length = codes.length[c];
  if (length == 0) return;
  const std::uint32_t first = std::uint32_t{codes.code[c]} << (kMostCodeBits - length);
  for (std::uint32_t i = 0; i < (1u << kMostCodeBits) >> length; ++i)
    codewords[first + i] = static_cast<std::uint16_t>(c | length << 9);
}
// The residuals that lie completely in these 12 bits.
KFN std::uint32_t residuals_of_bits(const std::uint16_t* codewords, std::uint32_t bits) {
  std::uint32_t residuals = 0, count = 0, taken = 0;
  while (count < 4 && taken < kMostCodeBits) {
    const std::uint32_t rest = bits << taken & ((1u << kMostCodeBits) - 1), entry = codewords[rest];
    const std::uint32_t c = entry & 511, length = entry >> 9, shift = count == 0 ? 0 : 8 + 4 * count;
    if (c == kEscape) break;
    const bool pair = c >= kPairs;
    const std::uint32_t raw = pair ? 0 : raw_bits(c);
    if (taken + length + raw > kMostCodeBits || raw > 9 || (raw != 0 && count != 0) || (pair && count > 2)) break;
    if (pair) {
      residuals |= (c >> 4 & 15) << shift | (c & 15) << (count == 0 ? 12 : shift + 4);
    } else {
      const std::uint32_t value = rest >> (kMostCodeBits - length - raw) & ((1u << raw) - 1);
      residuals |= (smallest_of<std::uint32_t>(c) + value) << shift;
    }
    count += pair ? 2 : 1;
    taken += length + raw;
  }
  return residuals | count << 24 | taken << 27;
}

inline void make_huffman_tables(const Codebook& book, HuffmanTables& t) {
  HuffmanCodes codes;
  make_codes(book, codes);
  for (std::uint32_t c = 0; c < kCodewords; ++c) put_codeword(codes, c, t.codewords);
  for (std::uint32_t bits = 0; bits < 1u << kMostCodeBits; ++bits)
    t.residuals[bits] = residuals_of_bits(t.codewords, bits);
}

}  // namespace pyfilter
