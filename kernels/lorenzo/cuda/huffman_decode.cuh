// SPDX-License-Identifier: BSD-3-Clause
// Residuals of a group's tiles from its Huffman stream (docs/format.md, section 8.7; Rivera et al., 2022). A warp
// copies a stretch of 32 runs of 1024 bits to shared memory; each lane decodes a run. The gap array says where each
// run's first codeword starts. Without a gap array, lanes start at their run's first bit, and start again where the
// previous lane ended, until all agree. Most agree after a few codewords (self-synchronisation). The first pass counts
// the residuals of each run. The second writes the residuals of one tile after the other to shared memory. A lane stops
// at the end of the tile and continues with the next tile.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/group_parts.cuh"
#include "lorenzo/huffman.hpp"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kRunWords = kGapBits / 32;  // words of a lane's run

// The number of residuals of all tiles of a group, from its head.
template <int S>
__device__ __forceinline__ std::uint32_t residuals_of_group(const DecodeParams& job, const GroupSpan& span,
                                                            const std::uint8_t* bytes, const GroupTileParts& own) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t blocks = own.coding == kTileListed ? own.listed : 0;
  if (lane < span.count && own.coding == kTileAll)
    blocks = present_count<S>(box_of<S>(job.grid, static_cast<std::uint32_t>(span.first) + lane));
  if (own.coding == kTileFlags)
    for (unsigned i = 0; i < kFlagBytes; ++i) blocks += static_cast<std::uint32_t>(__popc(bytes[own.list + i]));
  return 32 * __shfl_sync(kAllLanes, sum_upto(blocks), 31);
}

// Words of a stretch, and words that its last codeword may reach into. Each lane's run starts in a bank of its own.
inline constexpr std::uint32_t kStretchWords = 32 * kRunWords, kReachWords = 4;
struct StretchWords {
  std::uint32_t words[kStretchWords + kStretchWords / 32 + kReachWords + 1];

  __device__ __forceinline__ std::uint32_t word(std::uint32_t i) const { return words[i + i / 32]; }
};

// The next bits of a lane's run, highest first: at least 32 of them.
struct LaneReader {
  std::uint64_t held = 0;
  std::uint32_t have = 0, next = 0;  // bits; the word behind them

  __device__ __forceinline__ void start(const StretchWords& words, std::uint32_t at) {
    const std::uint32_t word = at / 32;
    held = (static_cast<std::uint64_t>(words.word(word)) << 32 | words.word(word + 1)) << at % 32;
    have = 64 - at % 32;
    next = word + 2;
  }
  __device__ __forceinline__ std::uint32_t at() const { return 32 * next - have; }
  __device__ __forceinline__ std::uint32_t bits() const { return static_cast<std::uint32_t>(held >> 32); }
  // Consumes up to 32 bits.
  __device__ __forceinline__ void take(const StretchWords& words, std::uint32_t count) {
    held <<= count;
    have -= count;
    if (have >= 32) return;
    held |= static_cast<std::uint64_t>(words.word(next)) << (32 - have);
    have += 32;
    ++next;
  }
};

// A codeword and its raw bits: up to two residuals.
template <class Code>
struct Codeword {
  Code first, second;
  std::uint32_t count;
  bool failed;
};
// Skips a codeword's bits; returns the number of its residuals.
__device__ __forceinline__ std::uint32_t skip_codeword(const HuffmanTables& tables, const StretchWords& words,
                                                       LaneReader& reader) {
  const std::uint32_t entry = tables.codewords[reader.bits() >> (32 - kMostCodeBits)];
  std::uint32_t symbol = entry & 511;
  reader.take(words, entry >> 9);
  if (symbol >= kPairs) return 2;
  if (symbol == kEscape) {
    symbol = reader.bits() >> (32 - kEscapeBits);
    reader.take(words, kEscapeBits);
  }
  const std::uint32_t raw = raw_bits(symbol);
  if (raw > 32) reader.take(words, raw - 32);
  reader.take(words, min(raw, 32u));
  return 1;
}
template <class Code>
__device__ __forceinline__ Codeword<Code> read_codeword(const HuffmanTables& tables, const StretchWords& words,
                                                        LaneReader& reader) {
  const std::uint32_t entry = tables.codewords[reader.bits() >> (32 - kMostCodeBits)];
  std::uint32_t symbol = entry & 511;
  reader.take(words, entry >> 9);
  if (symbol >= kPairs) return {symbol >> 4 & 15, symbol & 15, 2, false};
  if (symbol == kEscape) {
    symbol = reader.bits() >> (32 - kEscapeBits);
    reader.take(words, kEscapeBits);
  }
  const bool failed = symbol >= symbols_of_width(8 * sizeof(Code));
  std::uint32_t raw = raw_bits(symbol);
  std::uint64_t value = 0;
  if (raw > 32) {
    value = static_cast<std::uint64_t>(reader.bits() >> (64 - raw)) << 32;
    reader.take(words, raw - 32);
    raw = 32;
  }
  if (raw != 0) value |= reader.bits() >> (32 - raw);
  reader.take(words, raw);
  return {failed ? Code{0} : static_cast<Code>(smallest_of<Code>(symbol) + static_cast<Code>(value)), 0, 1, failed};
}

// `Residual`: the type in which a tile's residuals wait. With narrow types more warps fit a multiprocessor (Rivera et
// al. tune their shared memory by the ratio of each sequence). A group with a larger residual is decoded again by a
// kernel for wider ones.
template <class Map, class Residual>
struct HuffmanSource {
  using Code = typename Map::Code;
  static constexpr bool kHeadFlags = true, kRows = false, kNarrow = sizeof(Residual) < sizeof(Code);
  using Tables = const HuffmanTables*;
  struct WarpSpace {
    Residual residuals[4096 + 4096 / 32 + 1];  // of a tile, 33 entries a block, and one more
    StretchWords stretch;
  };

  const HuffmanTables& tables;
  WarpSpace& space;
  const std::uint8_t* gaps = nullptr;
  const std::uint32_t* words = nullptr;
  std::uint32_t word_count = 0, total = 0;
  std::uint32_t stretch = 0, stretches = 0;  // number of the next stretch
  LaneReader reader;                         // of this lane's run
  std::uint32_t index = 0, end = 0;          // index of the run's next residual, and the end of its residuals
  std::uint32_t given = 0, counted = 0;      // residuals delivered to tiles so far, and counted in stretches
  std::uint32_t next_start = 0;              // bit of the next stretch where its first codeword starts
  std::uint32_t last_bit = 0;                // end of the group's last codeword, in bits of the stream
  Code seen = 0;                             // OR of this lane's residuals
  bool failed = false, has_last = false;

  __device__ __forceinline__ HuffmanSource(const Tables& t, WarpSpace& s) : tables(*t), space(s) {}

  __device__ __forceinline__ Fault open(const std::uint8_t* bytes, std::uint32_t size, bool has_gaps,
                                        std::uint32_t residuals) {
    if (size < 4) return Fault::size;
    word_count = *reinterpret_cast<const std::uint32_t*>(bytes);
    if (word_count > size / 4) return Fault::size;
    const std::uint32_t count = has_gaps ? (word_count + kRunWords - 1) / kRunWords : 0, padded = (count + 3) / 4 * 4;
    if (size != 4 + padded + 4 * word_count) return Fault::size;
    if (__any_sync(kAllLanes, count + threadIdx.x % 32 < padded && bytes[4 + count + threadIdx.x % 32] != 0))
      return Fault::padding;
    gaps = has_gaps ? bytes + 4 : nullptr;
    words = reinterpret_cast<const std::uint32_t*>(bytes + 4 + padded);
    total = residuals;
    stretches = (word_count + kStretchWords - 1) / kStretchWords;
    return Fault::none;
  }

  // Counts the residuals of this lane's run from bit `from` of the stretch on; sets `from` to the end of the last
  // codeword.
  __device__ __forceinline__ std::uint32_t count_run(std::uint32_t& from, std::uint32_t bound) const {
    std::uint32_t count = 0;
    LaneReader reader;
    reader.start(space.stretch, from);
    while (reader.at() + kMostCodeBits <= bound) {
      const std::uint32_t entry = tables.residuals[reader.bits() >> (32 - kMostCodeBits)];
      if (huffman_count(entry) != 0) {
        count += huffman_count(entry);
        reader.take(space.stretch, huffman_bits(entry));
      } else {
        count += skip_codeword(tables, space.stretch, reader);
      }
    }
    while (reader.at() < bound) count += skip_codeword(tables, space.stretch, reader);
    from = reader.at();
    return count;
  }

  // Opens the next stretch: copies its words, and finds each run's start and number of residuals.
  __device__ __forceinline__ void open_stretch() {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t first_word = stretch * kStretchWords;
    __syncwarp();
    for (std::uint32_t i = lane; i <= kStretchWords + kReachWords; i += 32)
      space.stretch.words[i + i / 32] = first_word + i < word_count ? words[first_word + i] : 0;
    __syncwarp();
    const std::uint32_t left = 32 * (word_count - first_word), own = lane * kGapBits;  // bits
    const bool mine = own < left;
    const std::uint32_t bound = min(own + kGapBits, left);
    std::uint32_t start = own, gap = 0;
    if (gaps != nullptr) {
      gap = mine ? gaps[first_word / kRunWords + lane] : kNoGap;
      start = own + gap;
    } else if (lane == 0) {
      start = next_start;
    }
    std::uint32_t behind = start, count = mine && gap != kNoGap ? count_run(behind, bound) : 0;
    if (gaps == nullptr) {
#pragma unroll 1
      for (int turn = 0; turn < 32; ++turn) {  // lane l is right after at most l rounds
        const std::uint32_t before = __shfl_up_sync(kAllLanes, behind, 1);
        const bool again = lane > 0 && mine && before != start;
        if (!__any_sync(kAllLanes, again)) break;
        if (again) {
          start = behind = before;
          count = count_run(behind, bound);
        }
      }
    }
    const std::uint32_t upto = sum_upto(count);
    index = min(counted + upto - count, total);
    end = min(counted + upto, total);
    if (index < end) reader.start(space.stretch, start);
    // a run with residuals of the group starts where the previous one ends; after the last there are no codewords
    const std::uint32_t before = __shfl_up_sync(kAllLanes, behind, 1), expected = lane > 0 ? before : next_start;
    if (gaps != nullptr && mine && index < total) failed = failed || gap == kNoGap || start != expected;
    if (gaps != nullptr && mine && index >= total) failed = failed || gap != kNoGap;
    next_start = __shfl_sync(kAllLanes, behind, 31) - 32 * kGapBits;
    counted += __shfl_sync(kAllLanes, upto, 31);
    ++stretch;
  }

  __device__ __forceinline__ void put(std::uint32_t index_in_tile, Code value) {
    space.residuals[index_in_tile + index_in_tile / 32] = static_cast<Residual>(value);
    if constexpr (kNarrow) seen |= value;
  }

  // Decodes the residuals of a tile with `count` coded blocks.
  __device__ __forceinline__ Fault begin_tile(std::uint32_t count) {
    const std::uint32_t stop = given + 32 * count;
    __syncwarp();
#pragma unroll 1
    while (true) {
      const std::uint32_t until = min(end, stop);
      const std::uint32_t stretch_bit = stretch == 0 ? 0 : (stretch - 1) * 32 * kGapBits;
      while (index < until) {
        const std::uint32_t entry = tables.residuals[reader.bits() >> (32 - kMostCodeBits)],
                            here = huffman_count(entry);
        if (here != 0 && index + here <= until) {
          const std::uint32_t index_in_tile = index - given;
          put(index_in_tile, static_cast<Code>(entry & 0xFFF));
          if (here > 1) put(index_in_tile + 1, static_cast<Code>(entry >> 12 & 15));
          if (here > 2) put(index_in_tile + 2, static_cast<Code>(entry >> 16 & 15));
          if (here > 3) put(index_in_tile + 3, static_cast<Code>(entry >> 20 & 15));
          index += here;
          reader.take(space.stretch, huffman_bits(entry));
        } else {
          const Codeword<Code> c = read_codeword<Code>(tables, space.stretch, reader);
          failed = failed || c.failed || index + c.count > until;  // a pair that spans two tiles
          put(index - given, c.first);
          if (c.count == 2) put(index + 1 - given, c.second);
          index += c.count;
        }
        if (index >= total) {
          has_last = true;
          last_bit = stretch_bit + reader.at();
        }
      }
      if (min(counted, total) >= stop || stretch >= stretches) break;
      open_stretch();
    }
    __syncwarp();
    given = stop;
    if (__any_sync(kAllLanes, failed) || counted < stop) return Fault::stream;
    return kNarrow && __any_sync(kAllLanes, seen > static_cast<Residual>(~Residual{0})) ? Fault::wide : Fault::none;
  }

  // Delivers a run's residuals, already decoded; blocks that are not coded get 0. `before`: coded blocks of earlier
  // runs.
  struct Parked {};  // rows stay in shared memory
  __device__ __forceinline__ void take_run(std::uint32_t before, std::uint32_t bits, std::uint32_t, Parked&,
                                           Code (&y)[32]) const {
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t own = before + static_cast<std::uint32_t>(__popc(static_cast<int>(bits & ((1u << lane) - 1))));
    const bool has = (bits >> lane & 1) != 0;
#pragma unroll
    for (unsigned n = 0; n < 32; ++n) y[n] = has ? space.residuals[33 * own + n] : 0;
  }

  // Whether all bits are read except fewer than 32 zeros. `group_end`: the end of the group.
  __device__ __forceinline__ bool ends(const std::uint8_t* group_end, std::uint32_t) const {
    const std::uint32_t last = or_of_lanes(has_last ? last_bit : 0);
    const std::uint32_t bits = 32 * word_count;
    if (__any_sync(kAllLanes, failed) || last > bits || bits - last >= 32 || given != total) return false;
    if (bits == last) return true;
    const std::uint32_t word = reinterpret_cast<const std::uint32_t*>(group_end)[-1];
    return (word & (0xFFFFFFFFu >> last % 32)) == 0;
  }
};

}  // namespace pyfilter::cuda
