// SPDX-License-Identifier: BSD-3-Clause
// Coefficients of a tile to bit planes and back: the positions of its words in the unit, and their transposition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "progressive/layout.hpp"
#include "progressive/tile.hpp"
#include "stages/planes.hpp"

PYF_BEGIN_TARGET

KFN std::uint32_t first_bits(std::uint32_t count) { return count == 32 ? ~0u : (1u << count) - 1; }

// Fills planes, signs and valid positions of a tile; fetch(position, count, to) reads the coefficients of a word.
// Returns the number of planes; higher planes are not written.
template <class Int, class Fetch>
inline int load_tile(const ProgressiveUnit& unit, std::uint64_t tile, Fetch&& fetch, TilePlanes& t) {
  using U = std::make_unsigned_t<Int>;
  constexpr int kBits = 8 * sizeof(Int);
  const TilePosition origin = tile_origin(unit, tile);
  int top = 0;
  for (std::uint32_t w = 0; w < kTileWords; w += 2) {
    alignas(64) U bits[64];
    for (std::uint32_t half = 0; half < 2; ++half) {
      alignas(64) Int from[32];
      std::uint32_t count;
      const TilePosition position = word_position(unit, origin, w + half, &count);
      t.valid[w + half] = first_bits(count);
      if (count != 0) fetch(position, count, from);
      for (std::uint32_t i = count; i < 32; ++i) from[i] = 0;
      for (std::uint32_t i = 0; i < 32; ++i) {  // the sign goes below the magnitude, which never needs the highest bit
        const U negative = static_cast<U>(from[i] >> (kBits - 1)), d = static_cast<U>(from[i]);
        bits[32 * half + i] = static_cast<U>(2 * ((d ^ negative) - negative)) | (negative & 1);
      }
    }
    alignas(64) std::uint32_t words[2 * kMostPlanes];
    const int width = bit_width(transpose_planes<2>(bits, ~0u, false, words, kMostPlanes)) - 1;
    for (; top < width; ++top) std::memset(t.plane[top], 0, w * sizeof(std::uint32_t));
    for (int p = 0; p < width; ++p) {
      t.plane[p][w] = words[1 + p];
      t.plane[p][w + 1] = words[kMostPlanes + 1 + p];
    }
    for (int p = width < 0 ? 0 : width; p < top; ++p) t.plane[p][w] = t.plane[p][w + 1] = 0;
    t.sign[w] = width > 0 ? words[0] : 0;
    t.sign[w + 1] = width > 0 ? words[kMostPlanes] : 0;
  }
  std::memset(t.known, 0, sizeof t.known);
  std::memset(t.before, 0, sizeof t.before);
  return top;
}

// The inverse: put(position, count, coefficients) for each word inside the unit; nullptr if all its coefficients are 0.
template <class Int, class Put>
inline void store_tile(const ProgressiveUnit& unit, std::uint64_t tile, int planes, const TilePlanes& t, Put&& put) {
  using U = std::make_unsigned_t<Int>;
  const TilePosition origin = tile_origin(unit, tile);
  for (std::uint32_t w = 0; w < kTileWords; w += 2) {
    alignas(64) std::uint32_t words[2 * (kMostPlanes + 1)];
    std::uint32_t any = 0;
    words[0] = t.sign[w];
    words[planes + 1] = t.sign[w + 1];
    for (int p = 0; p < planes; ++p) {
      words[1 + p] = t.plane[p][w];
      words[planes + 2 + p] = t.plane[p][w + 1];
      any |= t.plane[p][w] | t.plane[p][w + 1];
    }
    alignas(64) Int d[64];
    if (any != 0) {
      alignas(64) U bits[64];
      unpack_runs<2>(reinterpret_cast<const std::uint8_t*>(words), planes + 1, bits);
      for (std::uint32_t i = 0; i < 64; ++i) {
        const U negative = static_cast<U>(U{0} - (bits[i] & 1));
        d[i] = static_cast<Int>(((bits[i] >> 1) ^ negative) - negative);
      }
    }
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::uint32_t count;
      const TilePosition position = word_position(unit, origin, w + half, &count);
      if (count != 0) put(position, count, any != 0 ? d + 32 * half : nullptr);
    }
  }
}

PYF_END_TARGET
