// SPDX-License-Identifier: BSD-3-Clause
// A tile of a unit: 128 words of 32 coefficients, their signs and the bit planes of their magnitudes, and the piece of
// a tile and a plane (docs/format.md, sections 13.4 and 13.5). What a piece is decoded with comes from planes above its
// own and from the tile alone, so tiles are independent, and within one every position is known at once.
#pragma once

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
// Two bytes of modes, a bit for each position that a class holds, or a sign, or a bit of the plane before.
inline constexpr std::size_t kMostPieceBytes = 2 + 3 * 4096 / 8 + 16;

struct TilePlanes {
  std::uint32_t plane[kMostPlanes][kTileWords];
  std::uint32_t sign[kTileWords], valid[kTileWords];
  std::uint32_t known[kTileWords];   // positions with a one in the planes above that of the piece
  std::uint32_t before[kTileWords];  // and in those above the one before it
};

// Positions that may get their first one in a plane, by how many of their neighbours have had theirs: 0, 1, 2 or more.
struct PositionClasses {
  std::uint32_t mask[kClasses][kTileWords];
  std::uint32_t count[kClasses];
};

// How words of a tile lie to each other: in a row, one below the other, or 16 to a slab.
enum class TileForm { line, plane, volume };

KFN TileForm form_of(const ProgressiveUnit& unit) {
  return unit.tile.z > 1 ? TileForm::volume : unit.tile.y > 1 ? TileForm::plane : TileForm::line;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// Two words of a tile at once, word 2 * i in the low half.
KFN std::uint64_t pair_of(const std::uint32_t* words, std::uint32_t i) {
  return words[2 * i] | static_cast<std::uint64_t>(words[2 * i + 1]) << 32;
}
inline constexpr std::uint32_t kTilePairs = kTileWords / 2;

inline void put_masked(const std::uint32_t* words, const std::uint32_t* mask, BitsOut& out) {
  for (std::uint32_t i = 0; i < kTilePairs; ++i) {
    const std::uint64_t m = pair_of(mask, i);
    out.put_long(gather_bits(pair_of(words, i), m), count_bits(m));
  }
}
inline void take_masked(std::uint32_t* words, const std::uint32_t* mask, BitsIn& in) {
  for (std::uint32_t i = 0; i < kTilePairs; ++i) {
    const std::uint64_t m = pair_of(mask, i), bits = scatter_bits(in.take_long(count_bits(m)), m);
    words[2 * i] |= static_cast<std::uint32_t>(bits);
    words[2 * i + 1] |= static_cast<std::uint32_t>(bits >> 32);
  }
}

// Positions with one neighbour or more, and with two or more, and one neighbour of each besides.
KFN void add_neighbour(std::uint32_t more, std::uint32_t& one, std::uint32_t& two) {
  two |= one & more;
  one |= more;
}
// The open positions of each class.
KFN std::uint32_t class_mask(int c, std::uint32_t open, std::uint32_t one, std::uint32_t two) {
  return open & (c == 0 ? ~one : c == 1 ? one & ~two : two);
}

inline void classify(const TilePlanes& t, TileForm form, PositionClasses& classes) {
  // slabs of 16 words with a word of zeros between them and a slab of zeros at either end, or one slab of 128
  constexpr std::uint32_t kSlab = 17, kPadding = kSlab + 1;
  std::uint32_t padded[kPadding + 9 * kSlab + kPadding] = {};
  const std::uint32_t slabs = form == TileForm::volume ? 8 : 1, words = kTileWords / slabs;
  for (std::uint32_t s = 0; s < slabs; ++s)
    std::memcpy(padded + kPadding + s * kSlab, t.known + s * words, words * sizeof(std::uint32_t));
  std::uint32_t counts[kClasses] = {};
  const auto visit = [&](std::uint32_t first, const std::uint32_t* known, std::uint32_t n, auto neighbours) {
    for (std::uint32_t i = 0; i < n; ++i) {
      std::uint32_t one, two;
      neighbours(known + i, one, two);
      const std::uint32_t open = t.valid[first + i] & ~known[i];
      for (int c = 0; c < kClasses; ++c) classes.mask[c][first + i] = class_mask(c, open, one, two);
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
  for (int c = 0; c < kClasses; ++c)
    for (std::uint32_t i = 0; i < kTilePairs; ++i) counts[c] += count_bits(pair_of(classes.mask[c], i));
  for (int c = 0; c < kClasses; ++c) classes.count[c] = counts[c];
}

// How the ones of a class are stored: runs of zeros before them with 2^(mode - 1), or a bit a position.
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

inline void put_runs(const std::uint32_t* word, const std::uint32_t* mask, std::uint32_t k, BitsOut& out) {
  std::uint32_t run = 0;
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    const std::uint32_t positions = mask[w];
    std::uint32_t passed = 0;
    for (std::uint32_t ones = word[w] & positions; ones != 0; ones &= ones - 1) {
      const std::uint32_t rank = count_bits(positions & ((ones & (0u - ones)) - 1));
      out.put_run(run + rank - passed, k);
      run = 0;
      passed = rank + 1;
    }
    run += count_bits(positions) - passed;
  }
  if (run != 0) out.put_run(run, k);
}

// The piece of plane `p` of a tile, -1 for the last; t.known and t.before are moved on to the next. Returns its size, 0
// where there is nothing to say.
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
    std::uint32_t modes = 0, mode[kClasses] = {};
    if (any != 0) {
      classify(t, form, classes);
      for (int c = 0; c < kClasses; ++c) {
        std::uint32_t ones = 0;
        if (classes.count[c] == 0) continue;
        for (std::uint32_t i = 0; i < kTilePairs; ++i)
          ones += count_bits(pair_of(plane, i) & pair_of(classes.mask[c], i));
        mode[c] = choose_mode(classes.count[c], ones);
        modes |= mode[c] << (4 * c);
      }
    }
    store_le(to, static_cast<std::uint16_t>(modes));
    BitsOut out(to + 2);
    for (int c = 0; c < kClasses; ++c) {
      const std::uint32_t* const mask = classes.mask[c];
      if (mode[c] == kDirect) {
        put_masked(plane, mask, out);
      } else if (mode[c] != kNoOnes) {
        put_runs(plane, mask, mode[c] - 1, out);
      }
    }
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

inline bool take_runs(std::uint32_t* word, const std::uint32_t* mask, std::uint32_t count, std::uint32_t k,
                      BitsIn& in) {
  std::uint32_t w = 0, left = count, in_word = count_bits(mask[0]), passed = 0;  // positions, of this word and gone
  while (left != 0) {
    std::uint32_t run = in.take_run(k, left);
    if (run > left) return false;
    left -= run;
    if (left == 0) return true;
    while (run >= in_word - passed) {
      run -= in_word - passed;
      passed = 0;
      in_word = count_bits(mask[++w]);
    }
    passed += run;
    word[w] |= scatter_bits(1u << passed, mask[w]);
    ++passed;
    --left;
  }
  return true;
}

// And back: fills plane `p`, signs, and the bits of the plane before. False where the bytes are no piece.
inline bool decode_piece(TilePlanes& t, TileForm form, int p, PositionClasses& classes, const std::uint8_t* from,
                         std::size_t size) {
  std::uint32_t any_known = 0;
  for (std::uint32_t w = 0; w < kTileWords; ++w) any_known |= t.before[w];
  if (p < 0) {
    if (any_known == 0 || size == 0) return size == 0 && any_known == 0;
    BitsIn last(from, size);
    take_masked(t.plane[0], t.before, last);
    return last.at_end();
  }
  std::uint32_t* const plane = t.plane[p];
  if (size != 0) {
    if (size < 2) return false;
    const std::uint32_t modes = load_le<std::uint16_t>(from);
    if (modes >> (4 * kClasses) != 0) return false;
    BitsIn in(from + 2, size - 2);
    if (modes != 0) {
      classify(t, form, classes);
      for (int c = 0; c < kClasses; ++c) {
        const std::uint32_t mode = modes >> (4 * c) & 15, *const mask = classes.mask[c];
        if (mode == kDirect) {
          take_masked(plane, mask, in);
        } else if (mode != kNoOnes && !take_runs(plane, mask, classes.count[c], mode - 1, in)) {
          return false;
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

// After the piece of plane `p` the bits below it are not known: a one in the place of the highest of them, so that
// values lie in the middle of what they may be. Not where `p` is -1, and what has had no one yet is 0.
inline void put_middles(TilePlanes& t, int p) {
  if (p < 0) return;
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    const std::uint32_t first = t.plane[p][w] & ~t.before[w];  // t.before: what was known before plane p
    if (p > 0) t.plane[p - 1][w] = first;
    t.plane[p][w] |= t.before[w];
  }
}

// Where word `w` of tile number `tile` starts in the unit, and how many of its positions are in the unit (0 to 32).
KFN std::uint64_t word_place(const ProgressiveUnit& unit, std::uint64_t tile, std::uint32_t w, std::uint32_t* count) {
  const std::uint64_t tx = tile % unit.grid.x, ty = tile / unit.grid.x % unit.grid.y,
                      tz = tile / unit.grid.x / unit.grid.y;
  const TileForm form = form_of(unit);
  const std::uint64_t z = tz * unit.tile.z + (form == TileForm::volume ? w / 16 : 0);
  const std::uint64_t y = ty * unit.tile.y + (form == TileForm::volume ? w % 16 : form == TileForm::plane ? w : 0);
  const std::uint64_t x = tx * unit.tile.x + (form == TileForm::line ? 32 * std::uint64_t{w} : 0);
  *count = 0;
  const Extents shape = unit.tiled;
  if (z >= shape.z || y >= shape.y || x >= shape.x) return 0;
  const std::uint64_t left = shape.x - x;
  *count = left < 32 ? static_cast<std::uint32_t>(left) : 32;
  return (z * shape.y + y) * shape.x + x;
}

// Signs travel as the highest bit, which magnitudes do not need.
template <class Int>
inline void load_tile(const ProgressiveUnit& unit, const Int* coefficients, std::uint64_t tile, int planes,
                      TilePlanes& t) {
  using U = std::make_unsigned_t<Int>;
  constexpr int kBits = 8 * sizeof(Int);
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    std::uint32_t count;
    const Int* const from = coefficients + word_place(unit, tile, w, &count);
    t.valid[w] = count == 32 ? ~0u : (1u << count) - 1;
    t.known[w] = t.before[w] = 0;
    alignas(64) U bits[32] = {};
    const auto take = [&](std::uint32_t n) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const U negative = static_cast<U>(from[i] >> (kBits - 1)), d = static_cast<U>(from[i]);
        bits[i] = static_cast<U>((d ^ negative) - negative) | (negative << (kBits - 1));
      }
    };
    if (count == 32)
      take(32);
    else
      take(count);
    alignas(64) std::uint32_t words[kMostPlanes];
    words[kBits - 1] = 0;
    const U any = transpose_planes<1>(bits, ~0u, sizeof(Int) == 4, words, kMostPlanes);
    const int width = bit_width(static_cast<U>(any << 1 >> 1));
    t.sign[w] = any >> (kBits - 1) != 0 ? words[kBits - 1] : 0;
    for (int p = 0; p < width; ++p) t.plane[p][w] = words[p];
    for (int p = width; p < planes; ++p) t.plane[p][w] = 0;
  }
}

template <class Int>
inline void store_tile(const ProgressiveUnit& unit, Int* coefficients, std::uint64_t tile, int planes,
                       const TilePlanes& t) {
  using U = std::make_unsigned_t<Int>;
  constexpr int kBits = 8 * sizeof(Int);
  for (std::uint32_t w = 0; w < kTileWords; ++w) {
    std::uint32_t count;
    Int* const to = coefficients + word_place(unit, tile, w, &count);
    if (count == 0) continue;
    alignas(64) std::uint32_t words[kMostPlanes];
    std::uint32_t any = 0;
    for (int p = 0; p < planes; ++p) any |= words[p] = t.plane[p][w];
    alignas(64) U bits[32] = {};
    if (any != 0) {
      for (int p = planes; p < kBits - 1; ++p) words[p] = 0;
      words[kBits - 1] = t.sign[w];
      unpack_planes(reinterpret_cast<const std::uint8_t*>(words), kBits, bits);
    }
    const auto put = [&](std::uint32_t n) {
      for (std::uint32_t i = 0; i < n; ++i) {
        const U negative = static_cast<U>(static_cast<Int>(bits[i]) >> (kBits - 1));
        to[i] = static_cast<Int>(((bits[i] & (~U{0} >> 1)) ^ negative) - negative);
      }
    };
    if (count == 32)
      put(32);
    else
      put(count);
  }
}

PYF_END_TARGET
