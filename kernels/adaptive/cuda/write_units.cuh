// SPDX-License-Identifier: BSD-3-Clause
// Writes the streams of units from records, a warp each with a thread for each lane; cpu/stream.hpp is the same lane by
// lane. A decoder reads forwards, so a unit is written from its last step to its first.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_params.cuh"
#include "adaptive/cuda/stream.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kWriteWarps = 4;  // of a thread block; each writes a unit

// The order of axes that a chunk's frame has: the second one if it needs fewer bits.
__device__ __forceinline__ std::uint32_t order_of(const AdaptiveEncode& job, std::uint32_t local) {
  return job.orders > 1 && job.order[1].trained[local].bits < job.order[0].trained[local].bits ? 1 : 0;
}

struct UnitWriter {
  const AdaptiveModel& model;
  const CodedEntry<kTableBits>* entries;
  const std::uint32_t* first_of_level;
  std::uint16_t* words;
  std::uint32_t at;  // index of the last word written
  std::uint32_t x;   // this lane's state

  // The lanes with `full` write 16 bits, the highest lane first.
  __device__ __forceinline__ void spill(bool full) {
    const std::uint32_t all = __ballot_sync(kAllRows, full ? 1 : 0);
    at -= popcount(all);
    if (!full) return;
    words[at + popcount(all & lanes_below())] = static_cast<std::uint16_t>(x);
    x >>= 16;
  }
  __device__ __forceinline__ void put_raw(bool mine, std::uint32_t bits, std::uint32_t count) {
    spill(mine && must_spill_raw(x, count));
    if (mine) x = x << count | (bits & ((1u << count) - 1));
  }
  // Writes the values of a step; `mine`: this lane has one.
  __device__ __forceinline__ void put_values(bool mine, std::uint32_t record) {
    const std::uint32_t number = number_of(record);
    const bool by_code = how_of(record) == kByCode;
    std::uint32_t symbol = kExactSymbol;
    if (by_code) symbol = symbol_of_small(number);
    const CodedEntry<kTableBits>* const table = entries + first_of_level[level_of_record(record)];
    CodedEntry<kTableBits> entry = table[by_code ? symbol : kEscape];
    const std::uint32_t later = by_code ? bits_behind(symbol) : 0;
    if (__any_sync(kAllRows, mine && later != 0)) put_raw(mine && later != 0, number >> kWithSymbol, later);
    const bool escapes = mine && (!by_code || entry.frequency() == 0);
    std::uint32_t raw = by_code ? bits_with(symbol) : 0;
    const std::uint32_t all = __ballot_sync(kAllRows, escapes ? 1 : 0);
    if (all != 0) {
      for (std::uint32_t left = all; left != 0;) {  // one lane at a time: each writes the words of its two parts
        const std::uint32_t lane = 31 - static_cast<std::uint32_t>(__clz(static_cast<int>(left)));
        left ^= 1u << lane;
        const bool turn = this_lane() == lane;
        put_raw(turn && raw != 0, number, raw);
        put_raw(turn, symbol, kEscapeBits);
      }
      if (escapes) {
        entry = table[kEscape];
        raw = 0;
      }
    }
    spill(mine && x >> (kStateBits - kTableBits - raw) >= entry.frequency());
    if (mine) x = entry.coded(x << raw | (number & ((1u << raw) - 1)));
  }
  __device__ __forceinline__ void put_flags(bool mine, std::uint32_t flag) {
    const bool special = (flag & 128) != 0;
    const std::uint32_t frequency = model.mask_frequency[flag & 63];
    spill(mine && must_spill(x, special ? frequency : kFrequencySum - frequency, 0));
    if (mine) x = encode_flag(x, frequency, special);
  }

  // Writes a tile without masks: the records of the next step come while one is written.
  __device__ __forceinline__ void write_plain(const TileRecords& records, const TileHead& head) {
    std::uint32_t value = head.values, steps = 0;
#pragma unroll 1
    for (std::uint32_t end = head.steps; end != 0; end -= steps) {
      steps = end % kRows != 0 ? end % kRows : kRows;
      const std::uint32_t lanes = this_lane() < steps ? records.steps[end - steps + this_lane()] : 0;
      std::uint32_t bits = __shfl_sync(kAllRows, lanes, static_cast<int>(steps - 1));
      value -= popcount(bits);
      bool mine = (bits >> this_lane() & 1) != 0;
      std::uint32_t record = mine ? records.values[value + popcount(bits & lanes_below())] : 0;
#pragma unroll 1
      for (std::uint32_t s = steps; s-- > 0;) {
        const bool now = mine;
        const std::uint32_t own = record;
        if (s != 0) {
          bits = __shfl_sync(kAllRows, lanes, static_cast<int>(s - 1));
          value -= popcount(bits);
          mine = (bits >> this_lane() & 1) != 0;
          record = mine ? records.values[value + popcount(bits & lanes_below())] : 0;
        }
        put_values(now, own);
      }
    }
  }
  __device__ __forceinline__ void write_masked(const TileRecords& records, const TileHead& head) {
    std::uint32_t value = head.values, flag = head.flags;
#pragma unroll 1
    for (std::uint32_t s = head.steps; s-- > 0;) {
      const std::uint32_t bits = records.steps[s];
      flag -= popcount(bits);
      const bool coded = (bits >> this_lane() & 1) != 0;
      const std::uint32_t own = coded ? records.flags[flag + popcount(bits & lanes_below())] : 0;
      const std::uint32_t normal = __ballot_sync(kAllRows, coded && (own & 128) == 0 ? 1 : 0);
      value -= popcount(normal);
      const bool mine = (normal >> this_lane() & 1) != 0;
      put_values(mine, mine ? records.values[value + popcount(normal & lanes_below())] : 0);
      put_flags(coded, own);
    }
  }
};

static __global__ void __launch_bounds__(32 * kWriteWarps)
    write_units_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint64_t number = std::uint64_t{blockIdx.x} * kWriteWarps + threadIdx.x / 32;
  const auto local = static_cast<std::uint32_t>(number / job.most_units),
             unit = static_cast<std::uint32_t>(number % job.most_units);
  if (local >= job.base.chunks || job.base.plans[local].quantise == 0) return;
  const EncodeOrder& order = job.order[order_of(job, local)];
  const TrainedModel& trained = order.trained[local];
  const UnitTiles tiles(order.tiles, trained.unit_log2, unit);
  if (tiles.count == 0) return;
  const std::uint64_t first = std::uint64_t{local} * order.tiles + tiles.first;
  const auto room = static_cast<std::uint32_t>(tiles.count * order.tile_words);
  UnitWriter writer{trained.model, trained.entries, trained.first_of_level, job.words + first * order.tile_words,
                    room,          kLowestState};
  std::uint32_t masks = 0, stored = 0;
#pragma unroll 1
  for (std::uint32_t i = tiles.count; i-- > 0;) {
    const TileHead head = order.heads[first + i];
    const TileRecords records = order.records.in(order.record_memory + (first + i) * order.records.bytes());
    stored += head.stored;
    if (head.masks != 0) {
      masks |= 1u << i;
      writer.write_masked(records, head);
    } else {
      writer.write_plain(records, head);
    }
  }
  const std::uint32_t states = states_of_unit(order.grid, trained.model.levels);
  if (this_lane() < states) job.states[number * kRows + this_lane()] = writer.x;
  if (this_lane() != 0) return;
  const std::uint32_t words = room - writer.at;
  job.units[number] = {words, masks,
                       static_cast<std::uint32_t>(kUnitHead + 4 * states + (2 * words + 3) / 4 * 4 + 4 * stored)};
}

}  // namespace pyfilter::cuda
