// SPDX-License-Identifier: BSD-3-Clause
// A stream of bins (docs/format.md, section 15.4), decoded by a warp with a thread for each lane; cpu/bin_streams.hpp
// is the same lane by lane.
#pragma once

#include <cstdint>

#include "core/wire.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

__device__ __forceinline__ std::uint32_t lane_of_warp() { return threadIdx.x % 32; }

// Tables of a stream in the shared memory of a thread block.
template <class U>
struct BlockTables {
  SymbolTables of_symbols;
  DecodedBin<U> bins[kSymbols];
  std::uint8_t table_of_level[kBinLevels];

  // Called by all threads of a block, between barriers.
  __device__ __forceinline__ void load(const BinModel& model, const SymbolTables& from) {
    const auto copy = [](void* to, const void* source, std::uint32_t bytes) {
      for (std::uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x)
        static_cast<uint4*>(to)[i] = static_cast<const uint4*>(source)[i];
    };
    copy(of_symbols.ranges, from.ranges, model.tables * kSymbols * 4);
    copy(of_symbols.symbols, from.symbols, model.tables * kBinSlots);
    for (std::uint32_t s = threadIdx.x; s < kSymbols; s += blockDim.x) bins[s] = decoded_bin<U>(model, s);
    for (std::uint32_t l = threadIdx.x; l < kBinLevels; l += blockDim.x) table_of_level[l] = model.table_of_level[l];
  }
};

// A number in bin order: the lowest one of its bin, and an offset, whose words are loaded and not yet used.
template <class U>
struct PendingNumber {
  U lowest;
  std::uint32_t bit, count;  // of the offset
  std::uint32_t words[sizeof(U) == 8 ? 3 : 2];

  static __device__ __forceinline__ PendingNumber known(U number) {
    PendingNumber p = {};
    p.lowest = number;
    return p;
  }
  __device__ __forceinline__ U value() const {
    const std::uint32_t low = __funnelshift_r(words[0], words[1], bit) & ~__funnelshift_lc(0u, ~0u, count);
    if constexpr (sizeof(U) == 4) {
      return lowest + low;
    } else {
      const std::uint32_t high =
          __funnelshift_r(words[1], words[2], bit) & ~__funnelshift_lc(0u, ~0u, count > 32 ? count - 32 : 0);
      return lowest + (U{high} << 32 | low);
    }
  }
};

// The bits of a unit, whose first word is aligned. Reads beyond the last word are reads of the last word.
struct UnitBits {
  const std::uint32_t* words;
  std::uint32_t last;

  // Begins to read `count` bits, at most as many as U has, from bit number `bit` on.
  template <class U>
  __device__ __forceinline__ PendingNumber<U> begin(U lowest, std::uint32_t bit, std::uint32_t count) const {
    PendingNumber<U> p = {lowest, bit, count, {}};
#pragma unroll
    for (std::uint32_t i = 0; i < sizeof p.words / 4; ++i) p.words[i] = __ldg(words + min(bit / 32 + i, last));
    return p;
  }
  __device__ __forceinline__ std::uint32_t take(std::uint32_t bit, std::uint32_t count) const {
    return begin<std::uint32_t>(0, bit, count).value();
  }
};

// The parts of a stream that a warp decodes. The state of each lane is in its thread.
template <class T>
struct BinStream {
  using U = NumberOf<T>;

  UnitBits unit;
  const std::uint8_t* words;    // 16 bits each
  std::int32_t last_word;       // -1: none, and the word before is part of a state
  std::uint32_t word_at, word;  // the next word; this lane's of the 32 from there on
  std::uint32_t bit, end_bit;   // of the offsets
  std::uint32_t x;
  std::uint8_t* levels;  // of the stream's values; levels[none] is 0
  std::uint32_t none, distance[kDistances];
  std::uint32_t level[kDistances];  // of the next step's neighbours
  std::uint32_t width;
  bool ahead;  // no neighbour is in the step before: their levels are loaded a step ahead
  bool failed;

  // Sets what is the same for all streams of a unit. Without contexts, all levels and tables are 0.
  __device__ __forceinline__ void set_model(const BinnedParts& model, std::uint8_t* memory, std::uint32_t zero) {
    levels = memory;
    none = zero;
    if (lane_of_warp() == 0) levels[none] = 0;
    width = model.map.width;
    ahead = true;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      distance[k] = model.contexts ? model.distance[k] : 64;
      ahead = ahead && distance[k] >= 64;
    }
    __syncwarp();
  }

  // `at` and `end`: bytes of the unit. Moves `at` behind the stream.
  __device__ __forceinline__ Fault open(const StreamHead& head, std::uint32_t count, std::uint32_t& at,
                                        std::uint32_t end) {
    // each value takes a word at most, and a byte and its bits
    if (head.words > count || head.offset_bytes > (sizeof(U) + 1) * count) return Fault::stream;
    const std::uint32_t word_bytes = 2 * head.words, states = 4 * kLaneCount;
    if (at + states + word_bytes + head.offset_bytes > end || count == 0) return Fault::size;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(unit.words);
    x = load_le<std::uint32_t>(bytes + at + 4 * lane_of_warp());
    const bool bad = x < kLowestState || x >> kStateBits != 0;
    if (__any_sync(kAllOfWarp, bad ? 1 : 0)) return Fault::state;
    words = bytes + at + states;
    last_word = static_cast<std::int32_t>(head.words) - 1;
    word_at = 0;
    load_words<false>();
    at += states + word_bytes;
    bit = 8 * at;
    at += head.offset_bytes;
    end_bit = 8 * at;
    failed = false;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) level[k] = 0;
    return Fault::none;
  }
  // Loads the 32 words that come next: a step takes no more. Beyond the last word they are any bits of the unit. kEven:
  // words have even addresses.
  template <bool kEven>
  __device__ __forceinline__ void load_words() {
    const std::int32_t i = min(static_cast<std::int32_t>(word_at + lane_of_warp()), last_word);
    if constexpr (kEven)
      word = __ldg(reinterpret_cast<const std::uint16_t*>(words) + i);
    else
      word = __ldg(words + 2 * i) | std::uint32_t{__ldg(words + 2 * i + 1)} << 8;
  }
  // Gives words to the lanes whose state needs one, in the order of lanes.
  template <bool kEven>
  __device__ __forceinline__ std::uint32_t refilled(std::uint32_t state, bool needs) {
    const std::uint32_t taking = __ballot_sync(kAllOfWarp, needs ? 1 : 0);
    const int place = __popc(taking & ((1u << lane_of_warp()) - 1));
    const std::uint32_t given = __shfl_sync(kAllOfWarp, word, place);
    word_at += static_cast<std::uint32_t>(__popc(taking));
    load_words<kEven>();
    return needs ? state << 16 | given : state;
  }
  // Whether the stream ends where it should.
  __device__ __forceinline__ bool ended() const {
    const std::uint32_t left = end_bit - bit;
    const bool good = !failed && x == kLowestState && static_cast<std::int32_t>(word_at) == last_word + 1 &&
                      bit <= end_bit && left < 8 && (left == 0 || unit.take(bit, left) == 0);
    return __all_sync(kAllOfWarp, good ? 1 : 0) != 0;
  }

  // Loads the levels of four earlier neighbours of the values from `first` on.
  __device__ __forceinline__ void load_levels(std::uint32_t first) {
    const std::uint32_t i = first + lane_of_warp();
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) level[k] = levels[min(i - distance[k], none)];
  }
  // Returns the mean level of four neighbours.
  template <bool kAhead>
  __device__ __forceinline__ std::uint32_t context(std::uint32_t first) {
    if (!kAhead) load_levels(first);
    const std::uint32_t mean = (level[0] + level[1] + level[2] + level[3] + 2) / 4;
    if (kAhead) load_levels(first + 32);
    return mean;
  }

  // Finds the true symbols behind escapes. `own`: bits of this lane's offset, to which it adds those of the symbol.
  template <class Tables>
  __device__ __forceinline__ void resolve(const Tables& tables, std::uint32_t escapes, std::uint32_t& symbol,
                                          std::uint32_t& own) {
    const bool mine = (escapes >> lane_of_warp() & 1) != 0;
    if (mine) own = kEscapeBits;
    for (; escapes != 0; escapes &= escapes - 1) {  // one at a time: offsets before it must be known
      const std::uint32_t from = bit + sum_upto(own) - own;
      if ((escapes & (0u - escapes)) == 1u << lane_of_warp()) {
        symbol = unit.take(from, kEscapeBits);
        const std::uint32_t bits = tables.bins[symbol].bits;
        failed = failed || bits > width;
        if (failed) symbol = kEscape;
        own += failed ? 0 : bits;
      }
    }
  }

  // A step whose symbols are known, but not where their offsets are.
  struct Step {
    U lowest;
    std::uint32_t own, before;  // bits of the lane; those in front of its offset
  };

  // Takes the symbols of the step whose first value is `first`, the first of `left`. Lanes without a value have no
  // bits. kFull: all lanes have one. kAhead: as `ahead`.
  template <bool kFull, bool kAhead, bool kEven, class Tables>
  __device__ __forceinline__ Step take_symbols(const Tables& tables, std::uint32_t first, std::uint32_t left) {
    const std::uint32_t lane = lane_of_warp();
    const bool active = kFull || lane < left;
    const std::uint32_t table = tables.table_of_level[context<kAhead>(first)];
    const std::uint32_t slot = x % kBinSlots;
    std::uint32_t symbol = tables.of_symbols.symbols[table * kBinSlots + slot];
    const std::uint32_t range = tables.of_symbols.ranges[table * kSymbols + symbol];
    DecodedBin<U> bin = tables.bins[symbol];
    const std::uint32_t next = (range & 0xFFFF) * (x >> kBinTableBits) + slot - (range >> 16);
    const std::uint32_t full = refilled<kEven>(next, active && next < kLowestState);
    if (active) x = full;

    Step step = {bin.lowest, active ? bin.bits : 0u, 0};
    const std::uint32_t escapes = __ballot_sync(kAllOfWarp, active && symbol == kEscape ? 1 : 0);
    if (escapes != 0) {
      resolve(tables, escapes, symbol, step.own);
      bin = tables.bins[symbol];
      step.lowest = bin.lowest;
      if ((escapes >> lane & 1) != 0) step.before = kEscapeBits;
    }
    if (active) levels[first + lane] = bin.level;
    return step;
  }
  // Begins to read the offsets of a step; `upto`: the sum of bits over this lane and the lanes before.
  __device__ __forceinline__ PendingNumber<U> read_offsets(const Step& step, std::uint32_t upto) {
    const std::uint32_t from = bit + upto - step.own + step.before;
    bit += __shfl_sync(kAllOfWarp, upto, 31);
    return unit.begin<U>(step.lowest, from, step.own - step.before);
  }
};

}  // namespace pyfilter::cuda
