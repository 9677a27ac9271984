// SPDX-License-Identifier: BSD-3-Clause
// A tile of particles to its bytes (docs/format.md, section 12.2). The order of particles is decided earlier
// (order.hpp). A tile with ascending keys stores the keys' gaps, any other tile only offsets, as a single segment.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "particles/codes.hpp"
#include "particles/cpu/order.hpp"
#include "particles/head.hpp"
#include "particles/key.hpp"
#include "particles/plan.hpp"
#include "particles/sequence.hpp"
#include "stages/quantize.hpp"

PYF_BEGIN_TARGET

// The tail: equal particles (bit for bit) at the end, such as the rows of zeros with which HDF5 pads its last chunk.
// at(i): the address of particle i.
template <class T, int D, class At>
inline std::uint32_t tail_of(At&& at, std::uint32_t count) {
  using Code = typename FloatTraits<T>::Code;
  const T* const last = at(count - 1);
  std::uint32_t same = 1;
  while (same < count && std::memcmp(last, at(count - 1 - same), D * sizeof(T)) == 0) ++same;
  Code any = 0;
  for (int d = 0; d < D; ++d) any |= std::bit_cast<Code>(last[d]);
  return any == 0 || same >= kGroup ? same : 0;
}

// A tile's particles as codes, divided into ordinary ones, special ones, and a tail of equal ones.
template <class T, int D>
struct CodedTile {
  using Code = typename FloatTraits<T>::Code;
  std::uint32_t count, tail, specials;
  Code origin[3] = {};
  unsigned width[3] = {};
  KeyLayout layout;
  bool ordered;  // specials last, keys ascending

  std::uint32_t ordinary() const { return count - tail - specials; }
  std::uint32_t stored() const { return specials + (tail != 0 ? 1 : 0); }  // particles stored as values

  CodedTile(const Quantizer<T>& p, const T* x, std::uint32_t particles, TileSpace<T>& space)
      : count(particles), tail(tail_of<T, D>([x](std::uint32_t i) { return x + std::size_t{i} * D; }, particles)) {
    specials = code_particles<T, D>(p, x, count - tail, space.q, space.special);
    ordered = true;
    for (std::uint32_t i = 0; specials != 0 && i < ordinary(); ++i)
      ordered = ordered && (space.special[i / 32] >> i % 32 & 1) == 0;
    if (!ordered || ordinary() == 0) return;
    for (int d = 0; d < D; ++d) {
      Extent<Code> extent;
      extent.add(space.q[d], ordinary());
      origin[d] = static_cast<Code>(extent.low);
      width[d] = extent.width();
    }
    layout = make_layout(width, lowest_shift(width));
    make_keys<Code, D>(layout, space.q, origin, ordinary(), space.keys);
    std::uint32_t falls = 0;
    for (std::uint32_t i = 1; i < ordinary(); ++i) falls += space.keys[i] < space.keys[i - 1] ? 1 : 0;
    ordered = falls == 0;
  }

  // A tile of sorted particles without special ones and tail: codes and keys are permuted, values are not.
  CodedTile(const TileKeys<T, D>& keys, std::uint32_t particles, TileSpace<T>& space)
      : count(particles), tail(0), specials(0), layout(keys.layout), ordered(true) {
    std::copy(std::begin(keys.origin), std::end(keys.origin), origin);
    std::copy(std::begin(keys.width), std::end(keys.width), width);
    std::swap(space.keys, space.other_keys);
    for (int d = 0; layout.shift != 0 && d < D; ++d) {
      Code* const laid = reinterpret_cast<Code*>(space.other_values) + std::size_t{kTileParticles} * d;
      for (std::uint32_t i = 0; i < count; ++i) laid[i] = space.q[d][space.order[i]];
      space.q[d] = laid;
    }
  }

  unsigned widest() const { return std::max(std::max(width[0], width[1]), width[2]); }
};

// Gaps between distinct keys, and the number of particles with each key; returns the number of distinct keys.
inline std::uint32_t find_runs(const std::uint32_t* keys, std::uint32_t count, std::uint32_t* gaps,
                               std::uint32_t* counts) {
  std::uint32_t runs = 0;
  for (std::uint32_t i = 0; i < count; ++i) {  // writes the key at each position; the last particle with a key wins
    gaps[runs] = keys[i];
    counts[runs] = i;
    runs += i + 1 == count || keys[i] != keys[i + 1] ? 1 : 0;
  }
  for (std::uint32_t r = runs; r-- > 1;) {
    gaps[r] -= gaps[r - 1] + 1;
    counts[r] -= counts[r - 1] + 1;
  }
  return runs;
}

inline std::uint32_t count_runs(const std::uint32_t* keys, std::uint32_t count) {
  std::uint32_t runs = 1;
  for (std::uint32_t i = 1; i < count; ++i) runs += keys[i] != keys[i - 1] ? 1 : 0;
  return runs;
}

// Whether runs are spread over the tile, as surely_spread_runs() defines it.
inline bool are_spread(const std::uint32_t* keys, std::uint32_t count) {
  for (std::uint32_t from = 0; from < count; from += kSpread) {
    const std::uint32_t before = from != 0 ? 1 : 0, here = std::min(kSpread, count - from);
    if (count_runs(keys + from - before, here + before) - before > kSpreadRuns) return false;
  }
  return true;
}

// Offsets of the ordinary particles: bit planes of each axis, group by group.
template <class T, int D>
inline std::uint8_t* write_offsets(const CodedTile<T, D>& tile, unsigned shift, const TileSpace<T>& space,
                                   std::uint8_t* out) {
  using Code = typename FloatTraits<T>::Code;
  for (std::uint32_t from = 0; from < tile.ordinary(); from += kGroup) {
    for (int d = 0; d < D; ++d) {
      const unsigned bits = std::min(shift, tile.width[d]);
      if (bits == 0) continue;
      const Code mask = bits < 8 * sizeof(Code) ? (Code{1} << bits) - 1 : ~Code{0};
      const Code* const q = space.q[d] + from;
      const Code origin = tile.origin[d];
      alignas(64) Code offsets[kGroup];
      for (std::uint32_t i = 0; i < kGroup; ++i) offsets[i] = static_cast<Code>(q[i] - origin) & mask;
      for (std::uint32_t i = tile.ordinary() - from; i < kGroup; ++i) offsets[i] = 0;
      alignas(64) std::uint32_t planes[64];
      std::memset(planes, 0, 4 * bits);  // planes above the widest offset are not written below
      transpose_planes<1>(offsets, ~0u, true, planes, 64);
      std::memcpy(out, planes, 4 * bits);
      out += 4 * bits;
    }
  }
  return out;
}

// A tile's particles in the order of the plan. `laid`: the values are permuted, too; false if no value is stored.
template <class T, int D>
inline CodedTile<T, D> code_tile(const ParticlePlan& plan, const Quantizer<T>& p, const void* values,
                                 std::uint64_t first, std::uint32_t count, TileSpace<T>& space, bool& laid) {
  const std::uint32_t movable = movable_particles(plan, first, count);
  take_tile<T, D>(plan, values, first, count, movable, space);
  if (movable != 0) {
    const TileKeys<T, D> keys(p, movable, space);
    sort_keys(movable, keys.bits(), space);
    if (plan.entries != nullptr && keys.layout.shift != 0) settle_equals(plan.entries + first, movable, space);
    const auto at = [&](std::uint32_t i) { return space.values + std::size_t{space.order[i]} * D; };
    laid = movable != count || keys.specials != 0 || tail_of<T, D>(at, count) != 0;
    if (!laid) return CodedTile<T, D>(keys, count, space);
    lay_in_order<T, D>(count, movable, space);
  }
  return CodedTile<T, D>(p, space.values, count, space);
}

template <class T, int D>
inline EncodedTile encode_particles(const Plan& base, const void* values, std::uint64_t number, void* scratch,
                                    std::uint8_t* out) {
  const auto& plan = static_cast<const ParticlePlan&>(base);
  using Code = typename FloatTraits<T>::Code;
  TileSpace<T> space(scratch);
  const std::uint64_t first = number * kTileParticles, particles = plan.grid.values / D;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kTileParticles, particles - first));
  const Quantizer<T> p = quantizer_of<T>(plan);
  bool laid = true;  // values have the order of their particles
  const CodedTile<T, D> tile = code_tile<T, D>(plan, p, values, first, count, space, laid);
  const std::size_t verbatim_bytes = 4 + std::size_t{count} * D * sizeof(T);
  const auto verbatim = [&] {
    if (!laid) lay_in_order<T, D>(count, count, space);
    store_le(out, kVerbatimTile);
    std::memcpy(out + 4, space.values, verbatim_bytes - 4);
    return EncodedTile{static_cast<std::uint32_t>(verbatim_bytes), false};
  };
  const std::uint32_t ordinary = tile.ordinary();
  // special particles that are not at the end
  if (!tile.ordered && tile.widest() == 0) return verbatim();
  const unsigned shift = tile.ordered ? tile.layout.shift : tile.widest();
  const bool keyed = tile.ordered && tile.layout.bits() != 0 && ordinary != 0;

  SequencePlan plain, of_gaps, of_counts;
  std::uint32_t runs = 0;
  std::uint32_t key_words = 0;
  bool by_runs = false;
  if (keyed) {
    runs = count_runs(space.keys, ordinary);
    if (may_have_runs(ordinary, runs)) {
      find_runs(space.keys, ordinary, space.gaps, space.counts);
      plan_sequence(space.gaps, runs, of_gaps);
      plan_sequence(space.counts, runs, of_counts);
      key_words = 1 + of_gaps.words() + of_counts.words();
      by_runs = true;
    }
    const std::uint32_t last = space.keys[ordinary - 1];
    const bool surely =
        surely_runs(ordinary, runs, last) ||
        (plan.tiles_alone && surely_spread_runs(ordinary, runs, last) && are_spread(space.keys, ordinary));
    if (!surely) {
      std::uint32_t* const differences = space.special;  // no longer needed
      differences[0] = space.keys[0];
      for (std::uint32_t i = 1; i < ordinary; ++i) differences[i] = space.keys[i] - space.keys[i - 1];
      plan_sequence(differences, ordinary, plain);
      if (!by_runs || plain.words() <= key_words) {
        key_words = plain.words();
        by_runs = false;
      }
    }
  }
  unsigned planes = 0;
  for (int d = 0; d < D; ++d) planes += std::min(shift, tile.width[d]);
  const std::size_t size = 4 * std::size_t{tile_words<Code, D>(ordinary, tile.stored(), tile.tail, key_words, planes)};
  if (size >= verbatim_bytes) return verbatim();

  std::uint8_t* to = out;
  store_le(to, head_word(ordinary, tile.stored(), tile.tail, by_runs, shift));
  to += 4;
  if (tile.tail != 0) {
    store_le(to, tile.tail - 1);
    to += 4;
  }
  if (ordinary != 0) {
    for (int d = 0; d < 4; ++d) to[d] = d < D ? static_cast<std::uint8_t>(tile.width[d]) : std::uint8_t{0};
    to += 4;
    for (int d = 0; d < D; ++d, to += sizeof(Code)) store_le(to, tile.origin[d]);
    if (by_runs) {
      store_le(to, runs);
      to = write_sequence(space.gaps, of_gaps, to + 4);
      to = write_sequence(space.counts, of_counts, to);
    } else if (keyed) {
      to = write_sequence(space.special, plain, to);
    }
    if (planes != 0) to = write_offsets<T, D>(tile, shift, space, to);
  }
  std::memcpy(to, space.values + std::size_t{ordinary} * D, std::size_t{tile.stored()} * D * sizeof(T));
  return {static_cast<std::uint32_t>(size), false};
}

// Whether a tile's keys are in an order that gaps can encode.
template <class T, int D>
inline bool is_ordered(const ParticlePlan& plan, const void* values, std::uint64_t number, void* scratch) {
  TileSpace<T> space(scratch);
  const std::uint64_t first = number * kTileParticles, particles = plan.grid.values / D;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kTileParticles, particles - first));
  std::memcpy(space.values, static_cast<const std::uint8_t*>(values) + first * D * sizeof(T),
              std::size_t{count} * D * sizeof(T));
  return CodedTile<T, D>(quantizer_of<T>(plan), space.values, count, space).ordered;
}

PYF_END_TARGET
