// SPDX-License-Identifier: BSD-3-Clause
// A tile of a unit: 128 words of 32 coefficients, as signs and bit planes of magnitudes. The piece of a tile and a
// plane (docs/format.md, sections 13.4 and 13.5). Decoding a piece needs only higher planes of the same tile. So tiles
// are independent, and all positions of a piece can be decoded at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "progressive/bit_stream.hpp"
#include "progressive/layout.hpp"
#include "stages/planes.hpp"

namespace pyfilter {

inline constexpr int kMostPlanes = 64, kClasses = 3;
inline constexpr std::uint32_t kNoOnes = 0, kDirect = 15, kMostRunBits = 13;
// Two bytes of modes, and for each position a bit of its class, a sign, or a bit of the previous plane.
inline constexpr std::size_t kMostPieceBytes = 2 + 3 * 4096 / 8 + 16;

struct alignas(64) TilePlanes {
  std::uint32_t plane[kMostPlanes][kTileWords];
  std::uint32_t sign[kTileWords], valid[kTileWords];
  std::uint32_t known[kTileWords];   // positions with a one in the planes above the piece's
  std::uint32_t before[kTileWords];  // positions with a one in the planes above the previous one
};

// Open positions, which may get their first one in a plane, by their number of significant neighbours: 0, 1, 2 or more.
struct alignas(64) PositionClasses {
  std::uint32_t mask[kClasses][kTileWords];
  std::uint32_t any[kClasses];  // a bit for each word with positions
};

// The bits of a class, side by side, and padding for bit streams.
inline constexpr std::uint32_t kTilePairs = kTileWords / 2;
struct ClassBits {
  std::uint64_t words[kTilePairs + kBitsPadding / 8];
};

// The arrangement of a tile's words: in a row, one below the other, or 16 to a slab.
enum class TileForm { line, plane, volume };

KFN TileForm form_of(const ProgressiveUnit& unit) {
  return unit.tile.z > 1 ? TileForm::volume : unit.tile.y > 1 ? TileForm::plane : TileForm::line;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Two words of a tile at once, word 2 * i in the low half.
KFN std::uint64_t pair_of(const std::uint32_t* words, std::uint32_t i) {
  if constexpr (std::endian::native == std::endian::little) {
    std::uint64_t pair;
    std::memcpy(&pair, words + 2 * i, sizeof pair);
    return pair;
  }
  return words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
}
KFN void add_to_pair(std::uint32_t* words, std::uint32_t i, std::uint64_t bits) {
  words[2 * i] |= static_cast<std::uint32_t>(bits);
  words[2 * i + 1] |= static_cast<std::uint32_t>(bits >> 32);
}

// Calls visit(i) for each pair of words in which a mask has bits; if most have, for all.
template <class Visit>
inline void visit_pairs(const std::uint32_t* mask, Visit&& visit) {
  std::uint64_t filled = filled_words(reinterpret_cast<const std::uint8_t*>(mask));
  if (count_bits(filled) > kTilePairs / 2) {
    for (std::uint32_t i = 0; i < kTilePairs; ++i) visit(i);
  } else {
    for (; filled != 0; filled &= filled - 1) visit(static_cast<std::uint32_t>(__builtin_ctzll(filled)));
  }
}

inline void put_masked(const std::uint32_t* words, const std::uint32_t* mask, BitsOut& to) {
  BitsOut out = to;  // a copy in registers
  visit_pairs(mask, [&](std::uint32_t i) {
    const std::uint64_t m = pair_of(mask, i);
    out.put(gather_bits(pair_of(words, i), m), count_bits(m));
  });
  to = out;
}
inline void take_masked(std::uint32_t* words, const std::uint32_t* mask, PaddedBitsIn& from) {
  PaddedBitsIn in = from;
  visit_pairs(mask, [&](std::uint32_t i) {
    const std::uint64_t m = pair_of(mask, i);
    add_to_pair(words, i, scatter_bits(in.take(count_bits(m)), m));
  });
  from = in;
}

// Counts one more neighbour: `one`: positions with at least one, `two`: with at least two.
KFN void add_neighbour(std::uint32_t more, std::uint32_t& one, std::uint32_t& two) {
  two |= one & more;
  one |= more;
}
// The open positions of a class.
KFN std::uint32_t class_mask(int c, std::uint32_t open, std::uint32_t one, std::uint32_t two) {
  return open & (c == 0 ? ~one : c == 1 ? one & ~two : two);
}

// The masks of all classes of positions in `t`.
inline void classify(const TilePlanes& t, TileForm form, PositionClasses& classes) {
  // slabs of 16 words with a word of zeros between them and a slab of zeros at either end, or one slab of 128
  constexpr std::uint32_t kSlab = 17, kPadding = kSlab + 1, kCopied = 16;
  std::uint32_t padded[kPadding + 9 * kSlab + kPadding];
  const std::uint32_t words = form == TileForm::volume ? kCopied : kTileWords;
  std::memset(padded, 0, kPadding * sizeof *padded);
  for (std::uint32_t w = 0, to = kPadding; w < kTileWords; w += kCopied) {
    std::memcpy(padded + to, t.known + w, kCopied * sizeof *padded);
    to += kCopied;
    if ((w + kCopied) % words == 0) padded[to++] = 0;
  }
  std::memset(padded + kPadding + 8 * kSlab, 0, (kSlab + kPadding) * sizeof *padded);
  std::uint32_t any[kClasses] = {};
  const auto visit = [&](std::uint32_t first, const std::uint32_t* known, std::uint32_t n, auto neighbours) {
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint32_t one, two;
      neighbours(known + i, one, two);
      const std::uint32_t open = t.valid[first + i] & ~known[i];
      for (int c = 0; c < kClasses; ++c) any[c] |= classes.mask[c][first + i] = class_mask(c, open, one, two);
    }
  };
  if (form == TileForm::line) {
    visit(0, padded + kPadding, kTileWords, [&](const std::uint32_t* k, std::uint32_t& one, std::uint32_t& two) {
      one = *k << 1 | k[-1] >> 31;
      two = 0;
      add_neighbour(*k >> 1 | k[1] << 31, one, two);
    });
  } else if (form == TileForm::plane) {
    visit(0, padded + kPadding, kTileWords, [&](const std::uint32_t* k, std::uint32_t& one, std::uint32_t& two) {
      one = *k << 1;
      two = 0;
      add_neighbour(*k >> 1, one, two);
      add_neighbour(k[-1], one, two);
      add_neighbour(k[1], one, two);
    });
  } else {
    for (std::uint32_t s = 0; s < 8; ++s) {
      visit(16 * s, padded + kPadding + s * kSlab, 16,
            [&](const std::uint32_t* k, std::uint32_t& one, std::uint32_t& two) {
              one = *k << 1;
              two = 0;
              add_neighbour(*k >> 1, one, two);
              add_neighbour(k[-1], one, two);
              add_neighbour(k[1], one, two);
              add_neighbour(*(k - kSlab), one, two);
              add_neighbour(*(k + kSlab), one, two);
            });
    }
  }
  for (int c = 0; c < kClasses; ++c) classes.any[c] = any[c];
}

// The mode of a class: runs of zeros with parameter 2^(mode - 1), or one bit a position.
KFN std::uint32_t choose_mode(std::uint32_t positions, std::uint32_t ones) {
  if (ones == 0) return kNoOnes;
  std::uint32_t best = positions, mode = kDirect;
  for (std::uint32_t k = 0; k <= kMostRunBits; ++k) {
    const std::uint32_t bits = (ones + 1) * (k + 1) + ((positions - ones) >> k);
    if (bits >= best) continue;
    best = bits;
    mode = k + 1;
  }
  return mode;
}

// Writes a class in the shortest mode. Returns the mode.
inline std::uint32_t put_class(const std::uint32_t* word, const std::uint32_t* mask, BitsOut& to) {
  std::uint32_t any = 0;
  for (std::uint32_t w = 0; w < kTileWords; ++w) any |= word[w] & mask[w];
  if (any == 0) return kNoOnes;
  std::uint64_t all = 0, of_ones = 0;  // as wide as pairs, so that counting vectorises
  for (std::uint32_t i = 0; i < kTilePairs; ++i) {
    const std::uint64_t m = pair_of(mask, i);
    all += count_bits(m);
    of_ones += count_bits(pair_of(word, i) & m);
  }
  const auto count = static_cast<std::uint32_t>(all), ones = static_cast<std::uint32_t>(of_ones);
  const std::uint32_t mode = choose_mode(count, ones);
  if (mode == kDirect) {
    put_masked(word, mask, to);
    return mode;
  }
  ClassBits bits;  // side by side
  BitsOut gathered(reinterpret_cast<std::uint8_t*>(bits.words));
  put_masked(word, mask, gathered);
  gathered.finish();
  const auto* const words = reinterpret_cast<const std::uint8_t*>(bits.words);
  BitsOut out = to;
  std::uint32_t next = 0;
  const auto put_one = [&](std::uint32_t one) {
    out.put_run(one - next, mode - 1);
    next = one + 1;
  };
#if defined(PYF_LEVEL_AVX512)
  // lists the positions first: the number of ones in a word is unpredictable, so a loop over them mispredicts its end
  std::uint16_t list[64 * kTilePairs + 32];
  const std::uint32_t listed = list_ones(words, (count + 63) / 64, list);
  for (std::uint32_t i = 0; i < listed; ++i) put_one(list[i]);
#else
  for (std::uint32_t at = 0; at < count; at += 64)
    for (auto left = load_le<std::uint64_t>(words + at / 8); left != 0; left &= left - 1)
      put_one(at + static_cast<std::uint32_t>(__builtin_ctzll(left)));
#endif
  if (next != count) out.put_run(count - next, mode - 1);
  to = out;
  return mode;
}

// Writes the piece of plane `p` of a tile, -1 for the last; advances t.known and t.before. Returns its size, 0 for an
// empty piece.
inline std::size_t encode_piece(TilePlanes& t, TileForm form, int p, PositionClasses& classes, std::uint8_t* to) {
  if (p < 0) {
    std::uint32_t any = 0;
    for (std::uint32_t w = 0; w < kTileWords; ++w) any |= t.before[w];
    if (any == 0) return 0;
    BitsOut last(to);
    put_masked(t.plane[0], t.before, last);
    return last.finish();
  }
  std::uint32_t* const plane = t.plane[p];
  std::uint32_t any = 0, any_known = 0;
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    any |= plane[w] & ~t.known[w];
    any_known |= t.before[w];
  }
  std::size_t size = 0;
  if ((any | any_known) != 0) {
    std::uint32_t modes = 0;
    BitsOut out(to + 2);
    if (any != 0) {
      classify(t, form, classes);
      for (int c = 0; c < kClasses; ++c)
        if (classes.any[c] != 0) modes |= put_class(plane, classes.mask[c], out) << (4 * c);
    }
    store_le(to, static_cast<std::uint16_t>(modes));
    if (any != 0) {
      std::uint32_t first[kTileWords];
      for (std::uint32_t w = 0; w < kTileWords; ++w) first[w] = plane[w] & ~t.known[w];
      put_masked(t.sign, first, out);
    }
    if (any_known != 0) put_masked(t.plane[p + 1], t.before, out);
    size = 2 + out.finish();
  }
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    t.before[w] = t.known[w];
    t.known[w] |= plane[w];
  }
  return size;
}

// Runs to the bits of a class of `count` positions, side by side.
inline bool take_runs(std::uint32_t count, std::uint32_t k, PaddedBitsIn& from, ClassBits& bits) {
  PaddedBitsIn in = from;
  std::memset(bits.words, 0, (count + 63) / 64 * sizeof *bits.words + kBitsPadding);
  const std::uint64_t low = (std::uint64_t{1} << k) - 1;
  std::uint32_t at = 0;
  const auto put_one = [&](std::uint64_t run) {  // false after the last run
    if (run == count - at) {
      at = count;
      return false;
    }
    at += static_cast<std::uint32_t>(run);
    bits.words[at / 64] |= std::uint64_t{1} << (at % 64);
    return ++at != count;
  };
  while (at != count) {
    std::uint64_t held = in.peek();
    std::uint32_t taken = 0;
    for (bool more = true; more && held != 0;) {  // all complete runs
      const auto zeros = static_cast<std::uint32_t>(__builtin_ctzll(held)), length = zeros + 1 + k;
      if (taken + length > PaddedBitsIn::kPeeked) break;
      const std::uint64_t run = static_cast<std::uint64_t>(zeros) << k | (held >> zeros >> 1 & low);
      if (run > count - at) return false;
      held = held >> zeros >> 1 >> k;
      taken += length;
      more = put_one(run);
    }
    in.skip(taken);
    if (taken != 0) continue;
    const std::uint32_t run = in.take_run(k, count - at);
    if (run > count - at) return false;
    put_one(run);
  }
  from = in;
  return true;
}

// Scratch memory for decoding a piece: a padded copy, so that reads beyond its end are valid.
struct PieceScratch {
  PositionClasses classes;
  ClassBits bits;
  std::uint8_t bytes[65536 + kBitsPadding];
};

// The inverse: fills plane `p`, signs, and the bits of the previous plane. False if the bytes are no piece; they are
// fewer than 65536.
inline bool decode_piece(TilePlanes& t, TileForm form, int p, PieceScratch& scratch, const std::uint8_t* from,
                         std::size_t size) {
  std::uint32_t any_known = 0;
  for (std::uint32_t w = 0; w < kTileWords; ++w) any_known |= t.before[w];
  if (size != 0) {
    std::memcpy(scratch.bytes, from, size);
    std::memset(scratch.bytes + size, 0, kBitsPadding);
  }
  if (p < 0) {
    if (any_known == 0 || size == 0) return size == 0 && any_known == 0;
    PaddedBitsIn last(scratch.bytes, size);
    take_masked(t.plane[0], t.before, last);
    return last.at_end();
  }
  std::uint32_t* const plane = t.plane[p];
  if (size != 0) {
    if (size < 2) return false;
    const std::uint32_t modes = load_le<std::uint16_t>(from);
    if (modes >> (4 * kClasses) != 0) return false;
    PaddedBitsIn in(scratch.bytes + 2, size - 2);
    if (modes != 0) {
      classify(t, form, scratch.classes);
      for (int c = 0; c < kClasses; ++c) {
        const std::uint32_t mode = modes >> (4 * c) & 15, *const mask = scratch.classes.mask[c];
        if (mode == kDirect) {
          take_masked(plane, mask, in);
        } else if (mode != kNoOnes) {
          std::uint64_t count = 0;
          for (std::uint32_t i = 0; i < kTilePairs; ++i) count += count_bits(pair_of(mask, i));
          if (!take_runs(static_cast<std::uint32_t>(count), mode - 1, in, scratch.bits)) return false;
          PaddedBitsIn bits(scratch.bits.words, sizeof scratch.bits.words - kBitsPadding);
          take_masked(plane, mask, bits);
        }
      }
      take_masked(t.sign, plane, in);
    }
    if (any_known != 0) take_masked(t.plane[p + 1], t.before, in);
    if (!in.at_end()) return false;
  } else if (any_known != 0) {
    return false;
  }
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    t.before[w] = t.known[w];
    t.known[w] |= plane[w];
  }
  return true;
}

// After the piece of plane `p` the lower bits are unknown. Sets the highest of them, so that values are in the middle
// of their interval. Not if `p` is -1; positions without a one stay 0.
inline void put_middles(TilePlanes& t, int p) {
  if (p < 0) return;
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    const std::uint32_t first = t.plane[p][w] & ~t.before[w];  // t.before: significant before plane p
    if (p > 0) t.plane[p - 1][w] = first;
    t.plane[p][w] |= t.before[w];
  }
}

// A position in a unit, in tiled coordinates.
struct TilePosition {
  std::uint64_t z = 0, y = 0, x = 0;

  KFN std::uint64_t number(const ProgressiveUnit& unit) const { return (z * unit.tiled.y + y) * unit.tiled.x + x; }
};

// The first position of a tile.
KFN TilePosition tile_origin(const ProgressiveUnit& unit, std::uint64_t tile) {
  const std::uint64_t row = tile / unit.grid.x;
  return {row / unit.grid.y * unit.tile.z, row % unit.grid.y * unit.tile.y, tile % unit.grid.x * unit.tile.x};
}
// The first position of word `w` of the tile at `origin`, and how many of its positions are in the unit (0 to 32).
KFN TilePosition word_position(const ProgressiveUnit& unit, const TilePosition& origin, std::uint32_t w,
                               std::uint32_t* count) {
  const TileForm form = form_of(unit);
  const TilePosition position{origin.z + (form == TileForm::volume ? w / 16 : 0),
                              origin.y + (form == TileForm::volume  ? w % 16
                                          : form == TileForm::plane ? w
                                                                    : 0),
                              origin.x + (form == TileForm::line ? 32 * std::uint64_t{w} : 0)};
  const Extents shape = unit.tiled;
  const bool inside = position.z < shape.z && position.y < shape.y && position.x < shape.x;
  const std::uint64_t left = inside ? shape.x - position.x : 0;
  *count = left < 32 ? static_cast<std::uint32_t>(left) : 32;
  return position;
}
// The same by the tile's number: the index of the position, undefined if `count` is 0.
KFN std::uint64_t word_position(const ProgressiveUnit& unit, std::uint64_t tile, std::uint32_t w,
                                std::uint32_t* count) {
  const std::uint64_t number = word_position(unit, tile_origin(unit, tile), w, count).number(unit);
  return *count != 0 ? number : 0;
}

PYF_END_TARGET
