// SPDX-License-Identifier: BSD-3-Clause
// Indices of narrow rounds with AVX2 (rans_encode_avx2.hpp), by bytes: 32 residuals a register, tables and symbols from
// tables of 16 bytes.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lorenzo/cpu/simd/rans_encode_avx2.hpp"

PYF_BEGIN_TARGET

KFN __m256i every_byte(int byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

// Four positions of eight, then of each the other four, in halves.
KFN __m256i bytes_of_block(const std::uint32_t* block) {
  const __m256i low = _mm256_packus_epi32(load(block), load(block + 8)),
                high = _mm256_packus_epi32(load(block + 16), load(block + 24));
  return _mm256_packus_epi16(low, high);
}

// Blocks to rows; lanes without a block become 0.
inline void put_byte_rows(const std::uint32_t (*blocks)[32], std::uint32_t lanes, ByteRows& rows) {
  for (std::uint32_t group = 0; group < 2; ++group) {
    __m256i v[16], w[16];
    for (std::uint32_t i = 0; i < 16; ++i) {
      const std::uint32_t lane = i % 8 + 8 * group + i / 8 * 16;
      v[i] = lane < lanes ? bytes_of_block(blocks[lane]) : _mm256_setzero_si256();
    }
    // each step turns the bits of a byte's place, lane and position, by one
    for (int step = 0; step < 2; ++step) {
      for (int i = 0; i < 8; ++i) {
        w[2 * i] = _mm256_unpacklo_epi8(v[i], v[i + 8]);
        w[2 * i + 1] = _mm256_unpackhi_epi8(v[i], v[i + 8]);
      }
      for (int i = 0; i < 8; ++i) {
        v[2 * i] = _mm256_unpacklo_epi8(w[i], w[i + 8]);
        v[2 * i + 1] = _mm256_unpackhi_epi8(w[i], w[i + 8]);
      }
    }
    for (std::uint32_t k = 0; k < 16; ++k) {
      std::uint8_t* const to = rows.of[k / 4 * 8 + k % 4] + 16 * group;
      _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(v[k]));
      _mm_store_si128(reinterpret_cast<__m128i*>(to + 4 * kLaneCount), _mm256_extracti128_si256(v[k], 1));
    }
  }
}

// Sixteen bytes in both halves.
KFN __m256i joined_bytes(__m256i low, __m256i high) {
  const __m256i words = _mm256_packus_epi32(low, high), bytes = _mm256_packus_epi16(words, words);
  return _mm256_broadcastsi128_si256(
      _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
}

// Tables by the sum of two residuals below 256: of sums below 16, of those below 64 by their eighths, of others by
// their 32nds, whose numbers have one exponent and first bit.
struct TableBytes {
  __m256i small, medium, large;

  explicit KFN TableBytes(const Contexts& contexts) {
    const TableOfSum table(contexts);
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(table.shift));
    const __m256i offset = all_of(static_cast<std::uint32_t>(table.offset)), top = all_of(table.top);
    const auto tables = [&](__m256i sums) {
      const __m256i step = _mm256_srl_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(sums)), shift);
      return _mm256_min_epi16(_mm256_subs_epu16(step, offset), top);
    };
    const __m256i count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), more = _mm256_add_epi32(count, all_of(8));
    const __m256i from_two = _mm256_cmpgt_epi32(count, all_of(1));
    small = joined_bytes(tables(count), tables(more));
    medium = joined_bytes(_mm256_setzero_si256(), _mm256_and_si256(from_two, tables(_mm256_slli_epi32(count, 3))));
    large = joined_bytes(_mm256_and_si256(from_two, tables(_mm256_slli_epi32(count, 5))),
                         tables(_mm256_slli_epi32(more, 5)));
  }
  // Each byte's is in one of three tables, and the others give 0.
  KFN __m256i of(__m256i a, __m256i b) const {
    const __m256i sum = _mm256_adds_epu8(a, b);
    const __m256i odd = _mm256_and_si256(_mm256_xor_si256(a, b), every_byte(1));
    const __m256i half = _mm256_sub_epi8(_mm256_avg_epu8(a, b), odd);  // of the sum, rounded down
    const __m256i eighth = _mm256_and_si256(_mm256_srli_epi16(half, 2), every_byte(0x3F));
    const __m256i part = _mm256_and_si256(_mm256_srli_epi16(half, 4), every_byte(0x0F));
    const __m256i low = _mm256_shuffle_epi8(small, _mm256_adds_epu8(sum, every_byte(0x70)));
    const __m256i middle = _mm256_shuffle_epi8(medium, _mm256_adds_epu8(eighth, every_byte(0x78)));
    return _mm256_or_si256(_mm256_or_si256(low, middle), _mm256_shuffle_epi8(large, part));
  }
};

// symbol_of() residuals below 256, likewise.
KFN __m256i symbols_of_bytes(__m256i value) {
  const __m256i direct =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m256i fourths =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 16, 17, 18, 19, 20, 20, 21, 21, 22, 22, 23, 23));
  const __m256i parts =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 24, 25, 26, 27, 28, 28, 29, 29, 30, 30, 31, 31));
  const __m256i fourth = _mm256_and_si256(_mm256_srli_epi16(value, 2), every_byte(0x3F));
  const __m256i part = _mm256_and_si256(_mm256_srli_epi16(value, 4), every_byte(0x0F));
  const __m256i low = _mm256_shuffle_epi8(direct, _mm256_adds_epu8(value, every_byte(0x70)));
  const __m256i middle = _mm256_shuffle_epi8(fourths, _mm256_adds_epu8(fourth, every_byte(0x70)));
  return _mm256_or_si256(_mm256_or_si256(low, middle), _mm256_shuffle_epi8(parts, part));
}
static_assert(symbol_of_small(16) == 16 && symbol_of_small(63) == 23 && symbol_of_small(64) == 24 &&
              symbol_of_small(255) == 31 && symbol_of_small(40) == 21 && symbol_of_small(160) == 29);

// Indices of a narrow round.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_bytes(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const ByteRows& rows, RoundIndices& indices) {
  const TableBytes tables(contexts);
  const __m256i first_table = _mm256_set1_epi8(static_cast<char>(contexts.count));
  const __m256i weights = _mm256_set1_epi16(static_cast<short>(1 | 1 << (kOf.bits + 8)));
  const __m256i lane = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i left = _mm256_set1_epi16(static_cast<short>(lanes));
  const __m256i neutral = _mm256_set1_epi16(static_cast<short>(kOf.neutral));
  const __m256i has_low = _mm256_cmpgt_epi16(left, lane),
                has_high = _mm256_cmpgt_epi16(left, _mm256_add_epi16(lane, _mm256_set1_epi16(16)));
  for (std::uint32_t i = 0; i < 32; ++i) {
    const __m256i value = load(rows.of[i]);
    const __m256i table = i == 0 ? first_table : tables.of(load(rows.of[near.first[i]]), load(rows.of[near.second[i]]));
    __m256i low, high;
    if constexpr (kOf.symbols) {
      const __m256i symbol = symbols_of_bytes(value);
      low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(symbol, table), weights);
      high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(symbol, table), weights);
    } else {
      low = _mm256_unpacklo_epi8(value, table);
      high = _mm256_unpackhi_epi8(value, table);
    }
    if (lanes < kLaneCount) {
      low = _mm256_blendv_epi8(neutral, low, has_low);
      high = _mm256_blendv_epi8(neutral, high, has_high);
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(indices.of[i]), low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(indices.of[i] + 16), high);
  }
}

PYF_END_TARGET
