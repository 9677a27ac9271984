// SPDX-License-Identifier: BSD-3-Clause
// Values of a block picked by bit masks with AVX-512 (masks_generic.hpp says which): a register's bits of the mask are
// its mask register.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "core/target.hpp"

PYF_BEGIN_TARGET

KFN std::uint64_t set_lanes(__m512i v, std::uint32_t) { return _mm512_test_epi32_mask(v, v); }
KFN std::uint64_t set_lanes(__m512i v, std::uint64_t) { return _mm512_test_epi64_mask(v, v); }
template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
  constexpr int kPer = 64 / sizeof(Code);
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += kPer) bits |= set_lanes(_mm512_loadu_si512(flags + i), Code{}) << i;
  return bits;
}

KFN __m512i broadcast(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
KFN __m512i broadcast(std::uint64_t x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
KFN std::uint64_t equal_lanes(__m512i a, __m512i b, std::uint32_t) { return _mm512_cmpeq_epi32_mask(a, b); }
KFN std::uint64_t equal_lanes(__m512i a, __m512i b, std::uint64_t) { return _mm512_cmpeq_epi64_mask(a, b); }
template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  constexpr int kPer = 64 / sizeof(Code);
  const __m512i all = broadcast(wanted);
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += kPer)
    bits |= equal_lanes(_mm512_loadu_si512(static_cast<const std::uint8_t*>(x) + i * sizeof(Code)), all, Code{}) << i;
  return bits;
}

// The last kStride lanes of `before`, then all but the last of v.
template <int kStride>
KFN __m512i shift_in(__m512i v, __m512i before, std::uint32_t) {
  return _mm512_alignr_epi32(v, before, 16 - kStride);
}
template <int kStride>
KFN __m512i shift_in(__m512i v, __m512i before, std::uint64_t) {
  return _mm512_alignr_epi64(v, before, 8 - kStride);
}
KFN __m512i select(std::uint64_t lanes, __m512i yes, __m512i no, std::uint32_t) {
  return _mm512_mask_mov_epi32(no, static_cast<__mmask16>(lanes), yes);
}
KFN __m512i select(std::uint64_t lanes, __m512i yes, __m512i no, std::uint64_t) {
  return _mm512_mask_mov_epi64(no, static_cast<__mmask8>(lanes), yes);
}

KFN __m512i pack_lanes(std::uint64_t lanes, __m512i v, std::uint32_t) {
  return _mm512_maskz_compress_epi32(static_cast<__mmask16>(lanes), v);
}
KFN __m512i pack_lanes(std::uint64_t lanes, __m512i v, std::uint64_t) {
  return _mm512_maskz_compress_epi64(static_cast<__mmask8>(lanes), v);
}
KFN __m512i spread_lanes(__m512i no, std::uint64_t lanes, const void* from, std::uint32_t) {
  return _mm512_mask_expandloadu_epi32(no, static_cast<__mmask16>(lanes), from);
}
KFN __m512i spread_lanes(__m512i no, std::uint64_t lanes, const void* from, std::uint64_t) {
  return _mm512_mask_expandloadu_epi64(no, static_cast<__mmask8>(lanes), from);
}
template <class Code>
KFN unsigned bits_of_register(std::uint64_t mask, int first) {
  return static_cast<unsigned>(mask >> first) & (sizeof(Code) == 4 ? 0xFFFF : 0xFF);
}

template <int N, class Code>
KFN void fill_masked(void* x, std::uint64_t mask, Code value) {
  constexpr int kPer = 64 / sizeof(Code);
  for (int i = 0; i < N; i += kPer) {
    auto* at = static_cast<std::uint8_t*>(x) + i * sizeof(Code);
    _mm512_storeu_si512(at, select(mask >> i, broadcast(value), _mm512_loadu_si512(at), Code{}));
  }
}

template <int N, class Code>
KFN void copy_masked(Code* x, std::uint64_t mask, const Code* from) {
  constexpr int kPer = 64 / sizeof(Code);
  for (int i = 0; i < N; i += kPer)
    _mm512_storeu_si512(x + i, select(mask >> i, _mm512_loadu_si512(from + i), _mm512_loadu_si512(x + i), Code{}));
}

template <int N, class Code>
KFN void gather_masked(const void* x, std::uint64_t mask, void* to) {
  constexpr int kPer = 64 / sizeof(Code);
  auto* out = static_cast<std::uint8_t*>(to);
  for (int i = 0; i < N; i += kPer) {
    const unsigned bits = bits_of_register<Code>(mask, i);
    const __m512i v = _mm512_loadu_si512(static_cast<const std::uint8_t*>(x) + i * sizeof(Code));
    _mm512_storeu_si512(out, pack_lanes(bits, v, Code{}));
    out += sizeof(Code) * static_cast<unsigned>(__builtin_popcount(bits));
  }
}

template <int N, class Code>
KFN void scatter_masked(void* x, std::uint64_t mask, const std::uint8_t* from) {
  constexpr int kPer = 64 / sizeof(Code);
  for (int i = 0; i < N; i += kPer) {
    const unsigned bits = bits_of_register<Code>(mask, i);
    auto* at = static_cast<std::uint8_t*>(x) + i * sizeof(Code);
    _mm512_storeu_si512(at, spread_lanes(_mm512_loadu_si512(at), bits, from, Code{}));
    from += sizeof(Code) * static_cast<unsigned>(__builtin_popcount(bits));
  }
}

// One doubling step of forward_fill(): lanes without a code take that of kStride lanes before.
template <int kStride, class Code, int N>
KFN void fill_step(__m512i (&v)[N], std::uint64_t& have) {
  constexpr int kPer = 64 / sizeof(Code);
  for (int r = N - 1; r >= 0; --r) {
    __m512i from;
    if constexpr (kStride < kPer)
      from = shift_in<kStride>(v[r], v[r > 0 ? r - 1 : 0], Code{});
    else
      from = v[r >= kStride / kPer ? r - kStride / kPer : r];
    v[r] = select(have >> (r * kPer), v[r], from, Code{});
  }
  have |= have << kStride;
}

// masks.hpp says what this does: log2 steps instead of one a code.
template <int B, class Code>
KFN void forward_fill(Code* q, std::uint64_t plain) {
  constexpr int kPer = 64 / sizeof(Code), N = B / kPer;
  const __m512i first = broadcast(q[__builtin_ctzll(plain)]);
  __m512i v[N];
  for (int r = 0; r < N; ++r) v[r] = _mm512_loadu_si512(q + r * kPer);
  std::uint64_t have = plain;
  fill_step<1, Code>(v, have);
  fill_step<2, Code>(v, have);
  fill_step<4, Code>(v, have);
  fill_step<8, Code>(v, have);
  fill_step<16, Code>(v, have);
  if constexpr (B == 64) fill_step<32, Code>(v, have);
  for (int r = 0; r < N; ++r) _mm512_storeu_si512(q + r * kPer, select(have >> (r * kPer), v[r], first, Code{}));
}

PYF_END_TARGET
