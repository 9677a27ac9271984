// SPDX-License-Identifier: BSD-3-Clause
// The stream of a unit (docs/format.md, section 14.5): 32 interleaved coders, one for each row, go through the steps of
// the unit's tiles. A decoder reads forwards, so an encoder writes from the last step to the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "adaptive/cpu/work.hpp"
#include "adaptive/plan.hpp"
#include "adaptive/records.hpp"
#include "adaptive/symbol_step.hpp"
#include "core/bits.hpp"
#include "core/wire.hpp"
#include "stages/entropy/packed_states.hpp"

PYF_BEGIN_TARGET

struct UnitRecords {
  std::uint32_t* values;  // make_record() of the lanes without a special value
  std::uint8_t* flags;    // of steps with masks: the context, plus 128 if the value is special
  StepRecord* steps;
  std::size_t value_count = 0, flag_count = 0, step_count = 0;
};

class StreamWriter {
 public:
  StreamWriter(std::uint8_t* begin, std::uint8_t* end, std::uint32_t lanes)
      : begin_(begin), end_(end), at_(end), full_(lanes_from(lanes)) {}
  void write(const UnitRecords& r, const AdaptiveModel& model, const AdaptiveTables& tables) {
    while (!try_to_write(r, model, tables)) {
    }
  }
  const std::uint8_t* words() const { return at_; }
  const std::uint32_t* states() const { return state_; }

 private:
  // Returns false if lanes must begin with kLowestState that began with another one.
  bool try_to_write(const UnitRecords& r, const AdaptiveModel& model, const AdaptiveTables& tables) {
    at_ = end_;
    for (std::uint32_t lane = 0; lane < kRows; ++lane) state_[lane] = first_state(lane, full_);
    Position at{r.value_count, r.flag_count};
    for (std::size_t s = r.step_count; s-- > 0;) {
      const bool first = at_ == end_;
      const Ints before = Ints::load(reinterpret_cast<const std::int32_t*>(state_));
      write_step(r, r.steps[s], at, model, tables);
      if (!first || at_ == end_) continue;
      const std::uint32_t low = bits_of_condition(before < Ints::all(kLowestState));
      full_ |= low;
      if (low != 0) return false;
    }
    return true;
  }
  struct Position {
    std::size_t value, flag;
  };
  KFN void write_step(const UnitRecords& r, StepRecord step, Position& at, const AdaptiveModel& model,
                      const AdaptiveTables& tables) {
    const auto lanes = static_cast<std::uint32_t>(__builtin_popcount(step.coded));
    std::uint32_t normal = step.coded;
    const std::uint8_t* flags = nullptr;
    if (step.masks != 0) {
      at.flag -= lanes;
      flags = r.flags + at.flag;
      std::uint32_t i = 0;
      for (std::uint32_t left = step.coded; left != 0; left &= left - 1, ++i)
        if ((flags[i] & 128) != 0) normal &= ~(left & (0u - left));
    }
    const auto count = static_cast<std::uint32_t>(__builtin_popcount(normal));
    at.value -= count;
    const std::uint32_t* const records = r.values + at.value;
    const bool is_written = put_step(normal, records, tables);
    if (is_written) normal = 0;
    // calls f(lane, i) for the lanes of `bits` and their indices among these, the highest first
    const auto backwards = [](std::uint32_t bits, std::uint32_t i, const auto& f) {
      while (bits != 0) {
        const auto lane = static_cast<std::uint32_t>(31 - __builtin_clz(bits));
        bits ^= 1u << lane;
        f(lane, --i);
      }
    };
    backwards(normal, count, [&](std::uint32_t lane, std::uint32_t i) { put_later(lane, records[i]); });
    backwards(normal, count, [&](std::uint32_t lane, std::uint32_t i) { put_escape(lane, records[i], tables); });
    backwards(normal, count, [&](std::uint32_t lane, std::uint32_t i) { put_symbol(lane, records[i], tables); });
    if (flags == nullptr) return;
    backwards(step.coded, lanes, [&](std::uint32_t lane, std::uint32_t i) {
      put_flag(lane, model.mask_frequency[flags[i] & 63], (flags[i] & 128) != 0);
    });
  }
  // Writes a step without escapes. Returns false if a lane has an escape or little room is left.
  KFN bool put_step(std::uint32_t lanes, const std::uint32_t* records, const AdaptiveTables& tables) {
    const Ints record = unpack_lanes(records, lanes), active = condition_of_bits(lanes);
    const Ints number = record & Ints::all((1 << kCodeBits) - 1);
    const Ints above = shift_right(bits_of(float_of(number) + Floats::all(0.5f)), 21) -
                       Ints::all(4 * 131 - static_cast<std::int32_t>(kDirectSymbols));
    const Ints direct = number < Ints::all(kDirectSymbols), symbol = select(direct, number, above);
    const Ints level = shift_right(record, kCodeBits) & Ints::all(127);
    static_assert(sizeof(SymbolEntry) == 12 && offsetof(SymbolEntry, frequency) == 4);
    const auto* const words = reinterpret_cast<const std::uint32_t*>(tables.symbols);
    const Ints at = (gather(tables.first_of_level, level) + symbol) * Ints::all(3);
    const Ints reciprocal = gather(words, at), both = gather(words + 1, at), shift = gather(words + 2, at);
    const Ints frequency = both & Ints::all(0xFFFF), first = (both >> Ints::all(16)) & Ints::all(0xFFFF);
    const Ints escapes = (record >= Ints::all(1 << 29)) | (frequency == Ints::all(0));
    if (bits_of_condition(active & escapes) != 0 || at_ - begin_ < static_cast<std::ptrdiff_t>(4 * kRows)) return false;
    Ints x = Ints::load(reinterpret_cast<const std::int32_t*>(state_));
    const Ints all_raw = select(direct, Ints::all(0), (symbol >> Ints::all(2)) - Ints::all(2));
    const Ints raw = select(all_raw < Ints::all(kWithSymbol), all_raw, Ints::all(kWithSymbol));
    const Ints behind = all_raw - raw, one = Ints::all(1);
    if (bits_of_condition(active & (one < (behind + one))) != 0) {
      const Ints full = (x >> (Ints::all(kStateBits) - behind)) >= one;
      at_ -= 2 * spill_states(x, bits_of_condition(active & full), at_);
      const Ints later = (number >> Ints::all(kWithSymbol)) & ((one << behind) - one);
      x = select(active, (x << behind) | later, x);
    }
    const Ints full = (x >> (Ints::all(kStateBits - kTableBits) - raw)) >= frequency;
    at_ -= 2 * spill_states(x, bits_of_condition(active & full), at_);
    const Ints longer = (x << raw) | (number & ((one << raw) - one));
    const Ints next = longer + first + divided(longer, reciprocal, shift) * (Ints::all(1 << kTableBits) - frequency);
    select(active, next, x).store(reinterpret_cast<std::int32_t*>(state_));
    return true;
  }
  void spill(std::uint32_t lane) {
    if (at_ - begin_ >= 2) at_ -= 2;
    store_le(at_, static_cast<std::uint16_t>(state_[lane]));
    state_[lane] >>= 16;
  }
  void put_raw(std::uint32_t lane, std::uint32_t bits, std::uint32_t count) {
    if (must_spill_raw(state_[lane], count)) spill(lane);
    state_[lane] = state_[lane] << count | bits;
  }
  static bool escapes(std::uint32_t record, const SymbolEntry* entries, std::uint32_t* symbol) {
    if (record >> 29 != kByCode) {
      *symbol = record >> 29 == kByValue ? kExactSymbol : kOriginSymbol;
      return true;
    }
    *symbol = symbol_of(number_of(record));
    return entries[*symbol].frequency == 0;
  }
  static const SymbolEntry* entries(std::uint32_t record, const AdaptiveTables& tables) {
    return tables.symbols + tables.first_of_level[record >> kCodeBits & 127];
  }
  void put_later(std::uint32_t lane, std::uint32_t record) {
    const std::uint32_t number = number_of(record);
    if (number < (1u << (kWithSymbol + 3)) || record >> 29 != kByCode) return;
    const std::uint32_t bits = bits_behind(symbol_of(number));
    if (bits != 0) put_raw(lane, (number >> kWithSymbol) & ((1u << bits) - 1), bits);
  }
  void put_escape(std::uint32_t lane, std::uint32_t record, const AdaptiveTables& tables) {
    std::uint32_t symbol = 0;
    if (!escapes(record, entries(record, tables), &symbol)) return;
    if (record >> 29 == kByCode)
      if (const std::uint32_t bits = bits_with(symbol); bits != 0) put_raw(lane, record & ((1u << bits) - 1), bits);
    put_raw(lane, symbol, kEscapeBits);
  }
  void put_symbol(std::uint32_t lane, std::uint32_t record, const AdaptiveTables& tables) {
    const SymbolEntry* const all = entries(record, tables);
    std::uint32_t symbol = 0;
    const bool escape = escapes(record, all, &symbol);
    const SymbolEntry& entry = all[escape ? kEscape : symbol];
    const std::uint32_t raw = escape ? 0 : bits_with(symbol);
    if (state_[lane] >> (kStateBits - kTableBits - raw) >= entry.frequency) spill(lane);
    const std::uint32_t x = state_[lane] << raw | (record & ((1u << raw) - 1));
    state_[lane] = x + entry.first + entry.divided(x) * ((1u << kTableBits) - entry.frequency);
  }
  void put_flag(std::uint32_t lane, std::uint32_t frequency, bool special) {
    if (must_spill(state_[lane], special ? frequency : kFrequencySum - frequency, 0)) spill(lane);
    state_[lane] = encode_flag(state_[lane], frequency, special);
  }

  std::uint8_t *begin_, *end_, *at_;
  std::uint32_t full_;  // lanes that begin with kLowestState
  alignas(64) std::uint32_t state_[kRows];
};

// Codes of a step. `exact` and `origin`: lanes that have a stored value instead of a code.
struct StepCodes {
  Ints codes;
  std::uint32_t exact = 0, origin = 0;
};

class StreamReader {
 public:
  StreamReader(const std::uint32_t* states, const std::uint8_t* words, const std::uint8_t* end)
      : at_(words), end_(end) {
    std::memcpy(state_, states, sizeof state_);
  }
  bool failed() const { return failed_; }
  // Whether no word is left, and each state is 1 or kLowestState.
  bool ended() const {
    bool good = at_ == end_;
    for (const std::uint32_t x : state_) good = good && is_first_state(x);
    return good;
  }

  // Returns the lanes of `bits` that have special values.
  std::uint32_t read_flags(const AdaptiveModel& model, const MaskNeighbours& near, std::uint32_t bits) {
    std::uint32_t special = 0;
    for (std::uint32_t left = bits; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      if (decode_flag(model.mask_frequency[near.of_lane(lane)], state_[lane])) special |= 1u << lane;
      refill(lane);
    }
    return special;
  }

  KFN StepCodes read(const AdaptiveTables& tables, const Ints& level, std::uint32_t bits, const Ints& active) {
    const Ints x = Ints::load(reinterpret_cast<const std::int32_t*>(state_));
    const SymbolStep step = take_symbols(tables.first_of_level, tables.slots, x, level, active);
    Ints next = step.next;
    const std::uint32_t needs = bits_of_condition(next < Ints::all(kLowestState));
    if (end_ - at_ >= static_cast<std::ptrdiff_t>(2 * kRows)) {
      at_ += 2 * refill_states(next, needs, at_);
      next.store(reinterpret_cast<std::int32_t*>(state_));
    } else {
      next.store(reinterpret_cast<std::int32_t*>(state_));
      for (std::uint32_t left = needs; left != 0 && at_ != end_; left &= left - 1)
        refill(static_cast<std::uint32_t>(__builtin_ctz(left)));
    }
    StepCodes result{step.codes()};
    const std::uint32_t unusual = bits & bits_of_condition(step.unusual());
    if (unusual != 0) finish(step.symbol, step.low, unusual, result);
    return result;
  }

 private:
  // Finishes symbols with more raw bits, and escapes.
  [[gnu::noinline]] void finish(const Ints& symbols, const Ints& lows, std::uint32_t unusual, StepCodes& result) {
    std::int32_t symbol[kRows], low[kRows], codes[kRows];
    symbols.store(symbol);
    lows.store(low);
    result.codes.store(codes);
    std::uint32_t coded = unusual;
    for (std::uint32_t left = unusual; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      if (symbol[lane] != static_cast<std::int32_t>(kEscape)) continue;
      symbol[lane] = static_cast<std::int32_t>(take(lane, kEscapeBits));
      const auto escaped = static_cast<std::uint32_t>(symbol[lane]);
      if (escaped == kExactSymbol) result.exact |= 1u << lane;
      if (escaped == kOriginSymbol) result.origin |= 1u << lane;
      if (escaped > kMostSymbol) {
        failed_ = failed_ || (escaped != kExactSymbol && escaped != kOriginSymbol);
        coded &= ~(1u << lane);
        codes[lane] = 0;
        continue;
      }
      low[lane] = static_cast<std::int32_t>(take(lane, bits_with(escaped)));
    }
    for (std::uint32_t left = coded; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      auto s = static_cast<std::uint32_t>(symbol[lane]);
      if (s > kMostSymbol) {
        failed_ = true;
        s = 0;
      }
      const std::uint32_t later = take(lane, bits_behind(s));
      const std::uint32_t number =
          smallest_of<std::uint32_t>(s) + (static_cast<std::uint32_t>(low[lane]) | later << kWithSymbol);
      codes[lane] = static_cast<std::int32_t>(unzigzag(number));
    }
    result.codes = Ints::load(codes);
  }
  std::uint32_t take(std::uint32_t lane, std::uint32_t count) {
    const std::uint32_t bits = state_[lane] & ((1u << count) - 1);
    state_[lane] >>= count;
    refill(lane);
    return bits;
  }
  KFN void refill(std::uint32_t lane) {
    if (state_[lane] >= kLowestState || at_ == end_) return;
    state_[lane] = state_[lane] << 16 | load_le<std::uint16_t>(at_);
    at_ += 2;
  }

  alignas(64) std::uint32_t state_[kRows];
  const std::uint8_t *at_, *end_;
  bool failed_ = false;
};

PYF_END_TARGET
