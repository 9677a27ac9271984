// SPDX-License-Identifier: BSD-3-Clause
// The sampled runs of values, the strides of a chunk's axes, and the neighbours and unit sizes that follow from them
// (FORMAT.md). Not part of the format.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "lossless/binned_model.hpp"

PYF_BEGIN_TARGET

// Sampled runs of `length` values, from `starts` on.
struct SampledRuns {
  std::vector<std::uint64_t> starts;
  std::uint32_t length = 0;

  SampledRuns(std::uint64_t values, std::uint32_t run, std::uint32_t most_runs) {
    length = static_cast<std::uint32_t>(std::min<std::uint64_t>(run, values));
    const std::uint64_t count =
        std::clamp<std::uint64_t>(values / run / 4, std::min<std::uint64_t>(values / run, 4), most_runs);
    if (count <= 1) {
      length = static_cast<std::uint32_t>(std::min<std::uint64_t>(values, 4 * run));
      starts.push_back(0);
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i)  // the last run ends with the array
      starts.push_back((values - length) / count * i + (values - length) % count * i / count +
                       (values - length) / count);
  }
  std::size_t values() const { return starts.size() * length; }
};

// The strides along which differences are taken, one after another.
struct Strides {
  std::uint32_t count = 0, of[kMostStrides] = {};
};
// Strides and the estimated bits of all values. `begins`: the bits among these at starts of units, where the longest
// stride has no predecessor.
struct RatedStrides {
  Strides strides;
  double bits = 0, begins = 0;
};
inline constexpr std::uint32_t kUsualUnitValues = 65536;
inline constexpr double kBinnedStreamBits = 12288.0 * 8;

// The axes' strides in memory, last axis first. A short last axis counts as components, which are no neighbours.
struct Axes {
  std::uint32_t components = 1;
  std::vector<std::uint64_t> steps;

  Axes(const Shape& shape, std::uint64_t values) {
    std::uint64_t step = 1;
    for (int i = shape.rank; i-- > 0;) {
      const std::uint64_t extent = shape.dims[static_cast<std::size_t>(i)];
      const bool is_components = i == shape.rank - 1 && extent > 1 && extent <= kShortStride && shape.rank > 1;
      if (is_components) components = static_cast<std::uint32_t>(extent);
      if (extent > 1 && !is_components && steps.size() < 4) steps.push_back(step);
      step *= extent;
    }
    if (steps.empty()) steps.push_back(1);
    while (steps.size() > 1 && steps.back() >= std::min<std::uint64_t>(values, kMostUnitValues / 2)) steps.pop_back();
  }

  std::vector<Strides> candidates() const {
    std::vector<Strides> found(1);
    const auto n = static_cast<std::uint32_t>(steps.size());
    const auto step = [&](std::uint32_t axis) { return static_cast<std::uint32_t>(steps[axis]); };
    for (std::uint32_t axis = 0; axis < n; ++axis) {
      found.push_back({1, {step(axis)}});
      if (axis < 3) found.push_back({2, {step(axis), step(axis)}});
    }
    found.push_back({3, {step(0), step(0), step(0)}});
    for (std::uint32_t set = 0; set < 1u << n; ++set) {
      const int size = std::popcount(set);
      if (size < 2 || size > 3) continue;
      Strides strides;
      for (std::uint32_t axis = 0; axis < n; ++axis)
        if ((set >> axis & 1) != 0) strides.of[strides.count++] = step(axis);
      found.push_back(strides);
    }
    return found;
  }
  // The values of a unit: enough for a long stream, and for few values without neighbours.
  std::uint32_t unit_of(const Strides& strides, double bits_of_value, std::uint64_t values) const {
    std::uint64_t unit = kUsualUnitValues;
    const std::uint64_t longest = *std::max_element(strides.of, strides.of + kMostStrides);
    while (unit < kMostUnitValues &&
           (static_cast<double>(unit) * bits_of_value < kBinnedStreamBits || unit < 8 * longest))
      unit *= 2;
    if (steps.size() > 1 && steps[1] <= unit / 4)
      unit = std::min<std::uint64_t>((unit + steps[1] - 1) / steps[1] * steps[1], kMostUnitValues);
    return static_cast<std::uint32_t>(std::min(unit, values));
  }
  // Sets the distances of neighbours, all in earlier steps: in the previous row if rows are long, else several rows or
  // values back.
  void set_distances(BinnedModel& model) const {
    const std::uint64_t most = kMostDistance;
    std::uint64_t row = steps.size() > 1 ? steps[1] : steps[0];
    row = row * ((kLeastDistance + 1 + row - 1) / row);
    if (steps.size() < 2 || row > most / 2) {
      const std::uint64_t first = (kLeastDistance + components - 1) / components * components;
      for (std::uint32_t i = 0; i < kDistances; ++i)
        model.distance[i] = static_cast<std::uint32_t>(first + std::uint64_t{i} * components);
      return;
    }
    const std::uint64_t plane = steps.size() > 2 ? steps[2] : 0;
    const std::uint64_t wanted[kDistances] = {row, row - components, row + components,
                                              plane > row && plane <= model.unit_values / 2 ? plane : 2 * row};
    for (std::uint32_t i = 0; i < kDistances; ++i)
      model.distance[i] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted[i], kLeastDistance, most));
  }
};

PYF_END_TARGET
