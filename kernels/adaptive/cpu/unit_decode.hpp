// SPDX-License-Identifier: BSD-3-Clause
// Decodes units, the tiles that share a stream (docs/format.md, section 14.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/unit.hpp"
#include "core/status.hpp"

PYF_BEGIN_TARGET

// Static texts: fail() formats into memory of the calling thread.
inline constexpr Status kBadUnitHead{Code::corrupt, "corrupt frame: the head of a unit is invalid"};
inline constexpr Status kBadUnitSize{Code::corrupt, "corrupt frame: a unit's parts do not add up to its size"};
inline constexpr Status kBadUnitStream{Code::corrupt, "corrupt frame: a stream does not end where it should"};
inline constexpr Status kBadStoredValues{Code::corrupt, "corrupt frame: too many or too few verbatim values"};
inline constexpr Status kBadUnitPadding{Code::corrupt, "corrupt frame: padding of a unit is not zero"};
inline constexpr Status kBadUnitValue{Code::corrupt, "corrupt frame: a value is too large to predict with"};
inline constexpr Status kNoUnitMemory{Code::no_memory, "no memory for a tile"};

// Reads a unit's verbatim values in the order of coding.
struct StoredValues {
  const std::uint8_t *at, *end;
  bool failed = false;

  template <class V>
  V take() {
    if (static_cast<std::size_t>(end - at) < sizeof(V)) {
      failed = true;
      return V{};
    }
    V x;
    std::memcpy(&x, at, sizeof x);
    at += sizeof x;
    return x;
  }
};

template <class T>
inline void decode_turn(const AdaptivePlan& plan, Work& w, const Lattice& lattice, bool masks, std::uint32_t turn,
                        StreamReader& stream, StoredValues& stored, T* exact_values) {
  const ChunkScale<T> scale = scale_of_plan<T>(plan);
  const Floats unit = Floats::all(kUnits[w.pass->unit]);
  each_step(w, lattice, turn, [&](std::uint32_t, const auto& step, std::uint32_t bits, const Ints& active) {
    const Expected e = step.expect();
    const Ints level = step.level(e);
    std::uint32_t sentinel = 0;
    Ints coded = active;
    if (masks) {
      sentinel = stream.read_flags(*plan.model, step.near_masks(), bits);
      step.mask() = sentinel;
      if (sentinel != 0) coded = coded & ~condition_of_bits(sentinel);
    }
    const StepCodes step_codes = stream.read(*plan.tables, level, bits & ~sentinel, coded);
    Floats code = float_of(step_codes.codes), value = fused(code, unit, e.value);
    const std::uint32_t special = sentinel | step_codes.exact | step_codes.origin;
    if (special != 0) {
      w.dense.all_coded = false;
      const Ints is_special = condition_of_bits(special);
      code = as_floats(bits_of(code) & ~is_special);
      float others[kRows];
      step.stand_in().store(others);
      for (std::uint32_t left = special; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
        const LatticePoint point = step.point(lane);
        const std::size_t at = lattice.index(w.dense, point.z, point.y, point.x);
        w.dense.kinds[at] = (sentinel >> lane & 1) != 0 ? kSentinel : kExact;
        if ((step_codes.exact >> lane & 1) != 0) {
          const T stored_value = stored.take<T>();
          exact_values[at] = stored_value;
          const float t = scale.normalised(stored_value);
          if ((t < kFarthest) & (t > -kFarthest)) others[lane] = t;
        }
        if ((step_codes.origin >> lane & 1) != 0) {
          others[lane] = stored.take<float>();
          w.dense.kinds[at] = kCoded;
        }
      }
      value = select(is_special, Floats::load(others), value);
    }
    step.store(bits, active, value);
    step.store_sizes(active, least(absolute(code), Floats::all(kLargestSize)));
  });
}

template <class T>
inline void store_tile(const AdaptivePlan& plan, const AdaptiveTile& tile, const Dense& d, const T* exact_values,
                       void* out) {
  auto* const to = static_cast<std::uint8_t*>(out);
  const ChunkScale<T> scale = scale_of_plan<T>(plan);
  const T sentinel = std::bit_cast<T>(scale.sentinel);
  for (std::uint32_t z = 0; z < d.planes; ++z)
    for (std::uint32_t y = 0; y < d.rows; ++y) {
      const std::uint64_t first = tile.row(z, y);
      const std::size_t from = d.index(z, y, 0);
      if (d.all_coded && tile.value_stride == 1 && first >= plan.start && first + d.lengths[y] <= plan.stop &&
          plan.decoded_r == nullptr) {
        std::uint8_t* const row = to + (first - plan.start) * sizeof(T);
        for (std::uint32_t x = 0; x < d.lengths[y]; ++x) {
          const T value = scale.reconstructed(d.values[from + x]);
          std::memcpy(row + x * sizeof(T), &value, sizeof(T));
        }
        continue;
      }
      for (std::uint32_t x = 0; x < d.lengths[y]; ++x) {
        const std::uint64_t index = first + x * tile.value_stride;
        if (index < plan.start || index >= plan.stop) continue;
        const std::uint8_t kind = d.kinds[from + x];
        if (plan.decoded_r != nullptr) {
          plan.decoded_r[index] = d.values[from + x];
          plan.decoded_kinds[index] = kind;
        }
        const T value = kind == kCoded      ? scale.reconstructed(d.values[from + x])
                        : kind == kSentinel ? sentinel
                                            : exact_values[from + x];
        std::memcpy(to + (index - plan.start) * sizeof(T), &value, sizeof(T));
      }
    }
}

// Whether all values are small enough that no weighted sum can be infinite.
inline bool is_tame(const Dense& d) {
  std::uint32_t largest = 0;  // bits of the magnitude: NaN is the largest
  for (std::uint32_t z = 0; z < d.planes; ++z)
    for (std::uint32_t y = 0; y < d.rows; ++y) {
      const float* const r = d.values + d.index(z, y, 0);
      for (std::uint32_t x = 0; x < d.lengths[y]; ++x)
        largest = std::max(largest, std::bit_cast<std::uint32_t>(r[x]) & 0x7FFFFFFF);
    }
  return largest < std::bit_cast<std::uint32_t>(0x1p64f);
}

template <class T>
inline Status decode_unit(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                          std::uint64_t unit, std::uint64_t, std::uint64_t, void* out) {
  const auto& plan = static_cast<const AdaptivePlan&>(base);
  if (uniform || size < kUnitHead) return kBadUnitHead;
  const std::size_t word_bytes = 2 * std::size_t{load_le<std::uint32_t>(bytes)}, padded = (word_bytes + 3) / 4 * 4;
  const std::uint64_t first = unit * plan.unit_tiles,
                      last = std::min<std::uint64_t>(first + plan.unit_tiles, plan.tiles.tiles());
  const std::uint32_t rows = states_of_unit(plan.tiles, plan.model->levels);
  StateReader reader{{bytes + kUnitHead, 8 * (size - kUnitHead)}, word_bytes != 0};
  const std::uint32_t masks = plan.model->masks ? reader.in.take(static_cast<std::uint32_t>(last - first)) : 0;
  alignas(64) std::uint32_t states[kRows];
  for (std::uint32_t lane = 0; lane < kRows; ++lane) states[lane] = lane < rows ? reader.next() : kLowestState;
  const std::size_t bit_words = reader.end(), head = kUnitHead + 4 * bit_words;
  if (bit_words == 0) return kBadUnitHead;
  if (padded > size - head) return kBadUnitSize;
  if (padded != word_bytes && load_le<std::uint16_t>(bytes + head + word_bytes) != 0) return kBadUnitPadding;
  std::uint8_t* const scratch = thread_scratch(unit_scratch_bytes(0) + sizeof(T) * Work::kDense);
  if (scratch == nullptr) return kNoUnitMemory;
  Work w(scratch);
  T* const exact_values = reinterpret_cast<T*>(scratch + (Work::bytes() + 63) / 64 * 64);
  StreamReader stream(states, bytes + head, bytes + head + word_bytes);
  StoredValues stored{bytes + head + padded, bytes + size};
  for (std::uint64_t number = first; number < last && !stream.failed() && !stored.failed; ++number) {
    const AdaptiveTile tile = plan.tiles.tile(number);
    shape_dense(w.dense, tile);
    std::memset(w.dense.kinds, kCoded, std::size_t{tile.planes} * tile.rows * tile.columns);
    w.dense.all_coded = true;
    for (std::uint32_t p = 0; p <= plan.model->levels; ++p) {
      const PassModel& pass = plan.model->passes[p];
      const Lattice lattice(w.dense, plan.model->kind, pass.log2);
      begin_pass(w, plan.model->kind, pass, lattice);
      for (std::uint32_t turn = 1; turn <= w.turns; ++turn)
        decode_turn<T>(plan, w, lattice, (masks >> (number - first) & 1) != 0, turn, stream, stored, exact_values);
      collect(w, lattice);
    }
    if (!is_tame(w.dense)) return kBadUnitValue;
    store_tile<T>(plan, tile, w.dense, exact_values, out);
  }
  if (stream.failed() || !stream.ended()) return kBadUnitStream;
  if (stored.failed || stored.end - stored.at >= 4) return kBadStoredValues;
  for (; stored.at != stored.end; ++stored.at)
    if (*stored.at != 0) return kBadUnitPadding;
  return kOk;
}

PYF_END_TARGET
