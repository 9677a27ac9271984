// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles to rans streams (lorenzo/cpu/lanes.hpp has the steps of a round lane by lane). A warp takes a group,
// with a lane for each block of a round. Streams are written backwards, from the end of their slot.
#pragma once

#include <cstdint>
#include <utility>

#include "lorenzo/cuda/group_tiles.cuh"
#include "lorenzo/cuda/rans_words.cuh"
#include "lorenzo/cuda/round_residuals.cuh"
#include "lorenzo/cuda/states.cuh"
#include "lorenzo/rans.hpp"
#include "stages/cuda/lane_coder.cuh"

namespace pyfilter::cuda {

inline constexpr int kStreamThreads = 256, kStreamWarps = kStreamThreads / 32;
// Thread blocks have few warps: a multiprocessor starts the next block when one is done, and no warp waits long for the
// others of its block. For one large chunk, all warps of a multiprocessor share one copy of the tables.
template <class Code>
inline constexpr int kRansThreads = sizeof(Code) == 8 ? 256 : 128;
template <class Code>
inline constexpr int kRansBlocks = sizeof(Code) == 8 ? 3 : 7;  // of a multiprocessor: more would spill registers
template <class Code>
inline constexpr int kSharingThreads = sizeof(Code) == 8 ? 768 : 1024;

// Shared memory: the tables' entries, the neutral one, those of flags, addresses of tables by the sum of two byte
// neighbours, that of the neutral entry. Entries of a symbol in several tables are in different banks.
inline constexpr std::uint32_t kByteSums = 512;
template <class Code>
struct EncodeShare {
  static constexpr std::uint32_t kHere = symbols_of_width(8 * sizeof(Code));
  static constexpr std::uint32_t kRow = kHere + 3;  // entries from table to table
  static constexpr std::uint32_t kNeutralAt = kMostTables * kRow * sizeof(DeviceEntry),
                                 kFlagsAt = kNeutralAt + sizeof(DeviceEntry),
                                 kByteSumsAt = kFlagsAt + 2 * kFlagContexts * sizeof(DeviceEntry),
                                 kNeutralSumAt = kByteSumsAt + 4 * kByteSums, kBytes = kNeutralSumAt + 16;
  static_assert(kBytes % alignof(Code) == 0);  // GroupTiles of the warps follow
};

// The tiles of a warp's group, in shared memory: registers are needed for steps. One lane stores each.
template <class Code>
class GroupTiles {
 public:
  __device__ __forceinline__ void store(const LaneTile& own) {
    const unsigned lane = threadIdx.x % 32;
    facts_[lane] = own.coding | (own.flags & kNoteWidth) | (own.first_coded ? kFirstCoded : 0) | own.count << 8;
    first_[lane] = static_cast<Code>(own.first_residual);
  }
  __device__ __forceinline__ std::uint32_t coding(std::uint32_t i) const { return facts_[i] & kNoteCoding; }
  __device__ __forceinline__ std::uint32_t width(std::uint32_t i) const { return facts_[i] & kNoteWidth; }
  __device__ __forceinline__ bool first_coded(std::uint32_t i) const { return (facts_[i] & kFirstCoded) != 0; }
  __device__ __forceinline__ std::uint32_t count(std::uint32_t i) const { return facts_[i] >> 8; }
  __device__ __forceinline__ Code first_residual(std::uint32_t i) const { return first_[i]; }

 private:
  static constexpr std::uint32_t kFirstCoded = 1u << 5;
  static_assert((kNoteCoding & kNoteWidth) == 0 && (kNoteCoding | kNoteWidth) < kFirstCoded);
  Code first_[kMostGroupTiles];
  std::uint32_t facts_[kMostGroupTiles];
};

// The steps that follow a symbol, backwards: raw bits, and an escape's symbol.
template <class Code>
__device__ __noinline__ LaneCoder encode_outer(LaneCoder coder, std::uint16_t* end, Code value, std::uint32_t symbol,
                                               bool escaped, bool outer) {
  const std::uint32_t raw = raw_bits(symbol);
  const std::uint32_t steps = !outer    ? 0
                              : escaped ? 1 + (raw + kStepBits - 1) / kStepBits
                                        : (outer_bits(symbol) + kStepBits - 1) / kStepBits;
#pragma unroll 1
  for (int step = warp_max(static_cast<int>(steps)) - 1; step >= 0; --step) {
    const bool takes = static_cast<std::uint32_t>(step) < steps;
    std::uint32_t bits = kEscapeBits, part = symbol;
    if (!escaped || step > 0) {
      const std::uint32_t from = escaped ? (static_cast<unsigned>(step) - 1) * kStepBits
                                         : kInnerBits + static_cast<unsigned>(step) * kStepBits;
      bits = takes ? min(raw - from, kStepBits) : 0;
      part = takes ? static_cast<std::uint32_t>(value >> from) & ((1u << bits) - 1) : 0;
    }
    coder.spill(end, takes && must_spill_raw(coder.x, bits));
    if (takes) coder.x = coder.x << bits | part;
  }
  return coder;
}

// Loads an entry by its address in shared memory; entries are constant.
__device__ __forceinline__ DeviceEntry load_entry(std::uint32_t address) {
  DeviceEntry e;
  asm("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(e.reciprocal), "=r"(e.limit), "=r"(e.growth), "=r"(e.shift_and_first)
      : "r"(address));
  return e;
}

// The step of a symbol. The entry is not marked as slow.
template <class Code>
__device__ __forceinline__ void encode_step(const DeviceEntry& e, Code z, std::uint16_t* end, LaneCoder& coder) {
  coder.spill_from(end, e.limit);
  const std::uint32_t x = shift_left(coder.x, e.growth) | (static_cast<std::uint32_t>(z) & ~shift_left(~0u, e.growth));
  const std::uint32_t quotient = shift_right(__umulhi(x, e.reciprocal), e.shift_and_first);
  coder.x = x + (e.shift_and_first >> 16) + quotient * (e.growth >> 16);
}

// The steps that follow a symbol, if a lane has any: usually one for all lanes. Then the entry is no longer marked as
// slow.
template <class Code>
__device__ __forceinline__ LaneCoder encode_outer_bits(LaneCoder coder, std::uint16_t* end, Code z, DeviceEntry& e) {
  const bool slow = (e.growth & kGrowthSlow) != 0, escaped = (e.growth & kGrowthEscaped) != 0;
  e.growth &= ~kGrowthSlow;
  const std::uint32_t symbol = symbol_of(z), bits = slow && !escaped ? outer_bits(symbol) : 0;
  if (__any_sync(kAllLanes, escaped || bits > kStepBits)) return encode_outer(coder, end, z, symbol, escaped, slow);
  coder.spill(end, must_spill_raw(coder.x, bits));
  coder.x = coder.x << bits | (static_cast<std::uint32_t>(z >> kInnerBits) & ((1u << bits) - 1));
  return coder;
}

// Four steps with symbols that have outer bits or are escapes, from z3 down to step `last`. `a0` to `a3`: addresses of
// entries.
template <class Code>
__device__ __noinline__ LaneCoder encode_slow(LaneCoder coder, std::uint16_t* end, Code z0, Code z1, Code z2, Code z3,
                                              std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                                              int last) {
#pragma unroll
  for (int k = 3; k >= 0; --k) {
    if (k < last) return coder;
    const Code z = k == 3 ? z3 : k == 2 ? z2 : k == 1 ? z1 : z0;
    DeviceEntry e = load_entry(k == 3 ? a3 : k == 2 ? a2 : k == 1 ? a1 : a0);
    coder = encode_outer_bits(coder, end, z, e);
    encode_step(e, z, end, coder);
  }
  return coder;
}

// Addresses of shared memory, of a lane's entries, and of the table of sums. A lane without a block always uses the
// neutral entry, whatever its table and symbol.
struct EntryAddresses {
  std::uint32_t first, stride, by_sum;
};

// The address of step kAt's entry. kFirst: the steps are the round's first, so step 0 is `first`.
template <int kAt, int S, bool kFirst, class Residuals>
__device__ __forceinline__ std::uint32_t entry_address(const Residuals& z, const EntryAddresses& addresses,
                                                       std::uint32_t first_table, const TableOfSum& table_of) {
  constexpr Neighbours kNear = make_neighbours<S>();
  constexpr int kA = kNear.first[kAt], kB = kNear.second[kAt];
  constexpr bool kSmall = !Residuals::kWide, kOwn = kFirst && kAt == 0;  // except for the first
  using Code = decltype(z.first);
  constexpr std::uint32_t kRow = EncodeShare<Code>::kRow;
  std::uint32_t symbol;
  if constexpr (kSmall && !kOwn) {
    symbol = symbol_of_small(static_cast<std::uint32_t>(z.template at<kAt>()));
  } else {
    const Code own = kOwn ? z.first : z.template at<kAt>();
    symbol = symbol_of_word(static_cast<std::uint32_t>(own));
    if constexpr (sizeof(Code) == 8) symbol = (own >> 32) != 0 ? symbol_of(own) : symbol;
  }
  if constexpr (kOwn) {
    return addresses.first + (first_table * kRow + symbol) * addresses.stride;
  } else {
    constexpr bool kFirstA = kFirst && kA == 0, kFirstB = kFirst && kB == 0;
    const Code a = kFirstA ? z.first : z.template at<kA>(), b = kFirstB ? z.first : z.template at<kB>();
    if constexpr (Residuals::kBytes && !kFirstA && !kFirstB)
      return load_table(addresses.by_sum + 4 * static_cast<std::uint32_t>(a + b)) + symbol * sizeof(DeviceEntry);
    const std::uint32_t sum = (kSmall && !kFirstA ? static_cast<std::uint32_t>(a) : capped(a)) +
                              (kSmall && !kFirstB ? static_cast<std::uint32_t>(b) : capped(b));
    return addresses.first + (table_of(sum) * kRow + symbol) * addresses.stride;
  }
}

// Encodes steps kAt + 3 down to kAt. The round's first step, which is often slow, is handled separately.
template <int kAt, int S, bool kFirst, class Residuals>
__device__ __forceinline__ void encode_four(const Residuals& z, const EntryAddresses& addresses,
                                            std::uint32_t first_table, const TableOfSum& table_of, std::uint16_t* end,
                                            LaneCoder& coder) {
  constexpr bool kStarts = kFirst && kAt == 0;
  const auto address = [&]<int kStep>(std::integral_constant<int, kStep>) {
    return entry_address<kAt + kStep, S, kFirst>(z, addresses, first_table, table_of);
  };
  const std::uint32_t a3 = address(std::integral_constant<int, 3>{}), a2 = address(std::integral_constant<int, 2>{}),
                      a1 = address(std::integral_constant<int, 1>{}), a0 = address(std::integral_constant<int, 0>{});
  const DeviceEntry e3 = load_entry(a3), e2 = load_entry(a2), e1 = load_entry(a1);
  DeviceEntry e0 = load_entry(a0);
  using Code = decltype(z.first);
  const Code z3 = z.template at<kAt + 3>(), z2 = z.template at<kAt + 2>(), z1 = z.template at<kAt + 1>(),
             z0 = kStarts ? z.first : z.template at<kAt>();
  if (__any_sync(kAllLanes, ((e3.growth | e2.growth | e1.growth | (kStarts ? 0 : e0.growth)) & kGrowthSlow) != 0)) {
    coder = encode_slow(coder, end, z0, z1, z2, z3, a0, a1, a2, a3, kStarts ? 1 : 0);
    if constexpr (!kStarts) return;
  } else {
    encode_step(e3, z3, end, coder);
    encode_step(e2, z2, end, coder);
    encode_step(e1, z1, end, coder);
  }
  if constexpr (kStarts) {
    if (__any_sync(kAllLanes, (e0.growth & kGrowthSlow) != 0)) coder = encode_outer_bits(coder, end, z0, e0);
  }
  encode_step(e0, z0, end, coder);
}
// encode_four(), and to `at_first` the state before the four steps that write the first word.
template <int kAt, int S, bool kFirst, class Residuals>
__device__ __forceinline__ void encode_noted(const Residuals& z, const EntryAddresses& addresses,
                                             std::uint32_t first_table, const TableOfSum& table_of, std::uint16_t* end,
                                             LaneCoder& coder, std::uint32_t& at_first) {
  at_first = coder.written == 0 ? coder.x : at_first;
  encode_four<kAt, S, kFirst>(z, addresses, first_table, table_of, end, coder);
}

// Encodes a round backwards: each lane has the residuals of a block, block `index` of the tile. `first`: the tile's
// first residual, if it is in the round.
template <std::uint32_t kWidth, class Code, int S>
__device__ __forceinline__ void encode_round(const std::uint8_t* slot, std::uint32_t index, bool active, bool has_first,
                                             Code first, const EntryAddresses& addresses, std::uint32_t first_table,
                                             const TableOfSum& table_of, std::uint16_t* end, LaneCoder& coder,
                                             std::uint32_t& at_first) {
  if constexpr (S == kChain || S == kColumns) {  // neighbours are the two previous steps: a loop keeps the code small
    RoundResiduals<kWidth, 8, Code> z(slot, index, active), ahead(slot, index, active);
    z.load(7, 1);
    z.load(6, 0);
    ahead.load(5, 0);
    if constexpr (kWidth == kNoteWide) z.from = static_cast<const Code*>(z.from) + 32 * 24;
#pragma unroll 1
    for (int four = 7; four > 0; --four) {
      ahead.load(max(four - 3, 0), 1);
      encode_noted<4, S, false>(z, addresses, first_table, table_of, end, coder, at_first);
      if constexpr (kWidth == kNoteWide) {
        z.from = static_cast<const Code*>(z.from) - 32 * 4;
      } else {
        constexpr int kFour = RoundResiduals<kWidth, 8, Code>::kFour;
#pragma unroll
        for (int i = 0; i < kFour; ++i) {
          z.words[kFour + i] = z.words[i];
          z.words[i] = ahead.words[i];
          ahead.words[i] = ahead.words[kFour + i];
        }
      }
    }
    if constexpr (kWidth == kNoteWide) z.from = static_cast<const Code*>(z.from) + 32 * 4;
#pragma unroll
    for (int i = 0; kWidth != kNoteWide && i < RoundResiduals<kWidth, 8, Code>::kFour; ++i)
      z.words[i] = z.words[RoundResiduals<kWidth, 8, Code>::kFour + i];
    z.first = has_first ? first : z.template at<0>();
    encode_noted<0, S, true>(z, addresses, first_table, table_of, end, coder, at_first);
  } else {
    RoundResiduals<kWidth, 32, Code> z(slot, index, active);
#pragma unroll
    for (int four = 0; four < 8; ++four) z.load(four, four);
    z.first = has_first ? first : z.template at<0>();
    [&]<int... kFour>(std::integer_sequence<int, kFour...>) {
      (encode_noted<28 - 4 * kFour, S, true>(z, addresses, first_table, table_of, end, coder, at_first), ...);
    }(std::make_integer_sequence<int, 7>{});
    encode_noted<0, S, true>(z, addresses, first_table, table_of, end, coder, at_first);
  }
}

// The entry of a block's flag, number `i` of those in shared memory: by the flag's context, then by the flag.
__device__ __forceinline__ DeviceEntry flag_entry(const EncodeTables& tables, std::uint32_t i) {
  const std::uint32_t of = tables.flag_frequency[i / 2];
  const EncodeEntry entry = i % 2 != 0 ? encode_entry(of, 0) : encode_entry(kFrequencySum - of, of);
  return device_encode_entry(entry, 0, entry);
}

// Encodes the flags of a tile's blocks, backwards: a lane has four blocks, and bit k of `coded` is the flag of block k.
template <class Code, int S>
__device__ __forceinline__ void encode_tile_flags(std::uint32_t entries, const TileBox& box, std::uint32_t coded,
                                                  std::uint16_t* end, LaneCoder& coder) {
  using Share = EncodeShare<Code>;
#pragma unroll
  for (unsigned step = 4; step-- > 0;) {
    const std::uint32_t b = 4 * (threadIdx.x % 32) + step;
    const bool has_before = step > 0 && is_present<S>(box, b - 1);
    const std::uint32_t context = flag_context(has_before, step > 0 && (coded >> (step - 1) & 1) != 0),
                        i = 2 * context + (coded >> step & 1);
    const std::uint32_t at = is_present<S>(box, b) ? Share::kFlagsAt + i * sizeof(DeviceEntry) : Share::kNeutralAt;
    encode_step(load_entry(entries + at), Code{0}, end, coder);
  }
}

template <class Code, int S>
__device__ __forceinline__ void encode_stream(const StreamParams& job, std::uint32_t chunk, std::uint32_t unit,
                                              std::uint32_t group_tiles, std::uint32_t entries,
                                              std::uint32_t first_table, const TableOfSum& table_of,
                                              GroupTiles<Code>& tiles) {
  using Share = EncodeShare<Code>;
  const unsigned lane = threadIdx.x % 32;
  const GroupSpan span = group_span(job.base.tiles, group_tiles, unit);
  __syncwarp();  // the tiles of the group before have been read
  tiles.store(finish_tiles<Code, S>(job, chunk, span));
  __syncwarp();
  const std::size_t slot = std::size_t{chunk} * job.slots + static_cast<std::uint32_t>(span.first);
  auto* const end = reinterpret_cast<std::uint16_t*>(job.streams + (slot + span.count) * stream_slot(sizeof(Code)));
  const auto lanes = static_cast<std::uint32_t>(
      warp_max(static_cast<int>(tiles.coding(lane) == kTileFlags ? kLaneCount : min(tiles.count(lane), kLaneCount))));
  LaneCoder coder;
  std::uint32_t full = lanes_from(lanes), known, at_first = 0;  // full: lanes that begin with kLowestState
#pragma unroll 1
  do {
    known = full;
    coder = {first_state(lane, full), 0};
    __syncwarp();  // words of the last try are written before others replace them
#pragma unroll 1
    for (std::uint32_t i = span.count; i-- > 0 && full == known;) {
      const std::uint32_t count = tiles.count(i), width = tiles.width(i);
      if (count == 0) continue;
      const std::uint8_t* const from = job.residuals + (slot + i) * residual_slot(sizeof(Code));
#pragma unroll 1
      for (std::uint32_t round = (count + 31) / 32; round-- > 0 && full == known;) {
        const std::uint32_t k = 32 * round + lane;
        const bool active = k < count;
        const EntryAddresses addresses =
            active ? EntryAddresses{entries, sizeof(DeviceEntry), entries + Share::kByteSumsAt}
                   : EntryAddresses{entries + Share::kNeutralAt, 0, entries + Share::kNeutralSumAt};
        const bool has_first = k == 0 && tiles.first_coded(i), none = coder.written == 0;
        const std::uint32_t index = k + (tiles.first_coded(i) ? 0 : 1);
        if (width == kNoteBytes)
          encode_round<kNoteBytes, Code, S>(from, index, active, has_first, tiles.first_residual(i), addresses,
                                            first_table, table_of, end, coder, at_first);
        else if (width == kNoteHalves)
          encode_round<kNoteHalves, Code, S>(from, index, active, has_first, tiles.first_residual(i), addresses,
                                             first_table, table_of, end, coder, at_first);
        else
          encode_round<kNoteWide, Code, S>(from, index, active, has_first, tiles.first_residual(i), addresses,
                                           first_table, table_of, end, coder, at_first);
        if (none && coder.written != 0) full |= __ballot_sync(kAllLanes, at_first < kLowestState);
      }
      if (full == known && tiles.coding(i) == kTileFlags) {
        const LaneCoder before = coder;
        const std::uint32_t coded = job.notes[slot + i].coded[lane / 8] >> lane % 8 * 4;
        encode_tile_flags<Code, S>(entries, box_of<S>(job.base.grid, static_cast<std::uint32_t>(span.first) + i), coded,
                                   end, coder);
        full |= coder.low_at_first(before);
      }
    }
  } while (full != known);
  const std::uint32_t special_words = lane < span.count ? job.notes[slot + lane].special_words : 0;
  const GroupHead head =
      group_head(span.count, list_bytes(tiles.coding(lane), tiles.count(lane), false), special_words);
  const bool any = __any_sync(kAllLanes, tiles.count(lane) != 0 || special_words != 0);
  const auto stream_bytes = static_cast<std::uint32_t>(2 * coder.written);
  // the states go in front of the stream, beyond the reach of the first tile's special part
  std::uint32_t state_words = 0;
  if (lanes != 0)
    state_words = pack_states(coder.x, lanes, static_cast<std::uint32_t>(coder.written),
                              reinterpret_cast<std::uint32_t*>(job.streams + slot * stream_slot(sizeof(Code))));
  if (lane == 0)
    job.groups[std::size_t{chunk} * job.slots + unit] = {
        any ? head.bytes + 4 * (head.special_words + state_words) + (stream_bytes + 3) / 4 * 4 : 0, stream_bytes,
        state_words};
}

// Groups differ in their number of coded blocks, so each warp takes the next group when it is done.
template <class Code, int S, bool kSharing>
__global__ void __launch_bounds__(kSharing ? kSharingThreads<Code> : kRansThreads<Code>,
                                  kSharing ? 1 : kRansBlocks<Code>)
    rans_encode_kernel(const __grid_constant__ StreamParams job) {
  using Share = EncodeShare<Code>;
  extern __shared__ uint4 shared_memory[];
  const std::uint32_t chunk = blockIdx.y, warps = blockDim.x / 32;
  if (!takes_part(job.base.plans[chunk], S)) return;
  const StreamModel& model = job.models[chunk];
  const std::uint32_t group_tiles = 1u << model.model.group_log2,
                      units = (job.base.tiles + group_tiles - 1) / group_tiles;
  // first one group a warp: blocks that share tables spread them over the multiprocessors
  const std::uint32_t first = kSharing ? blockIdx.x : blockIdx.x * warps, step = kSharing ? gridDim.x : 1;
  if (first >= units) return;
  const Contexts contexts = model.tables.contexts;
  constexpr std::uint32_t kHere = Share::kHere;
  auto* const entries = reinterpret_cast<DeviceEntry*>(shared_memory);
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < (contexts.count + 1) * kHere; i += blockDim.x) {
    const EncodeEntry* const table = model.tables.entries + i / kHere * kSymbols;
    entries[i / kHere * Share::kRow + i % kHere] = device_encode_entry(table[i % kHere], i % kHere, table[kEscape]);
  }
  const std::uint32_t address = shared_address(shared_memory);
  const TableOfSum table_of(contexts);
  auto* const by_sum =
      reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uint8_t*>(shared_memory) + Share::kByteSumsAt);
  for (std::uint32_t sum = threadIdx.x; sum < kByteSums; sum += blockDim.x)
    by_sum[sum] = address + table_of(sum) * Share::kRow * static_cast<std::uint32_t>(sizeof(DeviceEntry));
  if (threadIdx.x < 2 * kFlagContexts)
    entries[Share::kFlagsAt / sizeof(DeviceEntry) + threadIdx.x] = flag_entry(model.tables, threadIdx.x);
  if (threadIdx.x == 0) {
    entries[kMostTables * Share::kRow] = kNeutralEntry;
    by_sum[kByteSums] = address + Share::kNeutralAt;
  }
  auto* const tiles =
      reinterpret_cast<GroupTiles<Code>*>(reinterpret_cast<std::uint8_t*>(shared_memory) + Share::kBytes);
  __syncthreads();
  for (std::uint32_t unit = first + threadIdx.x / 32 * step; unit < units;) {
    encode_stream<Code, S>(job, chunk, unit, group_tiles, address, contexts.count, table_of, tiles[threadIdx.x / 32]);
    const std::uint32_t more = threadIdx.x % 32 == 0 ? atomicAdd(&job.more_units[chunk], 1) : 0;
    unit = gridDim.x * warps + __shfl_sync(kAllLanes, more, 0);
  }
}

}  // namespace pyfilter::cuda
