// SPDX-License-Identifier: BSD-3-Clause
// Rounds of a rans stream (stages/entropy/lanes.hpp has them one lane after the other) by a warp, and the flags of a
// tile's blocks.
#pragma once

#include <cstdint>

#include "stages/cuda/entropy/group_tiles.cuh"
#include "stages/cuda/entropy/warp_sums.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/entropy/rans.hpp"

namespace pyfilter::cuda {

// Loads from shared memory by addresses of 32 bits. What the tables hold does not change.
__device__ __forceinline__ std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}
__device__ __forceinline__ std::uint32_t load_table(std::uint32_t address) {
  std::uint32_t word;
  asm("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}
__device__ __forceinline__ std::uint32_t load_half(std::uint32_t address) {
  std::uint16_t half;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(address));
  return half;
}
__device__ __forceinline__ void store_word(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

// The words of a stream, forwards, through a ring of eight parts in shared memory: what the next four steps may take is
// there, the part behind it on its way. Words behind the end are 0.
inline constexpr std::uint32_t kPartWords = 64, kRingWords = 8 * kPartWords;
struct WordsForth {
  const std::uint32_t* from;
  std::uint32_t ring;         // its address, a multiple of its size
  std::uint32_t count, at;    // words; used so far
  std::uint32_t parts, next;  // parts that are or were in the ring; two words of this lane, of the part behind them

  __device__ __forceinline__ std::uint32_t load(std::uint32_t part) const {
    const std::uint32_t word = part * kPartWords + 2 * (threadIdx.x % 32);
    return word < count ? from[word / 2] : 0;  // the number of words is even
  }
  __device__ __forceinline__ void put(std::uint32_t words) {
    store_word(ring | (parts % 8 * (2 * kPartWords) + 4 * (threadIdx.x % 32)), words);
    ++parts;
  }
  __device__ __forceinline__ WordsForth(const void* bytes, std::uint32_t words, const std::uint16_t* room)
      : from(static_cast<const std::uint32_t*>(bytes)), ring(shared_address(room)), count(words), at(0), parts(0) {
    __syncwarp();
#pragma unroll
    for (std::uint32_t part = 0; part < 4; ++part) put(load(part));
    next = load(4);
    __syncwarp();
  }
  // Before up to four times refill().
  __device__ __forceinline__ void advance() {
    if (at / kPartWords + 4 <= parts) return;  // in all lanes
#pragma unroll 1
    do {
      put(next);
      next = load(parts);
    } while (at / kPartWords + 4 > parts);
    __syncwarp();
  }
  // Of the lanes whose state is too small, those before come before.
  __device__ __forceinline__ void refill(std::uint32_t& x, bool active) {
    const bool needs = active && x < kLowestState;
    const std::uint32_t taking = __ballot_sync(kAllLanes, needs);
    const auto below = static_cast<std::uint32_t>(__popc(static_cast<int>(taking & ((1u << threadIdx.x % 32) - 1))));
    if (needs) x = x << 16 | load_half(ring | ((at + below) * 2 & (2 * kRingWords - 1)));
    at += static_cast<std::uint32_t>(__popc(static_cast<int>(taking)));
  }
};

template <class Code>
struct SlowStep {
  Code value;
  bool failed;
  std::uint32_t x;
  WordsForth words;
};

// The rest of a step where a lane's symbol has more than inner bits, or is an escape: `state` is that before any bits
// are taken. Other lanes have their value and x, and get words.
template <class Code>
__device__ __noinline__ SlowStep<Code> decode_slow(std::uint32_t entry, std::uint32_t state, std::uint32_t value,
                                                   bool active, std::uint32_t x, WordsForth words) {
  constexpr std::uint32_t kSymbolsHere = symbols_of_width(8 * sizeof(Code));
  const std::uint32_t symbol = entry & 0xFF, inner = symbol == kEscape ? 0 : kInnerBits;
  const bool slow = active && entry >= kSlowEntry, escaped = symbol == kEscape;
  SlowStep<Code> out = {value, slow && !escaped && symbol >= kSymbolsHere, slow ? state >> inner : x, words};
  out.words.refill(out.x, active);
  std::uint32_t left = !slow || out.failed ? 0 : escaped ? ~0u : outer_bits(symbol), taken = kInnerBits;
  if (slow && !out.failed && !escaped)
    out.value = static_cast<Code>(smallest_of<Code>(symbol) + (state & ((1u << kInnerBits) - 1)));
#pragma unroll 1
  while (__any_sync(kAllLanes, left != 0)) {
    const bool takes = left != 0;
    out.words.advance();
    if (left == ~0u) {
      const std::uint32_t s = out.x & ((1u << kEscapeBits) - 1);
      out.x >>= kEscapeBits;
      out.failed = out.failed || s >= kSymbolsHere;
      out.value = out.failed ? Code{0} : smallest_of<Code>(s);
      left = out.failed ? 0 : raw_bits(s);
      taken = 0;
    } else if (takes) {
      const std::uint32_t bits = min(left, kStepBits);
      out.value += static_cast<Code>(out.x & ((1u << bits) - 1)) << taken;
      out.x >>= bits;
      taken += bits;
      left -= bits;
    }
    out.words.refill(out.x, takes);
  }
  out.words.advance();
  return out;
}

// A round: this lane's residuals, if it is active. True where a symbol has no room in its code. `entries`: the address
// of the tables, a multiple of 4096.
template <class Code, int S>
__device__ __forceinline__ bool decode_round(std::uint32_t entries, const TableOfSum& table_of,
                                             std::uint32_t first_table, bool active, std::uint32_t& state,
                                             WordsForth& words, Code (&z)[32]) {
  constexpr Neighbours kNear = make_neighbours<S>();
  bool failed = false;
  std::uint32_t x = state;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (i % 4 == 0) words.advance();
    const std::uint32_t table = i == 0 ? first_table : table_of(capped(z[kNear.first[i]]) + capped(z[kNear.second[i]]));
    const std::uint32_t entry = load_table((x << 2 & (4 * kFrequencySum - 4) | entries) + table * (4 * kFrequencySum));
    x = (entry >> 8 & 0x7FF) * (x >> kProbabilityBits) + (entry >> 19 & 0x3FF);
    const std::uint32_t raw = entry >> 29, before = x, value = (entry & 0xFF) + (x & ~(~0u << raw));
    x >>= raw;
    if (__any_sync(kAllLanes, active && entry >= kSlowEntry)) {
      const SlowStep<Code> slow = decode_slow<Code>(entry, before, value, active, x, words);
      z[i] = slow.value;
      x = slow.x;
      words = slow.words;
      failed = failed || slow.failed;
    } else {
      z[i] = value;
      words.refill(x, active);
    }
  }
  state = active ? x : state;
  return failed;
}

// Flags of a tile's present blocks: which are coded, of a lane's four.
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

// Residuals of a group's tiles, run by run, from its rans stream.
template <class Map, int S>
struct RansSource {
  using Code = typename Map::Code;
  static constexpr bool kHeadFlags = false, kRows = true;
  struct Tables {
    std::uint32_t entries;  // an address in shared memory
    TableOfSum of_sum;
    std::uint32_t first, frequencies;  // the table of a block's first residual; of flags, ten bits each
  };
  struct WarpSpace {
    alignas(2 * kRingWords) std::uint16_t ring[kRingWords];
  };

  const Tables tables;
  WordsForth words;
  std::uint32_t x;
  volatile Code parked[32];    // residuals of a round whose blocks belong to the next run: not in registers
  std::uint32_t taken, block;  // blocks of the rounds so far; this lane's
  bool pending, failed = false;

  // The states and words behind a group's head; `lanes` of them have a state.
  __device__ __forceinline__ RansSource(const Tables& t, WarpSpace& space, const std::uint8_t* bytes,
                                        std::uint32_t size, std::uint32_t lanes)
      : tables(t), words(bytes + 4 * lanes, (size - 4 * lanes) / 2, space.ring), x(kLowestState) {
    if (threadIdx.x % 32 < lanes) x = reinterpret_cast<const std::uint32_t*>(bytes)[threadIdx.x % 32];
  }
  __device__ __forceinline__ bool states_good() const {
    return !__any_sync(kAllLanes, x < kLowestState || (x >> kStateBits) != 0);
  }

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
    pending = false;
    taken = block = 0;
    return Fault::none;
  }
  // Residuals of the coded blocks of a run, which has some, to their rows.
  template <class PutRow>
  __device__ __forceinline__ void prepare_run(int run, const std::uint32_t (&coded)[4], std::uint32_t count,
                                              std::uint32_t bits, const PutRow& put_row) {
    __syncwarp();
    auto left = static_cast<std::uint32_t>(__popc(static_cast<int>(bits)));
    Code z[32];
    if (__any_sync(kAllLanes, pending)) {
#pragma unroll
      for (int n = 0; n < 32; ++n) z[n] = parked[n];
    }
#pragma unroll 1
    while (left != 0) {
      if (!__any_sync(kAllLanes, pending)) {
        const std::uint32_t k = taken + threadIdx.x % 32;
        pending = k < count;
        block = pending ? nth_block(coded, k) : 0;
        failed = decode_round<Code, S>(tables.entries, tables.of_sum, tables.first, pending, x, words, z) || failed;
        taken += 32;
      }
      const bool here = pending && block / 32 == static_cast<unsigned>(run);
      if (here) put_row(block, z);
      left -= static_cast<unsigned>(__popc(static_cast<int>(__ballot_sync(kAllLanes, here))));
      pending = pending && !here;
    }
    if (__any_sync(kAllLanes, pending)) {
#pragma unroll
      for (int n = 0; n < 32; ++n) parked[n] = z[n];
    }
    __syncwarp();
  }
  __device__ __forceinline__ bool has_row(std::uint32_t bits) const { return (bits >> threadIdx.x % 32 & 1) != 0; }
  __device__ __forceinline__ void read_row(std::uint8_t* room, Code (&y)[32]) const {
    read_run_row<S, typename Map::Value>(room, threadIdx.x % 32, y);
  }
  // All of the stream is used, and the states are what they were when it was begun. `end` is that of the group.
  __device__ __forceinline__ bool ends(const std::uint8_t* end) const {
    const bool used = words.at == words.count ||
                      (words.at + 1 == words.count && reinterpret_cast<const std::uint16_t*>(end)[-1] == 0);
    return used && !__any_sync(kAllLanes, failed || x != kLowestState);
  }
};

}  // namespace pyfilter::cuda
