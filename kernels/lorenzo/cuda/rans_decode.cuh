// SPDX-License-Identifier: BSD-3-Clause
// Rounds of a rans stream by a warp (lorenzo/cpu/lanes.hpp goes lane by lane), and the flags of a tile's blocks.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "lorenzo/cuda/group_tiles.cuh"
#include "lorenzo/cuda/rans_steps.cuh"
#include "lorenzo/cuda/rans_words.cuh"
#include "lorenzo/cuda/states.cuh"
#include "lorenzo/cuda/warp_sums.cuh"
#include "lorenzo/rans.hpp"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Decodes steps kFrom to kAt + 3 as if no symbol had outer bits or were an escape; true if one has. Steps next to the
// round's first step check how large the first residual is.
template <int S, int kFrom, int kAt, class Code>
__device__ __forceinline__ bool decode_four(const RansTables& tables, bool active, std::uint32_t& x, WordsForth& words,
                                            Code (&z)[32]) {
  constexpr Neighbours kNear = make_neighbours<S>();
  bool slow = false;
#pragma unroll
  for (int i = kFrom; i < kAt + 4; ++i) {
    const int a = kNear.first[i], b = kNear.second[i];
    const std::uint32_t table = a == 0 || b == 0
                                    ? tables.entries + tables.of_sum(capped(z[a]) + capped(z[b])) * (4 * kFrequencySum)
                                    : load_table(tables.levels + 4 * static_cast<std::uint32_t>(z[a] + z[b]));
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

// Decodes steps kAt to kAt + 3, a four of the round. The round's first step is handled separately, since it is often
// slow.
template <int S, int kAt, class Code>
__device__ __forceinline__ void decode_steps(const RansTables& tables, int number, bool active, std::uint32_t& x,
                                             WordsForth& words, Code (&z)[32], RoundPast& past, bool& failed) {
  constexpr Neighbours kNear = make_neighbours<S>();
  constexpr int kFrom = kAt == 0 ? 1 : kAt;
  words.advance();
  if constexpr (kAt == 0) {
    const DecodedStep step = decode_step(tables.entries + tables.first * (4 * kFrequencySum), x);
    z[0] = step.value;
    x = step.x;
    if (__any_sync(kAllLanes, active && step.slow())) {
      const CalledStep<Code> first = decode_first_slow<Code>(step, active, words);
      z[0] = first.step.value;
      x = first.step.x;
      words = first.words;
      failed = failed || first.step.failed;
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
  if (again) {
    const FourSteps<Code> four = [&] {
      if constexpr (S == kColumns &&
                    kAt != 0) {  // a frequent case: inline, since a call would wait for the words in flight
        return decode_four_line<Code>(tables, capped(z[kAt - 2]), capped(z[kAt - 1]), 0, active, x, words);
      } else if constexpr (S == kChain || S == kColumns) {
        return call_four_line<Code>(tables, capped(z[kAt == 0 ? 0 : kAt - 2]), capped(z[kFrom - 1]), kFrom - kAt,
                                    active, x, words);
      } else {
        std::uint32_t sums[4] = {}, weights = 0;
#pragma unroll
        for (int i = kFrom; i < kAt + 4; ++i) {
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            const int near = n == 0 ? kNear.first[i] : kNear.second[i];
            if (near < kFrom)
              sums[i - kAt] += capped(z[near]);
            else
              weights += 1u << (2 * (i - kAt) + (i - near == 2 ? 8 : 0));
          }
        }
        return decode_four_slow<Code>(tables, sums[0], sums[1], sums[2], sums[3], weights, kFrom - kAt, active, x,
                                      words);
      }
    }();
    if (kAt != 0) z[kAt] = four.z0;
    z[kAt + 1] = four.z1;
    z[kAt + 2] = four.z2;
    z[kAt + 3] = four.z3;
    x = four.x;
    words = four.words;
    failed = failed || four.failed;
    past.slow = (past.slow & ~(1u << number)) | (four.slow ? 1u << number : 0);
    past.large |= four.large ? 1 : 0;
  }
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

// Decodes a round: the residuals of 32 blocks, a lane each, to the rows of `memory`. True if a residual does not fit a
// code.
template <class Map, int S>
__device__ __forceinline__ bool decode_round(const RansTables& tables, bool active, std::uint32_t& state,
                                             WordsForth& words, RoundPast& past, std::uint8_t* rows) {
  using Code = typename Map::Code;
  auto* const row = reinterpret_cast<uint4*>(run_row<S, typename Map::Value>(rows, threadIdx.x % 32));
  constexpr int kPieces = sizeof(Code) / 4;
  Code z[32];
  bool failed = false;
  std::uint32_t x = state;
  past.large = 0;
  const auto steps = [&]<int kAt>(std::integral_constant<int, kAt>, int four) {
    decode_steps<S, kAt>(tables, four, active, x, words, z, past, failed);
    alignas(16) const Code done[4] = {z[kAt], z[kAt + 1], z[kAt + 2], z[kAt + 3]};
#pragma unroll
    for (int p = 0; p < kPieces; ++p) row[four * kPieces + p] = reinterpret_cast<const uint4*>(done)[p];
  };
  const auto four_again = [&]<int kAt>(std::integral_constant<int, kAt>, int four) {
    alignas(16) Code done[4];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) reinterpret_cast<uint4*>(done)[p] = row[four * kPieces + p];
#pragma unroll
    for (int i = 0; i < 4; ++i) z[kAt + i] = done[i];
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
#pragma unroll 1
    for (int four = 1; four < 4; ++four) {
      if (four > 1) move(std::integer_sequence<int, 4, 0, 4>{});
      steps(std::integral_constant<int, 4>{}, four);
    }
    four_again(std::integral_constant<int, 0>{}, 0);
    steps(std::integral_constant<int, 16>{}, 4);
#pragma unroll 1
    for (int four = 5; four < 8; ++four) {
      if (four > 5) move(std::integer_sequence<int, 20, 16, 4>{});
      four_again(std::integral_constant<int, 4>{}, four - 4);
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

// Residuals of a group's tiles, run by run, from its rans stream. The residuals of a round wait in the warp's row
// memory. kTile: the warp's tile data is in shared memory.
template <class Map, int S, bool kTile>
struct RansSource {
  using Code = typename Map::Code;
  using Value = typename Map::Value;
  static constexpr bool kHeadFlags = false, kRows = true, kNarrow = false, kSharedTile = kTile;
  using Tables = RansTables;
  struct Parked {  // a copy of this lane's row, in local memory rather than registers
    uint4 pieces[2 * sizeof(Code)];
    __device__ __forceinline__ void take(const std::uint8_t* row) {
#pragma unroll 4
      for (unsigned i = 0; i < sizeof pieces / 16; ++i) pieces[i] = reinterpret_cast<const uint4*>(row)[i];
    }
    __device__ __forceinline__ void give(std::uint8_t* row) const {
#pragma unroll 4
      for (unsigned i = 0; i < sizeof pieces / 16; ++i) reinterpret_cast<uint4*>(row)[i] = pieces[i];
    }
  };
  struct WarpSpace {
    std::uint16_t* ring;       // kRingWords, aligned to their size
    std::uint8_t* rows;        // rows of 32 blocks
    const std::uint8_t* zero;  // one row of zeros
    WarpTile* tile;
  };

  const Tables tables;
  const WarpSpace& space;
  WordsForth words;
  RoundPast past;
  std::uint32_t x;
  std::uint32_t taken;           // blocks of the rounds so far
  bool waiting, failed = false;  // waiting: rows of the next run are decoded

  // `bytes`: the group behind its head.
  __device__ __forceinline__ RansSource(const Tables& t, const WarpSpace& given, const std::uint8_t* bytes,
                                        const OpenedStream& stream)
      : tables(t), space(given), words(bytes + 4 * stream.at, stream.count, given.ring), x(stream.x) {}
  __device__ __forceinline__ WarpTile& tile() const { return *space.tile; }

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
  __device__ __forceinline__ Fault begin_tile(std::uint32_t) {
    waiting = false;
    taken = 0;
    return Fault::none;
  }
  // Delivers the residuals of a run with coded blocks; other blocks get 0. `before`: coded blocks of earlier runs.
  __device__ __forceinline__ void take_run(std::uint32_t before, std::uint32_t bits, std::uint32_t count,
                                           Parked& parked, Code (&y)[32]) {
    const unsigned lane = threadIdx.x % 32;
    const bool has = (bits >> lane & 1) != 0;
    const std::uint32_t own = before + static_cast<std::uint32_t>(__popc(static_cast<int>(bits & ((1u << lane) - 1)))),
                        behind = before + static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
    const bool both = before < taken && behind > taken;  // the run needs rows of two rounds, but the memory holds one
    const bool early = both && has && own < taken;
    if (early) parked.take(run_row<S, Value>(space.rows, own));
    __syncwarp();
    if (behind > taken) {
      failed = decode_round<Map, S>(tables, taken + lane < count, x, words, past, space.rows) || failed;
      taken += 32;
      __syncwarp();
    }
    read_row_at(has && !early ? run_row<S, Value>(space.rows, own) : space.zero, y);
    if (early) {
#pragma unroll
      for (unsigned i = 0; i < sizeof y / 16; ++i) reinterpret_cast<uint4*>(y)[i] = parked.pieces[i];
    }
    __syncwarp();
    waiting = taken > behind && count > behind;
  }
  // Called while the row memory is used for other rows.
  __device__ __forceinline__ void park_rows(Parked& parked) const {
    if (!waiting) return;
    parked.take(run_row<S, Value>(space.rows, threadIdx.x % 32));
    __syncwarp();
  }
  __device__ __forceinline__ void restore_rows(const Parked& parked) const {
    if (!waiting) return;
    parked.give(run_row<S, Value>(space.rows, threadIdx.x % 32));
    __syncwarp();
  }
  // Whether the whole stream is used and the states are the encoder's first ones. `end`: the end of the group.
  __device__ __forceinline__ bool ends(const std::uint8_t* end, std::uint32_t coder) const {
    const bool full = coder == kRansFull,
               used = words.at == words.count ||
                      (full && words.at + 1 == words.count && reinterpret_cast<const std::uint16_t*>(end)[-1] == 0);
    return used && !__any_sync(kAllLanes, failed || !(full ? x == kLowestState : is_first_state(x)));
  }
};

}  // namespace pyfilter::cuda
