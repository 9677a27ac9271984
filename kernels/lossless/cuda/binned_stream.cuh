// SPDX-License-Identifier: BSD-3-Clause
// A stream of bins (docs/format.md, section 15.4), decoded by a warp with a thread for each lane; cpu/bin_streams.hpp
// is the same lane by lane.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "core/wire.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "lossless/cuda/unit_rings.cuh"
#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

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

// The 32-bit words of a unit, the first of which is aligned.
struct UnitWords {
  const std::uint32_t* words;
  std::uint32_t count;
};

// The parts of a stream that a warp decodes. The state of each lane is in its thread.
template <class T>
struct BinStream {
  using U = NumberOf<T>;

  UnitWords unit;
  RingReader<U> reader;
  std::uint32_t word_at, end_word;  // bytes behind reader.base: of the next 16-bit word, and behind the last one
  std::uint32_t bit, end_bit;       // the same in bits: of the offsets
  std::uint32_t x;
  NeighbourLevels neighbours;
  std::uint32_t width;
  bool failed;

  // Sets what is the same for all streams of a unit. Without contexts, all levels and tables are 0.
  __device__ __forceinline__ void set_model(const BinnedParts& model, std::uint8_t* memory) {
    neighbours.set_model(model, memory);
    width = model.map.width;
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
    const auto skipped = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(bytes) % 16);
    reader.base = bytes - skipped;
    reader.limit = skipped + 4 * unit.count;
    word_at = skipped + at + states;
    end_word = word_at + word_bytes;
    at += states + word_bytes + head.offset_bytes;
    bit = 8 * end_word;
    end_bit = 8 * (skipped + at);
    failed = false;
    __pipeline_wait_prior(0);  // copies that the last stream did not need
    __syncwarp();              // which has been read
    neighbours.begin(rings().levels);
    reader.begin(word_at, end_word);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncwarp();
    return Fault::none;
  }
  // There is no stream, since all values have one symbol.
  __device__ __forceinline__ void open_none() {
    word_at = bit = 0;
    reader.begin_none();
    __pipeline_wait_prior(0);
    __syncwarp();
  }
  __device__ __forceinline__ static UnitRings<U>& rings() { return RingReader<U>::rings(); }
  // Gives words to the lanes whose state needs one, in the order of lanes.
  template <bool kEven>
  __device__ __forceinline__ std::uint32_t refilled(std::uint32_t state, bool needs) {
    const std::uint32_t taking = __ballot_sync(kAllOfWarp, needs ? 1 : 0);
    const auto place = static_cast<std::uint32_t>(__popc(taking & ((1u << lane_of_warp()) - 1)));
    const std::uint32_t given = rings().words.template half_word<kEven>(word_at + 2 * place);
    word_at += 2 * static_cast<std::uint32_t>(__popc(taking));
    return needs ? state << 16 | given : state;
  }
  // Begins to read `count` bits, at most as many as U has, from bit number `from` of the offsets on.
  __device__ __forceinline__ PendingNumber<U> begin(U lowest, std::uint32_t from, std::uint32_t count) const {
    PendingNumber<U> p = {lowest, from, count, {}};
#pragma unroll
    for (std::uint32_t i = 0; i < sizeof p.words / 4; ++i) p.words[i] = rings().offsets.word(4 * (from / 32 + i));
    return p;
  }
  // Whether the stream ends where it should.
  __device__ __forceinline__ bool ended() {
    const std::uint32_t left = end_bit - bit;
    __pipeline_wait_prior(0);
    __syncwarp();
    const bool good = !failed && x == kLowestState && word_at == end_word && bit <= end_bit && left < 8 &&
                      (left == 0 || begin(0, bit, left).value() == 0);
    return __all_sync(kAllOfWarp, good ? 1 : 0) != 0;
  }

  // Waits for what the step reads whose first value is `first`. Returns the mean level of its neighbours.
  template <bool kFar>
  __device__ __forceinline__ std::uint32_t begin_step(std::uint32_t first) const {
    __pipeline_wait_prior(1);
    __syncwarp();
    return neighbours.template mean<kFar>(rings().levels, first);
  }
  // Begins to copy what the next step reads, together with the caller's copies; then what later ones read.
  __device__ __forceinline__ void copy_ahead(std::uint32_t first) {
    neighbours.copy(rings().levels, first + 32, reader.has_stream());
    __pipeline_commit();
    reader.advance(word_at, bit / 8);
    __pipeline_commit();
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
        symbol = static_cast<std::uint32_t>(begin(0, from, kEscapeBits).value());
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
  // bits. `level`: what begin_step() returned. kFull: all lanes have a value. kFar: as `neighbours.far`.
  template <bool kFull, bool kFar, bool kEven, class Tables>
  __device__ __forceinline__ Step take_symbols(const Tables& tables, std::uint32_t first, std::uint32_t left,
                                               std::uint32_t level) {
    const std::uint32_t lane = lane_of_warp();
    const bool active = kFull || lane < left;
    const std::uint32_t table = tables.table_of_level[level];
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
    if (active) neighbours.template store<kFar>(rings().levels, first, bin.level);
    return step;
  }
  // Begins to read the offsets of a step; `upto`: the sum of bits over this lane and the lanes before.
  __device__ __forceinline__ PendingNumber<U> read_offsets(const Step& step, std::uint32_t upto) {
    const std::uint32_t from = bit + upto - step.own + step.before;
    bit += __shfl_sync(kAllOfWarp, upto, 31);
    return begin(step.lowest, from, step.own - step.before);
  }
};

}  // namespace pyfilter::cuda
