// SPDX-License-Identifier: BSD-3-Clause
// An estimate of lorenzo's bytes for particles in the given order, from a sample. Differences along each column become
// lorenzo's symbols, counted by the octave of the two previous differences. The entropy of the counts is the estimate.
// Integers only, so CPU and GPU agree. FORMAT.md states its accuracy. Not part of the format.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/count_log.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// Chunks of up to this many particles are encoded by lorenzo instead; of larger ones, runs spread over the chunk are
// sampled. A run has one particle more than differences.
inline constexpr std::uint64_t kTriedParticles = 32768;
inline constexpr std::uint32_t kEstimateRuns = 32, kEstimateRun = 128,
                               kEstimateParticles = kEstimateRuns * kEstimateRun;
static_assert(kEstimateRun % 32 == 0 && kTriedParticles > kEstimateRun);

KFN std::uint64_t estimate_run(std::uint64_t particles, std::uint32_t run) {
  return (particles - (kEstimateRun + 1)) * run / (kEstimateRuns - 1);
}

// Octaves of neighbours; the first difference of a block has no neighbours, and a table of its own.
inline constexpr std::uint32_t kEstimateOctaves = kLevels / 2 + 1, kEstimateCounts = (kEstimateOctaves + 1) * kSymbols;

// The count of a difference, from its residual and the two before it; `at`: its index in the run.
template <class Code>
KFN std::uint32_t estimate_index(Code residual, Code before, Code second, std::uint32_t at) {
  const std::uint32_t near = capped(before), far = at % 32 == 1 ? near : capped(second),
                      table = at % 32 == 0 ? kEstimateOctaves : (level_of(near + far) + 1) / 2;
  return table * kSymbols + symbol_of(residual);
}

// Bits, times 64, of the counts: for each table share_of() the sum of its counts, less share_of() each of them, plus
// raw bits.
KFN std::uint64_t share_of(std::uint32_t count) { return count == 0 ? 0 : count * std::uint64_t{log2_of_count(count)}; }
KFN std::uint64_t raw_share(std::uint32_t symbol, std::uint32_t count) {
  return symbol == kEscape ? 0 : count * std::uint64_t{kLogOne * raw_bits(symbol)};
}

// Bytes for all particles, from the sample's bits, `special_bytes` of which are verbatim values. States of coders and
// tables add a 128th.
KFN std::uint64_t estimated_bytes(std::uint64_t bits, std::uint64_t special_bytes, std::uint64_t particles) {
  const std::uint64_t all = bits + bits / 128 + special_bytes * (8 * kLogOne);
  return all * particles / (std::uint64_t{kEstimateParticles} * 8 * kLogOne);
}

}  // namespace pyfilter
