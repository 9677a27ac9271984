// SPDX-License-Identifier: BSD-3-Clause
// Lists of neighbours (taps.hpp).
#include "adaptive/taps.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "adaptive/model.hpp"

namespace pyfilter {
namespace {

constexpr bool is_causal(Tap t) { return t.z < 0 || (t.z == 0 && (t.y < 0 || (t.y == 0 && t.x < 0))); }
// Whether the neighbour is coded at least one step earlier. In the row above, the skew limits how far right it may lie.
constexpr bool is_early(Tap t) { return t.z < 0 ? true : t.y < 0 ? t.x <= 1 : t.x < 0; }

// Whether a neighbour of a refining pass has the value's own parity.
constexpr bool has_same_parity(Tap t) { return t.z % 2 == 0 && t.y % 2 == 0 && t.x % 2 == 0; }

// The order of sums: neighbours that are coded later have larger numbers.
constexpr int time_of(Tap t, bool refining) {
  return 1000 * t.z + t.x + static_cast<int>(kSkew) * t.y + (refining && has_same_parity(t) ? 10000 : 0);
}

void add(TapList& list, Tap tap) {
  for (std::uint32_t i = 0; i < list.count; ++i)
    if (list.of[i].z == tap.z && list.of[i].y == tap.y && list.of[i].x == tap.x) return;
  list.of[list.count++] = tap;
}
void finish(TapList& list, bool refining) {
  std::stable_sort(list.of, list.of + list.count,
                   [&](Tap a, Tap b) { return time_of(a, refining) < time_of(b, refining); });
  for (int axis = 0; axis < 3; ++axis) {
    list.near[axis] = kNoTap;
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const Tap t = list.of[i];
      if (t.x == (axis == 0 ? -1 : 0) && t.y == (axis == 1 ? -1 : 0) && t.z == (axis == 2 ? -1 : 0))
        list.near[axis] = i;
    }
  }
}
Tap tap_of(int z, int y, int x) {
  return {static_cast<std::int8_t>(z), static_cast<std::int8_t>(y), static_cast<std::int8_t>(x)};
}

TapList make_causal(TileKind kind) {
  TapList list;
  if (kind == TileKind::line)
    for (int x = 1; x <= static_cast<int>(kLineReach); ++x) add(list, tap_of(0, 0, -x));
  if (kind == TileKind::plane) {
    for (int x = 1; x <= 4; ++x) add(list, tap_of(0, 0, -x));
    for (int x = -4; x <= 1; ++x) add(list, tap_of(0, -1, x));
    for (int x = -3; x <= 1; ++x) add(list, tap_of(0, -2, x));
    for (int x = -2; x <= 1; ++x) add(list, tap_of(0, -3, x));
  }
  if (kind == TileKind::volume) {
    for (int z = 0; z >= -2; --z)
      for (int y = -2; y <= 2; ++y)
        for (int x = -2; x <= 2; ++x)
          if (const Tap t = tap_of(z, y, x); z * z + y * y + x * x <= 6 && is_causal(t) && is_early(t)) add(list, t);
  }
  finish(list, false);
  return list;
}

TapList make_refining(TileKind kind) {
  TapList list;
  const int deep = kind == TileKind::volume ? 1 : 0, high = kind == TileKind::line ? 0 : 1;
  for (int z = -deep; z <= deep; ++z)
    for (int y = -high; y <= high; ++y)
      for (int x = -1; x <= 1; ++x)
        if (z != 0 || y != 0 || x != 0) add(list, tap_of(z, y, x));
  for (const int far : {-3, 3}) {
    add(list, tap_of(0, 0, far));
    if (high != 0) add(list, tap_of(0, far, 0));
    if (deep != 0) add(list, tap_of(far, 0, 0));
  }
  add(list, tap_of(0, 0, -2));
  if (high != 0) add(list, tap_of(0, -2, 0));
  if (kind == TileKind::line)
    for (const int far : {-4, 5, -5, -6}) add(list, tap_of(0, 0, far));
  finish(list, true);
  return list;
}

using CodeTaps = std::array<Tap, kCodeTaps>;
CodeTaps make_causal_codes(TileKind kind) {
  CodeTaps taps{};
  std::size_t n = 0;
  const auto put = [&](int z, int y, int x) {
    if (n < kCodeTaps) taps[n++] = tap_of(z, y, x);
  };
  if (kind == TileKind::line) {
    for (int x = 1; x <= 16; ++x) put(0, 0, -x);
  } else if (kind == TileKind::plane) {
    for (int x = 1; x <= 3; ++x) put(0, 0, -x);
    for (int x = -2; x <= 1; ++x) put(0, -1, x);
    for (int x = -1; x <= 1; ++x) put(0, -2, x);
    put(0, -3, 0);
    put(0, -1, -3);
    put(0, 0, -4);
    put(0, -2, -2);
    put(0, -3, -1);
    put(0, -3, 1);
  } else {
    put(0, 0, -1);
    put(0, 0, -2);
    for (int x = -1; x <= 1; ++x) put(0, -1, x);
    put(0, -2, 0);
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) put(-1, y, x);
    put(-2, 0, 0);
  }
  return taps;
}
// The nearest neighbours that a parity may use, first those of its own class, which are summed last.
CodeTaps make_refining_codes(TileKind kind, std::uint32_t parity) {
  std::vector<Tap> found;
  const bool line = kind == TileKind::line;
  const int deep = kind == TileKind::volume ? 3 : 0, high = line ? 0 : 4, far = line ? 12 : 4, own = line ? 12 : 2;
  PassModel pass;
  pass.refining = true;
  for (int z = -deep; z <= deep; ++z)
    for (int y = -high; y <= high; ++y)
      for (int x = -far; x <= far; ++x) {
        const Tap t = tap_of(z, y, x);
        if (has_same_parity(t) && (std::abs(y) > own || std::abs(x) > own)) continue;
        if (tap_allowed(pass, kind, parity, t)) found.push_back(t);
      }
  const auto square = [](Tap t) { return t.z * t.z + t.y * t.y + t.x * t.x + (has_same_parity(t) ? 0 : 1000); };
  std::stable_sort(found.begin(), found.end(), [&](Tap a, Tap b) { return square(a) < square(b); });
  CodeTaps taps{};
  std::copy_n(found.begin(), std::min<std::size_t>(found.size(), kCodeTaps), taps.begin());  // there are enough
  return taps;
}

}  // namespace

const TapList& causal_taps(TileKind kind) {
  static const TapList lists[] = {make_causal(TileKind::line), make_causal(TileKind::plane),
                                  make_causal(TileKind::volume)};
  return lists[static_cast<std::size_t>(kind) - 1];
}

const TapList& refining_taps(TileKind kind) {
  static const TapList lists[] = {make_refining(TileKind::line), make_refining(TileKind::plane),
                                  make_refining(TileKind::volume)};
  return lists[static_cast<std::size_t>(kind) - 1];
}

const Tap* causal_codes(TileKind kind) {
  static const CodeTaps lists[] = {make_causal_codes(TileKind::line), make_causal_codes(TileKind::plane),
                                   make_causal_codes(TileKind::volume)};
  return lists[static_cast<std::size_t>(kind) - 1].data();
}

const RefiningCodes& refining_codes(TileKind kind) {
  static const auto lists = [] {
    std::array<RefiningCodes, 3> all{};
    for (const TileKind of : {TileKind::line, TileKind::plane, TileKind::volume})
      for (std::uint32_t parity = 1; parity < 1u << static_cast<std::uint32_t>(of); ++parity)
        std::ranges::copy(make_refining_codes(of, parity), all[static_cast<std::size_t>(of) - 1].of[parity]);
    return all;
  }();
  return lists[static_cast<std::size_t>(kind) - 1];
}

const RangeTaps& range_taps(TileKind kind) {
  static constexpr RangeTaps kLists[] = {
      {3, {{0, 0, -1}, {0, 0, -2}, {0, 0, -3}}},
      {5, {{0, 0, -1}, {0, -1, 0}, {0, -1, 1}, {0, -1, -1}, {0, 0, -2}}},
      {7, {{0, 0, -1}, {0, -1, 0}, {-1, 0, 0}, {0, -1, -1}, {-1, 0, -1}, {-1, -1, 0}, {0, -1, 1}}}};
  return kLists[static_cast<std::size_t>(kind) - 1];
}

AdaptiveTaps adaptive_taps(TileKind kind) noexcept {
  AdaptiveTaps taps;
  taps.causal = causal_taps(kind);
  taps.refining = refining_taps(kind);
  std::copy_n(causal_codes(kind), kCodeTaps, taps.causal_codes);
  taps.refining_codes = refining_codes(kind);
  taps.ranges = range_taps(kind);
  return taps;
}

}  // namespace pyfilter
