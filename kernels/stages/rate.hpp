// SPDX-License-Identifier: BSD-3-Clause
// Rate codes: one byte with a block's numbers of bit planes and outlier bytes (docs/format.md, section 4.4).
#pragma once

#include <array>
#include <cstdint>

#include "core/target.hpp"

namespace pyfilter {

inline constexpr std::uint8_t kLastPlainRate = 246, kRateSentinel = 247, kRateVerbatim = 255;
// A special block's rate code is kRateSentinel + its masks, which are these bits.
inline constexpr unsigned kMaskSentinel = 1, kMaskNan = 2, kMaskVerbatim = 4;

struct Rate {
  std::uint8_t planes = 0, outlier_bytes = 0;
};

constexpr KFN bool is_special_rate(std::uint8_t code) { return code > kRateSentinel && code < kRateVerbatim; }

constexpr KFN Rate decode_rate(std::uint8_t code) {
  if (code < 200) {
    const std::uint8_t e = code % 8;
    return {static_cast<std::uint8_t>(code / 8), e == 7 ? std::uint8_t{8} : e};
  }
  if (code < 214)
    return {static_cast<std::uint8_t>(25 + (code - 200) / 2), static_cast<std::uint8_t>((code - 200) % 2)};
  if (code <= kLastPlainRate) return {static_cast<std::uint8_t>(32 + code - 214), 0};
  return {};
}

// The cheapest number of planes and outlier bytes for residuals of `width` bits and a first residual of `first_width`
// bits. A plane costs at least four bytes and shortens the outlier by one bit. Extra planes pay only where no rate code
// has enough outlier bytes.
constexpr KFN Rate choose_parts(int width, int first_width) {
  int planes = width;
  if (planes <= 24) {
    const int missing = first_width > planes ? first_width - planes : 0;
    const int bytes = (missing + 7) >> 3;
    return {static_cast<std::uint8_t>(planes), static_cast<std::uint8_t>(bytes >= 7 ? 8 : bytes)};
  }
  if (planes <= 31) {
    if (first_width - 8 > planes) planes = first_width - 8;
    if (planes <= 31)
      return {static_cast<std::uint8_t>(planes), first_width > planes ? std::uint8_t{1} : std::uint8_t{0}};
  }
  planes = width > first_width ? width : first_width;
  return {static_cast<std::uint8_t>(planes < 32 ? 32 : planes), 0};
}

constexpr KFN std::uint8_t rate_code(Rate parts) {
  if (parts.planes <= 24)
    return static_cast<std::uint8_t>(8 * parts.planes + (parts.outlier_bytes >= 7 ? 7 : parts.outlier_bytes));
  if (parts.planes <= 31) return static_cast<std::uint8_t>(200 + 2 * (parts.planes - 25) + parts.outlier_bytes);
  return static_cast<std::uint8_t>(214 + parts.planes - 32);
}

constexpr KFN std::uint8_t choose_rate(int width, int first_width) {
  return rate_code(choose_parts(width, first_width));
}

// The rate code of a special block of `values` values: `masks` kinds of masks, `verbatim` values of `value_bytes`
// bytes, and planes of rate `inner`. Masks are used if they are shorter than the verbatim block.
constexpr KFN std::uint8_t special_rate(bool only_sentinels, unsigned masks, unsigned verbatim, unsigned value_bytes,
                                        unsigned values, Rate inner) {
  if (only_sentinels) return kRateSentinel;
  const unsigned mask_count = (masks & 1) + (masks >> 1 & 1) + (masks >> 2);
  const unsigned bytes = 2 + inner.outlier_bytes + (mask_count + inner.planes) * (values / 8) + verbatim * value_bytes;
  return bytes < values * value_bytes ? static_cast<std::uint8_t>(kRateSentinel + masks) : kRateVerbatim;
}

inline constexpr std::array<Rate, 256> kRates = [] {
  std::array<Rate, 256> table{};
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = decode_rate(static_cast<std::uint8_t>(i));
  return table;
}();

}  // namespace pyfilter
