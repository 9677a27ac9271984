// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads models (docs/format.md, section 15.1). A number of unknown size is written as its width, then its
// bits. A width is written in unary, as its difference from the previous width.
#include "lossless/binned_model.hpp"

#include <cmath>
#include <cstring>

#include "core/bits.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

std::uint32_t width_of(std::uint64_t x) { return static_cast<std::uint32_t>(bit_width(x)); }

class Writer {
 public:
  explicit Writer(std::uint8_t* to) : out_{to} {}
  void put(std::uint64_t value, std::uint32_t count) {
    const std::uint32_t low = count < 32 ? count : 32;
    out_.put(static_cast<std::uint32_t>(value), low);
    if (count > 32) out_.put(static_cast<std::uint32_t>(value >> 32), count - 32);
  }
  void flag(bool value) { put(value ? 1 : 0, 1); }
  // A small signed number in unary: 0, -1, 1, -2 and so on.
  void steps(std::int32_t difference) {
    out_.skip(difference < 0 ? static_cast<std::uint32_t>(-2 * difference - 1)
                             : static_cast<std::uint32_t>(2 * difference));
    out_.put(1, 1);
  }
  void number(std::uint64_t value, std::uint32_t& width) {
    const std::uint32_t own = width_of(value);
    steps(static_cast<std::int32_t>(own) - static_cast<std::int32_t>(width));
    if (own > 1) put(value, own - 1);  // the highest bit is 1
    width = own;
  }
  BitWriter& bits() { return out_; }

 private:
  BitWriter out_;
};

class Reader {
 public:
  Reader(const std::uint8_t* from, std::size_t bytes) : in_{from, 8 * bytes} {}
  std::uint64_t take(std::uint32_t count) {
    const std::uint32_t low = count < 32 ? count : 32;
    const std::uint64_t value = in_.take(low);
    return count > 32 ? value | std::uint64_t{in_.take(count - 32)} << 32 : value;
  }
  bool flag() { return take(1) != 0; }
  std::int32_t steps(std::uint32_t most) {
    std::uint32_t count = 0;
    if (!in_.take_zeros(2 * most, count)) return 0;
    return count % 2 != 0 ? -static_cast<std::int32_t>((count + 1) / 2) : static_cast<std::int32_t>(count / 2);
  }
  std::uint64_t number(std::uint32_t& width) {
    const std::int32_t own = static_cast<std::int32_t>(width) + steps(64);
    if (own < 0 || own > 64) in_.failed = true;
    if (in_.failed) return 0;
    width = static_cast<std::uint32_t>(own);
    if (own < 2) return width;
    return take(width - 1) | std::uint64_t{1} << (width - 1);
  }
  // Reads a small number, written as its difference from the previous one.
  std::uint8_t near(std::uint8_t before, std::uint32_t most) {
    const std::int32_t value = before + steps(most);
    if (value < 0 || value > static_cast<std::int32_t>(most)) in_.failed = true;
    return in_.failed ? 0 : static_cast<std::uint8_t>(value);
  }
  bool failed() const { return in_.failed; }
  void fail() { in_.failed = true; }
  BitReader& bits() { return in_; }

 private:
  BitReader in_;
};

void write_map(const BinnedModel& model, Writer& out) {
  const NumberMap& map = model.map;
  out.put(static_cast<std::uint64_t>(map.kind), 2);
  out.flag(map.remainders);
  std::uint32_t width = map.width / 2;
  switch (map.kind) {
    case NumberKind::pattern:
      break;
    case NumberKind::multiple:
      if (map.is_float) {
        out.put(map.shift, 6);
        break;
      }
      out.number(map.multiple, width);
      out.number(map.origin, width);
      break;
    case NumberKind::grid: {
      out.flag(map.product);
      std::uint64_t bits = 0;
      std::memcpy(&bits, &map.unit, 8);
      out.put(bits, 64);
      break;
    }
    case NumberKind::dictionary: {
      out.put(map.entries, 13);
      std::uint64_t before = 0;
      for (const std::uint64_t entry : model.dictionary) {
        out.number(entry - before, width);
        before = entry;
      }
      break;
    }
  }
}

void read_map(Reader& in, BinnedModel& model) {
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
    case NumberKind::grid: {
      map.product = in.flag();
      const std::uint64_t bits = in.take(64);
      std::memcpy(&map.unit, &bits, 8);
      if (!map.is_float || !std::isfinite(map.unit) || !(map.unit > 0)) in.fail();
      break;
    }
    case NumberKind::dictionary: {
      map.entries = static_cast<std::uint32_t>(in.take(13));
      if (in.failed() || map.entries == 0 || map.entries > kMostEntries || map.remainders) return in.fail();
      model.dictionary.assign(map.entries, 0);
      std::uint64_t before = 0;
      for (std::uint64_t& entry : model.dictionary) before = entry = before + in.number(width);
      map.dictionary = model.dictionary.data();
      break;
    }
  }
  if (map.kind == NumberKind::pattern && map.remainders) in.fail();
}

void write_bins(const BinModel& model, bool contexts, Writer& out) {
  out.flag(model.zigzag);
  out.put(model.bins, 8);
  std::uint64_t before = 0;
  std::uint32_t width = 1, bits = 0, level = 0;
  for (std::uint32_t s = 0; s < model.bins; ++s) {
    out.number(model.lowest[s] - before, width);
    out.steps(static_cast<std::int32_t>(model.bits[s]) - static_cast<std::int32_t>(bits));
    if (contexts) out.steps(static_cast<std::int32_t>(model.level[s]) - static_cast<std::int32_t>(level));
    before = model.lowest[s];
    bits = model.bits[s];
    level = model.level[s];
  }
  if (contexts) {
    out.put(model.level[kEscape], 6);
    out.put(model.tables, 4);
    for (std::uint32_t t = 1, l = 0; t < model.tables; ++t) {  // the lowest level of each table
      while (model.table_of_level[l] < t) ++l;
      out.put(l, 6);
    }
  }
  for (std::uint32_t t = 0; t < model.tables; ++t) write_frequencies(model.table[t], out.bits());
}

void read_bins(Reader& in, bool contexts, std::uint32_t value_bits, BinModel& model) {
  model.zigzag = in.flag();
  model.bins = static_cast<std::uint32_t>(in.take(8));
  if (in.failed() || model.bins > kMostBins) return in.fail();
  std::uint64_t before = 0;
  std::uint32_t width = 1;
  std::uint8_t bits = 0, level = 0;
  for (std::uint32_t s = 0; s < model.bins; ++s) {
    before = model.lowest[s] = before + in.number(width);
    bits = model.bits[s] = in.near(bits, value_bits);
    if (contexts) level = model.level[s] = in.near(level, kBinLevels - 1);
    if (in.failed()) return;
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
    for (std::uint32_t s = model.bins; s < kEscape; ++s)  // symbols without a bin
      if (f.of[s] != 0) return in.fail();
  }
}

}  // namespace

std::size_t most_binned_model_bytes(const BinnedModel& model) {
  constexpr std::size_t of_number = 200, of_symbol = 2 * kBinTableBits + 8;  // generous limits, in bits
  const std::size_t bits = 1024 + of_number * (model.dictionary.size() + 16) +
                           2 * (kSymbols * 2 * of_number + kMostBinTables * (kSymbols * of_symbol + 64));
  return bits / 8 + 8;
}

std::size_t write_binned_model(const BinnedModel& model, std::uint8_t* out) {
  std::memset(out, 0, most_binned_model_bytes(model));
  Writer w(out);
  w.put(model.unit_values, 21);
  w.put(model.strides, 3);
  std::uint32_t width = 8;
  for (std::uint32_t i = 0; i < model.strides; ++i) w.number(model.stride[i], width);
  w.flag(model.contexts);
  for (std::uint32_t i = 0; model.contexts && i < kDistances; ++i) w.number(model.distance[i], width);
  write_map(model, w);
  write_bins(model.streams[0], model.contexts, w);
  if (model.map.remainders) write_bins(model.streams[1], model.contexts, w);
  return (w.bits().bits + 31) / 32 * 4;
}

bool read_binned_model(const std::uint8_t* from, std::size_t available, BinnedModel& model, std::size_t* bytes) {
  Reader in(from, available);
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
  read_map(in, model);
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
