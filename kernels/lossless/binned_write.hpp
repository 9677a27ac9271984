// SPDX-License-Identifier: BSD-3-Clause
// Models to bits (docs/format.md, section 15.1), for CPU and GPU; binned_read.hpp reads them. A number of unknown size
// is written as its width, then its bits. A width is written in unary, as its difference from the previous width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "lossless/binned_model.hpp"

namespace pyfilter {

// Writes bits in words, lowest first.
class WordWriter {
 public:
  explicit KFN WordWriter(std::uint8_t* to) : to_(to) {}
  // At most 32 bits.
  KFN void put(std::uint32_t value, std::uint32_t count) {
    waiting_ |= std::uint64_t{value} << count_;
    skip(count);
  }
  KFN void skip(std::uint32_t count) {  // zeros
    for (count_ += count; count_ >= 32; count_ -= 32) {
      store_le(to_ + 4 * words_++, static_cast<std::uint32_t>(waiting_));
      waiting_ >>= 32;
    }
  }
  // Returns the number of bytes, a multiple of 4.
  KFN std::size_t finish() {
    if (count_ != 0) skip(32 - count_);
    return 4 * words_;
  }

 private:
  std::uint8_t* to_;
  std::size_t words_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint32_t count_ = 0;
};

class ModelWriter {
 public:
  explicit KFN ModelWriter(std::uint8_t* to) : out_{to} {}
  KFN void put(std::uint64_t value, std::uint32_t count) {
    const std::uint32_t low = count < 32 ? count : 32;
    out_.put(static_cast<std::uint32_t>(value & ((std::uint64_t{1} << low) - 1)), low);
    if (count > 32)
      out_.put(static_cast<std::uint32_t>(value >> 32 & ((std::uint64_t{1} << (count - 32)) - 1)), count - 32);
  }
  KFN void flag(bool value) { put(value ? 1 : 0, 1); }
  KFN void real(double x) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x, 8);
    put(bits, 64);
  }
  // A small signed number in unary: 0, -1, 1, -2 and so on.
  KFN void steps(std::int32_t difference) {
    out_.skip(difference < 0 ? static_cast<std::uint32_t>(-2 * difference - 1)
                             : static_cast<std::uint32_t>(2 * difference));
    out_.put(1, 1);
  }
  KFN void number(std::uint64_t value, std::uint32_t& width) {
    const auto own = static_cast<std::uint32_t>(bit_width(value));
    steps(static_cast<std::int32_t>(own) - static_cast<std::int32_t>(width));
    if (own > 1) put(value, own - 1);  // the highest bit is 1
    width = own;
  }
  KFN WordWriter& bits() { return out_; }

 private:
  WordWriter out_;
};

inline PYF_MODEL void write_map(const NumberMap& map, ModelWriter& out) {
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
    case NumberKind::grid:
      out.flag(map.product);
      out.real(map.unit);
      out.flag(map.base != 0);
      if (map.base != 0) out.real(map.base);
      out.flag(map.changes);
      break;
    case NumberKind::dictionary: {
      out.put(map.entries, 13);
      std::uint64_t before = 0;
      for (std::uint32_t i = 0; i < map.entries; ++i) {
        out.number(map.dictionary[i] - before, width);
        before = map.dictionary[i];
      }
      break;
    }
  }
}

inline PYF_MODEL void write_bins(const BinModel& model, bool contexts, ModelWriter& out) {
  out.flag(model.zigzag);
  out.put(model.bins, 8);
  std::uint64_t end = 0;
  std::uint32_t width = 8, bits = 0, level = 0;
  for (std::uint32_t s = 0; s < model.bins; ++s) {
    out.flag(model.lowest[s] == end);
    if (model.lowest[s] != end) out.number(zigzag(model.lowest[s] - end), width);
    out.steps(static_cast<std::int32_t>(model.bits[s]) - static_cast<std::int32_t>(bits));
    if (contexts) out.steps(static_cast<std::int32_t>(model.level[s]) - static_cast<std::int32_t>(level));
    end = end_of_bin(model, s);
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

// The memory that a model with a list of `entries` values needs at most.
constexpr KFN std::size_t most_binned_model_bytes(std::size_t entries) {
  constexpr std::size_t of_number = 200, of_symbol = 2 * kBinTableBits + 8;  // generous limits, in bits
  const std::size_t bits =
      1024 + of_number * (entries + 16) + 2 * (kSymbols * 2 * of_number + kMostBinTables * (kSymbols * of_symbol + 64));
  return bits / 8 + 8;
}

// Writes the model. Returns its size in bytes, a multiple of 4.
inline PYF_MODEL std::size_t write_binned_model(const BinnedParts& model, std::uint8_t* to) {
  ModelWriter w(to);
  w.put(model.unit_values, 21);
  w.put(model.strides, 3);
  std::uint32_t width = 8;
  for (std::uint32_t i = 0; i < model.strides; ++i) w.number(model.stride[i], width);
  w.flag(model.contexts);
  for (std::uint32_t i = 0; model.contexts && i < kDistances; ++i) w.number(model.distance[i], width);
  write_map(model.map, w);
  write_bins(model.streams[0], model.contexts, w);
  if (model.map.remainders) write_bins(model.streams[1], model.contexts, w);
  return w.bits().finish();
}

}  // namespace pyfilter
