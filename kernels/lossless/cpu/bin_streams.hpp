// SPDX-License-Identifier: BSD-3-Clause
// Streams of bins (docs/format.md, section 15.4). A step codes the symbols of 32 consecutive differences, with tables
// selected by the levels of earlier neighbours. Offsets in the bins are stored apart, as plain bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/wire.hpp"
#include "lossless/bin_search.hpp"
#include "lossless/binned_plan.hpp"
#include "stages/entropy/rans_step.hpp"
#include "stages/simd/lanes.hpp"

PYF_BEGIN_TARGET

// The context of each lane: the mean level of its four neighbours.
KFN void neighbour_levels(const BinnedModel& model, const std::uint8_t* levels, std::uint8_t* mean) {
  const std::uint8_t *const a = levels - model.distance[0], *const b = levels - model.distance[1],
                            *const c = levels - model.distance[2], *const d = levels - model.distance[3];
  for (std::uint32_t k = 0; k < kRows; ++k)
    mean[k] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(a[k] + b[k] + c[k] + d[k] + 2) >> 2);
}

// Writes bits, lowest first. Overwrites up to eight bytes behind the last one written.
class BitSink {
 public:
  explicit BitSink(std::uint8_t* to) : at_(to) {}
  KFN void put(std::uint64_t value, std::uint32_t bits) {
    if (bits > 56) {  // put_few() takes at most 56 bits, as up to 7 are pending
      put_few(value & 0xFFFFFFFF, 32);
      value >>= 32;
      bits -= 32;
    }
    put_few(value, bits);
  }
  // The same for at most 56 bits.
  KFN void put_few(std::uint64_t value, std::uint32_t bits) {
    waiting_ |= value << count_;
    store_le(at_, waiting_);
    count_ += bits;
    at_ += count_ / 8;
    waiting_ >>= count_ & ~7u;
    count_ &= 7;
  }
  std::uint8_t* finish() {
    if (count_ != 0) *at_++ = static_cast<std::uint8_t>(waiting_);
    count_ = 0;
    return at_;
  }

 private:
  std::uint8_t* at_;
  std::uint64_t waiting_ = 0;
  std::uint32_t count_ = 0;
};

// Returns up to 64 bits from bit number `bit` on. Reads nine bytes.
KFN std::uint64_t bits_at(const std::uint8_t* from, std::uint64_t bit, std::uint32_t wanted) {
  const std::uint8_t* const at = from + (bit >> 3);
  const auto within = static_cast<std::uint32_t>(bit & 7);
  std::uint64_t value = load_le<std::uint64_t>(at) >> within;
  if (wanted > 56 && within != 0) value |= std::uint64_t{at[8]} << (64 - within);
  return wanted >= 64 ? value : value & ((std::uint64_t{1} << wanted) - 1);
}

// The parts of a stream in its unit.
struct StreamBytes {
  const std::uint8_t *states, *words, *words_end, *offsets, *offsets_end;
};

// Reads a stream's offsets. The last ones are read from a copy with zeros behind it, so that steps may read on.
struct OffsetReader {
  static constexpr std::size_t kStep = 8 * std::size_t{kRows}, kBeyond = 9;  // bytes that a step may read

  const std::uint8_t *from, *end;
  std::uint64_t bit = 0;
  bool failed = false;
  std::uint8_t copy[2 * (kStep + kBeyond)] = {};

  std::uint64_t take(std::uint32_t count) {
    const auto bytes = static_cast<std::uint64_t>(end - from), at = bit / 8;
    if (8 * bytes - bit < count) {
      failed = true;
      return 0;
    }
    bit += count;
    if (at + 9 <= bytes) return bits_at(from, bit - count, count);
    std::uint8_t last[16] = {};
    std::memcpy(last, from + at, bytes - at);
    return bits_at(last, (bit - count) % 8, count);
  }
  // Makes a step without escapes readable, if it begins before the end.
  KFN void prepare_step() {
    if (from == copy || bit / 8 + kStep + kBeyond <= static_cast<std::uint64_t>(end - from)) return;
    const auto left = static_cast<std::size_t>(end - from) - static_cast<std::size_t>(bit / 8);
    std::memcpy(copy, from + bit / 8, left);
    from = copy;
    end = copy + left;
    bit %= 8;
  }
  bool is_beyond() const { return bit > 8 * static_cast<std::uint64_t>(end - from); }
  // Whether all bytes are used up, and the bits behind the last one are zero.
  bool ended() const {
    const auto bytes = static_cast<std::uint64_t>(end - from);
    return (bit + 7) / 8 == bytes && (bit % 8 == 0 || from[bytes - 1] >> (bit % 8) == 0);
  }
};

template <class U>
struct BinDecoder {
  DecodedBin<U> bin[kSymbols];
  bool zigzags, few = true;  // few: no bin has more than 56 bits
  std::uint32_t width;

  BinDecoder(const BinModel& bins, std::uint32_t bits_of_value) : zigzags(bins.zigzag), width(bits_of_value) {
    for (std::uint32_t s = 0; s < kSymbols; ++s) bin[s] = decoded_bin<U>(bins, s);
    for (std::uint32_t s = 0; s < bins.bins; ++s) few = few && bins.bits[s] <= 56;
  }
  // Takes the offsets of a step of 32 lanes without escapes.
  KFN void take_step(const std::int32_t* symbols, OffsetReader& in, std::uint8_t* levels, U* out) const {
    if (few)
      take_step_by<true>(symbols, in, levels, out);
    else
      take_step_by<false>(symbols, in, levels, out);
  }
  template <bool Few>
  KFN void take_step_by(const std::int32_t* symbols, OffsetReader& in, std::uint8_t* levels, U* out) const {
    std::uint64_t bit = in.bit;
    for (std::uint32_t k = 0; k < kRows; ++k) {
      const DecodedBin<U> own = bin[symbols[k]];
      std::uint64_t offset = 0;
      if constexpr (Few)  // eight bytes have the bits, and the mask needs no exception
        offset = load_le<std::uint64_t>(in.from + (bit >> 3)) >> (bit & 7) & ((std::uint64_t{1} << own.bits) - 1);
      else
        offset = bits_at(in.from, bit, own.bits);
      out[k] = static_cast<U>(own.lowest + static_cast<U>(offset));
      levels[k] = own.level;
      bit += own.bits;
    }
    in.bit = bit;
  }
  // Takes the offsets of any step. Behind an escape the symbol itself comes first, in eight bits.
  [[gnu::noinline]] bool take_any(const std::int32_t* symbols, std::uint32_t lanes, OffsetReader& in,
                                  std::uint8_t* levels, U* out) const {
    for (std::uint32_t k = 0; k < lanes; ++k) {
      const auto given = static_cast<std::uint32_t>(symbols[k]);
      const DecodedBin<U> own = bin[given == kEscape ? in.take(kEscapeBits) : given];
      if (own.bits > width) return false;
      out[k] = static_cast<U>(own.lowest + static_cast<U>(in.take(own.bits)));
      levels[k] = own.level;
    }
    return !in.failed;
  }
  void to_differences(std::uint32_t count, U* numbers) const {
    if (zigzags)
      for (std::uint32_t i = 0; i < count; ++i) numbers[i] = unzigzag(numbers[i]);
    else
      for (std::uint32_t i = 0; i < count; ++i) numbers[i] = from_lowest(width, numbers[i]);
  }
};

// Decodes `count` differences. levels[-kMostDistance...] are levels of earlier differences, or 0. Returns false if the
// bytes are damaged.
template <class U>
inline bool decode_stream(const BinnedModel& model, const BinModel& bins, const BinTables& tables,
                          const StreamBytes& stream, std::uint32_t count, std::uint8_t* levels, U* out) {
  const BinDecoder<U> decoder(bins, model.map.width);
  alignas(64) std::int32_t state[kRows], symbol[kRows], level[kRows] = {};
  for (std::uint32_t i = 0; i < kRows; ++i) {
    const auto x = load_le<std::uint32_t>(stream.states + 4 * std::size_t{i});
    if (x < kLowestState || x >> kStateBits != 0) return false;
    state[i] = static_cast<std::int32_t>(x);
  }
  const std::uint8_t* words = stream.words;
  OffsetReader in{stream.offsets, stream.offsets_end};
  Ints x = Ints::load(state);
  for (std::uint32_t first = 0; first < count; first += kRows) {
    const std::uint32_t lanes = std::min(kRows, count - first);
    if (model.contexts) {
      std::uint8_t mean[kRows];
      neighbour_levels(model, levels + first, mean);
      for (std::uint32_t k = 0; k < kRows; ++k) level[k] = mean[k];
    }
    const Ints table = gather(tables.first_of_level, Ints::load(level));
    const Ints entry = gather(tables.slots, table + (x & Ints::all((1 << kBinTableBits) - 1)));
    (entry & Ints::all(0xFF)).store(symbol);
    Ints next = ((entry >> Ints::all(8)) & Ints::all(0xFFF)) * shift_right(x, kBinTableBits) +
                ((entry >> Ints::all(20)) & Ints::all(0xFFF));
    std::uint32_t needs = bits_of_condition(next < Ints::all(kLowestState));
    if (lanes != kRows) {
      const std::uint32_t active = (1u << lanes) - 1;
      next = select(condition_of_bits(active), next, x);
      needs &= active;
    }
    if (stream.words_end - words >= static_cast<std::ptrdiff_t>(2 * kRows)) {
      words += 2 * refill_states(next, needs, words);
    } else {
      std::uint8_t last[4 * kRows] = {};
      const auto left = static_cast<std::size_t>(stream.words_end - words);
      if (2 * static_cast<std::size_t>(__builtin_popcount(needs)) > left) return false;
      std::memcpy(last, words, left);
      words += 2 * refill_states(next, needs, last);
    }
    x = next;
    const bool usual = bits_of_condition((entry & Ints::all(0xFF)) == Ints::all(kEscape)) == 0;
    if (usual && lanes == kRows) {
      in.prepare_step();
      decoder.take_step(symbol, in, levels + first, out + first);
      if (in.is_beyond()) return false;
    } else if (!decoder.take_any(symbol, lanes, in, levels + first, out + first)) {
      return false;
    }
  }
  decoder.to_differences(count, out);
  x.store(state);
  for (const std::int32_t last : state)
    if (last != static_cast<std::int32_t>(kLowestState)) return false;
  return words == stream.words_end && in.ended();
}

// The symbols of a stream and the levels that select their tables, until the words are written.
struct CodedSymbols {
  std::uint8_t *symbols, *tables;
};

// Which symbols each level's table has.
struct FrequentSymbols {
  std::uint8_t of[kBinLevels][kSymbols] = {};

  FrequentSymbols(const BinModel& bins, const BinTables& tables) {
    for (std::uint32_t level = 0; level < kBinLevels; ++level) {
      const std::uint32_t table = tables.first_of_level[level];
      if (level != 0 && table == tables.first_of_level[level - 1]) {
        std::memcpy(of[level], of[level - 1], kSymbols);
        continue;
      }
      for (std::uint32_t s = 0; s < bins.bins; ++s) of[level][s] = tables.symbols[table + s].frequency != 0 ? 1 : 0;
    }
  }
};

template <bool Quick, bool Zigzags, class U>
inline void code_symbols_by(const BinnedModel& model, const BinModel& bins, const FrequentSymbols& frequent,
                            const BinSearch<U>& search, const U* values, std::uint32_t count, std::uint8_t* levels,
                            const CodedSymbols& coded, BitSink& sink) {
  BitSink offsets = sink;
  std::uint8_t level[kRows] = {};
  U numbers[kRows];
  for (std::uint32_t first = 0; first < count; first += kRows) {
    const std::uint32_t lanes = std::min(kRows, count - first);
    if (model.contexts) neighbour_levels(model, levels + first, level);
    std::memcpy(coded.tables + first, level, kRows);
    for (std::uint32_t k = 0; k < kRows; ++k)
      numbers[k] = to_bin_order<U>(Zigzags, model.map.width, values[first + (k < lanes ? k : 0)]);
    for (std::uint32_t k = 0; k < lanes; ++k) {
      const auto [symbol, offset] = search.template find<Quick, Zigzags>(numbers[k]);
      const bool escapes = frequent.of[level[k]][symbol] == 0;
      if (escapes) offsets.put(symbol, kEscapeBits);
      coded.symbols[first + k] = static_cast<std::uint8_t>(escapes ? kEscape : symbol);
      levels[first + k] = bins.level[symbol];
      if constexpr (Quick)
        if (symbol != kEscape) {
          offsets.put_few(offset, bins.bits[symbol]);
          continue;
        }
      offsets.put(offset, bins.bits[symbol]);
    }
  }
  sink = offsets;
}
// Finds symbols and levels, and writes offsets. A symbol that its table lacks is coded as an escape; the symbol itself
// is written before its offset.
template <class U>
inline void code_symbols(const BinnedModel& model, const BinModel& bins, const FrequentSymbols& frequent,
                         const BinSearch<U>& search, const U* values, std::uint32_t count, std::uint8_t* levels,
                         const CodedSymbols& coded, BitSink& offsets) {
  search.with_kind([&]<bool Quick, bool Zigzags>() {
    code_symbols_by<Quick, Zigzags>(model, bins, frequent, search, values, count, levels, coded, offsets);
  });
}

// Writes the words of a stream downwards from `end`, then its states. Returns where the words begin.
inline std::uint8_t* write_words(const BinTables& tables, const CodedSymbols& coded, std::uint32_t count,
                                 std::uint8_t* end, std::uint8_t* states) {
  static_assert(sizeof(SymbolEntry) == 12 && offsetof(SymbolEntry, frequency) == 4);
  Ints x = Ints::all(kLowestState);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(tables.symbols);
  for (std::uint32_t first = (count - 1) / kRows * kRows;; first -= kRows) {
    const std::uint32_t lanes = std::min(kRows, count - first);
    alignas(64) std::int32_t at[kRows] = {};
    for (std::uint32_t k = 0; k < lanes; ++k)
      at[k] = 3 * static_cast<std::int32_t>(tables.first_of_level[coded.tables[first + k]] + coded.symbols[first + k]);
    const Ints entry = Ints::load(at);
    const Ints reciprocal = gather(words, entry), both = gather(words + 1, entry), shift = gather(words + 2, entry);
    const Ints frequency = both & Ints::all(0xFFFF), from = (both >> Ints::all(16)) & Ints::all(0xFFFF);
    const Ints active = lanes == kRows ? Ints::all(-1) : condition_of_bits((1u << lanes) - 1);
    const Ints full = shift_right(x, kStateBits - kBinTableBits) >= frequency;
    end -= 2 * spill_states(x, bits_of_condition(active & full), end);
    const Ints next = x + from + divided(x, reciprocal, shift) * (Ints::all(1 << kBinTableBits) - frequency);
    x = select(active, next, x);
    if (first == 0) break;
  }
  alignas(64) std::int32_t state[kRows];
  x.store(state);
  for (std::uint32_t i = 0; i < kRows; ++i) store_le(states + 4 * std::size_t{i}, static_cast<std::uint32_t>(state[i]));
  return end;
}

PYF_END_TARGET
