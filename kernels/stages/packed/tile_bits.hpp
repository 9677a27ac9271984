// SPDX-License-Identifier: BSD-3-Clause
// Data of a packed tile for each of its 128 blocks: bits, small numbers as bit planes, and the set of present blocks.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/tile_shape.hpp"
#include "core/wire.hpp"
#include "stages/bit_matrix.hpp"
#include "stages/packed/layout.hpp"
#if defined(PYF_LEVEL_AVX512) || defined(PYF_LEVEL_AVX2)
#include <immintrin.h>
#endif

PYF_BEGIN_TARGET

// A bit for each of 128 blocks.
struct BlockBits {
  std::uint32_t words[4] = {};
  void set(int b) { words[b / 32] |= 1u << b % 32; }
  std::uint32_t bit(int b) const { return words[b / 32] >> b % 32 & 1; }
  std::uint32_t count() const {
    std::uint32_t n = 0;
    for (const std::uint32_t w : words) n += static_cast<std::uint32_t>(__builtin_popcount(w));
    return n;
  }
  // Calls work(block) for each block whose bit is set.
  template <class Work>
  KFN void for_set(Work&& work) const {
    for (std::uint32_t w = 0; w < 4; ++w)
      for (std::uint32_t rest = words[w]; rest != 0; rest &= rest - 1)
        work(32 * w + static_cast<std::uint32_t>(__builtin_ctz(rest)));
  }
};

// A number below 256 for each block.
using BlockBytes = std::uint8_t[kPackedBlocks];

// Bit `bit` of each number.
KFN BlockBits plane_of(const BlockBytes& bytes, std::uint32_t bit) {
  BlockBits plane;
#if defined(PYF_LEVEL_AVX512)
  const __m512i wanted = _mm512_set1_epi8(static_cast<char>(1u << bit));
  for (int i = 0; i < kPackedBlocks; i += 64) {
    const std::uint64_t mask = _mm512_test_epi8_mask(_mm512_loadu_si512(bytes + i), wanted);
    std::memcpy(plane.words + i / 32, &mask, sizeof mask);
  }
#elif defined(PYF_LEVEL_AVX2)
  const __m128i up = _mm_cvtsi32_si128(7 - static_cast<int>(bit));  // moves the bit to the top of each byte
  for (int i = 0; i < kPackedBlocks; i += 32) {
    const __m256i numbers = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i));
    plane.words[i / 32] = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(numbers, up)));
  }
#else
  for (int i = 0; i < kPackedBlocks; i += 8)
    plane.words[i / 32] |= lowest_bits(load_le<std::uint64_t>(bytes + i) >> bit) << i % 32;
#endif
  return plane;
}

// The numbers with bits in `count` (up to 7) planes of 16 bytes, plus `base`; all are below 256.
KFN void numbers_of(const std::uint8_t* planes, std::uint32_t count, std::uint32_t base, BlockBytes& bytes) {
#if defined(PYF_LEVEL_AVX512)
  for (int i = 0; i < kPackedBlocks; i += 64) {
    __m512i numbers = _mm512_set1_epi8(static_cast<char>(base));
    for (std::uint32_t r = 0; r < count; ++r) {
      const auto mask = load_le<std::uint64_t>(planes + kPackedPlaneBytes * r + i / 8);
      numbers = _mm512_mask_add_epi8(numbers, mask, numbers, _mm512_set1_epi8(static_cast<char>(1u << r)));
    }
    _mm512_storeu_si512(bytes + i, numbers);
  }
#else
  for (int i = 0; i < kPackedBlocks / 8; ++i) {
    std::uint64_t rows = 0;
    for (std::uint32_t r = 0; r < count; ++r) rows |= std::uint64_t{planes[kPackedPlaneBytes * r + i]} << 8 * r;
    store_le(bytes + 8 * i, transpose_8x8(rows) + base * 0x0101010101010101ull);
  }
#endif
}

// The numbers of the present blocks, in ascending order.
struct PresentBlocks {
  BlockBytes block;
  int count = 0;

  bool all() const { return count == kPackedBlocks; }
  const std::uint8_t* begin() const { return block; }
  const std::uint8_t* end() const { return block + count; }
};

// Whether a tile lies completely inside the array.
template <int S>
KFN bool is_whole(const TileBox& box) {
  using Tile = TileShape<S>;
  return box.inx == Tile::kX && box.iny == Tile::kY && box.inz == Tile::kZ;
}

// The number of blocks of `side` values that `inside` values along an axis need.
KFN std::uint32_t present_along(std::uint32_t inside, std::uint32_t side) { return (inside + side - 1) / side; }

// Columns, rows and slabs that the present blocks cover.
struct PresentRows {
  std::uint32_t x, y, z;
  bool operator==(const PresentRows&) const = default;
};
template <int S>
KFN PresentRows present_rows(const TileBox& box) {
  using Tile = TileShape<S>;
  return {present_along(box.inx, Tile::kBlockX) * Tile::kBlockX, present_along(box.iny, Tile::kBlockY) * Tile::kBlockY,
          present_along(box.inz, Tile::kBlockZ) * Tile::kBlockZ};
}

// Columns that are processed if the present blocks cover `present`: fewer than all only in planes at the array's edge.
template <int S>
inline constexpr std::uint32_t kNarrowest = S == kPlane ? TileShape<S>::kBlockX : TileShape<S>::kX;
template <int S>
KFN std::uint32_t worked_columns(std::uint32_t present) {
  if (S == kPlane && present <= kNarrowest<S>) return kNarrowest<S>;
  return S == kPlane && present <= 32 ? 32 : TileShape<S>::kX;
}

// All block numbers, ascending.
inline constexpr PresentBlocks kAllBlocks = [] {
  PresentBlocks all{};
  for (; all.count < kPackedBlocks; ++all.count) all.block[all.count] = static_cast<std::uint8_t>(all.count);
  return all;
}();

template <int S>
KFN PresentBlocks present_blocks(const TileBox& box) {
  using Tile = TileShape<S>;
  if (is_whole<S>(box)) [[likely]]
    return kAllBlocks;
  const std::uint32_t nz = present_along(box.inz, Tile::kBlockZ), ny = present_along(box.iny, Tile::kBlockY),
                      nx = present_along(box.inx, Tile::kBlockX);
  PresentBlocks present;
  for (std::uint32_t x = 0; x < nx; ++x)
    for (std::uint32_t y = 0; y < ny; ++y)
      for (std::uint32_t z = 0; z < nz; ++z)
        present.block[present.count++] = static_cast<std::uint8_t>(z + Tile::kBlocksZ * (y + Tile::kBlocksY * x));
  return present;
}

PYF_END_TARGET
