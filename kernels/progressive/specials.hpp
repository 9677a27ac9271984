// SPDX-License-Identifier: BSD-3-Clause
// Values that no integer stands for (docs/format.md, section 13.7): the mask of missing ones, which all are the
// sentinel, and the others with their places. They come before all segments, so every reader has them.
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

namespace pyfilter {

inline constexpr std::uint64_t kMaskPiece = 32768;
inline constexpr std::size_t kMostMaskBytes = 1 + kMaskPiece / 8 + 32;
inline constexpr std::uint8_t kPlain = 0, kMissingValue = 1, kVerbatim = 2;  // of a value

inline std::uint64_t mask_pieces(std::uint64_t values) { return (values + kMaskPiece - 1) / kMaskPiece; }

// Whether the mask at `i` differs from what is before it: in the row above, in the first row to its left.
inline std::uint8_t mask_change(const std::uint8_t* kinds, std::uint64_t i, std::uint64_t row) {
  const std::uint8_t here = kinds[i] == kMissingValue;
  if (i >= row) return static_cast<std::uint8_t>(here ^ (kinds[i - row] == kMissingValue));
  return i == 0 ? here : static_cast<std::uint8_t>(here ^ (kinds[i - 1] == kMissingValue));
}

}  // namespace pyfilter

PYF_BEGIN_TARGET

// A piece of the mask: its size, 0 where nothing changes in it.
inline std::size_t encode_mask(const std::uint8_t* kinds, std::uint64_t first, std::uint64_t last, std::uint64_t row,
                               std::uint8_t* to) {
  std::uint32_t ones = 0;
  const auto count = static_cast<std::uint32_t>(last - first);
  for (std::uint64_t i = first; i < last; ++i) ones += mask_change(kinds, i, row);
  if (ones == 0) return 0;
  std::uint32_t k = 0, best = ~0u;
  for (std::uint32_t tried = 0; tried <= 15; ++tried) {
    const std::uint32_t bits = (ones + 1) * (tried + 1) + ((count - ones) >> tried);
    if (bits < best) best = bits, k = tried;
  }
  to[0] = static_cast<std::uint8_t>(k);
  BitsOut out(to + 1);
  std::uint32_t run = 0;
  for (std::uint64_t i = first; i < last; ++i) {
    if (mask_change(kinds, i, row) == 0) {
      ++run;
    } else {
      out.put_run(run, k);
      run = 0;
    }
  }
  if (run != 0) out.put_run(run, k);
  return 1 + out.finish();
}

// And back, into kinds that are 0.
inline bool decode_mask(const std::uint8_t* from, std::size_t size, std::uint64_t first, std::uint64_t last,
                        std::uint8_t* kinds) {
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
    kinds[at++] = kMissingValue;
    --left;
  }
  return in.at_end();
}

// The part of special values, of `missing` and `verbatim` of them; nothing where there are none. `to` == nullptr: only
// its size.
template <class T>
inline std::uint64_t write_specials(const T* values, const std::uint8_t* kinds, std::uint64_t count, std::uint64_t row,
                                    std::uint64_t missing, std::uint64_t verbatim, std::uint8_t* to) {
  if (missing == 0 && verbatim == 0) return 0;
  std::uint64_t size = 16;
  if (to != nullptr) {
    store_le(to, missing);
    store_le(to + 8, verbatim);
  }
  if (missing != 0 && missing != count) {
    const std::uint64_t pieces = mask_pieces(count), sizes_at = size;
    size += 2 * pieces;
    std::uint8_t piece[kMostMaskBytes];
    for (std::uint64_t p = 0; p < pieces; ++p) {
      const std::uint64_t last = (p + 1) * kMaskPiece < count ? (p + 1) * kMaskPiece : count;
      const std::size_t bytes = encode_mask(kinds, p * kMaskPiece, last, row, piece);
      if (to != nullptr) {
        store_le(to + sizes_at + 2 * p, static_cast<std::uint16_t>(bytes));
        std::memcpy(to + size, piece, bytes);
      }
      size += bytes;
    }
  }
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; verbatim != 0 && i < count; ++i) {
    if (kinds[i] != kVerbatim) continue;
    if (to != nullptr) {
      std::uint8_t* const at = put_varint(to + size, i - next);
      std::memcpy(at, values + i, sizeof(T));
    }
    size += varint_bytes(i - next) + sizeof(T);
    next = i + 1;
  }
  return size;
}

// Reads the part of special values: kinds of all values, and the verbatim ones by visit(position, bytes of the value).
template <class Visit>
inline Status read_specials(const std::uint8_t* from, std::uint64_t size, std::uint64_t count, std::uint64_t row,
                            bool has_sentinel, std::size_t value_bytes, std::uint8_t* kinds, Visit&& visit) {
  const auto bad = [] { return fail(Code::corrupt, "corrupt frame: its part of special values"); };
  if (size < 16) return bad();
  const auto missing = load_le<std::uint64_t>(from), verbatim = load_le<std::uint64_t>(from + 8);
  if (missing > count || verbatim > count - missing || (missing != 0 && !has_sentinel)) return bad();
  if (missing == 0 && verbatim == 0) return bad();
  std::uint64_t at = 16;
  if (missing == count) {
    std::memset(kinds, kMissingValue, static_cast<std::size_t>(count));
  } else if (missing != 0) {
    const std::uint64_t pieces = mask_pieces(count);
    if ((size - at) / 2 < pieces) return bad();
    const std::uint8_t* const sizes = from + at;
    at += 2 * pieces;
    for (std::uint64_t p = 0; p < pieces; ++p) {
      const std::uint64_t last = (p + 1) * kMaskPiece < count ? (p + 1) * kMaskPiece : count;
      const auto bytes = load_le<std::uint16_t>(sizes + 2 * p);
      if (bytes > size - at || !decode_mask(from + at, bytes, p * kMaskPiece, last, kinds)) return bad();
      at += bytes;
    }
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i != 0) kinds[i] ^= kinds[i >= row ? i - row : i - 1];
      found += kinds[i];
    }
    if (found != missing) return bad();
  }
  std::uint64_t next = 0;
  const std::uint8_t *value = from + at, *const end = from + size;
  for (std::uint64_t i = 0; i < verbatim; ++i) {
    std::uint64_t gap;
    value = take_varint(value, end, &gap);
    if (value == nullptr || gap >= count - next || static_cast<std::size_t>(end - value) < value_bytes) return bad();
    next += gap;
    if (kinds[next] != kPlain) return bad();
    kinds[next] = kVerbatim;
    visit(next, value);
    ++next;
    value += value_bytes;
  }
  return value == end ? kOk : bad();
}

PYF_END_TARGET
