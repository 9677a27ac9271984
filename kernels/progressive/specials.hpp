// SPDX-License-Identifier: BSD-3-Clause
// Values without an integer (docs/format.md, section 13.7): the mask of missing values, which are all the sentinel, and
// the verbatim values with their positions. They come before all segments, so every reader has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/error_text.hpp"
#include "core/status.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "progressive/bit_stream.hpp"
#include "progressive/head.hpp"
#include "progressive/scan.hpp"

namespace pyfilter {

inline constexpr std::uint64_t kMaskPiece = 32768;
inline constexpr std::size_t kMostMaskBytes = 1 + kMaskPiece / 8 + 32;

KFN std::uint64_t mask_pieces(std::uint64_t values) { return (values + kMaskPiece - 1) / kMaskPiece; }

inline constexpr std::uint64_t mask_words(std::uint64_t values) { return (values + 63) / 64; }
KFN bool mask_bit(const std::uint64_t* mask, std::uint64_t i) { return (mask[i / 64] >> (i % 64) & 1) != 0; }

// The k of the code of runs, for a piece of `count` values with `ones` changes.
KFN std::uint32_t choose_mask_code(std::uint32_t count, std::uint32_t ones) {
  std::uint32_t k = 0, best = ~0u;
  for (std::uint32_t tried = 0; tried <= 15; ++tried) {
    const std::uint32_t bits = (ones + 1) * (tried + 1) + ((count - ones) >> tried);
    if (bits < best) best = bits, k = tried;
  }
  return k;
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// The changes of the mask in values first to last - 1. A change differs from the row above, in the first row from the
// left neighbour. One bit a value; returns the number of ones.
template <class Missing>
inline std::uint32_t find_changes(Missing&& missing, std::uint64_t first, std::uint64_t last, std::uint64_t row,
                                  std::uint64_t* words) {
  std::uint32_t ones = 0;
  for (std::uint64_t at = first; at < last; at += 64) {
    const std::uint64_t n = last - at < 64 ? last - at : 64;
    std::uint64_t word = 0;
    if (at >= row) {
      alignas(64) std::uint8_t changes[64] = {};
      if (n == 64) {  // vectorised
        for (std::uint64_t i = 0; i < 64; ++i) changes[i] = missing(at + i) != missing(at + i - row) ? 1 : 0;
      } else {
        for (std::uint64_t i = 0; i < n; ++i) changes[i] = missing(at + i) != missing(at + i - row) ? 1 : 0;
      }
      for (std::uint64_t i = 0; i < 64; i += 8)  // gathers the lowest bits of eight bytes
        word |= load_le<std::uint64_t>(changes + i) * 0x0102040810204080u >> 56 << i;
    } else {
      for (std::uint64_t i = at; i < at + n; ++i) {
        const bool above = i >= row ? missing(i - row) : i != 0 && missing(i - 1);
        word |= static_cast<std::uint64_t>(missing(i) != above) << (i - at);
      }
    }
    words[(at - first) / 64] = word;
    ones += count_bits(word);
  }
  return ones;
}

// Writes a piece of the mask; returns its size, 0 if nothing changes in it.
template <class Missing>
inline std::size_t encode_mask(Missing&& missing, std::uint64_t first, std::uint64_t last, std::uint64_t row,
                               std::uint8_t* to) {
  std::uint64_t words[kMaskPiece / 64];
  const auto count = static_cast<std::uint32_t>(last - first);
  const std::uint32_t ones = find_changes(missing, first, last, row, words);
  if (ones == 0) return 0;
  const std::uint32_t k = choose_mask_code(count, ones);
  to[0] = static_cast<std::uint8_t>(k);
  BitsOut out(to + 1);
  std::uint32_t next = 0;
  for (std::uint32_t w = 0; w < mask_words(count); ++w) {
    for (std::uint64_t word = words[w]; word != 0; word &= word - 1) {
      const std::uint32_t at = 64 * w + static_cast<std::uint32_t>(__builtin_ctzll(word));
      out.put_run(at - next, k);
      next = at + 1;
    }
  }
  if (next != count) out.put_run(count - next, k);
  return 1 + out.finish();
}

// The inverse: reads the changes into zeroed bits.
inline bool decode_mask(const std::uint8_t* from, std::size_t size, std::uint64_t first, std::uint64_t last,
                        std::uint64_t* mask) {
  if (size == 0) return true;
  if (size < 2 || from[0] > 15) return false;
  BitsIn in(from + 1, size - 1);
  auto left = static_cast<std::uint32_t>(last - first);
  std::uint64_t at = first;
  while (left != 0) {
    const std::uint32_t run = in.take_run(from[0], left);
    if (run > left) return false;
    left -= run;
    if (left == 0) break;
    at += run;
    mask[at / 64] |= std::uint64_t{1} << (at % 64);
    ++at;
    --left;
  }
  return in.at_end();
}

// Turns changes into the mask; returns the number of missing values.
inline std::uint64_t add_changes(std::uint64_t* mask, std::uint64_t count, std::uint64_t row) {
  std::uint64_t i = 1;
  for (; i < count && (i < row || row < 64 || i % 64 != 0); ++i)
    mask[i / 64] ^= static_cast<std::uint64_t>(mask_bit(mask, i >= row ? i - row : i - 1)) << (i % 64);
  for (; i < count; i += 64) {  // whole words: rows have at least 64 values here, so no word depends on itself
    const std::uint64_t from = i - row, low = mask[from / 64] >> (from % 64);
    mask[i / 64] ^= from % 64 == 0 ? low : low | mask[from / 64 + 1] << (64 - from % 64);
  }
  std::uint64_t found = 0;
  if (count % 64 != 0) mask[count / 64] &= (std::uint64_t{1} << (count % 64)) - 1;
  for (std::uint64_t w = 0; w < mask_words(count); ++w) found += count_bits(mask[w]);
  return found;
}

// Writes the section of special values, `missing` and `verbatim` of them; nothing if there are none. Returns its size.
// Writes as many whole pieces as fit `capacity`: if that is less than its size, it must be written again.
template <class T>
inline std::uint64_t write_specials(const void* values, const KindOf<T>& kind, std::uint64_t count, std::uint64_t row,
                                    std::uint64_t missing, std::uint64_t verbatim, std::uint8_t* to,
                                    std::uint64_t capacity) {
  if (missing == 0 && verbatim == 0) return 0;
  std::uint64_t size = 0;
  const auto put = [&](const void* from, std::uint64_t bytes) {
    if (size + bytes <= capacity) std::memcpy(to + size, from, static_cast<std::size_t>(bytes));
    size += bytes;
  };
  std::uint8_t counts[16];
  store_le(counts, missing);
  store_le(counts + 8, verbatim);
  put(counts, sizeof counts);
  if (missing != 0 && missing != count) {
    const std::uint64_t pieces = mask_pieces(count), sizes_at = size;
    size += 2 * pieces;
    std::uint8_t piece[kMostMaskBytes];
    const auto is_missing = [&](std::uint64_t i) { return kind.is_missing(value_at<T>(values, i)); };
    for (std::uint64_t p = 0; p < pieces; ++p) {
      const std::uint64_t last = (p + 1) * kMaskPiece < count ? (p + 1) * kMaskPiece : count;
      const std::size_t bytes = encode_mask(is_missing, p * kMaskPiece, last, row, piece);
      if (sizes_at + 2 * p + 2 <= capacity) store_le(to + sizes_at + 2 * p, static_cast<std::uint16_t>(bytes));
      put(piece, bytes);
    }
  }
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; verbatim != 0 && i < count; ++i) {
    const T value = value_at<T>(values, i);
    if (kind(value) != kVerbatim) continue;
    std::uint8_t gap[kMostVarintBytes];
    put(gap, static_cast<std::uint64_t>(put_varint(gap, i - next) - gap));
    put(&value, sizeof value);
    next = i + 1;
  }
  return size;
}

// Reads the section of special values: the mask of missing ones into zeroed bits, and the verbatim ones by
// visit(position, bytes of the value).
template <class Visit>
inline Status read_specials(const std::uint8_t* from, std::uint64_t size, std::uint64_t count, std::uint64_t row,
                            bool has_sentinel, std::size_t value_bytes, std::uint64_t* mask, Visit&& visit) {
  const auto bad = [] { return fail(Code::corrupt, "corrupt frame: its section of special values is invalid"); };
  if (size < 16) return bad();
  const auto missing = load_le<std::uint64_t>(from), verbatim = load_le<std::uint64_t>(from + 8);
  if (missing > count || verbatim > count - missing || (missing != 0 && !has_sentinel)) return bad();
  if (missing == 0 && verbatim == 0) return bad();
  std::uint64_t at = 16;
  if (missing == count) {
    std::memset(mask, 0xFF, static_cast<std::size_t>(mask_words(count)) * sizeof *mask);
  } else if (missing != 0) {
    const std::uint64_t pieces = mask_pieces(count);
    if ((size - at) / 2 < pieces) return bad();
    const std::uint8_t* const sizes = from + at;
    at += 2 * pieces;
    for (std::uint64_t p = 0; p < pieces; ++p) {
      const std::uint64_t last = (p + 1) * kMaskPiece < count ? (p + 1) * kMaskPiece : count;
      const auto bytes = load_le<std::uint16_t>(sizes + 2 * p);
      if (bytes > size - at || !decode_mask(from + at, bytes, p * kMaskPiece, last, mask)) return bad();
      at += bytes;
    }
    if (add_changes(mask, count, row) != missing) return bad();
  }
  std::uint64_t next = 0;
  const std::uint8_t *value = from + at, *const end = from + size;
  for (std::uint64_t i = 0; i < verbatim; ++i) {
    std::uint64_t gap;
    value = take_varint(value, end, &gap);
    if (value == nullptr || gap >= count - next || static_cast<std::size_t>(end - value) < value_bytes) return bad();
    next += gap;
    if (mask_bit(mask, next)) return bad();
    visit(next, value);
    ++next;
    value += value_bytes;
  }
  return value == end ? kOk : bad();
}

PYF_END_TARGET
