// SPDX-License-Identifier: BSD-3-Clause
// In which order a reader shall fetch the segments: the one that takes most of the error's bound away for each of its
// bytes goes first (kernels/progressive/FORMAT.md). IEEE operations in a fixed order, so the same everywhere.
#pragma once

#include <cstdint>

#include "progressive/head.hpp"
#include "progressive/layout.hpp"

namespace pyfilter {

// Bound of the error of all values when of unit u the segments down to that of plane state[u] are there (planes[u]:
// none), in steps.
inline std::uint64_t bound_of_state(const ProgressiveLayout& layout, const ProgressiveHead& head, const int* state,
                                    int finest_level = 0) {
  std::uint64_t bound = 0;
  for (int u = 0; u < layout.units; ++u) {
    if (layout.unit[u].level < finest_level) continue;
    bound = error_after_pass(bound, head.cubic[u], coefficient_error(head.planes[u], state[u]));
  }
  return bound;
}

inline constexpr int kLookAhead = 3;

// `sizes(u, p)` is the size of a segment in bytes. Fills unit, plane and size of head.segments segments.
template <class Sizes>
inline void order_segments(const ProgressiveLayout& layout, const ProgressiveHead& head, Sizes&& sizes,
                           ProgressiveSegment* segments) {
  double weight[kMostUnits], gain[kMostUnits];
  int state[kMostUnits];
  double growth = 1;
  for (int u = layout.units - 1; u >= 0; --u) {
    weight[u] = growth;
    growth *= head.cubic[u] ? 1.25 : 1.0;
    state[u] = head.planes[u] != 0 ? head.planes[u] : -1;
  }
  const auto renew = [&](int u) {
    gain[u] = -1;
    double cost = 4;
    const auto now = static_cast<double>(coefficient_error(head.planes[u], state[u]));
    for (int p = state[u] - 1; p >= -1 && p >= state[u] - kLookAhead; --p) {
      cost += static_cast<double>(sizes(u, p));
      const double taken = (now - static_cast<double>(coefficient_error(head.planes[u], p))) * weight[u] / cost;
      if (taken > gain[u]) gain[u] = taken;
    }
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
