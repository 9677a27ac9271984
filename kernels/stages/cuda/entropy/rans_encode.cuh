// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles to rans streams (stages/entropy/lanes.hpp has the steps of a round one lane after the other): a warp
// for each group, a lane for each of a round's blocks. Streams are written backwards, from the end of their room.
#pragma once

#include <cstdint>

#include "stages/cuda/entropy/group_tiles.cuh"
#include "stages/cuda/entropy/rans_decode.cuh"
#include "stages/cuda/entropy/residuals.cuh"
#include "stages/entropy/rans.hpp"

namespace pyfilter::cuda {

inline constexpr int kStreamThreads = 256, kStreamWarps = kStreamThreads / 32;

// A lane's state, and how many words of the stream there are so far, which all lanes know.
struct LaneCoder {
  std::uint32_t x;
  std::int32_t written;

  // Of the lanes that must give a word, those before come before. `end` is that of the stream.
  __device__ __forceinline__ void spill(std::uint16_t* end, bool must) {
    const std::uint32_t giving = __ballot_sync(kAllLanes, must);
    written += __popc(static_cast<int>(giving));
    const std::uint32_t below = giving & ((1u << threadIdx.x % 32) - 1);
    if (must) end[__popc(static_cast<int>(below)) - written] = static_cast<std::uint16_t>(x);
    x = must ? x >> 16 : x;
  }
};

// The steps behind that of a symbol, backwards: raw bits, and the symbol of an escape.
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

// An entry by its address in shared memory; entries do not change.
__device__ __forceinline__ DeviceEntry load_entry(std::uint32_t address) {
  DeviceEntry e;
  asm("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(e.reciprocal), "=r"(e.limit), "=r"(e.others), "=r"(e.packed)
      : "r"(address));
  return e;
}

// A step of all lanes: the residual z of each, by its table.
template <class Code>
__device__ __forceinline__ void encode_step(std::uint32_t entries, std::uint32_t table, Code z, bool active,
                                            std::uint16_t* end, LaneCoder& coder) {
  // most take no branch
  std::uint32_t symbol = symbol_of_word(static_cast<std::uint32_t>(z));
  if constexpr (sizeof(Code) == 8) {
    if (__any_sync(kAllLanes, (z >> 32) != 0)) symbol = (z >> 32) != 0 ? symbol_of(z) : symbol;
  }
  const DeviceEntry entry = load_entry(entries + (table * kSymbols + symbol) * sizeof(DeviceEntry));
  const bool slow = active && static_cast<std::int32_t>(entry.packed) < 0;
  if (__any_sync(kAllLanes, slow)) coder = encode_outer(coder, end, z, symbol, (entry.packed >> 30 & 1) != 0, slow);
  coder.spill(end, active && coder.x >= entry.limit);
  const std::uint32_t raw = entry.raw();
  const std::uint32_t x = coder.x << raw | (static_cast<std::uint32_t>(z) & ~(~0u << raw));
  const std::uint32_t quotient = __umulhi(x << 1, entry.reciprocal) >> (entry.packed >> 10 & 63);
  const std::uint32_t next = x + (entry.packed & (kFrequencySum - 1)) + quotient * entry.others;
  coder.x = active ? next : coder.x;
}

// Flags of a tile's blocks, backwards.
template <int S>
__device__ __noinline__ LaneCoder encode_tile_flags(std::uint32_t frequencies, const TileBox& box,
                                                    const std::uint32_t (&coded)[4], std::uint16_t* end,
                                                    LaneCoder coder) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll 1
  for (unsigned step = 4; step-- > 0;) {
    const std::uint32_t b = 4 * lane + step;
    const bool active = is_present<S>(box, b), has_before = step > 0 && is_present<S>(box, b - 1);
    const std::uint32_t word = coded[0] * (lane / 8 == 0) + coded[1] * (lane / 8 == 1) + coded[2] * (lane / 8 == 2) +
                               coded[3] * (lane / 8 == 3);
    const bool is_coded = (word >> b % 32 & 1) != 0, before = has_before && (word >> (b - 1) % 32 & 1) != 0;
    const std::uint32_t of = frequencies >> 10 * flag_context(has_before, before) & (kFrequencySum - 1);
    coder.spill(end, active && must_spill(coder.x, is_coded ? of : kFrequencySum - of, 0));
    if (active) coder.x = encode_flag(coder.x, of, is_coded);
  }
  return coder;
}

template <class Code, int S>
__device__ __forceinline__ void encode_stream(const StreamParams& job, std::uint32_t chunk, std::uint32_t unit,
                                              std::uint32_t group_tiles, std::uint32_t entries,
                                              std::uint32_t first_table, const TableOfSum& table_of,
                                              std::uint32_t frequencies) {
  constexpr Neighbours kNear = make_neighbours<S>();
  const unsigned lane = threadIdx.x % 32;
  const GroupSpan span = group_span(job.base.tiles, group_tiles, unit);
  const LaneTile own = finish_tiles<Code, S>(job, chunk, span);
  const std::size_t slot = std::size_t{chunk} * job.slots + static_cast<std::uint32_t>(span.first);
  auto* const end = reinterpret_cast<std::uint16_t*>(job.streams + (slot + span.count) * stream_slot(sizeof(Code)));
  LaneCoder coder{kLowestState, 0};
  const auto lanes = static_cast<std::uint32_t>(
      warp_max(static_cast<int>(own.coding == kTileFlags ? kLaneCount : min(own.count, kLaneCount))));
#pragma unroll 1
  for (std::uint32_t i = span.count; i-- > 0;) {
    const std::uint32_t count = __shfl_sync(kAllLanes, own.count, static_cast<int>(i));
    if (count == 0) continue;
    const bool narrow = (__shfl_sync(kAllLanes, own.flags, static_cast<int>(i)) & kNoteNarrow) != 0;
    const bool first_coded = __shfl_sync(kAllLanes, own.first_coded ? 1 : 0, static_cast<int>(i)) != 0;
    const auto first_residual = static_cast<Code>(
        __shfl_sync(kAllLanes, static_cast<unsigned long long>(own.first_residual), static_cast<int>(i)));
    const std::uint8_t* const from = job.residuals + (slot + i) * residual_slot(sizeof(Code));
#pragma unroll 1
    for (std::uint32_t round = (count + 31) / 32; round-- > 0;) {
      const std::uint32_t k = 32 * round + lane;
      const bool active = k < count;
      Code z[32];
      if (active) {
        read_residuals(from, narrow, k + (first_coded ? 0 : 1), z);
      } else {
#pragma unroll
        for (int n = 0; n < 32; ++n) z[n] = 0;
      }
      if (k == 0 && first_coded) z[0] = first_residual;
#pragma unroll
      for (int n = 31; n >= 0; --n) {
        const std::uint32_t table =
            n == 0 ? first_table : table_of(capped(z[kNear.first[n]]) + capped(z[kNear.second[n]]));
        encode_step(entries, table, z[n], active, end, coder);
      }
    }
    if (__shfl_sync(kAllLanes, own.coding, static_cast<int>(i)) == kTileFlags) {
      std::uint32_t coded[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) coded[w] = __shfl_sync(kAllLanes, own.coded[w], static_cast<int>(i));
      coder = encode_tile_flags<S>(frequencies, box_of<S>(job.base.grid, static_cast<std::uint32_t>(span.first) + i),
                                   coded, end, coder);
    }
  }
  const GroupHead head = group_head(span.count, list_bytes(own.coding, own.count, false), own.special_words);
  const bool any = __any_sync(kAllLanes, own.count != 0 || own.special_words != 0);
  const auto stream_bytes = static_cast<std::uint32_t>(2 * coder.written);
  // the states go where the first tile's special part cannot: in front of the stream
  if (any && lane < lanes)
    reinterpret_cast<std::uint32_t*>(job.streams + slot * stream_slot(sizeof(Code)))[lane] = coder.x;
  if (lane == 0)
    job.groups[std::size_t{chunk} * job.slots + unit] = {
        any ? head.bytes + 4 * head.special_words + 4 * lanes + (stream_bytes + 3) / 4 * 4 : 0, stream_bytes, lanes};
}

template <class Code, int S>
__global__ void __launch_bounds__(kStreamThreads, sizeof(Code) == 8 ? 2 : 3)
    rans_encode_kernel(const __grid_constant__ StreamParams job) {
  extern __shared__ uint4 shared_memory[];
  const std::uint32_t chunk = blockIdx.y;
  if (!takes_part(job.base.plans[chunk], S)) return;
  const StreamModel& model = job.models[chunk];
  const std::uint32_t group_tiles = 1u << model.model.group_log2,
                      units = (job.base.tiles + group_tiles - 1) / group_tiles;
  if (blockIdx.x * kStreamWarps >= units) return;
  const Contexts contexts = model.tables.contexts;
  const std::uint32_t frequencies = flag_word(model.model);
  auto* const entries = reinterpret_cast<DeviceEntry*>(shared_memory);
  for (unsigned i = threadIdx.x; i < (contexts.count + 1) * kSymbols; i += kStreamThreads)
    entries[i] = device_encode_entry(model.tables.entries[i], i % kSymbols,
                                     model.tables.entries[i / kSymbols * kSymbols + kEscape]);
  __syncthreads();
  for (std::uint32_t unit = blockIdx.x * kStreamWarps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * kStreamWarps)
    encode_stream<Code, S>(job, chunk, unit, group_tiles, shared_address(shared_memory), contexts.count,
                           TableOfSum(contexts), frequencies);
}

}  // namespace pyfilter::cuda
