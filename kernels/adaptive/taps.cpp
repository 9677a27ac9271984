// SPDX-License-Identifier: BSD-3-Clause
// Lists of neighbours (taps.hpp).
#include "adaptive/taps.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace pyfilter {
namespace {

constexpr bool is_causal(Tap t) { return t.z < 0 || (t.z == 0 && (t.y < 0 || (t.y == 0 && t.x < 0))); }
// Whether the neighbour is coded at least one step earlier. In the row above, the skew limits how far right it may lie.
constexpr bool is_early(Tap t) { return t.z < 0 ? true : t.y < 0 ? t.x <= 1 : t.x < 0; }

// The order of sums: neighbours that are coded later have larger numbers.
constexpr int time_of(Tap t) { return 1000 * t.z + t.x + static_cast<int>(kSkew) * t.y; }

void add(TapList& list, Tap tap) {
  for (std::uint32_t i = 0; i < list.count; ++i)
    if (list.of[i].z == tap.z && list.of[i].y == tap.y && list.of[i].x == tap.x) return;
  list.of[list.count++] = tap;
}
void finish(TapList& list) {
  std::stable_sort(list.of, list.of + list.count, [](Tap a, Tap b) { return time_of(a) < time_of(b); });
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
  finish(list);
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
  if (deep != 0) add(list, tap_of(-2, 0, 0));
  if (kind == TileKind::line)
    for (const int far : {-4, 5, -5, -6}) add(list, tap_of(0, 0, far));
  finish(list);
  return list;
}

using CodeTaps = std::array<Tap, kCodeTaps>;
CodeTaps make_code_taps(TileKind kind, bool refining) {
  CodeTaps taps{};
  std::size_t n = 0;
  const auto put = [&](int z, int y, int x) {
    if (n < kCodeTaps) taps[n++] = tap_of(z, y, x);
  };
  if (kind == TileKind::line) {
    for (int x = 1; x <= (refining ? 12 : 16); ++x) put(0, 0, -x);
    for (const int x : {1, 3, 5, 7}) put(0, 0, x);
  } else if (kind == TileKind::plane) {
    if (refining)
      for (int x = -1; x <= 1; ++x) put(0, 1, x);
    if (refining) put(0, 0, 1);
    for (int x = 1; x <= 3; ++x) put(0, 0, -x);
    for (int x = -2; x <= 1; ++x) put(0, -1, x);
    for (int x = -1; x <= 1; ++x) put(0, -2, x);
    put(0, -3, 0);
    put(0, -1, -3);
    put(0, 0, -4);
    put(0, -2, -2);
    put(0, -3, -1);
    put(0, -3, 1);
  } else if (refining) {
    for (const int near : {-1, 1}) {
      put(0, 0, near);
      put(0, near, 0);
      put(near, 0, 0);
    }
    for (const int y : {-1, 1})
      for (const int x : {-1, 1}) put(0, y, x);
    for (const int z : {-1, 1})
      for (const int x : {-1, 1}) put(z, 0, x);
    put(0, 0, -2);
    put(0, -2, 0);
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

const Tap* code_taps(TileKind kind, bool refining) {
  static const CodeTaps lists[] = {make_code_taps(TileKind::line, false),   make_code_taps(TileKind::plane, false),
                                   make_code_taps(TileKind::volume, false), make_code_taps(TileKind::line, true),
                                   make_code_taps(TileKind::plane, true),   make_code_taps(TileKind::volume, true)};
  return lists[static_cast<std::size_t>(kind) - 1 + (refining ? 3 : 0)].data();
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
  std::copy_n(code_taps(kind, false), kCodeTaps, taps.causal_codes);
  std::copy_n(code_taps(kind, true), kCodeTaps, taps.refining_codes);
  taps.ranges = range_taps(kind);
  return taps;
}

}  // namespace pyfilter
