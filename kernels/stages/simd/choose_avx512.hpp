// SPDX-License-Identifier: BSD-3-Clause
// What a sampled tile of small codes costs (stages/packed/choose_narrow.hpp) with AVX-512: differences in binary32,
// which has room for them, and the width of each is an exponent that one instruction gives.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "stages/packed/choose.hpp"
#include "stages/packed/narrow.hpp"

PYF_BEGIN_TARGET

template <int S>
class SmallCosts {
 public:
  KFN SmallCosts() : largest_(_mm512_setzero_ps()) {
    for (__m128i& sums : sums_) sums = _mm_setzero_si128();
  }
  // A strip of a plane or a volume.
  [[gnu::noinline]] void add_strip(const TileBox& box, std::uint32_t strip, std::uint32_t rows, NarrowSpace<S>& s) {
    using Tile = TileShape<S>;
    if (strip == 0) std::memset(s.behind, 0, sizeof s.behind);
    for (std::uint32_t x = 0; x < box.inx; x += 16) {
      const __mmask16 first = x == 0 ? 1 : 0;
      __m512 above = S == kPlane && strip != 0 ? _mm512_loadu_ps(s.above + x) : _mm512_setzero_ps();
      for (std::uint32_t from = 0; from < rows; from += Tile::kBlockY) {
        __m512 widths[kOrders];
        for (__m512& w : widths) w = _mm512_setzero_ps();
        for (std::uint32_t row = from; row < from + Tile::kBlockY; ++row) {
          const __m512 here = codes_at(s.row(row) + x), along = _mm512_sub_ps(here, codes_at(s.row(row) + x - 1));
          largest_ = larger(here, largest_);
          __m512 d[3] = {_mm512_mask_sub_ps(along, first, along, above), _mm512_sub_ps(along, above), along};
          above = along;
          if constexpr (S == kVolume) {
            std::uint32_t* const place = s.behind[row] + x;
            const __m512 behind = _mm512_loadu_ps(place);
            _mm512_storeu_ps(place, d[1]);
            d[2] = _mm512_sub_ps(d[1], behind);
            if (row == 0)
              for (int order = 0; order < 2; ++order) d[order] = _mm512_mask_sub_ps(d[order], first, d[order], behind);
          }
          const auto none =
              static_cast<__mmask16>(strip == 0 && row == 0 ? first : 0);  // the tile's first is no difference
          for (int order = 0; order < kOrders; ++order)
            add_widths(_mm512_mask_mov_ps(d[order], none, _mm512_setzero_ps()), widths[order]);
        }
        for (int order = 0; order < kOrders; ++order) {
          if constexpr (S == kPlane) {
            add_blocks(bytes_of(widths[order], 4), box.inx - x, order);
          } else {
            __m512& open = open_[order][from / Tile::kBlockY][x / 16];
            if (strip % 2 == 0)
              open = widths[order];
            else
              add_blocks(bytes_of(_mm512_add_ps(open, widths[order]), 8), box.inx - x, order);
          }
        }
      }
      if (S == kPlane) _mm512_storeu_ps(s.above + x, above);
    }
  }

  // A run of a chain or a column.
  [[gnu::noinline]] void add_run(const TileBox& box, std::uint32_t run, NarrowSpace<S>& s) {
    const std::uint32_t* const q = s.row(0);
    for (std::uint32_t b = 0; b < kRunValues / 32; ++b) {
      if (!is_present<S>(box, b + kRunValues / 32 * run)) continue;
      __m512 values = _mm512_setzero_ps(), differences = _mm512_setzero_ps();
      for (std::uint32_t i = 32 * b; i < 32 * b + 32; i += 16) {
        __m512 here = codes_at(q + i);
        add_widths(_mm512_sub_ps(here, codes_at(q + i - 1)), differences);
        largest_ = larger(here, largest_);
        if (run == 0 && i == 0) here = _mm512_maskz_mov_ps(0xFFFE, here);
        if constexpr (S == kChain) add_widths(here, values);
      }
      const __m128i zero = _mm_setzero_si128(), of_values = _mm_sad_epu8(bytes_of(values, 2), zero),
                    of_differences = _mm_sad_epu8(bytes_of(differences, 2), zero);
      const __m128i low = _mm_unpacklo_epi64(of_values, of_differences),
                    high = _mm_unpackhi_epi64(of_values, of_differences);
      add_sums_64(_mm_add_epi64(low, high), S == kChain ? 3 : 2, 0);
    }
  }

  // Whether the bits are those of the tile.
  [[nodiscard]] bool small() const {
    return _mm512_cmp_ps_mask(largest_, _mm512_set1_ps(float{1u << kSmallBits}), _CMP_NLT_UQ) == 0;
  }
  void get(std::uint64_t (&bits)[4]) const {
    std::memset(bits, 0, sizeof bits);
    for (int order = 0; order < kOrders; ++order) {
      alignas(16) std::uint64_t of[2];
      _mm_store_si128(reinterpret_cast<__m128i*>(of), sums_[order]);
      if constexpr (S == kPlane || S == kVolume) {
        bits[order + 1] =
            S == kPlane ? of[0] + of[1] : (of[0] & 0xFFFFFFFF) + (of[0] >> 32) + (of[1] & 0xFFFFFFFF) + (of[1] >> 32);
      } else {
        bits[0] = of[0];
        bits[1] = of[1];
      }
    }
  }

 private:
  static constexpr bool kRuns = S == kChain || S == kColumns;
  static constexpr int kOrders = S == kVolume ? 3 : S == kPlane ? 2 : 1;

  static KFN __m512 codes_at(const std::uint32_t* at) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(at)); }
  static KFN __m512 larger(__m512 x, __m512 most) { return _mm512_range_ps(x, most, 0b1011); }  // magnitude
  // Adds the widths of zigzag numbers, less 2 each: exponents of |d + 1/4|.
  static KFN void add_widths(__m512 d, __m512& widths) {
    widths = _mm512_add_ps(widths, _mm512_getexp_ps(_mm512_add_ps(d, _mm512_set1_ps(0.25f))));
  }
  // Sums of `count` widths each, which are below 256.
  static KFN __m128i bytes_of(__m512 widths, int count) {
    return _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(widths), _mm512_set1_epi32(2 * count)));
  }
  // Blocks of sixteen columns, of which `inside` are there.
  KFN void add_blocks(__m128i widths, std::uint32_t inside, int order) {
    if constexpr (S == kPlane) {
      add_sums_64(_mm_sad_epu8(widths, _mm_setzero_si128()), inside > 8 ? 3 : 1, order);
    } else {
      const __m128i sums = _mm_madd_epi16(_mm_maddubs_epi16(widths, _mm_set1_epi8(1)), _mm_set1_epi16(1));
      const std::uint32_t blocks = inside < 16 ? (inside + 3) / 4 : 4;
      const __mmask8 coded = _mm_mask_test_epi32_mask(static_cast<__mmask8>((1u << blocks) - 1), sums, sums);
      const __m128i cost = _mm_add_epi32(sums, _mm_set1_epi32(static_cast<int>(coded_block_cost(1) - 1)));
      sums_[order] = _mm_mask_add_epi32(sums_[order], coded, sums_[order], cost);
    }
  }
  KFN void add_sums_64(__m128i sums, __mmask8 present, int order) {
    const __mmask8 coded = _mm_mask_test_epi64_mask(present, sums, sums);
    const __m128i cost = _mm_add_epi64(sums, _mm_set1_epi64x(coded_block_cost(1) - 1));
    sums_[order] = _mm_mask_add_epi64(sums_[order], coded, sums_[order], cost);
  }

  // widths of blocks that are not complete, by order, row of blocks and place along x
  __m512 open_[kOrders][S == kVolume ? 4 : 1][S == kVolume ? 2 : 1];
  __m128i sums_[kOrders];  // of bits: 64 each, of volumes 32
  __m512 largest_;
};

PYF_END_TARGET
