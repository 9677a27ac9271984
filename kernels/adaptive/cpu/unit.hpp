// SPDX-License-Identifier: BSD-3-Clause
// Encodes units, the tiles that share a stream (docs/format.md, section 14.5).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/stream.hpp"
#include "adaptive/cpu/work.hpp"
#include "adaptive/scale.hpp"
#include "core/cpu_driver.hpp"
#include "core/status.hpp"
#include "core/wire.hpp"

PYF_BEGIN_TARGET

// The size of the largest unit: for each value a symbol's 38 bits or the value itself, and a flag's 10 bits.
constexpr std::size_t unit_bytes_of(std::size_t tiles, std::size_t value_bytes) {
  return kUnitHead + 4 * kMostUnitBitWords + tiles * Work::kDense * (value_bytes + 8) + 64;
}
// Steps of all passes: each is of a plane, but with few columns a step has few values.
inline constexpr std::size_t kMostTileSteps = 3 * (kMostLevels + 1) * kMostSteps;
constexpr std::size_t record_bytes(std::size_t tiles) {
  return tiles * (5 * Work::kDense + kMostTileSteps * sizeof(StepRecord)) + 4 * kRows;
}
constexpr std::size_t unit_scratch_bytes(std::size_t tiles) { return Work::bytes() + record_bytes(tiles) + 1024; }

template <class T>
KFN ChunkScale<T> scale_of_plan(const AdaptivePlan& plan) {
  return {plan.offset, plan.step, plan.bound, plan.sentinel, plan.has_sentinel};
}

inline void shape_dense(Dense& d, const AdaptiveTile& tile) {
  d.planes = tile.planes;
  d.rows = tile.rows;
  d.columns = tile.columns;
  for (std::uint32_t y = 0; y < kRows; ++y) d.lengths[y] = y < tile.rows ? tile.length(y) : 0;
}

template <class T>
KFN T value_at(const void* values, std::uint64_t index) {
  T x;
  std::memcpy(&x, static_cast<const std::uint8_t*>(values) + index * sizeof(T), sizeof(T));
  return x;
}

// Reads a tile's values; returns whether some are special. Values out of the codes' reach become kExact.
template <class T>
inline bool load_tile(const AdaptivePlan& plan, const AdaptiveTile& tile, const void* values, Dense& d) {
  shape_dense(d, tile);
  const ChunkScale<T> scale = scale_of_plan<T>(plan);
  const bool plain = tile.value_stride == 1 && !plan.has_sentinel && plan.origin_values == nullptr;
  bool any = false, others = false;
  const auto keep = [&](std::uint64_t index, T value, float& t, std::uint8_t& kind) {
    if (std::bit_cast<ValueBits<T>>(value_at<T>(plan.origin_values, index)) != std::bit_cast<ValueBits<T>>(value))
      return;
    if (kind == kSentinel || plan.origin_kinds[index] == kSentinel) return;
    if (plan.origin_kinds[index] == kCoded) t = plan.origin_r[index] * plan.origin_scale;
    kind = plan.origin_kinds[index] == kCoded ? kKept : kExact;
  };
  for (std::uint32_t z = 0; z < d.planes; ++z)
    for (std::uint32_t y = 0; y < d.rows; ++y) {
      const std::uint64_t from = tile.row(z, y);
      float* const to = d.values + d.index(z, y, 0);
      std::uint8_t* const kinds = d.kinds + d.index(z, y, 0);
      std::memset(kinds + d.lengths[y], kCoded, d.columns - d.lengths[y]);  // of no value: copied with the others
      const std::uint32_t count = plan.tiles.existing(from, d.lengths[y]);
      if (count != d.lengths[y]) {
        std::memset(to + count, 0, sizeof(float) * (d.lengths[y] - count));
        std::memset(kinds + count, kAbsent, d.lengths[y] - count);
        others = true;
      }
      if (plain) {
        std::uint32_t largest = 0;  // bits of the magnitude: NaN is the largest
        for (std::uint32_t x = 0; x < count; ++x) {
          to[x] = scale.normalised(value_at<T>(values, from + x));
          largest = std::max(largest, std::bit_cast<std::uint32_t>(to[x]) & 0x7FFFFFFF);
        }
        std::memset(kinds, kCoded, count);
        if (largest < std::bit_cast<std::uint32_t>(kFarthest)) continue;
      }
      std::uint32_t seen = 0;  // a bit for each kind
      const auto look = [&](std::uint32_t x, std::uint64_t index) {
        float t = 0;
        const ValueKind kind = scale.kind_of(value_at<T>(values, index), &t);
        to[x] = t;
        kinds[x] = kind;
        seen |= 1u << kind;
      };
      if (tile.value_stride == 1)
        for (std::uint32_t x = 0; x < count; ++x) look(x, from + x);
      else
        for (std::uint32_t x = 0; x < count; ++x) look(x, from + x * tile.value_stride);
      any = any || (seen >> kSentinel & 1) != 0;
      others = others || (seen & ~(1u << kCoded)) != 0;
      for (std::uint32_t x = 0; x < count && plan.origin_values != nullptr; ++x)
        keep(from + x * tile.value_stride, value_at<T>(values, from + x * tile.value_stride), to[x], kinds[x]);
    }
  d.all_coded = !others && plan.origin_values == nullptr;
  return any;
}

// Marks values outside the bound after decoding, and decoded zeros whose value was not zero. Returns their number.
template <class T>
inline std::size_t mark_misfits(const AdaptivePlan& plan, const AdaptiveTile& tile, const void* values, Dense& d) {
  const ChunkScale<T> scale = scale_of_plan<T>(plan);
  std::size_t marked = 0;
  for (std::uint32_t z = 0; z < d.planes; ++z)
    for (std::uint32_t y = 0; y < d.rows; ++y) {
      const std::uint64_t from = tile.row(z, y);
      const float* const r = d.values + d.index(z, y, 0);
      std::uint8_t* const kinds = d.kinds + d.index(z, y, 0);
      const std::uint32_t count = plan.tiles.existing(from, d.lengths[y]);
      if (tile.value_stride == 1 && !plan.has_sentinel) {
        std::uint64_t largest = 0;  // bits of the largest error: NaN is the largest
        ValueBits<T> least = static_cast<ValueBits<T>>(~ValueBits<T>{0});
        for (std::uint32_t x = 0; x < count; ++x) {
          const T value = value_at<T>(values, from + x), decoded = scale.reconstructed(r[x]);
          const double error = static_cast<double>(value) - static_cast<double>(decoded);
          largest = std::max(largest, std::bit_cast<std::uint64_t>(error) & ~std::uint64_t{0} >> 1);
          least = std::min(least, static_cast<ValueBits<T>>(std::bit_cast<ValueBits<T>>(value) << 1));
        }
        if (largest <= std::bit_cast<std::uint64_t>(scale.bound) && least != 0) continue;
      }
      const auto misses = [&](std::uint32_t x, std::uint64_t index) {
        return static_cast<std::uint32_t>((kinds[x] == kCoded) & !scale.fits(value_at<T>(values, index), r[x]));
      };
      if (tile.value_stride == 1) {
        std::uint32_t any = 0;
        for (std::uint32_t x = 0; x < count; ++x) any |= misses(x, from + x);
        if (any == 0) continue;
      }
      for (std::uint32_t x = 0; x < count; ++x) {
        if (misses(x, from + x * tile.value_stride) == 0) continue;
        kinds[x] = kExact;
        ++marked;
      }
    }
  return marked;
}

// Appends the records of a turn and its verbatim values.
template <class T>
inline void record_turn(const AdaptivePlan& plan, Work& w, const Lattice& lattice, std::uint32_t turn,
                        const AdaptiveTile& tile, const void* values, bool masks, UnitRecords& r,
                        std::uint8_t*& stored) {
  const Steps& s = w.steps;
  each_step(w, lattice, turn, [&](std::uint32_t number, const auto& step, std::uint32_t coded, const Ints&) {
    r.steps[r.step_count++] = {coded, masks ? 1u : 0u};
    const std::uint32_t special = step.mask() & coded;
    if (masks) {
      const MaskNeighbours near = step.near_masks();
      for (std::uint32_t left = coded; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
        r.flags[r.flag_count++] = static_cast<std::uint8_t>(near.of_lane(lane) | (special >> lane & 1) << 7);
      }
    }
    const std::size_t at = std::size_t{number} * kRows;
    const Ints codes = Ints::load(s.codes + at);
    Ints level;
    if (w.pass->refining) {  // a neighbour may have been coded since
      level = Ints::load(s.levels + at);
    } else {
      Expected e;
      e.set = Ints::load(s.sets + at);
      e.range = Floats::load(s.ranges + at);
      e.distance = Floats::load(s.distances + at);
      level = step.level(e);
    }
    const Ints zigzags = (codes + codes) ^ (codes < Ints::all(0));
    std::uint32_t* const records = r.values + r.value_count;
    r.value_count += pack_lanes(zigzags | (level << Ints::all(kCodeBits)), coded & ~special, records);
    const std::uint32_t stores = (s.exact[number] | s.origin[number]) & coded & ~special;
    for (std::uint32_t left = stores; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      const bool exact = (s.exact[number] >> lane & 1) != 0;
      const bool origin = (s.origin[number] >> lane & 1) != 0;
      std::uint32_t& record = records[__builtin_popcount(coded & ~special & ((1u << lane) - 1))];
      record = make_record(0, record >> kCodeBits & 127, exact ? kByValue : kByOrigin);
      if (origin) {
        std::memcpy(stored, s.targets + at + lane, sizeof(float));
        stored += sizeof(float);
      }
      if (!exact) continue;
      const LatticePoint point = step.point(lane);
      const std::uint64_t index = tile.row(point.z << lattice.shift_z, point.y << lattice.shift_y) +
                                  (std::uint64_t{point.x} << lattice.shift_x) * tile.value_stride;
      const T value = index < plan.tiles.values ? value_at<T>(values, index) : static_cast<T>(plan.offset);
      std::memcpy(stored, &value, sizeof(T));
      stored += sizeof(T);
    }
  });
}

// Encodes a tile, and repeats until every value keeps the bound or is stored verbatim.
template <class T>
inline bool encode_tile_values(const AdaptivePlan& plan, const void* values, const AdaptiveTile& tile, Work& w,
                               UnitRecords& r, std::uint8_t*& stored) {
  const AdaptiveModel& model = *plan.model;
  const UnitRecords before = r;
  std::uint8_t* const stored_before = stored;
  const std::size_t cells = std::size_t{tile.planes} * tile.rows * tile.columns;
  std::uint8_t* const marks = w.marks;
  const bool spread = w.spread_tile == tile && model.levels == 0;
  for (int attempt = 0;; ++attempt) {
    const bool again = spread && attempt == 0;
    if (!again) w.specials = load_tile<T>(plan, tile, values, w.dense);
    const bool masks = w.specials && model.masks;
    if (attempt != 0)
      for (std::size_t i = 0; i < cells; ++i)
        if (marks[i] == kExact && w.dense.kinds[i] == kCoded) w.dense.kinds[i] = kExact;
    if (attempt != 0) w.dense.all_coded = false;
    const auto no_samples = [](std::uint32_t, std::uint32_t, const auto&, std::uint32_t) {};
    encode_passes(w, model, again, no_samples, [&](const Lattice& lattice, std::uint32_t turn) {
      record_turn<T>(plan, w, lattice, turn, tile, values, masks, r, stored);
    });
    if (mark_misfits<T>(plan, tile, values, w.dense) == 0) {
      w.spread_tile = attempt == 0 && model.levels == 0 ? tile : Work::kNoTile;
      return masks;
    }
    if (attempt > 6) std::memset(w.dense.kinds, kExact, cells);
    std::memcpy(marks, w.dense.kinds, cells);
    r = before;
    stored = stored_before;
  }
}

inline UnitRecords records_in(std::uint8_t* memory, std::size_t tiles) {
  UnitRecords r;
  r.values = reinterpret_cast<std::uint32_t*>(memory);
  memory += tiles * 4 * Work::kDense + 4 * kRows;  // pack_lanes() writes beyond
  r.steps = reinterpret_cast<StepRecord*>(memory);
  memory += tiles * kMostTileSteps * sizeof(StepRecord);
  r.flags = memory;
  return r;
}

inline const KeptTile* find_kept(const AdaptivePlan& plan, std::uint64_t tile) {
  if (plan.kept == nullptr) return nullptr;
  const auto at = std::lower_bound(plan.kept->begin(), plan.kept->end(), tile,
                                   [](const KeptTile& kept, std::uint64_t number) { return kept.number < number; });
  return at != plan.kept->end() && at->number == tile ? &*at : nullptr;
}

// Appends a kept tile; returns whether it has masks.
inline bool append_kept(const KeptTile& kept, UnitRecords& r, std::uint8_t*& stored) {
  std::copy(kept.values.begin(), kept.values.end(), r.values + r.value_count);
  std::copy(kept.steps.begin(), kept.steps.end(), r.steps + r.step_count);
  std::copy(kept.flags.begin(), kept.flags.end(), r.flags + r.flag_count);
  std::copy(kept.stored.begin(), kept.stored.end(), stored);
  r.value_count += kept.values.size();
  r.step_count += kept.steps.size();
  r.flag_count += kept.flags.size();
  stored += kept.stored.size();
  return kept.masks;
}

template <class T>
inline EncodedTile encode_unit(const Plan& base, const void* values, std::uint64_t unit, void* scratch,
                               std::uint8_t* out) {
  const auto& plan = static_cast<const AdaptivePlan&>(base);
  Work w(scratch);
  UnitRecords records =
      records_in(static_cast<std::uint8_t*>(scratch) + (Work::bytes() + 63) / 64 * 64, plan.unit_tiles);
  const std::uint64_t first = unit * plan.unit_tiles,
                      last = std::min<std::uint64_t>(first + plan.unit_tiles, plan.tiles.tiles());
  const std::uint32_t rows = states_of_unit(plan.tiles, plan.model->levels);
  std::uint32_t masks = 0;
  // verbatim values grow from the start of the unit, words from its end
  std::uint8_t *const head = out, *stored = out + kUnitHead + 4 * kMostUnitBitWords;
  std::uint8_t* const stored_begin = stored;
  for (std::uint64_t tile = first; tile < last; ++tile) {
    const KeptTile* const kept = find_kept(plan, tile);
    const bool has_masks = kept != nullptr
                               ? append_kept(*kept, records, stored)
                               : encode_tile_values<T>(plan, values, plan.tiles.tile(tile), w, records, stored);
    if (has_masks) masks |= 1u << (tile - first);
  }
  const auto stored_bytes = static_cast<std::size_t>(stored - stored_begin);
  std::uint8_t* const end = out + plan.unit_bytes;
  StreamWriter writer(stored, end, rows);
  writer.write(records, *plan.model, *plan.tables);
  const auto word_bytes = static_cast<std::size_t>(end - writer.words());
  const std::size_t padded = (word_bytes + 3) / 4 * 4, padded_stored = (stored_bytes + 3) / 4 * 4;
  std::uint8_t bits[4 * kMostUnitBitWords] = {};
  BitWriter in_bits{bits};
  if (plan.model->masks) in_bits.put(masks, static_cast<std::uint32_t>(last - first));
  for (std::uint32_t i = 0; i < rows; ++i) put_state(writer.states()[i], word_bytes != 0, in_bits);
  const std::size_t bit_bytes = 4 * std::size_t{words_of_bits(in_bits.bits)};
  std::uint8_t *const words = head + kUnitHead + bit_bytes, *const behind = words + padded;
  std::memmove(behind, stored_begin, stored_bytes);
  std::memmove(words, writer.words(), word_bytes);
  std::memset(words + word_bytes, 0, padded - word_bytes);
  std::memset(behind + stored_bytes, 0, padded_stored - stored_bytes);
  store_le(head, static_cast<std::uint32_t>(word_bytes / 2));
  std::memcpy(head + kUnitHead, bits, bit_bytes);
  EncodedTile encoded;
  encoded.bytes = static_cast<std::uint32_t>(behind + padded_stored - head);
  return encoded;
}

PYF_END_TARGET
