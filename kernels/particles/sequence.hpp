// SPDX-License-Identifier: BSD-3-Clause
// A sequence of numbers below 2^24 (docs/format.md, section 12.3): in groups of 32, `low` bits of each number as bit
// planes. The rest is unary, one bit stream for the whole sequence (Rice codes, as in Elias-Fano lists).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "particles/head.hpp"
#include "particles/key.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kMostGroups = kTileParticles / kGroup;

// The two candidates for a group's number of low bits: the bits of its mean, and one less. Computed from the sum of its
// numbers.
struct LowChoice {
  unsigned wide, narrow;

  KFN explicit LowChoice(std::uint32_t sum) {
    wide = static_cast<unsigned>(bit_width(sum / kGroup));
    narrow = wide != 0 ? wide - 1 : 0;
  }
  // Chooses by the sums of the quotients: fewer bits, the lower of equals.
  KFN bool takes_narrow(std::uint32_t wide_quotients, std::uint32_t narrow_quotients) const {
    return narrow_quotients + kGroup * narrow <= wide_quotients + kGroup * wide;
  }
};

// Low bits of a group, and the sum of its quotients. Numbers beyond the sequence's end are 0.
KFN unsigned choose_low(const std::uint32_t* numbers, std::uint32_t& quotients) {
  std::uint32_t sum = 0;  // below 2^29
  for (std::uint32_t i = 0; i < kGroup; ++i) sum += numbers[i];
  const LowChoice choice(sum);
  const auto sum_with = [&](unsigned low) {
    std::uint32_t all = 0;
    for (std::uint32_t i = 0; i < kGroup; ++i) all += numbers[i] >> low;
    return all;
  };
  const std::uint32_t wide = sum_with(choice.wide), narrow = sum_with(choice.narrow);
  const bool takes_narrow = choice.takes_narrow(wide, narrow);
  quotients = takes_narrow ? narrow : wide;
  return takes_narrow ? choice.narrow : choice.wide;
}

// A plan gives a sequence's size; writing follows.
struct SequencePlan : SequenceSize {
  std::uint8_t low[kMostGroups];
};

// `numbers` is rounded up to a multiple of 32.
inline void plan_sequence(std::uint32_t* numbers, std::uint32_t count, SequencePlan& plan) {
  plan.set_count(count);
  for (std::uint32_t i = count; i < plan.groups * kGroup; ++i) numbers[i] = 0;
  plan.unary_bits = count;
  plan.plane_words = 0;
  unsigned lowest = 31, highest = 0;
  for (std::uint32_t g = 0; g < plan.groups; ++g) {
    std::uint32_t quotients;
    const unsigned low = choose_low(numbers + g * kGroup, quotients);
    plan.low[g] = static_cast<std::uint8_t>(low);
    plan.unary_bits += quotients;
    plan.plane_words += low;
    lowest = low < lowest ? low : lowest;
    highest = low > highest ? low : highest;
  }
  plan.set_rates(lowest, highest);
}

// Writes a planned sequence. Returns its end.
inline std::uint8_t* write_sequence(const std::uint32_t* numbers, const SequencePlan& plan, std::uint8_t* out) {
  store_le(out, plan.head());
  out += 4;
  for (unsigned p = 0; p < plan.rate_planes; ++p) {
    for (std::uint32_t w = 0; w < plan.mask_words(); ++w) {
      std::uint32_t mask = 0;
      for (std::uint32_t g = 32 * w; g < plan.groups && g < 32 * (w + 1); ++g)
        mask |= ((plan.low[g] - plan.base) >> p & 1) << g % 32;
      store_le(out, mask);
      out += 4;
    }
  }
  std::uint32_t planes[32];
  for (std::uint32_t g = 0; g < plan.groups; ++g) {
    const unsigned low = plan.low[g];
    if (low == 0) continue;
    std::uint32_t remainders[kGroup];
    for (std::uint32_t i = 0; i < kGroup; ++i) remainders[i] = numbers[g * kGroup + i] & ((1u << low) - 1);
    transpose_planes<1>(remainders, ~0u, true, planes, 32);
    std::memcpy(out, planes, 4 * low);
    out += 4 * low;
  }
  std::uint64_t pending = 0;  // bits not written yet; `filled`: their number
  std::uint32_t filled = 0;
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    filled += numbers[i] >> plan.low[i / kGroup];
    while (filled >= 32) {
      store_le(out, static_cast<std::uint32_t>(pending));
      out += 4;
      pending >>= 32;
      filled -= 32;
    }
    pending |= std::uint64_t{1} << filled++;
  }
  if (filled != 0) {
    store_le(out, static_cast<std::uint32_t>(pending));
    out += 4;
  }
  return out;
}

// Reads a sequence of `count` numbers, rounded up to whole groups, from bytes before `end`. Returns its end, nullptr if
// it is damaged.
inline const std::uint8_t* read_sequence(const std::uint8_t* in, const std::uint8_t* end, std::uint32_t count,
                                         std::uint32_t* numbers) {
  SequenceHead head;
  if (end - in < 4 || !read_sequence_head(load_le<std::uint32_t>(in), count, head)) return nullptr;
  const std::uint32_t groups = head.groups, unary_words = head.unary_words;
  if (static_cast<std::size_t>(end - in) < 4 * std::size_t{head.words() + unary_words}) return nullptr;
  const auto mask = [from = in + 4](std::uint32_t i) { return load_le<std::uint32_t>(from + 4 * std::size_t{i}); };
  for (unsigned p = 0; p < head.rate_planes; ++p)
    if (has_stray_bits(head, mask, p)) return nullptr;
  in += 4 * head.words();
  std::uint8_t low[kMostGroups];
  std::uint32_t plane_words = 0;
  for (std::uint32_t g = 0; g < groups; ++g) {
    low[g] = static_cast<std::uint8_t>(low_bits(head, mask, g));
    if (low[g] > 31) return nullptr;
    plane_words += low[g];
  }
  if (static_cast<std::size_t>(end - in) < 4 * std::size_t{plane_words + unary_words}) return nullptr;
  for (std::uint32_t g = 0; g < groups; ++g) {
    unpack_planes(in, low[g], numbers + g * kGroup);
    in += 4 * low[g];
  }
  std::uint32_t found = 0, from = 0;  // ones so far, the end of the last one
  for (std::uint32_t w = 0; w < unary_words; ++w, in += 4) {
    auto word = load_le<std::uint32_t>(in);
    if (static_cast<std::uint32_t>(__builtin_popcount(word)) > count - found) return nullptr;
    for (; word != 0; word &= word - 1, ++found) {
      const std::uint32_t bit = 32 * w + static_cast<std::uint32_t>(__builtin_ctz(word));
      const std::uint64_t number = numbers[found] + (std::uint64_t{bit - from} << low[found / kGroup]);
      if (number >> 31 != 0) return nullptr;
      numbers[found] = static_cast<std::uint32_t>(number);
      from = bit + 1;
    }
  }
  // the last one must be in the last word
  return found == count && (from + 31) / 32 == unary_words ? in : nullptr;
}

PYF_END_TARGET
