// SPDX-License-Identifier: BSD-3-Clause
// Writes models (docs/format.md, section 15.1); binned_read.hpp reads them. A number of unknown size is written as its
// width, then its bits. A width is written in unary, as its difference from the previous width.
#include "lossless/binned_model.hpp"

#include <cstring>

#include "core/bits.hpp"
#include "lossless/binned_read.hpp"

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
  const auto room = [&](std::uint32_t entries) {
    model.dictionary.assign(entries, 0);
    return model.dictionary.data();
  };
  return read_model_parts(from, available, room, model, bytes);
}

}  // namespace pyfilter
