// SPDX-License-Identifier: BSD-3-Clause
// Bytes of narrow rounds with AVX2 (byte_rounds.hpp): 32 residuals a register, one position, tables and symbols from
// tables of 16 bytes.
#pragma once

#include <cstdint>

#include "lorenzo/cpu/round_indices.hpp"
#include "lorenzo/cpu/simd/steps.hpp"

PYF_BEGIN_TARGET

KFN __m256i every_byte(int byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }

// Four positions of eight, then of each the other four, in halves.
KFN __m256i bytes_of_block(const std::uint32_t* block) {
  const __m256i low = _mm256_packus_epi32(load_bytes(block), load_bytes(block + 8)),
                high = _mm256_packus_epi32(load_bytes(block + 16), load_bytes(block + 24));
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

// Sixteen numbers as bytes, in both halves.
KFN __m256i joined_bytes(U32 low, U32 high) {
  const __m256i shorts = _mm256_packus_epi32((__m256i)low, (__m256i)high), bytes = _mm256_packus_epi16(shorts, shorts);
  return _mm256_broadcastsi128_si256(
      _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
}

// Tables by the sum of two residuals below 256: of sums below 16, of those below 64 by their eighths, of others by
// their 32nds, whose numbers have one exponent and first bit.
struct TableBytes {
  __m256i small, medium, large;

  explicit KFN TableBytes(const Contexts& contexts) {
    const TablesOfSums table(contexts);
    const U32 low = lane_numbers(), high = low + 8u;
    const auto from_two = above(low, all_of(1u));
    small = joined_bytes(table.of(low), table.of(high));
    medium = joined_bytes(U32{}, where(from_two, table.of(low << 3)));
    large = joined_bytes(where(from_two, table.of(low << 5)), table.of(high << 5));
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

// The rows of a position, and what the first position has instead.
KFN __m256i rows_at(const ByteRows& rows, const std::uint8_t* positions) { return load_bytes(rows.of[*positions]); }
KFN __m256i with_first_row(__m256i /*rows*/, std::uint32_t byte) { return every_byte(static_cast<int>(byte)); }
// Bytes of a and b in turns, as 16-bit numbers, or sums of them by two weights: of lanes 0 to 15, then 16 to 31.
KFN void join_bytes(__m256i a, __m256i b, __m256i (&joined)[2]) {
  joined[0] = _mm256_unpacklo_epi8(a, b);
  joined[1] = _mm256_unpackhi_epi8(a, b);
}
KFN __m256i weighted(__m256i bytes, int first, int second) {
  return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(static_cast<short>(first | second << 8)));
}
// `neutral` in lanes from `lanes` on.
KFN void set_others(__m256i (&joined)[2], std::uint32_t lanes, std::uint32_t neutral) {
  const __m256i all = _mm256_set1_epi16(static_cast<short>(neutral));
  const __m256i lane = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int half = 0; half < 2; ++half) {
    const __m256i left = _mm256_set1_epi16(static_cast<short>(static_cast<int>(lanes) - 16 * half));
    joined[half] = _mm256_blendv_epi8(all, joined[half], _mm256_cmpgt_epi16(left, lane));
  }
}
KFN void store_joined(std::uint16_t (*to)[kLaneCount], const __m256i (&joined)[2]) {
  store_bytes(to[0], joined[0]);
  store_bytes(to[0] + 16, joined[1]);
}

PYF_END_TARGET
