// SPDX-License-Identifier: BSD-3-Clause
// Finds lags at which an array of one axis repeats itself: rows of a plane that was stored as a line, fields of
// records, periods. They become strides like those of axes. Not part of the format. For CPU and GPU.
#pragma once

#include <bit>
#include <cstdint>

#include "lossless/train/trained.hpp"

PYF_BEGIN_TARGET

template <class T, class Team>
struct LagSearch {
  using U = NumberOf<T>;
  static constexpr std::uint32_t kMostLags = 16384, kPositions = 32, kTested = 256, kKept = 4;
  static_assert(kMostLags <= kPatternSlots);
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  const Trained<T, Team>& chunk;
  std::uint32_t apart, lags;  // apart: of values of the same component; lags are multiples of it

  explicit KFN LagSearch(const Trained<T, Team>& trained) : chunk(trained), apart(trained.axes.components) {
    const std::uint64_t most = chunk.count / 32 / apart;
    lags = static_cast<std::uint32_t>(most < kMostLags ? most : kMostLags);
  }
  // Position `i` of `count`, all with the values before them that a lag and its neighbour need.
  KFN std::uint64_t position(std::uint32_t i, std::uint32_t count) const {
    const std::uint64_t first = (std::uint64_t{lags} + 1) * apart, room = chunk.count - first;
    return first + room / count * i + room % count * i / count;
  }
  KFN U number(std::uint64_t at) const {
    return ordered(chunk.plain, static_cast<U>(bits_of_value<T>(chunk.values, at)));
  }
  // About the bits of a difference. The exponent of a float is found side by side on every level.
  KFN static std::uint32_t width_of(std::uint32_t magnitude) {
    const std::uint32_t exponent =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude >> 1))) >> 23;
    return exponent < 126 ? 0 : exponent - 126;
  }
  KFN std::uint32_t bits(U difference) const {
    const U magnitude = zigzag(wrapped(chunk.plain.width, difference));
    if constexpr (sizeof(U) == 8) {
      const auto high = static_cast<std::uint32_t>(magnitude >> 32), low = static_cast<std::uint32_t>(magnitude);
      const std::uint32_t of_high = width_of(high), of_low = width_of(low);
      return of_high != 0 ? 32 + of_high : of_low;
    } else {
      return width_of(magnitude);
    }
  }

  // Sums the bits of all lags. space.places: of differences at the lag; space.keys: of the differences along the array
  // of these.
  PYF_MODEL void rate_all() const {
    auto& space = *chunk.space;
    const auto rate = [&](std::uint64_t at, U own, U change, std::uint32_t k) {
      const std::uint64_t back = at - std::uint64_t{k + 1} * apart;
      const U far = number(back), beside = number(back - apart);
      space.places[k] += bits(static_cast<U>(own - far));
      space.keys[k] += static_cast<U>(bits(static_cast<U>(change - far + beside)));
    };
    each(chunk.team, lags, [&](std::uint32_t k) {
      space.places[k] = 0;
      space.keys[k] = 0;
    });
    if constexpr (Team::kSize == 1) {
      for (std::uint32_t i = 0; i < kPositions; ++i) {
        const std::uint64_t at = position(i, kPositions);
        const U own = number(at), change = static_cast<U>(own - number(at - apart));
        for (std::uint32_t k = 0; k < lags; ++k) rate(at, own, change, k);
      }
    } else {
      each(chunk.team, lags, [&](std::uint32_t k) {
        for (std::uint32_t i = 0; i < kPositions; ++i) {
          const std::uint64_t at = position(i, kPositions);
          const U own = number(at);
          rate(at, own, static_cast<U>(own - number(at - apart)), k);
        }
      });
    }
    chunk.team.wait();
  }
  // Of the lags that are not kept yet the one with the fewest bits: the bits, and its number in the low 32 bits. Lag 1
  // is left out.
  PYF_MODEL std::uint64_t next_best(const std::uint64_t* kept, std::uint32_t count) const {
    std::uint64_t best = kNone;
    each(chunk.team, lags, [&](std::uint32_t k) {
      bool other = k != 0;
      for (std::uint32_t i = 0; i < count; ++i) other = other && static_cast<std::uint32_t>(kept[i]) != k;
      const std::uint64_t first = chunk.space->places[k], second = chunk.space->keys[k];
      const std::uint64_t own = (first < second ? first : second) << 32 | k;
      best = other && own < best ? own : best;
    });
    return chunk.team.joined(best, [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; });
  }
  // The bits of differences at these lags, or of the differences along the array of these if they are fewer. At more
  // positions than lags are found by: the best of many lags looks better there than it is. Without lags: of the
  // numbers, or of their differences along the array.
  PYF_MODEL std::uint32_t tested_bits(const Strides& of) const {
    std::uint32_t own = 0, changed = 0;
    each(chunk.team, kTested, [&](std::uint32_t i) {
      const std::uint64_t at = position(i, kTested);
      U x = 0, beside = 0;
      for (std::uint32_t set = 0; set < 1u << of.count; ++set) {
        const std::uint64_t back = of.sum(set);
        if (back + apart > at) continue;
        const U far = number(at - back), further = number(at - back - apart);
        x = is_subtracted(set) ? x - far : x + far;
        beside = is_subtracted(set) ? beside - further : beside + further;
      }
      own += bits(x);
      changed += bits(static_cast<U>(x - beside));
    });
    own = sum_of(chunk.team, own);
    changed = sum_of(chunk.team, changed);
    return own < changed ? own : changed;
  }
};

// Finds a lag that saves at least half a bit a value, such as the length of a row. Multiples of a lag are about as
// good: the shortest one is taken. A second lag, such as the size of a plane, must save half a bit more.
template <class T, class Team>
PYF_MODEL Strides find_lags(const Trained<T, Team>& chunk) {
  using Search = LagSearch<T, Team>;
  constexpr std::uint32_t kHalfBit = Search::kTested / 2, kAsGood = Search::kTested / 5;
  const Search search(chunk);
  Strides found;
  if (chunk.axes.count != 1 || search.lags < 8) return found;
  search.rate_all();
  const std::uint32_t plain = search.tested_bits(found);
  std::uint64_t kept[Search::kKept] = {};
  std::uint32_t least = plain, lag = 0;
  for (std::uint32_t i = 0; i < Search::kKept; ++i) {
    kept[i] = search.next_best(kept, i);
    const std::uint32_t own = static_cast<std::uint32_t>(kept[i]) + 1,
                        bits = search.tested_bits({1, {own * search.apart}});
    lag = bits < least ? own : lag;
    least = bits < least ? bits : least;
  }
  if (least + kHalfBit > plain) return found;
  std::uint32_t shortest = lag;
  for (std::uint32_t part = 2; part < shortest; ++part)
    if (lag % part == 0 && search.tested_bits({1, {part * search.apart}}) <= least + kAsGood) shortest = part;
  found = {1, {shortest * search.apart}};
  // the second one: the lag that was found; if it is its own shortest one, it may be a plane's and a part of it a row's
  const bool own = shortest == lag;
  for (std::uint32_t part = own ? lag / 2 : shortest; part >= (own ? 2 : shortest) && found.count == 1; --part)
    if (lag % part == 0 && search.tested_bits({2, {part * search.apart, lag * search.apart}}) + kHalfBit <= least)
      found = {2, {part * search.apart, lag * search.apart}};
  return found;
}

PYF_END_TARGET
