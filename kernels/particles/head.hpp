// SPDX-License-Identifier: BSD-3-Clause
// The heads of a tile of particles and of its sequences (docs/format.md, sections 12.2 and 12.3), for CPU and GPU. All
// parts are words; word(i) is word i.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "particles/key.hpp"

namespace pyfilter {

// Bits of a tile's first word.
inline constexpr std::uint32_t kVerbatimTile = 1u << 13, kRunsTile = 1u << 14, kTailTile = 1u << 15;

template <class Code>
struct TileHead {
  std::uint32_t stored, repeats = 0, ordinary;  // verbatim particles; repeats of the last one
  bool verbatim, runs;
  unsigned shift, width[3] = {};
  Code origin[3] = {};

  // Bit planes of the offsets along an axis; bit planes of all axes of a group of 32.
  KFN unsigned planes(int axis) const { return width[axis] < shift ? width[axis] : shift; }
  KFN unsigned planes() const { return planes(0) + planes(1) + planes(2); }
};

// Reads and checks the head of a tile of `size` words and `count` particles; returns the start of keys, 0 if the head
// is damaged.
template <class Code, int D, class Word>
KFN std::uint32_t read_head(const Word& word, std::uint64_t size, std::uint32_t count, TileHead<Code>& head) {
  constexpr std::uint32_t kCodeWords = sizeof(Code) / 4;
  if (size < 1) return 0;
  const std::uint32_t first = word(0);
  std::uint32_t at = 1;
  head.stored = first & 0x1FFF;
  head.verbatim = (first & kVerbatimTile) != 0;
  head.runs = (first & kRunsTile) != 0;
  head.shift = first >> 16;
  if (head.stored > count || head.shift > 8 * sizeof(Code)) return 0;
  if (head.verbatim) {
    head.stored = count;
    head.ordinary = 0;
    return first == kVerbatimTile ? at : 0;
  }
  if ((first & kTailTile) != 0) {
    if (size < 2) return 0;
    head.repeats = word(at++);
    if (head.stored == 0 || head.repeats > count - head.stored) return 0;
  }
  head.ordinary = count - head.stored - head.repeats;
  if (head.ordinary == 0) return head.shift == 0 && !head.runs ? at : 0;
  if (size < at + 1 + D * kCodeWords) return 0;
  const std::uint32_t widths = word(at++);
  unsigned bits = 0;
  for (int d = 0; d < 4; ++d) {
    const unsigned width = widths >> 8 * d & 0xFF;
    if (width > (d < D ? 8 * sizeof(Code) : 0)) return 0;
    if (d < 3) head.width[d] = width;
    bits += width > head.shift ? width - head.shift : 0;
  }
  if (bits > kMostKeyBits || (bits == 0 && head.runs)) return 0;
  for (int d = 0; d < D; ++d) {
    head.origin[d] = word(at++);
    if constexpr (kCodeWords == 2) head.origin[d] |= Code{word(at++)} << 32;
  }
  return at;
}

// A tile's first word and its number of words. The tile has `ordinary` and `stored` particles, a tail of equal ones,
// keys of this many words, and planes of offsets for each group.
KFN std::uint32_t head_word(std::uint32_t ordinary, std::uint32_t stored, std::uint32_t tail, bool runs,
                            unsigned shift) {
  return stored | (runs ? kRunsTile : 0) | (tail != 0 ? kTailTile : 0) | (ordinary != 0 ? shift << 16 : 0);
}
template <class Code, int D>
KFN std::uint32_t head_words(std::uint32_t ordinary, std::uint32_t tail) {
  return 1 + (tail != 0 ? 1 : 0) + (ordinary != 0 ? 1 + D * static_cast<std::uint32_t>(sizeof(Code) / 4) : 0);
}
template <class Code, int D>
KFN std::uint32_t tile_words(std::uint32_t ordinary, std::uint32_t stored, std::uint32_t tail, std::uint32_t key_words,
                             unsigned planes) {
  return head_words<Code, D>(ordinary, tail) + key_words + (ordinary + kGroup - 1) / kGroup * planes +
         stored * D * static_cast<std::uint32_t>(sizeof(Code) / 4);
}
// Whether runs are worth a try.
KFN bool may_have_runs(std::uint32_t ordinary, std::uint32_t runs) { return runs <= ordinary - ordinary / 4; }
// Whether runs surely win: the tile has many particles, half of which repeat keys, and keys are far apart. If keys are
// close, a repeated key costs as little as a count.
KFN bool surely_runs(std::uint32_t ordinary, std::uint32_t runs, std::uint32_t last_key) {
  return ordinary >= kTileParticles / 4 && runs <= ordinary / 2 && last_key / 16 >= runs;
}
// The same for a tile that is sorted alone and has fewer repeated keys, but everywhere: at most kSpreadRuns runs start
// in any kSpread particles. If all repeats were in one region, differences would do.
inline constexpr std::uint32_t kSpread = 256, kSpreadRuns = 240;
KFN bool surely_spread_runs(std::uint32_t ordinary, std::uint32_t runs, std::uint32_t last_key) {
  return ordinary >= kTileParticles / 4 && runs > ordinary / 16 * 9 && may_have_runs(ordinary, runs) &&
         last_key / 64 >= ordinary;
}

// The size of a sequence of `count` numbers.
struct SequenceSize {
  std::uint32_t count = 0, groups = 0, unary_bits = 0, plane_words = 0;
  unsigned base = 0, rate_planes = 0;

  KFN std::uint32_t mask_words() const { return (groups + 31) / 32; }
  KFN std::uint32_t unary_words() const { return (unary_bits + 31) / 32; }
  KFN std::uint32_t planes_at() const { return 1 + rate_planes * mask_words(); }
  KFN std::uint32_t words() const { return planes_at() + plane_words + unary_words(); }
  KFN std::uint32_t head() const { return base | rate_planes << 8 | unary_words() << 16; }

  KFN void set_count(std::uint32_t numbers) {
    count = numbers;
    groups = (numbers + kGroup - 1) / kGroup;
  }
  // From the lowest and highest low bits of any group.
  KFN void set_rates(unsigned lowest, unsigned highest) {
    base = lowest;
    rate_planes = static_cast<unsigned>(bit_width(static_cast<std::uint32_t>(highest - lowest)));
  }
};

// The first word of a sequence of `count` numbers.
struct SequenceHead {
  std::uint32_t unary_words, groups, masks;  // masks: words of a rate plane
  unsigned base, rate_planes;

  KFN std::uint32_t words() const { return 1 + rate_planes * masks; }  // in front of the planes of numbers
};

// False if it is damaged.
KFN bool read_sequence_head(std::uint32_t word, std::uint32_t count, SequenceHead& head) {
  head.groups = (count + kGroup - 1) / kGroup;
  head.masks = (head.groups + 31) / 32;
  head.base = word & 31;
  head.rate_planes = word >> 8 & 7;
  head.unary_words = word >> 16;
  return (word & 0xF8E0) == 0 && head.rate_planes <= 5;
}

// Low bits of a group's numbers, from the rate planes that start at `word(0)`; more than 31 means damage.
template <class Word>
KFN unsigned low_bits(const SequenceHead& head, const Word& word, std::uint32_t group) {
  unsigned low = 0;
  for (unsigned p = 0; p < head.rate_planes; ++p) low |= (word(p * head.masks + group / 32) >> group % 32 & 1) << p;
  return head.base + low;
}

// Whether the bits beyond the last group are 0 in a rate plane.
template <class Word>
KFN bool has_stray_bits(const SequenceHead& head, const Word& word, unsigned plane) {
  const unsigned last = head.groups % 32;
  return last != 0 && word((plane + 1) * head.masks - 1) >> last != 0;
}

}  // namespace pyfilter
