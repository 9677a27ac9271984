// SPDX-License-Identifier: BSD-3-Clause
// Models from bits (docs/format.md, section 15.1), for CPU and GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "lossless/binned_model.hpp"

namespace pyfilter {

class ModelReader {
 public:
  KFN ModelReader(const std::uint8_t* from, std::size_t bytes) : in_{from, 8 * bytes} {}
  KFN std::uint64_t take(std::uint32_t count) {
    const std::uint32_t low = count < 32 ? count : 32;
    const std::uint64_t value = in_.take(low);
    return count > 32 ? value | std::uint64_t{in_.take(count - 32)} << 32 : value;
  }
  KFN bool flag() { return take(1) != 0; }
  KFN double real() {
    const std::uint64_t bits = take(64);
    double x = 0;
    std::memcpy(&x, &bits, 8);
    if (!(x - x == 0)) in_.failed = true;  // not finite
    return x;
  }
  KFN std::int32_t steps(std::uint32_t most) {
    std::uint32_t count = 0;
    if (!in_.take_zeros(2 * most, count)) return 0;
    return count % 2 != 0 ? -static_cast<std::int32_t>((count + 1) / 2) : static_cast<std::int32_t>(count / 2);
  }
  KFN std::uint64_t number(std::uint32_t& width) {
    const std::int32_t own = static_cast<std::int32_t>(width) + steps(64);
    if (own < 0 || own > 64) in_.failed = true;
    if (in_.failed) return 0;
    width = static_cast<std::uint32_t>(own);
    if (own < 2) return width;
    return take(width - 1) | std::uint64_t{1} << (width - 1);
  }
  // Reads a small number, written as its difference from the previous one.
  KFN std::uint8_t near(std::uint8_t before, std::uint32_t most) {
    const std::int32_t value = before + steps(most);
    if (value < 0 || value > static_cast<std::int32_t>(most)) in_.failed = true;
    return in_.failed ? 0 : static_cast<std::uint8_t>(value);
  }
  KFN bool failed() const { return in_.failed; }
  KFN void fail() { in_.failed = true; }
  KFN BitReader& bits() { return in_; }

 private:
  BitReader in_;
};

// `room(entries)` returns memory for a list of values.
template <class Room>
PYF_MODEL void read_map(ModelReader& in, const Room& room, BinnedParts& model) {
  NumberMap& map = model.map;
  map.kind = static_cast<NumberKind>(in.take(2));
  map.remainders = in.flag();
  std::uint32_t width = map.width / 2;
  switch (map.kind) {
    case NumberKind::pattern:
      break;
    case NumberKind::multiple:
      if (map.is_float) {
        map.shift = static_cast<std::uint32_t>(in.take(6));
        if (map.shift == 0 || map.shift + 1 >= map.width) in.fail();
        break;
      }
      map.multiple = in.number(width);
      map.origin = in.number(width);
      if (map.multiple == 0) in.fail();
      break;
    case NumberKind::grid:
      map.product = in.flag();
      map.unit = in.real();
      if (in.flag()) map.base = in.real();
      map.changes = in.flag();
      if (!map.is_float || !(map.unit > 0) || (map.changes && !map.remainders)) in.fail();
      break;
    case NumberKind::dictionary: {
      map.entries = static_cast<std::uint32_t>(in.take(13));
      if (in.failed() || map.entries == 0 || map.entries > kMostEntries || map.remainders) return in.fail();
      std::uint64_t* const entries = room(map.entries);
      std::uint64_t before = 0;
      for (std::uint32_t i = 0; i < map.entries; ++i) before = entries[i] = before + in.number(width);
      map.dictionary = entries;
      break;
    }
  }
  if (map.kind == NumberKind::pattern && map.remainders) in.fail();
}

KFN void read_bins_with(ModelReader& in, bool contexts, std::uint32_t value_bits, BinModel& model) {
  model.zigzag = in.flag();
  model.bins = static_cast<std::uint32_t>(in.take(8));
  if (in.failed() || model.bins > kMostBins) return in.fail();
  std::uint64_t end = 0;
  std::uint32_t width = 8;
  std::uint8_t bits = 0, level = 0;
  for (std::uint32_t s = 0; s < model.bins; ++s) {
    const std::uint64_t lowest = in.flag() ? end : end + unzigzag(in.number(width));
    model.lowest[s] = lowest;
    bits = model.bits[s] = in.near(bits, value_bits);
    if (contexts) level = model.level[s] = in.near(level, kBinLevels - 1);
    if (in.failed()) return;
    end = end_of_bin(lowest, bits);
  }
  model.bits[kEscape] = static_cast<std::uint8_t>(value_bits);
  model.tables = 1;
  if (contexts) {
    model.level[kEscape] = static_cast<std::uint8_t>(in.take(6));
    model.tables = static_cast<std::uint32_t>(in.take(4));
    if (in.failed() || model.tables == 0 || model.tables > kMostBinTables) return in.fail();
    std::uint32_t from = 0;
    for (std::uint32_t t = 1; t < model.tables; ++t) {
      const auto first = static_cast<std::uint32_t>(in.take(6));
      if (first <= from) return in.fail();
      for (std::uint32_t l = from; l < first; ++l) model.table_of_level[l] = static_cast<std::uint8_t>(t - 1);
      from = first;
    }
    for (std::uint32_t l = from; l < kBinLevels; ++l)
      model.table_of_level[l] = static_cast<std::uint8_t>(model.tables - 1);
  }
  for (std::uint32_t t = 0; t < model.tables; ++t) {
    Frequencies& f = model.table[t];
    if (!read_frequencies<kBinTableBits>(in.bits(), f)) return in.fail();
    for (std::uint32_t s = model.bins; s < f.listed && s < kEscape; ++s)  // symbols without a bin
      if (f.of[s] != 0) return in.fail();
  }
}

// The reader is copied, so that compilers keep it in registers.
inline PYF_MODEL void read_bins(ModelReader& in, bool contexts, std::uint32_t value_bits, BinModel& model) {
  ModelReader own = in;
  read_bins_with(own, contexts, value_bits, model);
  in = own;
}

// Reads a model; false where the bytes are damaged. The model is empty, but for the dtype's fields of its map.
template <class Room>
PYF_MODEL bool read_model_parts(const std::uint8_t* from, std::size_t available, const Room& room, BinnedParts& model,
                                std::size_t* bytes) {
  ModelReader in(from, available);
  model.unit_values = static_cast<std::uint32_t>(in.take(21));
  model.strides = static_cast<std::uint32_t>(in.take(3));
  if (in.failed() || model.unit_values == 0 || model.unit_values > kMostUnitValues || model.strides > kMostStrides)
    return false;
  std::uint32_t width = 8;
  for (std::uint32_t i = 0; i < model.strides; ++i) {
    const std::uint64_t stride = in.number(width);
    if (stride == 0 || stride > kMostUnitValues) return false;
    model.stride[i] = static_cast<std::uint32_t>(stride);
  }
  model.contexts = in.flag();
  for (std::uint32_t i = 0; model.contexts && i < kDistances; ++i) {
    const std::uint64_t distance = in.number(width);
    if (in.failed() || distance < kLeastDistance || distance > kMostDistance) return false;
    model.distance[i] = static_cast<std::uint32_t>(distance);
  }
  read_map(in, room, model);
  if (in.failed()) return false;
  read_bins(in, model.contexts, model.map.width, model.streams[0]);
  if (model.map.remainders && !in.failed()) read_bins(in, model.contexts, model.map.width, model.streams[1]);
  if (in.failed()) return false;
  const std::size_t used = in.bits().bits;
  while (in.bits().bits % 32 != 0 && !in.failed())
    if (in.take(1) != 0) return false;
  *bytes = (used + 31) / 32 * 4;
  return !in.failed();
}

}  // namespace pyfilter
