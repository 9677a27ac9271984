// SPDX-License-Identifier: BSD-3-Clause
// Units of Lossless's form `ratio`: runs of values that are coded by themselves (docs/format.md, section 15.3).
//
//   for each stream u32 words of 16 bits, u32 bytes of offsets (or the uniform bit and a symbol, then 0);
//   first differences; for each stream that is not uniform states, words, offsets; padding to 4 bytes
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/plan.hpp"
#include "core/wire.hpp"
#include "lossless/cpu/bin_streams.hpp"
#include "lossless/train/number_values.hpp"

PYF_BEGIN_TARGET

// Scratch memory of a unit.
template <class U>
struct UnitMemory {
  U *numbers, *other, *remainders;
  std::uint8_t* levels;  // index of the first value
  CodedSymbols coded;
  std::uint8_t* offsets;

  UnitMemory(void* scratch, std::size_t values) {
    auto* at = static_cast<std::uint8_t*>(scratch);
    const auto take = [&](std::size_t bytes) {
      std::uint8_t* const from = at;
      at += (bytes + 63) / 64 * 64;
      return from;
    };
    const std::size_t most = values + kBeyondUnit;
    numbers = reinterpret_cast<U*>(take(most * sizeof(U)));
    other = reinterpret_cast<U*>(take(most * sizeof(U)));
    remainders = reinterpret_cast<U*>(take(most * sizeof(U)));
    levels = take(level_bytes(values)) + kMostDistance;
    coded.symbols = take(most);
    coded.tables = take(most);
    offsets = take(values * (sizeof(U) + 1) + kBeyondUnit);
  }
  // Sets the levels before the first value to 0.
  void clear_levels(const BinnedModel& model) {
    if (!model.contexts) return;
    const std::uint32_t most = *std::max_element(model.distance, model.distance + kDistances);
    std::memset(levels - most, 0, most);
  }
};

// Takes differences by each stride in turn, modulo 2^width. The result is in `numbers` or `other`.
template <class U>
inline U* take_differences(const BinnedModel& model, std::uint32_t count, U* numbers, U* other) {
  for (std::uint32_t k = 0; k < model.strides; ++k) {
    const std::uint32_t stride = std::min(model.stride[k], count);
    std::memcpy(other, numbers, stride * sizeof(U));
    const U* const from = numbers;
    U* const to = other;
    for (std::uint32_t i = stride; i < count; ++i) to[i] = static_cast<U>(from[i] - from[i - stride]);
    std::swap(numbers, other);
  }
  if (model.map.width != 8 * sizeof(U))
    for (std::uint32_t i = 0; i < count; ++i) numbers[i] = wrapped(model.map.width, numbers[i]);
  return numbers;
}
// Adds up along a stride.
template <class U>
inline void add_along(std::uint32_t stride, std::uint32_t count, U* numbers) {
  if (stride < 16) {
    for (std::uint32_t i = stride; i < count; ++i) numbers[i] = static_cast<U>(numbers[i] + numbers[i - stride]);
    return;
  }
  for (std::uint32_t from = stride; from < count; from += stride) {
    const std::uint32_t length = std::min(stride, count - from);
    U* const to = numbers + from;
#pragma GCC ivdep
    for (std::uint32_t i = 0; i < length; ++i)
      to[i] = static_cast<U>(to[i] + numbers[static_cast<std::size_t>(from - stride) + i]);
  }
}

// Remainders become changes; add_along() undoes it.
template <class U>
inline void take_changes(std::uint32_t count, U* remainders) {
  for (std::uint32_t i = count; i-- > 1;) remainders[i] = static_cast<U>(remainders[i] - remainders[i - 1]);
}

// Encodes a stream: its head, and its bytes from `to` on. Returns the end of these. `room_end`: end of the memory at
// `to`.
template <class U>
inline std::uint8_t* encode_stream(const BinnedPlan& plan, std::uint32_t number, const U* values, std::uint32_t count,
                                   UnitMemory<U>& memory, std::uint8_t* to, std::uint8_t* room_end, StreamHead& head) {
  const BinnedModel& model = *plan.model;
  const BinModel& bins = model.streams[number];
  const BinTables& tables = *plan.tables[number];
  if (count == 0) {
    head = {kUniformStream, 0};
    return to;
  }
  BinSearch<U> search;
  search.make(Alone{}, bins);
  memory.clear_levels(model);
  BitSink offsets(memory.offsets);
  code_symbols<U>(model, bins, FrequentSymbols(bins, tables), search, values, count, memory.levels, memory.coded,
                  offsets);
  const std::uint8_t* const offsets_end = offsets.finish();
  const std::uint8_t* const symbols = memory.coded.symbols;
  if (offsets_end == memory.offsets && symbols[0] != kEscape &&
      std::all_of(symbols, symbols + count, [&](std::uint8_t s) { return s == symbols[0]; })) {
    head = {kUniformStream | symbols[0], 0};
    return to;
  }
  const std::uint8_t* const words = write_words(tables, memory.coded, count, room_end, to);
  const auto word_bytes = static_cast<std::size_t>(room_end - words),
             offset_bytes = static_cast<std::size_t>(offsets_end - memory.offsets);
  to += 4 * std::size_t{kRows};
  std::memmove(to, words, word_bytes);
  std::memcpy(to + word_bytes, memory.offsets, offset_bytes);
  head = {static_cast<std::uint32_t>(word_bytes / 2), static_cast<std::uint32_t>(offset_bytes)};
  return to + word_bytes + offset_bytes;
}

// Reconstructs the values of a unit.
inline std::uint32_t values_of_unit(const BinnedPlan& plan, std::uint64_t unit) {
  const std::uint64_t most = plan.model->unit_values, first = unit * most;
  return static_cast<std::uint32_t>(std::min(most, plan.grid.values - first));
}

template <class T>
inline EncodedTile encode_binned_unit(const Plan& base, const void* values, std::uint64_t unit, void* scratch,
                                      std::uint8_t* out) {
  using U = NumberOf<T>;
  const auto& plan = static_cast<const BinnedPlan&>(base);
  const BinnedModel& model = *plan.model;
  const std::uint32_t count = values_of_unit(plan, unit), streams = model.map.remainders ? 2 : 1;
  UnitMemory<U> memory(scratch, count);
  each_number<T, U>(
      Alone{}, model.map, values, FindPlace<U>{model.dictionary.data(), model.places.data(), model.map.width}, 1, count,
      [&](std::uint32_t) { return static_cast<std::int64_t>(unit * model.unit_values); },
      [&](std::uint32_t, std::uint32_t i, const NumberOfValue<U>& own) {
        memory.numbers[i] = own.number;
        memory.remainders[i] = own.remainder;
      });
  if (model.map.changes) take_changes(count, memory.remainders);
  const U* const differences = take_differences(model, count, memory.numbers, memory.other);
  std::uint8_t* at = out + kStreamHead * streams;
  std::uint8_t* const end = out + plan.unit_bytes;
  const std::uint32_t stored = std::min(model.stored_first(), count);
  for (std::uint32_t i = 0; i < stored; ++i, at += sizeof(T)) {
    const auto difference = static_cast<T>(differences[i]);
    std::memcpy(at, &difference, sizeof(T));
  }
  StreamHead heads[2];
  at = encode_stream<U>(plan, 0, differences + stored, count - stored, memory, at, end, heads[0]);
  if (streams == 2) at = encode_stream<U>(plan, 1, memory.remainders, count, memory, at, end, heads[1]);
  for (std::uint32_t s = 0; s < streams; ++s) {
    store_le(out + kStreamHead * s, heads[s].words);
    store_le(out + kStreamHead * s + 4, heads[s].offset_bytes);
  }
  while ((at - out) % 4 != 0) *at++ = 0;
  EncodedTile encoded;
  encoded.bytes = static_cast<std::uint32_t>(at - out);
  return encoded;
}

// Static texts: fail() formats into memory of the calling thread.
inline constexpr Status kBadBinnedUnit{Code::corrupt, "corrupt frame: the head of a unit is invalid"};
inline constexpr Status kBadBinnedSize{Code::corrupt, "corrupt frame: a unit's parts do not add up to its size"};
inline constexpr Status kBadBinnedStream{Code::corrupt, "corrupt frame: a stream does not end where it should"};
inline constexpr Status kBadPlace{Code::corrupt, "corrupt frame: an index beyond its list of values"};
inline constexpr Status kNoUnitMemory{Code::no_memory, "no memory to decode a unit"};

// Decodes a stream of `count` numbers at `at`, and moves `at` behind it.
template <class U>
inline Status decode_unit_stream(const BinnedPlan& plan, std::uint32_t number, const StreamHead& head,
                                 std::uint32_t count, UnitMemory<U>& memory, const std::uint8_t*& at,
                                 const std::uint8_t* end, U* to) {
  const BinnedModel& model = *plan.model;
  const BinModel& bins = model.streams[number];
  if (head.is_uniform()) {
    if (!head.fits_uniform(bins, count)) return kBadBinnedUnit;
    const std::uint64_t lowest = count != 0 ? bins.lowest[head.words & ~kUniformStream] : 0;
    std::fill_n(to, count, from_bin_order<U>(bins.zigzag, model.map.width, static_cast<U>(lowest)));
    return kOk;
  }
  const std::size_t bytes = 4 * std::size_t{kRows} + 2 * std::size_t{head.words} + head.offset_bytes;
  if (static_cast<std::size_t>(end - at) < bytes || count == 0) return kBadBinnedSize;
  StreamBytes stream{};
  stream.states = at;
  stream.words = at + 4 * std::size_t{kRows};
  stream.words_end = stream.offsets = stream.words + 2 * std::size_t{head.words};
  stream.offsets_end = at = stream.offsets + head.offset_bytes;
  memory.clear_levels(model);
  return decode_stream<U>(model, bins, *plan.tables[number], stream, count, memory.levels, to) ? kOk : kBadBinnedStream;
}

template <class T>
inline Status decode_binned_unit(const Plan& base, const std::uint8_t* bytes, std::size_t size, bool uniform,
                                 std::uint64_t unit, std::uint64_t start, std::uint64_t stop, void* out) {
  using U = NumberOf<T>;
  const auto& plan = static_cast<const BinnedPlan&>(base);
  const BinnedModel& model = *plan.model;
  const std::uint32_t count = values_of_unit(plan, unit), streams = model.map.remainders ? 2 : 1;
  const std::uint8_t *at = bytes + kStreamHead * streams, *const end = bytes + size;
  const std::uint32_t stored = std::min(model.stored_first(), count);
  if (uniform || size < kStreamHead * streams + stored * sizeof(T)) return kBadBinnedUnit;
  StreamHead heads[2];
  for (std::uint32_t s = 0; s < streams; ++s)
    heads[s] = {load_le<std::uint32_t>(bytes + kStreamHead * s), load_le<std::uint32_t>(bytes + kStreamHead * s + 4)};
  std::uint8_t* const scratch = thread_scratch(binned_scratch_bytes(count, sizeof(U)));
  if (scratch == nullptr) return kNoUnitMemory;
  UnitMemory<U> memory(scratch, count);
  for (std::uint32_t i = 0; i < stored; ++i, at += sizeof(T))
    memory.numbers[i] = static_cast<U>(bits_of_value<T>(at, 0));
  PYF_TRY(decode_unit_stream<U>(plan, 0, heads[0], count - stored, memory, at, end, memory.numbers + stored));
  if (streams == 2) PYF_TRY(decode_unit_stream<U>(plan, 1, heads[1], count, memory, at, end, memory.remainders));
  const auto padding = static_cast<std::size_t>(end - at);
  if (padding > 3 || std::any_of(at, end, [](std::uint8_t b) { return b != 0; })) return kBadBinnedSize;
  for (std::uint32_t k = model.strides; k-- > 0;) add_along(model.stride[k], count, memory.numbers);
  if (model.map.changes) add_along(1, count, memory.remainders);
  const std::uint64_t first = unit * model.unit_values, from = std::max(first, start),
                      to = std::min<std::uint64_t>(first + count, stop);
  if (from >= to) return kOk;
  const auto begin = static_cast<std::uint32_t>(from - first), last = static_cast<std::uint32_t>(to - first);
  auto* const target = static_cast<std::uint8_t*>(out) + (from - start) * sizeof(T);
  if (model.map.kind == NumberKind::dictionary)
    for (std::uint32_t i = begin; i < last; ++i) {
      memory.numbers[i] &= static_cast<U>(~U{0} >> (8 * sizeof(U) - model.map.width));
      if (memory.numbers[i] >= model.map.entries) return kBadPlace;
    }
  const NumberMap map = model.map;  // no store changes it
  const U *const numbers = memory.numbers + begin, *const remainders = memory.remainders + begin;
  const auto store_all = [&]<NumberKind kKind, bool kRemainders>() {
    for (std::uint32_t i = 0; i < last - begin; ++i) {
      const auto value = static_cast<T>(value_of_kind<kKind>(map, numbers[i], kRemainders ? remainders[i] : U{0}));
      std::memcpy(target + i * sizeof(T), &value, sizeof(T));
    }
  };
  with_number_kind(map.kind, [&]<NumberKind kKind>() {
    if (streams == 2)
      store_all.template operator()<kKind, true>();
    else
      store_all.template operator()<kKind, false>();
  });
  return kOk;
}

PYF_END_TARGET
