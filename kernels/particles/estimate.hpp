// SPDX-License-Identifier: BSD-3-Clause
// What lorenzo would need for particles in the order given, from a few of them: differences along each column as its
// symbols, counted by the octave of the two before them, and the entropy of these counts. Integers only, so that CPU
// and GPU agree. FORMAT.md says how near it comes. Not part of the format.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "stages/count_log.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// Chunks of up to so many particles are encoded by lorenzo to know; of others runs are looked at that are spread over
// the chunk. A run has a particle more than differences.
inline constexpr std::uint64_t kTriedParticles = 32768;
inline constexpr std::uint32_t kEstimateRuns = 32, kEstimateRun = 128,
                               kEstimateParticles = kEstimateRuns * kEstimateRun;
static_assert(kEstimateRun % 32 == 0 && kTriedParticles > kEstimateRun);

KFN std::uint64_t estimate_run(std::uint64_t particles, std::uint32_t run) {
  return (particles - (kEstimateRun + 1)) * run / (kEstimateRuns - 1);
}

// Octaves of neighbours, and the first difference of a block, which has none.
inline constexpr std::uint32_t kEstimateOctaves = kLevels / 2 + 1, kEstimateCounts = (kEstimateOctaves + 1) * kSymbols;

// Where a difference is counted, from what it and the two before it are as residuals; `at`: its place in the run.
template <class Code>
KFN std::uint32_t estimate_index(Code residual, Code before, Code second, std::uint32_t at) {
  const std::uint32_t near = capped(before), far = at % 32 == 1 ? near : capped(second),
                      table = at % 32 == 0 ? kEstimateOctaves : (level_of(near + far) + 1) / 2;
  return table * kSymbols + symbol_of(residual);
}

// Bits, times 64, of what was counted: for each table share_of() the sum of its counts, less share_of() each of them,
// and raw bits.
KFN std::uint64_t share_of(std::uint32_t count) { return count == 0 ? 0 : count * std::uint64_t{log2_of_count(count)}; }
KFN std::uint64_t raw_share(std::uint32_t symbol, std::uint32_t count) {
  return symbol == kEscape ? 0 : count * std::uint64_t{kLogOne * raw_bits(symbol)};
}

// Bytes for so many particles, from the bits of those looked at, of which values of `special_bytes` bytes are stored as
// they are. States of coders and tables are a 128th.
KFN std::uint64_t estimated_bytes(std::uint64_t bits, std::uint64_t special_bytes, std::uint64_t particles) {
  const std::uint64_t all = bits + bits / 128 + special_bytes * (8 * kLogOne);
  return all * particles / (std::uint64_t{kEstimateParticles} * 8 * kLogOne);
}

}  // namespace pyfilter
