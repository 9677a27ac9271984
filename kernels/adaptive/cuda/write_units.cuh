// SPDX-License-Identifier: BSD-3-Clause
// Writes the streams of units from records, a warp each with a thread for each lane; cpu/stream.hpp is the same lane by
// lane. A decoder reads forwards, so a unit is written from its last step to its first.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_params.cuh"
#include "adaptive/cuda/stream.cuh"
#include "stages/entropy/packed_states.hpp"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kWriteWarps = 4;  // of a thread block; each writes a unit

struct UnitWriter {
  const AdaptiveModel& model;
  const CodedEntry<kTableBits>* entries;
  const std::uint32_t* first_of_level;
  std::uint16_t* words;
  std::uint32_t end;   // index behind the last word
  std::uint32_t at;    // index of the last word written
  std::uint32_t x;     // this lane's state
  std::uint32_t full;  // lanes that begin with kLowestState

  __device__ __forceinline__ void begin() {
    at = end;
    x = first_state(this_lane(), full);
    __syncwarp();  // words of the last try are written before others replace them
  }
  // Called after each step with this lane's state before it. Returns false if lanes must begin with kLowestState that
  // began with another one.
  __device__ __forceinline__ bool may_go_on(bool first, std::uint32_t before) {
    if (!first || at == end) return true;
    const std::uint32_t low = __ballot_sync(kAllRows, before < kLowestState ? 1 : 0);
    full |= low;
    return low == 0;
  }

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

  // Packs masks of tiles and states into shared memory. Returns the number of words.
  __device__ __forceinline__ std::uint32_t put_bits(std::uint32_t masks, std::uint32_t tiles, std::uint32_t lanes,
                                                    std::uint32_t* packed) const {
    for (std::uint32_t i = this_lane(); i < kMostUnitBitWords; i += kRows) packed[i] = 0;
    __syncwarp();
    BitWriter out{reinterpret_cast<std::uint8_t*>(packed)};
    if (model.masks && this_lane() == 0) out.put(masks, tiles);
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const std::uint32_t state = __shfl_sync(kAllRows, x, static_cast<int>(lane));
      if (this_lane() == 0) put_state(state, at != end, out);
    }
    __syncwarp();
    return words_of_bits(__shfl_sync(kAllRows, static_cast<std::uint32_t>(out.bits), 0));
  }

  // Writes a tile without masks: the records of the next step come while one is written.
  __device__ __forceinline__ bool write_plain(const TileRecords& records, const TileHead& head) {
    std::uint32_t value = head.values, steps = 0;
#pragma unroll 1
    for (std::uint32_t left = head.steps; left != 0; left -= steps) {
      steps = left % kRows != 0 ? left % kRows : kRows;
      const std::uint32_t lanes = this_lane() < steps ? records.steps[left - steps + this_lane()] : 0;
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
        const bool first = at == end;
        const std::uint32_t before = x;
        put_values(now, own);
        if (!may_go_on(first, before)) return false;
      }
    }
    return true;
  }
  __device__ __forceinline__ bool write_masked(const TileRecords& records, const TileHead& head) {
    std::uint32_t value = head.values, flag = head.flags;
#pragma unroll 1
    for (std::uint32_t s = head.steps; s-- > 0;) {
      const std::uint32_t bits = records.steps[s];
      flag -= popcount(bits);
      const bool coded = (bits >> this_lane() & 1) != 0;
      const std::uint32_t own = coded ? records.flags[flag + popcount(bits & lanes_below())] : 0;
      const std::uint32_t normal = __ballot_sync(kAllRows, coded && (own & 128) == 0 ? 1 : 0);
      value -= popcount(normal);
      const bool mine = (normal >> this_lane() & 1) != 0, first = at == end;
      const std::uint32_t before = x;
      put_values(mine, mine ? records.values[value + popcount(normal & lanes_below())] : 0);
      put_flags(coded, own);
      if (!may_go_on(first, before)) return false;
    }
    return true;
  }
};

static __global__ void __launch_bounds__(32 * kWriteWarps)
    write_units_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint64_t number = std::uint64_t{blockIdx.x} * kWriteWarps + threadIdx.x / 32;
  const auto part = static_cast<std::uint32_t>(number / job.most_tiles),
             unit = static_cast<std::uint32_t>(number % job.most_tiles);
  if (part >= job.part_count() || job.plan_of(part).quantise == 0) return;
  const EncodeOrder& order = job.order[job.chosen[part]];
  const AdaptiveGrid& grid = order.grids[part];
  const TrainedModel& trained = job.trained[part];
  const UnitTiles tiles(static_cast<std::uint32_t>(grid.tiles()), trained.unit_log2, unit);
  if (tiles.count == 0) return;
  const auto room = static_cast<std::uint32_t>(tiles.count * order.tile_words);
  const std::uint32_t lanes = states_of_unit(grid, trained.model.levels);
  UnitWriter writer{
      trained.model, trained.entries, trained.first_of_level, job.words_of(order, part, tiles.first), room,
      room,          kLowestState,    lanes_from(lanes)};
  const auto tile_records = [&](std::uint32_t i) { return job.records_of(order, part, tiles.first + i); };
  std::uint32_t masks = 0, stored = 0;
  for (std::uint32_t i = 0; i < tiles.count; ++i) {
    const TileHead& head = job.head_of(part, tiles.first + i);
    stored += head.stored;
    if (head.masks != 0) masks |= 1u << i;
  }
  for (bool done = false; !done;) {
    done = true;
    writer.begin();
#pragma unroll 1
    for (std::uint32_t i = tiles.count; done && i-- > 0;) {
      const TileHead& head = job.head_of(part, tiles.first + i);
      done = head.masks != 0 ? writer.write_masked(tile_records(i), head) : writer.write_plain(tile_records(i), head);
    }
  }
  __shared__ std::uint32_t packed[kWriteWarps][kMostUnitBitWords];
  const std::uint32_t bit_words = writer.put_bits(masks, tiles.count, lanes, packed[threadIdx.x / 32]);
  for (std::uint32_t i = this_lane(); i < bit_words; i += kRows)
    job.unit_bits[number * kMostUnitBitWords + i] = packed[threadIdx.x / 32][i];
  if (this_lane() != 0) return;
  const std::uint32_t words = room - writer.at;
  job.units[number] = {words, bit_words,
                       static_cast<std::uint32_t>(kUnitHead + 4 * bit_words + (2 * words + 3) / 4 * 4 + 4 * stored)};
}

}  // namespace pyfilter::cuda
