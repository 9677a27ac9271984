// SPDX-License-Identifier: BSD-3-Clause
// A round of a stream (docs/format.md, section 8.3): up to 32 blocks, one for each lane, coded position by position.
// This file goes lane by lane; cpu/simd/ codes all lanes at once if values are ordinary and the stream is long enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "lorenzo/rans.hpp"
#include "stages/entropy/packed_states.hpp"

PYF_BEGIN_TARGET

// Residuals of a round by position and lane: low halves, and high halves if any is not 0 (`wide`).
struct RoundRows {
  alignas(64) std::uint32_t low[32][kLaneCount];
  alignas(64) std::uint32_t high[32][kLaneCount];
  bool wide;

  std::uint64_t value(std::uint32_t i, std::uint32_t lane) const {
    return low[i][lane] | (wide ? std::uint64_t{high[i][lane]} << 32 : 0);
  }
  void set(std::uint32_t i, std::uint32_t lane, std::uint64_t value) {
    low[i][lane] = static_cast<std::uint32_t>(value);
    if (value >> 32 != 0 && !wide) {
      std::memset(high, 0, sizeof high);
      wide = true;
    }
    if (wide) high[i][lane] = static_cast<std::uint32_t>(value >> 32);
  }
};

struct alignas(64) LaneStates {
  std::uint32_t x[kLaneCount];

  std::uint32_t below_lowest() const {
    std::uint32_t lanes = 0;
    for (std::uint32_t l = 0; l < kLaneCount; ++l) lanes |= (x[l] < kLowestState ? 1u : 0u) << l;
    return lanes;
  }
};

// Calls run.operator()<n>() with the fewest registers n, at most kVectors, that hold `lanes` lanes.
template <int kVectors, std::uint32_t kHeld = kLaneCount / kVectors, class Run>
KFN std::uint32_t with_vectors(std::uint32_t lanes, const Run& run) {
  if constexpr (kVectors > 1)
    if (lanes <= kHeld * (kVectors - 1)) [[unlikely]]
      return with_vectors<kVectors - 1, kHeld>(lanes, run);
  return run.template operator()<kVectors>();
}

// Reads the words of a stream forwards. Words beyond the end are 0 and set `failed`.
struct WordReader {
  const std::uint8_t* at;
  const std::uint8_t* end;
  bool failed = false;  // read beyond the end, or a symbol too wide for its code

  std::uint32_t take() {
    if (end - at < 2) {
      failed = true;
      return 0;
    }
    const auto word = load_le<std::uint16_t>(at);
    at += 2;
    return word;
  }
  // Whether the lanes of a step take words. After the last word states may be smaller.
  bool more() const { return at != end; }
  void refill(std::uint32_t& x, bool more) {
    if (more && x < kLowestState) x = x << 16 | take();
  }
};

// Words for steps that may read up to kStepBytes beyond their first word. The last words are copied to memory with
// enough room behind them.
template <std::ptrdiff_t kStepBytes>
class SteppedWords {
 public:
  explicit SteppedWords(const WordReader& words) : end_(words.end) {}

  // Whether a step may begin: false after earlier steps have read beyond the end.
  bool may_step(const std::uint8_t*& at) {
    if (end_ - at >= needed_) [[likely]]
      return true;
    if (needed_ == 0) return false;
    at = copied(at);
    return true;
  }
  // States below this one take a word in a step that begins at `at`.
  std::uint32_t lowest_state(const std::uint8_t* at) const { return at != end_ ? kLowestState : 0; }
  // Sets the position behind the steps.
  void give_back(const std::uint8_t* at, WordReader& words) const {
    if (needed_ != 0) {
      words.at = at;
      return;
    }
    words.failed = words.failed || at > end_;
    words.at = words.end - std::max<std::ptrdiff_t>(end_ - at, 0);
  }

 private:
  [[gnu::noinline]] const std::uint8_t* copied(const std::uint8_t* at) {
    const auto left = static_cast<std::size_t>(end_ - at);
    std::memcpy(copy_, at, left);
    std::memset(copy_ + left, 0, sizeof copy_ - left);
    end_ = copy_ + left;
    needed_ = 0;
    return copy_;
  }

  const std::uint8_t* end_;
  std::ptrdiff_t needed_ = kStepBytes;
  std::uint8_t copy_[2 * kStepBytes];
};

// The words of a stream that is encoded from its end. Most levels write them backwards from the end of a buffer. A
// level that stores words of many lanes at once writes beyond the last word, so it writes forwards and reverses them at
// the end.
struct WordWriter {
#if defined(PYF_LEVEL_AVX512)
  static constexpr bool kForwards = true;
#else
  static constexpr bool kForwards = false;
#endif
  std::uint8_t* const start;
  std::uint8_t* const end;
  std::uint8_t* at = kForwards ? start : end;
  std::uint32_t full;  // lanes that begin with kLowestState
  bool again = false;  // the stream must be written again, since there are more of these
  LaneStates before;   // the states before the four steps at hand, as long as there are no words

  // Lanes from `lanes` on have no state.
  WordWriter(std::uint8_t* from, std::uint8_t* to, std::uint32_t lanes)
      : start(from), end(to), full(lanes_from(lanes)) {}
  bool is_empty() const { return at == (kForwards ? start : end); }
  void restart(LaneStates& states) {
    at = kForwards ? start : end;
    again = false;
    for (std::uint32_t l = 0; l < kLaneCount; ++l) states.x[l] = first_state(l, full);
  }
  // Called before each step. `left`: steps of the round that are not done, which are done in fours.
  void begin_step(std::uint32_t left, const LaneStates& states) {
    if (left % 4 == 0 && is_empty()) before = states;
  }
  // Called when the first word is written.
  [[gnu::noinline]] void check_first() {
    const std::uint32_t known = full;
    full |= before.below_lowest();
    again = full != known;
  }

  void put(std::uint32_t word) {
    at -= kForwards ? 0 : 2;
    store_le(at, static_cast<std::uint16_t>(word));
    at += kForwards ? 2 : 0;
  }
  void spill(std::uint32_t& x, bool must) {
    if (!must) return;
    put(x);
    x >>= 16;
  }
};

// Reverses the words from `first` to `last`.
inline void turn_round(std::uint8_t* first, std::uint8_t* last) {
  for (; last - first > 2; first += 2) {
    last -= 2;
    const auto word = load_le<std::uint16_t>(first);
    std::memcpy(first, last, sizeof word);
    store_le(last, word);
  }
}

inline std::uint32_t table_of(const Contexts& contexts, const RoundRows& rows, const Neighbours& near, std::uint32_t i,
                              std::uint32_t lane) {
  if (i == 0) return contexts.count;
  return contexts.of_level(
      level_of(capped(rows.value(near.first[i], lane)) + capped(rows.value(near.second[i], lane))));
}

// Takes the steps behind the symbols' steps: raw bits, and symbols of escapes. `values` already hold the part from the
// symbols.
[[gnu::noinline]] inline void decode_outer(std::uint32_t code_bits, std::uint32_t lanes, std::uint32_t i,
                                           const std::uint32_t* symbols, RoundRows& rows, LaneStates& states,
                                           WordReader& words) {
  std::uint64_t value[kLaneCount];
  std::uint32_t left[kLaneCount], taken[kLaneCount];
  bool any = false;
  for (std::uint32_t l = 0; l < lanes; ++l) {
    const std::uint32_t s = symbols[l];
    if (s != kEscape && s >= symbols_of_width(code_bits)) words.failed = true;
    value[l] = s == kEscape || s < 2 * kDirectSymbols
                   ? rows.low[i][l]
                   : smallest_of<std::uint64_t>(s) + (rows.low[i][l] & ((1u << kInnerBits) - 1));
    left[l] = s == kEscape ? ~0u : outer_bits(s);
    taken[l] = kInnerBits;
    any = any || left[l] != 0;
  }
  while (any) {
    const bool more = words.more();
    any = false;
    for (std::uint32_t l = 0; l < lanes; ++l) {
      if (left[l] == 0) continue;
      std::uint32_t& x = states.x[l];
      if (left[l] == ~0u) {
        const std::uint32_t s = x & ((1u << kEscapeBits) - 1);
        x >>= kEscapeBits;
        if (s >= symbols_of_width(code_bits)) words.failed = true;
        value[l] = smallest_of<std::uint64_t>(s);
        left[l] = raw_bits(s);
        taken[l] = 0;
      } else {
        const std::uint32_t bits = std::min(left[l], kStepBits);
        value[l] += std::uint64_t{x & ((1u << bits) - 1)} << taken[l];
        x >>= bits;
        taken[l] += bits;
        left[l] -= bits;
      }
      words.refill(x, more);
      any = any || left[l] != 0;
    }
  }
  for (std::uint32_t l = 0; l < lanes; ++l) rows.set(i, l, value[l]);
}

inline void decode_step_by_lane(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits,
                                std::uint32_t lanes, std::uint32_t i, RoundRows& rows, LaneStates& states,
                                WordReader& words) {
  std::uint32_t symbols[kLaneCount], highest = 0;
  const bool more = words.more();
  for (std::uint32_t l = 0; l < lanes; ++l) {
    std::uint32_t& x = states.x[l];
    const std::uint32_t table = table_of(tables.contexts, rows, near, i, l);
    const DecodedSymbol decoded = decode_symbol(tables.entries[table * kFrequencySum + (x & (kFrequencySum - 1))], x);
    words.refill(x, more);
    symbols[l] = decoded.symbol;
    highest = std::max(highest, decoded.symbol);
    const bool known = decoded.symbol < symbols_of_width(32);  // decode_outer() completes the others
    rows.set(i, l, known ? smallest_of<std::uint32_t>(decoded.symbol) + decoded.raw : decoded.raw);
  }
  if (highest >= 2 * kDirectSymbols) decode_outer(code_bits, lanes, i, symbols, rows, states, words);
}

inline void encode_step_by_lane(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes,
                                std::uint32_t i, const RoundRows& rows, LaneStates& states, WordWriter& words) {
  std::uint32_t most = 0;
  EncodeEntry entries[kLaneCount];
  std::uint32_t symbol[kLaneCount], steps[kLaneCount];
  for (std::uint32_t l = 0; l < lanes; ++l) {
    const std::uint32_t table = table_of(tables.contexts, rows, near, i, l) * kSymbols;
    symbol[l] = symbol_of(rows.value(i, l));
    entries[l] = tables.entries[table + symbol[l]];
    if (symbol[l] == kEscape || entries[l].frequency() == 0) {
      entries[l] = tables.entries[table + kEscape];
      steps[l] = 1 + (raw_bits(symbol[l]) + kStepBits - 1) / kStepBits;
      symbol[l] |= kSymbols;
    } else {
      steps[l] = (outer_bits(symbol[l]) + kStepBits - 1) / kStepBits;
    }
    most = std::max(most, steps[l]);
  }
  for (std::uint32_t step = most; step-- > 0;) {
    for (std::uint32_t l = lanes; l-- > 0;) {
      if (step >= steps[l]) continue;
      const bool escaped = symbol[l] >= kSymbols;
      const std::uint32_t raw = raw_bits(symbol[l] % kSymbols);
      std::uint32_t bits = kEscapeBits, value = symbol[l] % kSymbols;
      if (!escaped || step > 0) {
        const std::uint32_t from = escaped ? (step - 1) * kStepBits : kInnerBits + step * kStepBits;
        bits = std::min(raw - from, kStepBits);
        value = static_cast<std::uint32_t>(rows.value(i, l) >> from) & ((1u << bits) - 1);
      }
      std::uint32_t& x = states.x[l];
      words.spill(x, must_spill_raw(x, bits));
      x = x << bits | value;
    }
  }
  for (std::uint32_t l = lanes; l-- > 0;) {
    std::uint32_t& x = states.x[l];
    const std::uint32_t raw = symbol[l] >= kSymbols ? 0 : std::min(raw_bits(symbol[l]), kInnerBits);
    words.spill(x, must_spill(x, entries[l].frequency(), raw));
    x = encode_symbol(x, entries[l], raw, static_cast<std::uint32_t>(rows.low[i][l]) & ((1u << raw) - 1));
  }
}

PYF_END_TARGET
