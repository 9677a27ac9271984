// SPDX-License-Identifier: BSD-3-Clause
// The reading order of segments: the one that removes most of the error's bound for each of its bytes goes first
// (kernels/progressive/FORMAT.md). IEEE operations in a fixed order, so the result is the same everywhere.
#pragma once

#include <cstdint>

#include "progressive/head.hpp"
#include "progressive/layout.hpp"

namespace pyfilter {

// Bound of the error of all values, in steps, with the segments of each unit u down to plane state[u] (planes[u]:
// none).
template <class State>
KFN std::uint64_t bound_of_state(const ProgressiveLayout& layout, const ProgressiveHead& head, const State* state,
                                 int finest_level = 0) {
  std::uint64_t bound = 0;
  for (int u = 0; u < layout.units; ++u) {
    if (layout.unit[u].level < finest_level) continue;
    bound = error_after_pass(bound, head.cubic[u], coefficient_error(head.planes[u], state[u]));
  }
  return bound;
}

// Bound of the distance between the values of a reader and of one with at least as many segments of each unit.
template <class State, class Then>
KFN std::uint64_t distance_of_states(const ProgressiveLayout& layout, const ProgressiveHead& head, const State* state,
                                     const Then* then) {
  std::uint64_t distance = 0;
  for (int u = 0; u < layout.units; ++u)
    distance = error_after_pass(distance, head.cubic[u], coefficient_distance(head.planes[u], state[u], then[u]));
  return distance;
}
// The code of a reader's error from the measured error of a reader with at least as many segments.
template <class State, class Then>
KFN std::uint32_t error_code_by(const ProgressiveLayout& layout, const ProgressiveHead& head, const State* state,
                                const Then* then, std::uint64_t measured, std::uint64_t conversion) {
  // the measured error is known by its code only
  const std::uint64_t error = as_in_table(measured, conversion) + distance_of_states(layout, head, state, then);
  return error_code(error == 0 ? 0 : error + conversion);
}

inline constexpr int kLookAhead = 3;

// Weights of the units: the factor of later passes on an error.
KFN void weigh_units(const ProgressiveLayout& layout, const ProgressiveHead& head, double* weight) {
  double growth = 1;
  for (int u = layout.units - 1; u >= 0; --u) {
    weight[u] = growth;
    growth *= head.cubic[u] ? 1.25 : 1.0;
  }
}

// The error removed by the segments of a unit down to plane `p`, for each byte of `cost`. `state`: the plane of the
// last segment so far.
KFN double gain_of_segments(int planes, int state, int p, double weight, std::uint64_t cost) {
  const auto now = static_cast<double>(coefficient_error(planes, state)),
             then = static_cast<double>(coefficient_error(planes, p));
  return (now - then) * weight / static_cast<double>(cost + 4);
}
// The largest gain of the next segments. size(p): the size of the segment of plane p.
template <class Size>
KFN double gain_of_unit(int planes, int state, double weight, Size&& size) {
  double gain = -1;
  std::uint64_t cost = 0;
  for (int p = state - 1; p >= -1 && p >= state - kLookAhead; --p) {
    cost += size(p);
    const double taken = gain_of_segments(planes, state, p, weight, cost);
    if (taken > gain) gain = taken;
  }
  return gain;
}

// `sizes(u, p)`: the size of a segment in bytes. Sets unit, plane and size of head.segments segments.
template <class Sizes>
inline void order_segments(const ProgressiveLayout& layout, const ProgressiveHead& head, Sizes&& sizes,
                           ProgressiveSegment* segments) {
  double weight[kMostUnits], gain[kMostUnits];
  int state[kMostUnits];
  weigh_units(layout, head, weight);
  for (int u = 0; u < layout.units; ++u) state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  const auto renew = [&](int u) {
    gain[u] = gain_of_unit(head.planes[u], state[u], weight[u], [&](int p) { return sizes(u, p); });
  };
  for (int u = 0; u < layout.units; ++u) renew(u);
  for (int i = 0; i < head.segments; ++i) {
    int best = -1;
    for (int u = 0; u < layout.units; ++u)
      if (state[u] >= 0 && (best < 0 || gain[u] > gain[best])) best = u;
    --state[best];
    segments[i] = {};
    segments[i].unit = static_cast<std::uint8_t>(best);
    segments[i].plane = static_cast<std::int8_t>(state[best]);
    segments[i].size = sizes(best, state[best]);
    renew(best);
  }
}

}  // namespace pyfilter
