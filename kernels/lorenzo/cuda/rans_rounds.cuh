// SPDX-License-Identifier: BSD-3-Clause
// Rounds of a rans stream by a warp (lorenzo/cpu/lanes.hpp goes lane by lane), and the flags of a tile's blocks. A sink
// takes a round's residuals, four steps at a time.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "lorenzo/cuda/group_tiles.cuh"
#include "lorenzo/cuda/rans_steps.cuh"
#include "lorenzo/cuda/rans_words.cuh"
#include "lorenzo/cuda/states.cuh"
#include "lorenzo/rans.hpp"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Four residuals below 2^8 in a word.
__device__ __forceinline__ std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return (a + (b << 8)) + ((c + (d << 8)) << 16);
}

// Decodes steps kFrom to kAt + 3 as if no symbol had outer bits or were an escape; true if one has. Steps next to the
// round's first step check how large the first residual is.
template <int S, int kFrom, int kAt>
__device__ __forceinline__ bool decode_four(const RansTables& tables, bool active, std::uint32_t& x, WordsForth& words,
                                            std::uint32_t (&z)[32]) {
  constexpr Neighbours kNear = make_neighbours<S>();
  bool slow = false;
#pragma unroll
  for (int i = kFrom; i < kAt + 4; ++i) {
    const int a = kNear.first[i], b = kNear.second[i];
    const std::uint32_t table = a == 0 || b == 0 ? tables.entries + tables.of_sum(z[a] + z[b]) * (4 * kFrequencySum)
                                                 : load_table(tables.entries + kLevelsAt + 4 * (z[a] + z[b]));
    const DecodedStep step = decode_step(table, x);
    slow = slow || step.slow();
    z[i] = step.value;
    x = step.x;
    words.refill(x, active);
  }
  return slow;
}

// The number of preceding fours of steps that contain neighbours.
template <int S>
inline constexpr std::uint32_t kNearFours = S == kVolume  ? 15
                                            : S == kPlane ? 3
                                                          : 1;
// History for predicting slow steps. Fours that were slow in the previous round are probably slow in this round. Fours
// of this round with large residuals (the last four in bit 0) are neighbours of later steps.
struct RoundPast {
  std::uint32_t slow = 0, large = 0;
};

// Decodes steps kAt to kAt + 3, four number `number` of the round, and gives them to the sink. `z`: residuals of the
// steps so far, at most kLevelCap. The round's first step is handled separately, since it is often slow.
template <class Code, int S, int kAt, class Sink>
__device__ __forceinline__ void decode_steps(const RansTables& tables, int number, bool active, std::uint32_t& x,
                                             WordsForth& words, std::uint32_t (&z)[32], RoundPast& past, bool& failed,
                                             Sink& sink) {
  constexpr Neighbours kNear = make_neighbours<S>();
  constexpr int kFrom = kAt == 0 ? 1 : kAt;
  words.advance();
  Code first = 0;
  bool first_slow = false;
  if constexpr (kAt == 0) {
    const DecodedStep step = decode_step(tables.entries + tables.first * (4 * kFrequencySum), x);
    z[0] = step.value;
    x = step.x;
    first_slow = __any_sync(kAllLanes, active && step.slow());
    if (first_slow) {
      const CalledStep<Code> called = decode_first_slow<Code>(step, active, words);
      first = called.step.value;
      z[0] = capped(first);
      x = called.step.x;
      words = called.words;
      failed = failed || called.step.failed;
    } else {
      words.refill(x, active);
    }
  }
  bool again = ((past.slow >> number & 1) | past.large) != 0;
  if (!again) {
    const std::uint32_t x_before = x, at_before = words.at;
    const bool slow = decode_four<S, kFrom, kAt>(tables, active, x, words, z);
    again = __any_sync(kAllLanes, active && slow);
    if (again) {
      x = x_before;
      words.at = at_before;
    }
  }
  past.large = past.large << 1 & kNearFours<S>;
  if (!again && !first_slow) {
    sink.take_small(number, z[kAt], z[kAt + 1], z[kAt + 2], z[kAt + 3]);
    return;
  }
  if (kAt == 0 && !first_slow) first = z[0];
  if (!again) {
    sink.take(number, active, first, static_cast<Code>(z[kAt + 1]), static_cast<Code>(z[kAt + 2]),
              static_cast<Code>(z[kAt + 3]));
    return;
  }
  const FourSteps<Code> four = [&] {
    if constexpr (S == kColumns &&
                  kAt != 0) {  // a frequent case: inline, since a call would wait for the words in flight
      return decode_four_line<Code>(tables, z[kAt - 2], z[kAt - 1], 0, active, x, words);
    } else if constexpr (S == kChain || S == kColumns) {
      return call_four_line<Code>(tables, z[kAt == 0 ? 0 : kAt - 2], z[kFrom - 1], kFrom - kAt, active, x, words);
    } else {
      std::uint32_t sums[4] = {}, weights = 0;
#pragma unroll
      for (int i = kFrom; i < kAt + 4; ++i) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const int near = n == 0 ? kNear.first[i] : kNear.second[i];
          if (near < kFrom)
            sums[i - kAt] += z[near];
          else
            weights += 1u << (2 * (i - kAt) + (i - near == 2 ? 8 : 0));
        }
      }
      return decode_four_slow<Code>(tables, sums[0], sums[1], sums[2], sums[3], weights, kFrom - kAt, active, x, words);
    }
  }();
  if (kAt != 0) first = four.z0;
  z[kAt] = capped(first);
  z[kAt + 1] = capped(four.z1);
  z[kAt + 2] = capped(four.z2);
  z[kAt + 3] = capped(four.z3);
  x = four.x;
  words = four.words;
  failed = failed || four.failed;
  past.slow = (past.slow & ~(1u << number)) | (four.slow ? 1u << number : 0);
  past.large |= four.large ? 1 : 0;
  sink.take(number, active, first, four.z1, four.z2, four.z3);
}

// Whether fours of a block, `step` apart, have neighbours at the same distances as the steps from `at` on.
template <int S>
constexpr bool repeats_four(int at, int first, int last, int step) {
  constexpr Neighbours kNear = make_neighbours<S>();
  for (int four = first; four < last; four += step)
    for (int i = 0; i < 4; ++i)
      if (kNear.first[4 * four + i] + at != kNear.first[at + i] + 4 * four ||
          kNear.second[4 * four + i] + at != kNear.second[at + i] + 4 * four)
        return false;
  return true;
}

// The four rows of a volume's first plane, a byte for each residual. A row with a larger residual is read back from the
// sink.
template <class Sink>
struct FourRows {
  const Sink& sink;
  std::uint32_t rows[4];

  __device__ __forceinline__ explicit FourRows(const Sink& s) : sink(s), rows{} {}
  // Keeps the row z[at] to z[at + 3], behind three earlier ones.
  __device__ __forceinline__ void keep(int at, const std::uint32_t (&z)[32]) {
#pragma unroll
    for (int i = 0; i < 3; ++i) rows[i] = rows[i + 1];
    rows[3] = bytes_of(z[at], z[at + 1], z[at + 2], z[at + 3]);
  }
  // Takes the earliest row, which is `four`, to z[at] to z[at + 3].
  __device__ __forceinline__ void give(int four, int at, std::uint32_t (&z)[32]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) z[at + i] = rows[0] >> 8 * i & 0xFF;
#pragma unroll
    for (int i = 0; i < 3; ++i) rows[i] = rows[i + 1];
    if (!sink.is_small(four)) sink.give(four, z[at], z[at + 1], z[at + 2], z[at + 3]);
  }
};

// Decodes a round, the residuals of 32 blocks, a lane each. True if a residual does not fit a code. Calls of the sink,
// for each four steps: take_small() with residuals below 2^8, or take() with any.
template <class Code, int S, class Sink>
__device__ __forceinline__ bool decode_round(const RansTables& tables, bool active, std::uint32_t& state,
                                             WordsForth& words, RoundPast& past, Sink& sink) {
  std::uint32_t z[32];
  bool failed = false;
  std::uint32_t x = state;
  past.large = 0;
  const auto steps = [&]<int kAt>(std::integral_constant<int, kAt>, int four) {
    decode_steps<Code, S, kAt>(tables, four, active, x, words, z, past, failed, sink);
  };
  const auto move = [&]<int kFrom, int kTo, int kCount>(std::integer_sequence<int, kFrom, kTo, kCount>) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) z[kTo + i] = z[kFrom + i];
  };
  // Loops keep the code small: a multiprocessor waits for instructions that its cache does not hold.
  steps(std::integral_constant<int, 0>{}, 0);
  if constexpr (S == kChain || S == kColumns) {  // neighbours are the two previous steps
    static_assert(repeats_four<S>(4, 1, 8, 1));
#pragma unroll 1
    for (int four = 1; four < 8; ++four) {
      if (four > 1) move(std::integer_sequence<int, 6, 2, 2>{});
      steps(std::integral_constant<int, 4>{}, four);
    }
  } else if constexpr (S == kPlane) {  // rows of eight steps
    static_assert(repeats_four<S>(8, 2, 8, 2) && repeats_four<S>(12, 3, 8, 2));
    steps(std::integral_constant<int, 4>{}, 1);
#pragma unroll 1
    for (int four = 2; four < 8; four += 2) {
      if (four > 2) move(std::integer_sequence<int, 8, 0, 8>{});
      steps(std::integral_constant<int, 8>{}, four);
      steps(std::integral_constant<int, 12>{}, four + 1);
    }
  } else {  // rows of four steps; four rows are a plane, which the second plane's rows refer to
    static_assert(repeats_four<S>(4, 1, 4, 1) && repeats_four<S>(20, 5, 8, 1));
    FourRows<Sink> rows(sink);
    rows.keep(0, z);
#pragma unroll 1
    for (int four = 1; four < 4; ++four) {
      if (four > 1) move(std::integer_sequence<int, 4, 0, 4>{});
      steps(std::integral_constant<int, 4>{}, four);
      rows.keep(4, z);
    }
    rows.give(0, 0, z);
    steps(std::integral_constant<int, 16>{}, 4);
#pragma unroll 1
    for (int four = 5; four < 8; ++four) {
      if (four > 5) move(std::integer_sequence<int, 20, 16, 4>{});
      rows.give(four - 4, 4, z);
      steps(std::integral_constant<int, 20>{}, four);
    }
  }
  state = active ? x : state;
  return failed;
}

// Flags of a tile's present blocks: the coded ones among a lane's four.
struct TileFlags {
  std::uint32_t own, x;
  WordsForth words;
};
static __device__ __noinline__ TileFlags decode_tile_flags(std::uint32_t frequencies, std::uint32_t here,
                                                           std::uint32_t x, WordsForth words) {
  std::uint32_t own = 0;
  words.advance();
#pragma unroll 1
  for (unsigned step = 0; step < 4; ++step) {
    const bool active = (here >> step & 1) != 0, has_before = step > 0 && (here >> (step - 1) & 1) != 0;
    const std::uint32_t context = flag_context(has_before, has_before && (own >> (step - 1) & 1) != 0);
    if (active && decode_flag(frequencies >> 10 * context & (kFrequencySum - 1), x)) own |= 1u << step;
    words.refill(x, active);
  }
  return {own, x, words};
}

// A group's stream as a warp reads it: the state of each lane, and the words.
struct RansStream {
  const RansTables& tables;  // in shared memory
  WordsForth words;
  RoundPast past;
  std::uint32_t x;

  // `bytes`: the group behind its head.
  __device__ __forceinline__ RansStream(const RansTables& t, const std::uint8_t* bytes, const OpenedStream& opened,
                                        const std::uint16_t* ring)
      : tables(t), words(bytes + 4 * opened.at, opened.count, ring), x(opened.x) {}

  __device__ __forceinline__ void read_flags(const std::uint32_t (&present)[4], std::uint32_t (&coded)[4]) {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t word = lane / 8 == 0   ? present[0]
                               : lane / 8 == 1 ? present[1]
                               : lane / 8 == 2 ? present[2]
                                               : present[3];
    const TileFlags flags = decode_tile_flags(tables.frequencies, word >> 4 * (lane % 8) & 15, x, words);
    words = flags.words;
    x = flags.x;
#pragma unroll
    for (unsigned w = 0; w < 4; ++w) {
      coded[w] = or_of_lanes(lane / 8 == w ? flags.own << 4 * (lane % 8) : 0);
    }
  }
  template <class Code, int S, class Sink>
  __device__ __forceinline__ bool decode_round(bool active, Sink& sink) {
    return cuda::decode_round<Code, S>(tables, active, x, words, past, sink);
  }
  // Whether the whole stream is used, no lane has failed, and the states are the encoder's first ones. `end`: the end
  // of the group.
  __device__ __forceinline__ bool ends(const std::uint8_t* end, bool full, bool failed) const {
    const bool used = words.at == words.bytes ||
                      (full && words.at + 2 == words.bytes && reinterpret_cast<const std::uint16_t*>(end)[-1] == 0);
    return used && !__any_sync(kAllLanes, failed || !(full ? x == kLowestState : is_first_state(x)));
  }
};

}  // namespace pyfilter::cuda
