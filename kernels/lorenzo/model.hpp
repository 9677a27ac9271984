// SPDX-License-Identifier: BSD-3-Clause
// The model of a chunk's streams, from counts of its symbols: levels that share a table, frequencies of tables, number
// of tiles in a group. Integers only, so threads and devices agree. Not part of the format.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "lorenzo/huffman.hpp"
#include "lorenzo/plan.hpp"
#include "stages/count_log.hpp"
#include "stages/entropy/tables.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// Counts over the sampled tiles. Rans: symbols by level, then symbols of blocks' first values; flags by the block
// before (0: none, 1: a block of zeros, 2: a coded block). Huffman: codewords. Both: tiles.
inline constexpr std::uint32_t kFlagContexts = 3;
struct SymbolCounts {
  std::uint32_t of[(kLevels + 1) * kSymbols] = {};
  std::uint32_t flags[kFlagContexts][2] = {};
  std::uint32_t codewords[kCodewords] = {};
  std::uint64_t tiles = 0;

  void add(const SymbolCounts& other) {
    for (std::size_t i = 0; i < (kLevels + 1) * std::size_t{kSymbols}; ++i) of[i] += other.of[i];
    for (std::uint32_t c = 0; c < kFlagContexts; ++c)
      for (int b = 0; b < 2; ++b) flags[c][b] += other.flags[c][b];
    for (std::uint32_t c = 0; c < kCodewords; ++c) codewords[c] += other.codewords[c];
    tiles += other.tiles;
  }
};

// Cost of symbols with one table, and of the table itself, in 1/64 bits. Costs of parts of a table's symbols add up.
inline constexpr std::uint64_t kTableCost = 20 * kLogOne, kSymbolCost = 9 * kLogOne / 2;
struct TableCost {
  std::uint64_t total = 0, symbols = 0, inner = 0;

  KFN void add(std::uint32_t count) {
    if (count == 0) return;
    total += count;
    inner += count * std::uint64_t{log2_of_count(count)};
    ++symbols;
  }
  KFN std::uint64_t bits() const {
    const std::uint64_t table = kTableCost + symbols * kSymbolCost;
    return total == 0 ? table : table + total * log2_of_count(total) - inner;
  }
};
KFN std::uint64_t table_cost(const std::uint32_t* counts) {
  TableCost cost;
  for (std::uint32_t s = 0; s < kSymbols; ++s) cost.add(counts[s]);
  return cost.bits();
}

// The sample: all of up to 128 tiles, then every fourth, then every sixteenth, at varying positions.
struct TileSample {
  std::uint64_t every, count;

  explicit KFN TileSample(std::uint64_t tiles)
      : every(tiles <= 128    ? 1
              : tiles <= 2048 ? 4
                              : 16),
        count(tiles / every) {}
  KFN std::uint64_t tile(std::uint64_t i) const { return i * every + (i * 0x9E3779B97F4A7C15ull >> 60) % every; }
  KFN bool has(std::uint64_t t) const { return t / every < count && tile(t / every) == t; }
};

struct EntropyModel {
  Contexts contexts;
  std::uint16_t flag_frequency[kFlagContexts] = {512, 512, 512};  // of a block that is not all zero, of 2^10
  std::uint32_t group_log2 = 0;
  Frequencies tables[kMostTables];
  Codebook book;  // the whole model of Huffman streams
};

// A group is large enough that states are about 1 % of its stream, and has at most 32 tiles. Huffman streams have no
// states.
inline constexpr std::uint32_t kGroupBits = 8 * 4000, kLargeGroupBits = 8 * 12000, kHuffmanGroupBits = 8 * 4000;
inline constexpr std::uint32_t kFewTilesLog2 = 2;

struct ModelScratch {
  std::uint32_t merged[kLevels * kSymbols];  // counts by level or octave
  std::uint32_t sum[kSymbols];
  std::uint64_t low[kLevels], high[kLevels], own[kLevels + 1];
  CodebookScratch codebook;
};

KFN void add_counts(const std::uint32_t* from, std::uint32_t* to) {
  for (std::uint32_t s = 0; s < kSymbols; ++s) to[s] += from[s];
}

// The cheapest contexts: levels or octaves from `base` on; lower and higher ones join the first and the last.
inline Contexts choose_contexts(const SymbolCounts& counts, ModelScratch& m, std::uint64_t* cost) {
  Contexts best;
  *cost = ~std::uint64_t{0};
  for (std::uint32_t octaves = 0; octaves < 2; ++octaves) {
    std::uint32_t steps = 0;
    for (std::uint32_t i = 0; i < kLevels * kSymbols; ++i) m.merged[i] = 0;
    for (std::uint32_t level = 0; level < kLevels; ++level) {
      const std::uint32_t* const from = counts.of + level * kSymbols;
      std::uint32_t any = 0;
      for (std::uint32_t s = 0; s < kSymbols; ++s) any |= from[s];
      if (any == 0) continue;
      const std::uint32_t step = octaves != 0 ? (level + 1) / 2 : level;
      add_counts(from, m.merged + step * kSymbols);
      steps = step + 1;
    }
    if (steps == 0) steps = 1;
    for (std::uint32_t& s : m.sum) s = 0;
    for (std::uint32_t i = 0; i < steps; ++i) {
      add_counts(m.merged + i * kSymbols, m.sum);
      m.low[i] = table_cost(m.sum);
      m.own[i] = table_cost(m.merged + i * kSymbols);
    }
    for (std::uint32_t& s : m.sum) s = 0;
    for (std::uint32_t i = steps; i-- > 0;) {
      add_counts(m.merged + i * kSymbols, m.sum);
      m.high[i] = table_cost(m.sum);
    }
    if (m.high[0] < *cost) {
      *cost = m.high[0];
      best = {octaves, 0, 1};
    }
    for (std::uint32_t base = 0; base + 1 < steps; ++base) {
      std::uint64_t between = 0;
      for (std::uint32_t last = base + 1; last < steps && last - base < kMostContexts; ++last) {
        const std::uint64_t all = m.low[base] + between + m.high[last];
        between += m.own[last];
        if (all >= *cost) continue;
        *cost = all;
        best = {octaves, base, last - base + 1};
      }
    }
  }
  return best;
}

KFN std::uint32_t choose_group(std::uint64_t tile_bits, std::uint64_t wanted) {
  std::uint32_t log2 = 0;
  while (log2 < kMostGroupLog2 && (tile_bits << log2) < wanted) ++log2;
  return log2;
}

// Frequencies of flags, and their cost.
KFN std::uint64_t choose_flags(const SymbolCounts& counts, EntropyModel& model) {
  std::uint64_t cost = 0;
  for (std::uint32_t c = 0; c < kFlagContexts; ++c) {
    const std::uint64_t zero = counts.flags[c][0], coded = counts.flags[c][1], all = zero + coded;
    const std::uint64_t frequency = all == 0 ? 512 : (coded * kFrequencySum + all / 2) / all;
    model.flag_frequency[c] = static_cast<std::uint16_t>(frequency < 1 ? 1 : frequency > 1023 ? 1023 : frequency);
    if (zero != 0 && coded != 0)
      cost += all * log2_of_count(all) - zero * log2_of_count(zero) - coded * log2_of_count(coded);
  }
  return cost;
}

// Tiles of a group, from the sampled tiles' cost (1/64 bits of symbols, flags and tables) and raw bits: 4 KB of a
// stream, and four tiles or 12 KB.
KFN std::uint32_t choose_stream_group(std::uint64_t cost, std::uint64_t raw, std::uint64_t tiles) {
  const std::uint64_t bits = tiles == 0 ? kLargeGroupBits : (cost / kLogOne + raw) / tiles;
  const std::uint32_t log2 = choose_group(bits, kGroupBits), large = choose_group(bits, kLargeGroupBits);
  return log2 < kFewTilesLog2 ? (large < kFewTilesLog2 ? large : kFewTilesLog2) : log2;
}
KFN std::uint32_t choose_huffman_group(std::uint64_t bits, std::uint64_t tiles) {
  return choose_group(tiles == 0 ? kHuffmanGroupBits : bits / tiles, kHuffmanGroupBits);
}

inline void make_huffman_model(const SymbolCounts& counts, ModelScratch& scratch, EntropyModel& model) {
  make_codebook(counts.codewords, scratch.codebook, model.book);
  std::uint64_t bits = 0;
  for (std::uint32_t c = 0; c < kCodewords; ++c)
    bits += counts.codewords[c] * std::uint64_t{model.book.length[c] + (c < kEscape ? raw_bits(c) : 0)};
  model.group_log2 = choose_huffman_group(bits, counts.tiles);
}

inline void make_model(const SymbolCounts& counts, ModelScratch& scratch, EntropyModel& model) {
  std::uint64_t cost = 0;
  model.contexts = choose_contexts(counts, scratch, &cost);
  const Contexts& contexts = model.contexts;
  for (std::uint32_t t = 0; t < contexts.count; ++t) {
    for (std::uint32_t& s : scratch.sum) s = 0;
    for (std::uint32_t level = 0; level < kLevels; ++level)
      if (contexts.of_level(level) == t) add_counts(counts.of + level * kSymbols, scratch.sum);
    make_frequencies(scratch.sum, model.tables[t]);
  }
  make_frequencies(counts.of + kLevels * kSymbols, model.tables[contexts.count]);
  cost += table_cost(counts.of + kLevels * kSymbols);
  cost += choose_flags(counts, model);
  std::uint64_t raw = 0;
  for (std::uint32_t i = 0; i < (kLevels + 1) * kSymbols; ++i)
    raw += counts.of[i] != 0 ? counts.of[i] * std::uint64_t{raw_bits(i % kSymbols)} : 0;
  model.group_log2 = choose_stream_group(cost, raw, counts.tiles);
}

// The table section of a payload: its size in words and the contexts, the frequencies of flags, the frequencies of
// symbols.
inline constexpr std::size_t kTableHeadBytes = 8;
inline constexpr std::size_t kMostTableBytes = 12288;

KFN std::uint32_t table_head(const EntropyModel& model, std::uint32_t words) {
  const Contexts& c = model.contexts;
  return words | c.base << 16 | c.octaves << 22 | c.count << 24;
}
KFN std::uint32_t flag_word(const EntropyModel& model) {
  std::uint32_t flags = 0;
  for (std::uint32_t i = 0; i < kFlagContexts; ++i) flags |= std::uint32_t{model.flag_frequency[i]} << 10 * i;
  return flags;
}

inline std::size_t write_tables(const EntropyModel& model, bool huffman, std::uint8_t* out) {
  for (std::size_t i = 0; i < kMostTableBytes; ++i) out[i] = 0;
  if (huffman) {
    BitWriter bits{out + 4};
    write_codebook(model.book, bits);
    const std::size_t words = 1 + (bits.bits + 31) / 32;
    store_le(out, static_cast<std::uint32_t>(words));
    return 4 * words;
  }
  BitWriter bits{out + kTableHeadBytes};
  for (std::uint32_t t = 0; t <= model.contexts.count; ++t) write_frequencies(model.tables[t], bits);
  const std::size_t words = kTableHeadBytes / 4 + (bits.bits + 31) / 32;
  store_le(out, table_head(model, static_cast<std::uint32_t>(words)));
  store_le(out + 4, flag_word(model));
  return 4 * words;
}

// Whether less than a word is left, and its bits are 0.
KFN bool ends_well(BitReader& bits) {
  if (bits.end - bits.bits >= 32) return false;
  while (bits.bits < bits.end)
    if (bits.take(1) != 0) return false;
  return true;
}

KFN bool read_huffman_tables(const std::uint8_t* from, std::size_t available, EntropyModel& model, std::size_t* bytes) {
  if (available < 4) return false;
  const auto words = load_le<std::uint32_t>(from);
  if (words < 1 || words > kMostTableBytes / 4 || 4 * std::size_t{words} > available) return false;
  *bytes = 4 * std::size_t{words};
  BitReader bits{from + 4, 8 * (*bytes - 4)};
  return read_codebook(bits, model.book) && ends_well(bits);
}

// False if the section is damaged; sets *bytes to its size.
KFN bool read_tables(const std::uint8_t* from, std::size_t available, EntropyModel& model, std::size_t* bytes) {
  if (available < kTableHeadBytes) return false;
  const auto head = load_le<std::uint32_t>(from), flags = load_le<std::uint32_t>(from + 4);
  const std::size_t size = 4 * std::size_t{head & 0xFFFF};
  model.contexts = {head >> 22 & 1, head >> 16 & 63, head >> 24 & 15};
  if (size < kTableHeadBytes || size > available || size > kMostTableBytes) return false;
  if (model.contexts.count < 1 || model.contexts.count > kMostContexts || head >> 28 != 0 || (head >> 23 & 1) != 0)
    return false;
  if (flags >> 30 != 0) return false;
  for (std::uint32_t i = 0; i < kFlagContexts; ++i) {
    model.flag_frequency[i] = static_cast<std::uint16_t>(flags >> 10 * i & 1023);
    if (model.flag_frequency[i] == 0) return false;
  }
  BitReader bits{from + kTableHeadBytes, 8 * (size - kTableHeadBytes)};
  for (std::uint32_t t = 0; t <= model.contexts.count; ++t)
    if (!read_frequencies(bits, model.tables[t])) return false;
  *bytes = size;
  return ends_well(bits);
}

}  // namespace pyfilter
