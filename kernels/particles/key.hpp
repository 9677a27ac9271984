// SPDX-License-Identifier: BSD-3-Clause
// Segments of a tile of particles and their keys (docs/format.md, section 12), for CPU and GPU. A coordinate's code is
// relative to the lowest one of its axis. Its `shift` lowest bits are the offset in the segment. The others are the
// segment's number along that axis. The numbers of all axes are interleaved from the lowest bit on into one key
// (Morton). Neighbours in the order of keys are neighbours in space.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "core/grid.hpp"
#include "core/target.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kTileParticles = 4096, kGroup = 32;

// The grid of tiles of particles; block_dims is the number of coordinates.
inline Grid particle_grid(std::uint64_t values, int coordinates) {
  Grid grid = make_run_grid(values, kTileParticles * static_cast<std::uint64_t>(coordinates));
  grid.block_dims = coordinates;
  grid.blocks = grid.tiles * (kTileParticles / kGroup);
  return grid;
}

inline constexpr unsigned kMostKeyBits = 24;
// The key of a special particle in sorted tiles: above all others.
inline constexpr std::uint64_t kLastKey = std::uint64_t{1} << kMostKeyBits;

// Particles have 2 or 3 coordinates, the last dimension of their array. 0: not such an array.
template <class Dims>
constexpr int coordinates_of(int rank, const Dims& dims) {
  if (rank < 2) return 0;
  const std::uint64_t last = dims[static_cast<std::size_t>(rank - 1)];
  return last == 2 || last == 3 ? static_cast<int>(last) : 0;
}

// The largest tile: a head and verbatim values.
constexpr std::size_t most_tile_bytes(int coordinates, std::size_t value_bytes) {
  return 4 + kTileParticles * static_cast<std::size_t>(coordinates) * value_bytes;
}

// The layout of a key. `axis`: the axes by falling width, the first of equals first; the lowest `three` bits of each
// are interleaved, then `two` bits of the two widest axes, then the rest of the widest.
struct KeyLayout {
  unsigned shift = 0;
  unsigned axis[3] = {0, 1, 2};
  unsigned three = 0, two = 0, one = 0;

  KFN unsigned bits() const { return 3 * three + 2 * two + one; }
};

// The lowest shift for which keys have at most kMostKeyBits bits. `width`: the bits of each axis, 0 for none.
KFN unsigned lowest_shift(const unsigned (&width)[3]) {
  unsigned shift = 0;
  for (;; ++shift) {
    unsigned bits = 0;
    for (const unsigned w : width) bits += w > shift ? w - shift : 0;
    if (bits <= kMostKeyBits) return shift;
  }
}

KFN KeyLayout make_layout(const unsigned (&width)[3], unsigned shift) {
  KeyLayout layout;
  layout.shift = shift;
  unsigned levels[3];
  for (int i = 0; i < 3; ++i) levels[i] = width[i] > shift ? width[i] - shift : 0;
  const auto order = [&](int i, int j) {  // a stable sort of three
    const bool swaps = levels[j] > levels[i];
    const unsigned level = levels[i], axis = layout.axis[i];
    levels[i] = swaps ? levels[j] : level;
    levels[j] = swaps ? level : levels[j];
    layout.axis[i] = swaps ? layout.axis[j] : axis;
    layout.axis[j] = swaps ? axis : layout.axis[j];
  };
  order(0, 1);
  order(1, 2);
  order(0, 1);
  layout.three = levels[2];
  layout.two = levels[1] - layout.three;
  layout.one = levels[0] - layout.three - layout.two;
  return layout;
}

// x | x << shift, for terms without common bits. A GPU multiplies instead, in a unit that is idle meanwhile.
template <unsigned shift>
KFN std::uint32_t twice(std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  return x * ((1u << shift) + 1);
#else
  return x | x << shift;
#endif
}

// Moves bit i to bit 2i, and back; for 16 bits, or the `most` lowest.
template <unsigned most = 16>
KFN std::uint32_t spread_two(std::uint32_t x) {
  if constexpr (most > 8) x = (x | x << 8) & 0x00FF00FFu;
  if constexpr (most > 4) x = (x | x << 4) & 0x0F0F0F0Fu;
  if constexpr (most > 2) x = (x | x << 2) & 0x33333333u;
  return (x | x << 1) & 0x55555555u;
}
KFN std::uint32_t gather_two(std::uint32_t x) {
  x &= 0x55555555u;
  x = (x | x >> 1) & 0x33333333u;
  x = (x | x >> 2) & 0x0F0F0F0Fu;
  x = (x | x >> 4) & 0x00FF00FFu;
  return (x | x >> 8) & 0x0000FFFFu;
}

// Moves bit i to bit 3i, and back; for 8 bits, since three axes share a key.
KFN std::uint32_t spread_three(std::uint32_t x) {
  x = twice<8>(x) & 0x0000F00Fu;
  x = twice<4>(x) & 0x000C30C3u;
  return twice<2>(x) & 0x00249249u;
}
KFN std::uint32_t gather_three(std::uint32_t x) {
  x &= 0x00249249u;
  x = (x | x >> 2) & 0x000C30C3u;
  x = (x | x >> 4) & 0x0000F00Fu;
  return (x | x >> 8) & 0x000000FFu;
}
static_assert(kMostKeyBits <= 3 * 8);

// Bit offsets of an axis in the interleaved parts of three axes and of two; for the axes in array order, or by falling
// width.
struct KeyOffsets {
  unsigned three[3] = {2, 1, 0}, two[3] = {1, 0, 0};
};
KFN KeyOffsets key_offsets(const KeyLayout& layout) {
  KeyOffsets bit_offsets;
  for (unsigned d = 0; d < 3; ++d) {
    bit_offsets.three[d] = layout.axis[0] == d ? 2 : layout.axis[1] == d ? 1 : 0;
    bit_offsets.two[d] = layout.axis[0] == d ? 1 : 0;
  }
  return bit_offsets;
}

// The key of a segment's numbers along the axes of `at`; layout.two is at most `most_two`. Only two axes have numbers
// of more than layout.three bits, and only one has more than the second's. kThree: layout.three is not 0.
template <bool kThree, unsigned most_two = 16>
KFN std::uint32_t key_of(const KeyLayout& layout, const KeyOffsets& bit_offsets, std::uint32_t a, std::uint32_t b,
                         std::uint32_t c) {
  const std::uint32_t low = (1u << layout.three) - 1, middle = (1u << layout.two) - 1;
  const unsigned others = layout.three + layout.two;
  std::uint32_t key = (a | b | c) >> others << (3 * layout.three + 2 * layout.two);
  if constexpr (kThree)
    key |= spread_three(a & low) << bit_offsets.three[0] | spread_three(b & low) << bit_offsets.three[1] |
           spread_three(c & low) << bit_offsets.three[2];
  if constexpr (most_two != 0)
    key |= (spread_two<most_two>(a >> layout.three & middle) << bit_offsets.two[0] |
            spread_two<most_two>(b >> layout.three & middle) << bit_offsets.two[1] |
            spread_two<most_two>(c >> layout.three & middle) << bit_offsets.two[2])
           << 3 * layout.three;
  return key;
}

// The same for numbers along the axes by falling width.
template <bool kThree, unsigned most_two = 16>
KFN std::uint32_t key_by_width(const KeyLayout& layout, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t low = (1u << layout.three) - 1, middle = (1u << layout.two) - 1;
  std::uint32_t key = a >> (layout.three + layout.two) << (3 * layout.three + 2 * layout.two);
  if constexpr (kThree) key |= spread_three(a & low) << 2 | spread_three(b & low) << 1 | spread_three(c);
  if constexpr (most_two != 0)
    key |= (spread_two<most_two>(a >> layout.three & middle) << 1 | spread_two<most_two>(b >> layout.three))
           << 3 * layout.three;
  return key;
}

KFN void numbers_of(const KeyLayout& layout, std::uint32_t key, std::uint32_t& a, std::uint32_t& b, std::uint32_t& c) {
  const std::uint32_t twos = (key >> 3 * layout.three) & ((1u << 2 * layout.two) - 1);
  const std::uint32_t threes = key & ((1u << 3 * layout.three) - 1);
  a = gather_three(threes >> 2) | gather_two(twos >> 1) << layout.three |
      key >> (3 * layout.three + 2 * layout.two) << (layout.three + layout.two);
  b = gather_three(threes >> 1) | gather_two(twos) << layout.three;
  c = gather_three(threes);
}

}  // namespace pyfilter
