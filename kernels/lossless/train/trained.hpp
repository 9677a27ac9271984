// SPDX-License-Identifier: BSD-3-Clause
// A chunk whose model is made, with the team that makes it and the team's memory. For CPU and GPU.
#pragma once

#include <cstdint>

#include "lossless/train/space.hpp"

PYF_BEGIN_TARGET

// A chunk that is looked at by a team.
template <class T, class Team>
struct Trained {
  using U = NumberOf<T>;

  Team team;
  const void* values;
  std::uint64_t count;
  NumberMap plain;
  Axes axes;
  SampledRuns runs;  // on which maps and strides are rated
  TrainSpace<U>* space;

  KFN Trained(const Team& threads, const Shape& shape, const void* chunk, std::uint64_t values_of_chunk,
              const NumberMap& map, TrainSpace<U>& memory)
      : team(threads),
        values(chunk),
        count(values_of_chunk),
        plain(map),
        axes(shape, values_of_chunk),
        runs(values_of_chunk, kMostRated / SampledRuns::kRun),
        space(&memory) {}

  KFN std::uint32_t rated() const { return runs.count * runs.length; }
  KFN double part() const { return static_cast<double>(rated()) / static_cast<double>(count); }
  KFN bool leads() const { return team.rank() == 0; }
  KFN FindPlace<U> place() const { return {space->dictionary, space->places, plain.width}; }
  KFN void add_map(const NumberMap& map) const {
    team.wait();
    if (leads()) space->maps[space->kinds++] = map;
    team.wait();
  }
};

// The low bits that are zero in 97 % of the numbers, below `most`. with[s]: numbers whose lowest one bit is bit s, for
// `count` bits.
struct LowZeros {
  std::uint32_t total = 0, bits = 0;  // total: numbers
};
KFN LowZeros low_zeros(const std::uint32_t* with, std::uint32_t count, std::uint32_t most) {
  LowZeros found;
  for (std::uint32_t s = 0; s < count; ++s) found.total += with[s];
  std::uint32_t fewer = 0;  // numbers with a lower bit set
  for (std::uint32_t s = 0; s < most && 32 * fewer <= found.total; ++s) {
    found.bits = s;
    fewer += with[s];
  }
  return found;
}

PYF_END_TARGET
