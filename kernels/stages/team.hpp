// SPDX-License-Identifier: BSD-3-Clause
// Threads that make the choices of a chunk together. All of them call a function that takes a team. On a CPU a thread
// is Alone; a GPU has thread blocks with the same members (cuda/block_team.cuh). What a team computes does not depend
// on its size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/target.hpp"

// Functions that all threads of a team call.
#if defined(__CUDACC__)
#define PYF_ON_TEAM __device__
#else
#define PYF_ON_TEAM
#endif

PYF_BEGIN_TARGET

struct Alone {
  static constexpr std::uint32_t kSize = 1;

  KFN static std::uint32_t rank() { return 0; }
  // Waits for all threads: what they have written can be read.
  KFN static void wait() {}
  KFN static void add(std::uint32_t& sum, std::uint32_t x) { sum += x; }
  // Replaces `expected` at a place; returns what was there.
  template <class U>
  KFN static U replace(U& place, U expected, U wanted) {
    const U before = place;
    if (before == expected) place = wanted;
    return before;
  }
  // Joins what each thread has; `join` is commutative and associative. Waits.
  template <class X, class Join>
  KFN static X joined(X own, const Join& /*join*/) {
    return own;
  }
  // The least number and the sum over the threads of a small team. Numbers are unsigned, of 32 bits; least() takes
  // doubles, too.
  template <class X>
  KFN static X least(X own) {
    return own;
  }
  KFN static std::uint32_t sum(std::uint32_t own) { return own; }
  // Returns the sum of the numbers `own` of the threads with a lower rank; *all: the sum over all threads. Waits.
  KFN static std::uint32_t sum_before(std::uint32_t own, std::uint32_t* all) {
    *all = own;
    return 0;
  }
  // Sorts numbers in ascending order; `other` has as much memory. Waits.
  template <class U>
  static void sort(U* numbers, std::uint32_t count, U* other);
  // Calls work(few) with a team of few threads that share no work with the others; the others wait. each_of_few() calls
  // work(few, i) for each index, for several at a time.
  template <class Work>
  KFN static void with_few(const Work& work) {
    work(Alone{});
  }
  template <class Work>
  KFN static void each_of_few(std::uint32_t count, const Work& work) {
    for (std::uint32_t i = 0; i < count; ++i) work(Alone{}, i);
  }
};

// Work for each index below `count`, shared among the threads.
template <class Team, class Work>
KFN void each(const Team& team, std::uint32_t count, const Work& work) {
  for (std::uint32_t i = team.rank(); i < count; i += Team::kSize) work(i);
}
// The same for `rows` rows of `length` indices: work(row, index in the row, index).
template <class Team, class Work>
KFN void each_in_rows(const Team& team, std::uint32_t rows, std::uint32_t length, const Work& work) {
  if constexpr (Team::kSize == 1) {
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t i = 0; i < length; ++i) work(row, i, row * length + i);
  } else {
    each(team, rows * length, [&](std::uint32_t at) { work(at / length, at % length, at); });
  }
}
// The same for a share of neighbouring indices in each thread: work(begin, end).
template <class Team, class Work>
KFN void share(const Team& team, std::uint32_t count, const Work& work) {
  const std::uint32_t most = (count + Team::kSize - 1) / Team::kSize, begin = team.rank() * most;
  work(begin < count ? begin : count, begin + most < count ? begin + most : count);
}
// Whether `own` is true for any thread. Waits, and so does sum_of(), the sum of `own` over all threads.
template <class Team>
KFN bool any_of(const Team& team, bool own) {
  return team.joined(own ? 1u : 0u, [](std::uint32_t a, std::uint32_t b) { return a | b; }) != 0;
}
template <class Team, class X>
KFN X sum_of(const Team& team, X own) {
  return team.joined(own, [](X a, X b) { return static_cast<X>(a + b); });
}

// The least number over the threads of a small team. `index` becomes the lowest one of the threads that have it.
template <class Few>
KFN double least_of(const Few& few, double own, std::uint32_t& index) {
  const double least = few.least(own);
  index = few.least(own == least ? index : ~0u);
  return least;
}

// Places chosen indices below `count` in their order. choose(begin, end, note) calls note(i) for those of [begin, end),
// the same ones whenever it is called. Calls put(i, place) for each; returns how many there are. Waits in between.
template <class Team, class Choose, class Put>
KFN std::uint32_t place_chosen(const Team& team, std::uint32_t count, const Choose& choose, const Put& put) {
  std::uint32_t all = 0;
  if constexpr (Team::kSize == 1) {
    choose(0, count, [&](std::uint32_t i) { put(i, all++); });
    return all;
  }
  share(team, count, [&](std::uint32_t begin, std::uint32_t end) {
    std::uint32_t own = 0;
    choose(begin, end, [&](std::uint32_t) { ++own; });
    std::uint32_t place = team.sum_before(own, &all);
    choose(begin, end, [&](std::uint32_t i) { put(i, place++); });
  });
  return all;
}

// Sorts by bytes from the lowest on. Bytes that all numbers share are skipped.
template <class U>
inline void Alone::sort(U* numbers, std::uint32_t count, U* other) {
  std::uint32_t counts[sizeof(U)][256] = {};
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::size_t byte = 0; byte < sizeof(U); ++byte) ++counts[byte][numbers[i] >> (8 * byte) & 255];
  U *from = numbers, *to = other;
  for (std::size_t byte = 0; byte < sizeof(U); ++byte) {
    std::uint32_t(&of)[256] = counts[byte];
    if (count == 0 || of[from[0] >> (8 * byte) & 255] == count) continue;
    std::uint32_t before = 0;
    for (std::uint32_t& one : of) {
      const std::uint32_t own = one;
      one = before;
      before += own;
    }
    for (std::uint32_t i = 0; i < count; ++i) to[of[from[i] >> (8 * byte) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != numbers) std::copy_n(from, count, numbers);
}

// Sums `count` numbers, a multiple of 32, in an order that does not depend on the team: 32 sums of every 32nd number,
// then sums of two neighbours each. A team has one thread or 32. `blocks`: a bit for each 32 numbers, 0 only if all of
// them are 0, for at most 1024 numbers.
template <class Team, class Number>
KFN double ordered_sum(const Team& team, std::uint32_t count, const Number& number, std::uint32_t blocks = ~0u) {
  if constexpr (Team::kSize == 1) {
    double sums[32] = {};
    for (std::uint32_t from = 0; from < count; from += 32) {
      if (from < 1024 && (blocks >> from / 32 & 1) == 0) continue;
      for (std::uint32_t i = 0; i < 32; ++i) sums[i] += number(from + i);
    }
    for (std::uint32_t by = 1; by < 32; by *= 2)
      for (std::uint32_t i = 0; i < 32; i += 2 * by) sums[i] += sums[i + by];
    return sums[0];
  } else {
    static_assert(Team::kSize == 32);
    double own = 0;
    each(team, count, [&](std::uint32_t i) { own += number(i); });
    return team.joined(own, [](double a, double b) { return a + b; });
  }
}

PYF_END_TARGET
