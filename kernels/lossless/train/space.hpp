// SPDX-License-Identifier: BSD-3-Clause
// Memory of a team that trains a model, the same for CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lossless/bin_search.hpp"
#include "lossless/train/number_values.hpp"
#include "lossless/train/runs.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

// Values of the runs that strides are rated on, at most; shifted copies of them.
inline constexpr std::uint32_t kMostRated = 32 * SampledRuns::kRun, kMostShifts = 24;
// Numbers of the samples that bins are chosen on. The first run is added to one run of three in 192.
inline constexpr std::uint32_t kBinSample = 8192, kMostSample = 2 * kBinSample;

// Parts of a sorted sample, of neighbouring numbers. Parts of a group follow each other.
struct SamplePart {
  std::uint64_t low, high;  // lowest and highest number
  std::int32_t group;       // a bin lies in one group
};
template <std::uint32_t kMost>
struct SampleParts {
  std::uint32_t count, total;  // numbers of the sample
  SamplePart part[kMost];
  std::uint32_t before[kMost + 1];         // numbers before each part
  std::uint32_t groups, first[kMost + 1];  // the first part of each group; behind the last one: count
  std::uint32_t joined[kMost];             // joined parts of each group
  double cost[kMost + 1];                  // bits of the numbers of its group before it
  std::uint32_t from[kMost + 1];           // the first part of the last joined one before it
};
// A sample of n numbers is cut at most 384 times for equal parts, 2 n / 3 and 2048 times around frequent ones, and at
// its groups. Strides are rated on fewer than 2048 numbers, and a part has one at least.
inline constexpr std::uint32_t kMostParts = 8192, kMostPartsOfRated = 2048;
struct JoinedPart {
  std::uint64_t low, high;
  std::uint32_t count;
};

template <class U>
struct TrainSpace {
  CountLogs logs;
  // numbers of values
  U patterns[kMostRated];
  U keys[kPatternSlots];
  std::uint64_t dictionary[kMostEntries];
  std::uint32_t places[kPatternSlots];
  std::uint32_t used, kinds;  // entries of the list; maps in `maps`
  NumberMap maps[5];
  // strides
  Candidates tried, best;
  U shifted[kMostShifts][kMostRated], remainders[kMostRated], differences[kMostRated];
  std::uint64_t shifts[kMostShifts];
  std::uint64_t rated_starts[kMostRated / SampledRuns::kRun];
  std::uint32_t shift_count, counts_of[kMostCandidates + 3][kSymbols];
  double bits_of[kMostCandidates + 3];
  // bins
  U sample[kMostSample], sorted[kMostSample];
  std::uint32_t sampled;
  SampleParts<kMostParts> parts;
  SampleParts<kMostPartsOfRated> rated_parts[kMostKept];
  JoinedPart joined[kMostBins];
  // tables
  std::uint64_t starts[kMostRated / SampledRuns::kRun];
  BinSearch<U> search;
  U numbers[kMostRated];
  std::uint8_t symbols[kMostRated], sums[kMostRated];
  std::uint32_t counts[kBinLevels][kSymbols];
  JoinedLevels<kBinLevels> levels;
};

PYF_END_TARGET
