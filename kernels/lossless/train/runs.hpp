// SPDX-License-Identifier: BSD-3-Clause
// The sampled runs of values, the strides of a chunk's axes, and the neighbours and unit sizes that follow from them
// (FORMAT.md). Not part of the format. For CPU and GPU.
#pragma once

#include <cstdint>

#include "core/types.hpp"
#include "lossless/binned_model.hpp"

PYF_BEGIN_TARGET

// The strides along which differences are taken, one after another.
struct Strides {
  std::uint32_t count = 0, of[kMostStrides] = {};

  KFN std::uint32_t longest() const {
    std::uint32_t most = 0;
    for (const std::uint32_t one : of) most = one > most ? one : most;
    return most;
  }
  // The sum of the strides in `set`, a bit for each.
  KFN std::uint64_t sum(std::uint32_t set) const {
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < count; ++i) all += (set >> i & 1) != 0 ? of[i] : 0;
    return all;
  }
};
// Whether the numbers before by the strides in `set` are subtracted.
KFN bool is_subtracted(std::uint32_t set) {
  bool odd = false;
  for (; set != 0; set &= set - 1) odd = !odd;
  return odd;
}

// Strides and the estimated bits of all values. `begins`: the bits among these at starts of units, where the longest
// stride has no predecessor.
struct RatedStrides {
  Strides strides;
  double bits = 0, begins = 0;
};
inline constexpr std::uint32_t kMostCandidates = 24, kMostKept = 6,
                               kMostTaken = 3;                // kMostTaken: strides of a candidate
inline constexpr std::uint32_t kMostSets = 1u << kMostTaken;  // of them
// Calls work.operator()<sets>() for 1, 2, 4 or kMostSets sets of strides.
template <class Work>
KFN void with_sets(std::uint32_t sets, const Work& work) {
  if (sets == 1)
    work.template operator()<1>();
  else if (sets == 2)
    work.template operator()<2>();
  else if (sets == 4)
    work.template operator()<4>();
  else
    work.template operator()<kMostSets>();
}
struct Candidates {
  std::uint32_t count = 0;
  RatedStrides of[kMostCandidates];

  KFN void add(std::uint32_t strides, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
    of[count++] = {{strides, {a, b, c}}, 0, 0};
  }
};

inline constexpr std::uint32_t kUsualUnitValues = 65536;
inline constexpr double kBinnedStreamBits = 12288.0 * 8;

// `count` sampled runs of `length` values, spread over the chunk; the last one ends with it.
struct SampledRuns {
  static constexpr std::uint32_t kRun = 256, kMostTogether = 4 * kRun;

  std::uint64_t values;
  std::uint32_t count, length;

  KFN SampledRuns(std::uint64_t of_chunk, std::uint32_t most_runs) : values(of_chunk) {
    const std::uint64_t whole = values / kRun, least = whole < 4 ? whole : 4;
    std::uint64_t wanted = whole / 4;
    wanted = wanted < least ? least : wanted > most_runs ? most_runs : wanted;
    const std::uint32_t most = wanted <= 1 ? kMostTogether : kRun;
    count = wanted <= 1 ? 1 : static_cast<std::uint32_t>(wanted);
    length = values < most ? static_cast<std::uint32_t>(values) : most;
  }
  KFN std::uint64_t start(std::uint64_t run) const {
    if (count == 1) return 0;
    const std::uint64_t last = values - length;
    return last / count * run + last % count * run / count + last / count;
  }
};

// Every `every`-th run.
struct SomeRuns {
  SampledRuns all;
  std::uint32_t first, every, count;

  KFN SomeRuns(const SampledRuns& runs, std::uint32_t step)
      : all(runs), first(step / 2), every(step), count((runs.count - step / 2 + step - 1) / step) {}
  KFN std::uint64_t start(std::uint32_t i) const { return all.start(first + std::uint64_t{i} * every); }
  KFN std::uint32_t length() const { return all.length; }
  KFN std::uint32_t values() const { return count * all.length; }
};

// The axes' strides in memory, last axis first. A short last axis counts as components, which are no neighbours.
struct Axes {
  std::uint32_t components = 1, count = 0;
  std::uint32_t lags = 0;  // of these steps, the last ones: lags that were found in an array of one axis
  std::uint64_t step[4] = {};

  KFN Axes(const Shape& shape, std::uint64_t values) {
    std::uint64_t here = 1;
    for (int i = shape.rank; i-- > 0;) {
      const std::uint64_t extent = shape.dims[static_cast<std::size_t>(i)];
      const bool is_components = i == shape.rank - 1 && extent > 1 && extent <= kShortStride && shape.rank > 1;
      if (is_components) components = static_cast<std::uint32_t>(extent);
      if (extent > 1 && !is_components && count < 4) step[count++] = here;
      here *= extent;
    }
    if (count == 0) step[count++] = 1;
    const std::uint64_t most = values < kMostUnitValues / 2 ? values : kMostUnitValues / 2;
    while (count > 1 && step[count - 1] >= most) --count;
  }

  KFN Axes with(const Strides& found) const {
    Axes all = *this;
    for (std::uint32_t k = 0; k < found.count; ++k) all.step[all.count++] = found.of[k];
    all.lags = found.count;
    return all;
  }
  KFN bool have_lag(const Strides& strides) const { return lags != 0 && strides.longest() >= step[count - lags]; }

  // All strides that are rated, but no strides at all.
  KFN void find_candidates(Candidates& found) const {
    const auto of = [&](std::uint32_t axis) { return static_cast<std::uint32_t>(step[axis]); };
    found.count = 0;
    for (std::uint32_t axis = 0; axis < count; ++axis) {
      found.add(1, of(axis));
      if (axis < 3) found.add(2, of(axis), of(axis));
    }
    found.add(3, of(0), of(0), of(0));
    for (std::uint32_t set = 0; set < 1u << count; ++set) {
      std::uint32_t chosen[4] = {}, size = 0;
      for (std::uint32_t axis = 0; axis < count; ++axis)
        if ((set >> axis & 1) != 0) chosen[size++] = of(axis);
      if (size == 2 || size == 3) found.add(size, chosen[0], chosen[1], chosen[2]);
    }
  }
  // The values of a unit: enough for a long stream, and for few values without neighbours.
  KFN std::uint32_t unit_of(const Strides& strides, double bits_of_value, std::uint64_t values) const {
    std::uint64_t unit = kUsualUnitValues;
    const std::uint64_t longest = strides.longest();
    while (unit < kMostUnitValues &&
           (static_cast<double>(unit) * bits_of_value < kBinnedStreamBits || unit < 8 * longest))
      unit *= 2;
    if (count > 1 && step[1] <= unit / 4) {
      unit = (unit + step[1] - 1) / step[1] * step[1];
      if (unit > kMostUnitValues) unit = kMostUnitValues;
    }
    return static_cast<std::uint32_t>(unit < values ? unit : values);
  }
  // Sets the distances of neighbours, all in earlier steps: in the previous row if rows are long, else several rows or
  // values back.
  KFN void set_distances(BinnedParts& model) const {
    const std::uint64_t most = kMostDistance;
    std::uint64_t row = count > 1 ? step[1] : step[0];
    row = row * ((kLeastDistance + 1 + row - 1) / row);
    if (count < 2 || row > most / 2) {
      const std::uint64_t first = (kLeastDistance + components - 1) / components * components;
      for (std::uint32_t i = 0; i < kDistances; ++i)
        model.distance[i] = static_cast<std::uint32_t>(first + std::uint64_t{i} * components);
      return;
    }
    const std::uint64_t plane = count > 2 ? step[2] : 0;
    const std::uint64_t wanted[kDistances] = {row, row - components, row + components,
                                              plane > row && plane <= model.unit_values / 2 ? plane : 2 * row};
    for (std::uint32_t i = 0; i < kDistances; ++i) {
      const std::uint64_t one = wanted[i] < kLeastDistance ? kLeastDistance : wanted[i];
      model.distance[i] = static_cast<std::uint32_t>(one > most ? most : one);
    }
  }
};

PYF_END_TARGET
