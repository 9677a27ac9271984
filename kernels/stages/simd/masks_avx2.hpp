// SPDX-License-Identifier: BSD-3-Clause
// Values of a block picked by bit masks with AVX2 (masks_generic.hpp says which): eight 32-bit lanes at a time, whose
// eight bits of the mask are the row of a table of lane numbers.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

#include "core/target.hpp"
#include "core/wire.hpp"

namespace pyfilter::avx2_tables {

using Rows = std::array<std::array<std::int8_t, 8>, 256>;

// The lanes whose bits are set, one after another.
inline constexpr Rows kSetLanes = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (std::int8_t lane = 0, count = 0; lane < 8; ++lane)
      if ((mask >> lane & 1) != 0) rows[mask][static_cast<std::size_t>(count++)] = lane;
  return rows;
}();
// How many bits below a lane's are set: the way back.
inline constexpr Rows kLanesBefore = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (unsigned lane = 1; lane < 8; ++lane)
      rows[mask][lane] = static_cast<std::int8_t>(rows[mask][lane - 1] + static_cast<int>(mask >> (lane - 1) & 1));
  return rows;
}();
// The last lane up to each whose bit is set, -1 where there is none.
inline constexpr Rows kLastLane = [] {
  Rows rows{};
  for (unsigned mask = 0; mask < 256; ++mask)
    for (std::int8_t lane = 0, last = -1; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) last = lane;
      rows[mask][static_cast<std::size_t>(lane)] = last;
    }
  return rows;
}();
// Four bits, each twice: masks of 64-bit lanes as masks of 32-bit ones.
inline constexpr std::array<std::uint8_t, 16> kTwice = {0x00, 0x03, 0x0C, 0x0F, 0x30, 0x33, 0x3C, 0x3F,
                                                        0xC0, 0xC3, 0xCC, 0xCF, 0xF0, 0xF3, 0xFC, 0xFF};

// A shift by these puts each lane's bit of a mask highest.
template <class Code, std::size_t N>
inline constexpr std::array<Code, N> kShifts = [] {
  std::array<Code, N> shifts{};
  for (std::size_t i = 0; i < N; ++i) shifts[i] = static_cast<Code>(8 * sizeof(Code) - 1 - i);
  return shifts;
}();

}  // namespace pyfilter::avx2_tables

PYF_BEGIN_TARGET

// Lanes of a register, and the bits of those of one register as bits of 32-bit lanes.
template <class Code>
inline constexpr int kPerRegister = 32 / static_cast<int>(sizeof(Code));
KFN unsigned register_bits(std::uint64_t mask, std::uint32_t) { return static_cast<unsigned>(mask & 0xFF); }
KFN unsigned register_bits(std::uint64_t mask, std::uint64_t) { return avx2_tables::kTwice[mask & 0xF]; }

KFN __m256i lane_numbers(const avx2_tables::Rows& table, unsigned bits) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&table[bits])));
}

// The highest bit of each lane from `first` on is its bit in the mask.
KFN __m256 masked_lanes(std::uint64_t mask, int first, std::uint32_t) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(mask >> (first & 32)));
  return _mm256_castsi256_ps(
      _mm256_sllv_epi32(all, load(&avx2_tables::kShifts<std::uint32_t, 32>[static_cast<std::size_t>(first & 31)])));
}
KFN __m256 masked_lanes(std::uint64_t mask, int first, std::uint64_t) {
  const __m256i all = _mm256_set1_epi64x(static_cast<long long>(mask));
  return _mm256_castpd_ps(_mm256_castsi256_pd(
      _mm256_sllv_epi64(all, load(&avx2_tables::kShifts<std::uint64_t, 64>[static_cast<std::size_t>(first)]))));
}
KFN __m256i blend(__m256i no, __m256i yes, __m256 lanes, std::uint32_t) {
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), lanes));
}
KFN __m256i blend(__m256i no, __m256i yes, __m256 lanes, std::uint64_t) {
  return _mm256_castpd_si256(
      _mm256_blendv_pd(_mm256_castsi256_pd(no), _mm256_castsi256_pd(yes), _mm256_castps_pd(lanes)));
}

KFN __m256i equal_lanes(__m256i a, __m256i b, std::uint32_t) { return _mm256_cmpeq_epi32(a, b); }
KFN __m256i equal_lanes(__m256i a, __m256i b, std::uint64_t) { return _mm256_cmpeq_epi64(a, b); }
KFN __m256i broadcast(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
KFN __m256i broadcast(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }

// The highest bits of the lanes of four registers; all ones or zeros each, so that they stay so in fewer bits.
KFN std::uint64_t flags_of_four(const __m256i (&v)[4], std::uint32_t) {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(halves_in_turns(bytes)));
}
KFN std::uint64_t flags_of_four(const __m256i (&v)[4], std::uint64_t) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 4; ++i)
    bits |= static_cast<std::uint64_t>(_mm256_movemask_pd(_mm256_castsi256_pd(v[i]))) << (4 * i);
  return bits;
}

template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
  constexpr int kPer = kPerRegister<Code>;
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += 4 * kPer) {
    __m256i v[4];
    for (int k = 0; k < 4; ++k) v[k] = load(flags + i + k * kPer);
    bits |= flags_of_four(v, Code{}) << i;
  }
  return bits;
}

template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  constexpr int kPer = kPerRegister<Code>;
  const auto* from = static_cast<const std::uint8_t*>(x);
  const __m256i all = broadcast(wanted);
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += 4 * kPer) {
    __m256i v[4];
    for (int k = 0; k < 4; ++k)
      v[k] = equal_lanes(load(from + (i + k * kPer) * static_cast<int>(sizeof(Code))), all, Code{});
    bits |= flags_of_four(v, Code{}) << i;
  }
  return bits;
}

template <int N, class Code>
KFN void fill_masked(void* x, std::uint64_t mask, Code value) {
  const __m256i all = broadcast(value);
  for (int i = 0; i < N; i += kPerRegister<Code>) {
    auto* at = static_cast<std::uint8_t*>(x) + i * sizeof(Code);
    store(at, blend(load(at), all, masked_lanes(mask, i, Code{}), Code{}));
  }
}

template <int N, class Code>
KFN void copy_masked(Code* x, std::uint64_t mask, const Code* from) {
  for (int i = 0; i < N; i += kPerRegister<Code>)
    store(x + i, blend(load(x + i), load(from + i), masked_lanes(mask, i, Code{}), Code{}));
}

// Calls work(first lane, bits of 32-bit lanes) for each register that has bits set in the mask.
template <class Code, class Work>
KFN void for_masked(std::uint64_t mask, Work&& work) {
  constexpr int kPer = kPerRegister<Code>;
  while (mask != 0) {
    const int first = __builtin_ctzll(mask) & -kPer;
    work(first, register_bits(mask >> first, Code{}));
    mask &= ~((std::uint64_t{1} << kPer) - 1) << first;
  }
}

template <int N, class Code>
KFN void gather_masked(const void* x, std::uint64_t mask, void* to) {
  auto* out = static_cast<std::uint8_t*>(to);
  for_masked<Code>(mask, [&](int first, unsigned bits) {
    const __m256i v = load(static_cast<const std::uint8_t*>(x) + first * static_cast<int>(sizeof(Code)));
    store(out, _mm256_permutevar8x32_epi32(v, lane_numbers(avx2_tables::kSetLanes, bits)));
    out += 4 * __builtin_popcount(bits);
  });
}

template <int N, class Code>
KFN void scatter_masked(void* x, std::uint64_t mask, const std::uint8_t* from) {
  for_masked<Code>(mask, [&](int first, unsigned bits) {
    auto* at = static_cast<std::uint8_t*>(x) + first * static_cast<int>(sizeof(Code));
    const int count = __builtin_popcount(bits);
    const __m256i v =
        _mm256_permutevar8x32_epi32(load_first(from, count), lane_numbers(avx2_tables::kLanesBefore, bits));
    store(at, blend(load(at), v, masked_lanes(mask, first, Code{}), Code{}));
    from += 4 * count;
  });
}

// masks.hpp says what this does. What comes in from before a register is read from q, where plain codes stay what they
// are; four registers are read before one is stored, so that none waits for the one before.
template <int B>
KFN void forward_fill(std::uint32_t* q, std::uint64_t plain) {
  const std::uint64_t start = plain & (0 - plain);
  for (int first = 0; first < B; first += 32) {
    __m256i filled[4];
    for (int i = 0; i < 4; ++i) {
      const int at = first + 8 * i;
      const std::uint64_t before = (plain & ((std::uint64_t{1} << at) - 1)) | start;
      const __m256i carry = broadcast(q[63 - __builtin_clzll(before)]);
      const __m256i lanes = lane_numbers(avx2_tables::kLastLane, static_cast<unsigned>(plain >> at) & 0xFF);
      const __m256i inside = _mm256_permutevar8x32_epi32(load(q + at), lanes);
      filled[i] = blend(inside, carry, _mm256_castsi256_ps(lanes), std::uint32_t{});
    }
    for (int i = 0; i < 4; ++i) store(q + first + 8 * i, filled[i]);
  }
}

PYF_END_TARGET
