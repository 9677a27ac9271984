// SPDX-License-Identifier: BSD-3-Clause
// The choice of a chunk's predictor: the one with the fewest bits for a sample of tiles spread evenly over the chunk.
// Only integers are summed, so evaluation order, threads and devices do not change the choice. The choice changes the
// ratio, never the bound.
#pragma once

#include <bit>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "core/types.hpp"
#include "stages/count_log.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/plan.hpp"

namespace pyfilter {

// Candidates in order of preference: among equals the first wins. So sparse data whose sample has no differences gets
// the predictor that is best for such data.
constexpr KFN Predictor predictor_at(int candidate) {
  switch (candidate) {
    case 0:
      return {kVolume, 3};
    case 1:
      return {kPlane, 2};
    case 2:
      return {kVolume, 2};
    case 3:
      return {kVolume, 1};
    case 4:
      return {kPlane, 1};
    case 5:
      return {kChain, 1};
    case 6:
      return {kChain, 0};
    default:
      return {kColumns, 1};
  }
}
inline constexpr std::uint64_t kMostColumns = 16;  // the most columns for which "auto" tries kColumns

// Whether a candidate matches the request.
KFN bool is_candidate(const Predictor& p, int asked, int rank, std::uint64_t columns) {
  if (asked == kChain) return p.tile_shape == kChain && p.order == 1;
  if (asked != kAskAny && asked != kAskFast) return p.tile_shape == asked;
  if (p.tile_shape == kChain) return true;
  if (p.tile_shape == kColumns) return rank >= 2 && columns <= kMostColumns;
  return rank >= p.tile_shape;
}

inline void find_candidates(const Request& request, bool (&open)[kCandidates]) {
  const int rank = request.shape.rank;
  const std::uint64_t columns = rank == 0 ? 1 : request.shape.dims[static_cast<std::size_t>(rank - 1)];
  for (int c = 0; c < kCandidates; ++c) open[c] = is_candidate(predictor_at(c), request.parameters[0], rank, columns);
}

// The number of sampled values. Every candidate is tried on the tiles around the same values, spread over the chunk by
// the golden ratio. In front of an entropy coder small chunks get more samples, since the slower coder hides their
// cost.
inline constexpr std::uint64_t kMostSamples = 16;
KFN std::uint64_t sample_count(std::uint64_t values, bool entropy) {
  const std::uint64_t tiles = values / 4096;
  if (tiles < (entropy ? 8 : 4)) return tiles + 1;
  const std::uint64_t least = entropy ? 8 : 4, wanted = tiles / (entropy ? 4 : 8);
  return wanted < least ? least : wanted < kMostSamples ? wanted : kMostSamples;
}

KFN std::uint64_t sampled_value(std::uint64_t values, std::uint64_t k) {
  const std::uint64_t fraction = (2 * k + 1) * 0x4F1BBCDCBFA53E0Bull;
#if defined(__CUDA_ARCH__)
  return __umul64hi(fraction, values);
#else
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(fraction) * values >> 64);
#endif
}

// Bits of a block with the given widest residuals.
template <class Code>
KFN std::uint32_t block_cost(Code widest, Code second, bool exceptions) {
  const auto plain = 32 * static_cast<std::uint32_t>(bit_width(widest));
  const auto split = 32 * static_cast<std::uint32_t>(bit_width(second)) + kExceptionCost;
  return exceptions && split < plain ? split : plain;
}
// In front of an entropy coder a difference is its sign and its magnitude. That one is the same for both signs: the
// tables know the signs of the whole chunk, but not that those of a place agree.
template <class Code>
KFN Code magnitude_of(Code difference) {
  return difference >> (8 * sizeof(Code) - 1) != 0 ? Code{0} - difference : difference;
}
// The width of a magnitude, at most 31. It is a binary32's exponent, which vectorises; the comparison of predictors
// needs no exact number.
template <class Code>
KFN std::uint32_t coded_width(Code magnitude) {
  const Code capped = magnitude < Code{1} << 30 ? magnitude : Code{1} << 30;
  const auto real = static_cast<float>(static_cast<std::int32_t>(capped));
  return capped != 0 ? (std::bit_cast<std::uint32_t>(real) >> 23) - 126 : 0;
}
// coded_width() for magnitudes below 2^23, plus 126: the exponent of magnitude + 1/2, made by an addition.
inline constexpr std::uint32_t kSmallWidthBits = 23, kSmallWidthBase = 126;
KFN std::uint32_t small_coded_width(std::uint32_t magnitude) {
  const float real = std::bit_cast<float>(magnitude | 0x4B000000u) - 8388607.5f;  // 2^23 + magnitude - (2^23 - 1/2)
  return std::bit_cast<std::uint32_t>(real) >> 23;
}

// The differences of a block in one word: the sum of their widths, from bit 14 on how many are not 0, from bit 20 on
// how many have a magnitude above 1, from bit 26 on how many are negative.
inline constexpr std::uint32_t kNonzeroAt = 14, kAboveOneAt = 20, kNegativeAt = 26;
KFN std::uint32_t width_note(std::uint32_t width, std::uint32_t negative) {
  return width + (width > 0 ? 1u << kNonzeroAt : 0) + (width > 1 ? 1u << kAboveOneAt : 0) + (negative << kNegativeAt);
}
template <class Code>
KFN std::uint32_t width_notes(const Code (&difference)[32]) {
  std::uint32_t notes = 0;
  for (const Code d : difference)
    notes += width_note(coded_width(magnitude_of(d)), static_cast<std::uint32_t>(d >> (8 * sizeof(Code) - 1)));
  return notes;
}

// A count's part of an entropy, in bits times kLogOne.
template <class Count>
KFN Count entropy_term(Count count) {
  return count != 0 ? count * static_cast<Count>(log2_of_count(count)) : Count{0};
}

// Sums over the blocks of a tile that are not all zero; others cost next to nothing.
struct CodedSums {
  std::uint32_t blocks = 0, widths = 0, nonzero = 0, above_one = 0, negative = 0;

  KFN void add(std::uint32_t block) {
    blocks += block != 0 ? 1 : 0;
    widths += block & ((1u << kNonzeroAt) - 1);
    nonzero += block >> kNonzeroAt & 63;
    above_one += block >> kAboveOneAt & 63;
    negative += block >> kNegativeAt;
  }
  // Bits of the tile but for signs: the entropy of zeros, ones and larger magnitudes, and all but the first bit of the
  // latter.
  KFN std::uint32_t bits() const {
    const std::uint32_t all = 32 * blocks, ones = nonzero - above_one;
    const std::uint32_t entropy =
        entropy_term(all) - entropy_term(all - nonzero) - entropy_term(ones) - entropy_term(above_one);
    return entropy / kLogOne + widths - nonzero;
  }
  // The tile's part of a candidate's cost, scaled from its `inside` values to 4096. Parts of tiles are added: bits,
  // from bit 30 on differences that are not 0, from bit 47 on negative ones.
  KFN std::uint64_t cost(std::uint32_t inside) const;
};
inline constexpr std::uint32_t kSignsAt = 30, kNegativeSignsAt = 47, kSignsBits = 17;
static_assert(kMostSamples * 4096 < 1u << kSignsBits);

KFN std::uint64_t CodedSums::cost(std::uint32_t inside) const {
  const auto scaled = [&](std::uint32_t count) { return inside == 4096 ? count : count * 4096 / inside; };
  const auto limited = [](std::uint32_t count, std::uint32_t most) { return count < most ? count : most; };
  const std::uint32_t signs = limited(scaled(nonzero), 4096);  // blocks may lie in the tile in part
  return scaled(bits()) | std::uint64_t{signs} << kSignsAt |
         std::uint64_t{limited(scaled(negative), signs)} << kNegativeSignsAt;
}
// The bits of a candidate: those of its tiles, and the entropy of all signs.
KFN std::uint64_t coded_bits(std::uint64_t cost) {
  const auto signs = static_cast<std::uint32_t>(cost >> kSignsAt & ((1u << kSignsBits) - 1)),
             negative = static_cast<std::uint32_t>(cost >> kNegativeSignsAt);
  return (cost & ((1u << kSignsAt) - 1)) +
         (entropy_term(signs) - entropy_term(negative) - entropy_term(signs - negative)) / kLogOne;
}

// Bits of a tile, scaled from its `inside` values to 4096. They are the blocks' bits, the planes of widths between the
// narrowest and the widest, and the head.
KFN std::uint32_t tile_cost(std::uint32_t bits, std::uint32_t narrowest, std::uint32_t widest, std::uint32_t inside) {
  if (widest == 0) return bits;
  const auto rate_planes = static_cast<std::uint32_t>(bit_width(widest - narrowest));
  const std::uint32_t all = bits + 64 + 8 * static_cast<std::uint32_t>(kPackedPlaneBytes) * rate_planes;
  return inside == 4096 ? all : all * 4096 / inside;
}

// The candidate of the fewest bits. With kAskFast: the chain, unless it takes a third more bits than the best.
template <class Cost>
KFN int best_candidate(const bool* open, const Cost* costs, bool entropy, int asked) {
  constexpr int kFast = 5;
  std::uint64_t bits[kCandidates];
  for (int c = 0; c < kCandidates; ++c) bits[c] = entropy ? coded_bits(costs[c]) : costs[c];
  int best = -1;
  for (int c = 0; c < kCandidates; ++c)
    if (open[c] && (best < 0 || bits[c] < bits[best])) best = c;
  return asked == kAskFast && bits[best] * 4 >= bits[kFast] * 3 ? kFast : best;
}

}  // namespace pyfilter
