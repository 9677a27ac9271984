// SPDX-License-Identifier: BSD-3-Clause
// A map between values and codes (stages/quantizing_map.hpp and others) behind plain functions on rows of values. All
// other steps of a packed tile work on codes: they are compiled once for each code width, not for each map.
// map_steps.hpp has the functions, cpu/maps_*.cpp the instances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/plan.hpp"
#include "core/status.hpp"
#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "stages/packed/plan.hpp"

PYF_BEGIN_TARGET

struct PackedParts;    // decode_parts.hpp
struct PresentBlocks;  // tile_bits.hpp
struct PresentRows;    // columns, rows and slabs of the present blocks
template <class Code>
struct PackedScratch;  // encode_special.hpp

// Rows of values in memory.
struct ValueRows {
  const void* first = nullptr;  // the first value of the first row
  std::size_t stride = 0;       // bytes from a row to the next
  std::size_t ahead = 0;        // bytes from a row to the values to prefetch, which belong to a later tile
  std::uint32_t rows = 1;       // number of rows
  std::uint32_t columns = 0;    // values of a row
  std::uint32_t width = 0;      // values of a row of the tile; a shorter row is padded with its last value
  std::uint32_t worked = 0;     // values of a row of the tile that are encoded
};

// The target of a chain's values: the array, or a copy of the tile from which the array gets [start, stop).
struct ChainTarget {
  void* values;
  bool in_array;
  const Grid* grid;  // the array's grid, if the target is a copy
  const TileBox* box;
  std::uint64_t start, stop;
  const void* out;
};

using MapMemory = std::uint8_t[128];

template <class Code>
struct MapFunctions {
  std::uint32_t value_bytes;
  unsigned masks;  // kinds of special values (kMaskSentinel and others); 0: none
  // Constructs the map of a chunk.
  void (*make)(const Plan& plan, MapMemory& memory);

  // Rows -> codes, row by row, and the misfits of each run of 32 values. Returns 0 if there are no misfits.
  std::uint32_t (*encode_rows)(const void* map, const ValueRows& rows, Code* codes, std::uint32_t* misfits);
  // Consecutive blocks of values -> codes in the rows of a plane. Returns 0 if there are no misfits.
  std::uint64_t (*encode_blocks)(const void* map, const void* values, std::uint32_t blocks, Code* codes);
  // Sorts the special values of runs of a row into the masks of the scratch memory.
  void (*sort_row)(const void* map, const ValueRows& row, std::uint32_t first_run, PackedScratch<Code>& s);
  // Rows -> codes of 32 bits, in rows `codes_stride` codes apart. False if a value has no code, or a wide one. nullptr:
  // these codes have no entropy coder.
  bool (*narrow_rows)(const void* map, const ValueRows& rows, std::uint32_t* codes, std::uint32_t codes_stride);
  // Runs of 32 values -> codes, for the sample that the predictor is chosen from.
  void (*sample_runs)(const void* map, const void* values, std::uint32_t runs, Code* codes);

  // Differences along rows -> values: `runs` runs of 32 in each of `rows` rows, `width` differences apart.
  void (*decode_rows)(const void* map, Code* differences, std::uint32_t runs, std::uint32_t rows, std::uint32_t width,
                      void* values);
  // Differences along rows and columns of a plane one block wide -> values.
  void (*decode_narrow)(const void* map, int order, PresentRows present, const Code* differences, void* values);
  // Runs of 32 codes -> values.
  void (*decode_runs)(const void* map, const Code* codes, std::uint32_t runs, void* values);
  // Planes of a chain -> values. `differences`: the chain has an order above 0.
  Status (*decode_chain)(const void* map, bool differences, const PresentBlocks& present, PackedParts& parts,
                         const ChainTarget& to);
  // Residuals of the coded blocks of a chain -> values; the residuals of other blocks are 0. Returns the last code.
  // nullptr: these codes have no entropy coder.
  Code (*decode_residuals)(const void* map, bool differences, const std::uint32_t (&coded)[4], const Code (*blocks)[32],
                           Code before, void* values);
};

// The map functions of a plan's dtype and bound.
template <class Code>
const MapFunctions<Code>& map_functions(const Plan& plan);
template <>
const MapFunctions<std::uint32_t>& map_functions(const Plan& plan);
template <>
const MapFunctions<std::uint64_t>& map_functions(const Plan& plan);

template <class Code>
struct AnyMap {
  alignas(64) MapMemory memory;
  const MapFunctions<Code>& of;

  explicit AnyMap(const Plan& plan) : of(map_functions<Code>(plan)) { of.make(plan, memory); }
};

// Unused high bits of differences of integers narrower than a code: bit-exact differences are taken modulo the
// integer's width.
inline int wrap_shift(const Plan& plan) {
  const auto bits = static_cast<int>(8 * dtype_bytes(plan.dtype));
  return is_float(plan.dtype) || plan.step != 0 || bits >= 32 ? 0 : 32 - bits;
}

// Shortens a difference of such integers by wrap_shift() bits.
template <class Code>
KFN Code wrapped(Code difference, int shift) {
  using Signed = std::make_signed_t<Code>;
  return static_cast<Code>(static_cast<Signed>(static_cast<Code>(difference << shift)) >> shift);
}

PYF_END_TARGET
