// SPDX-License-Identifier: BSD-3-Clause
// Joins rows of a block, takes differences along its axes, and sums them up again. With the whole vocabulary a block
// stays in registers from axis to axis. A register holds a part of a row, a row, or several rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// All bits set for values that have a neighbour `stride` before them in the same run of `run` values, else 0.
template <class Code, int kStride, int kRun, int B>
struct NeighbourMask {
  alignas(64) Code mask[B];
  constexpr NeighbourMask() : mask{} {
    for (int i = 0; i < B; ++i) mask[i] = i % kRun < kStride ? Code{0} : static_cast<Code>(~Code{0});
  }
};
template <class Code, int kStride, int kRun, int B>
inline constexpr NeighbourMask<Code, kStride, kRun, B> kNeighbour{};

// The number of rows of kRowBytes bytes that join_rows() loads and concatenates at once.
#if defined(PYF_VECTORS)
template <int kRowBytes>
inline constexpr int kJoinedRows = (kRowBytes == 16 || kRowBytes == 32) ? kVectorBytes / kRowBytes : 1;
#else
template <int kRowBytes>
inline constexpr int kJoinedRows = 1;
#endif

template <int kRowBytes, std::size_t kRows>
KFN void join_rows(const std::uint8_t* const (&rows)[kRows], std::uint8_t* to) {
#if defined(PYF_VECTORS)
  if constexpr (kRows > 1) return store<std::uint32_t>(to, joined_rows(rows));
  if constexpr (kRowBytes % kVectorBytes == 0) {  // memcpy would use half vectors
    for (int i = 0; i < kRowBytes; i += kVectorBytes) store(to + i, load(rows[0] + i));
    return;
  }
#endif
  std::memcpy(to, rows[0], kRowBytes);
}

#if defined(PYF_VECTORS)

// The layout of a block of D dimensions in vectors. Its last axis has the largest stride; a step along it takes kHeld
// vectors, or a vector holds several steps.
template <int D, class Code>
struct Axes {
  static constexpr int kRow = D == 1 ? 32 : D == 2 ? 8 : 4;   // values of a row
  static constexpr int kLast = D == 1 ? 1 : D == 2 ? 8 : 16;  // stride of the last axis, in values
  static constexpr int kHeld = kLast > kPer<Code> ? kLast / kPer<Code> : 1;
  static constexpr int kSize = static_cast<int>(sizeof(Code));
};

// Differences in vectors, between values kStride apart, in runs of kRun values.
template <int kStride, int kRun, class Code, int kHeld>
KFN void subtract_before(Vector<Code> (&v)[kHeld]) {
  constexpr int kSize = sizeof(Code), kWithin = kRun < kPer<Code> ? kRun : kPer<Code>;
  for (int r = kHeld; r-- > 0;) {
    const bool inside = r * kPer<Code> % kRun != 0;  // the vector is not the first of its run
    if constexpr (kStride < kPer<Code>)
      v[r] -= moved_up<kStride * kSize, kWithin * kSize>(v[r], inside ? v[r > 0 ? r - 1 : 0] : Vector<Code>{});
    else if (inside)
      v[r] -= v[r - kStride / kPer<Code>];
  }
}

// Running sums, the inverse. In each 16 bytes, sums are moved up and added in doubling distances; then totals of halves
// are carried on.
template <int kStride, int kRun, class V>
KFN V summed(V v) {  // kStride and kRun in bytes
  if constexpr (kStride <= 4 && kRun >= 8) v += moved_up<4, 16>(v, V{});
  if constexpr (kStride <= 8 && kRun >= 16) v += moved_up<8, 16>(v, V{});
  if constexpr (kStride <= 16 && kRun >= 32) v += carried_up<kStride, 32>(v);
  if constexpr (kStride <= 32 && kRun >= 64) v += carried_up<kStride, 64>(v);
  return v;
}
template <int kStride, int kRun, class Code, int kHeld>
KFN void add_before(Vector<Code> (&v)[kHeld]) {
  constexpr int kSize = sizeof(Code), kWithin = kRun < kPer<Code> ? kRun : kPer<Code>;
  for (int r = 0; r < kHeld; ++r) {
    const bool inside = r * kPer<Code> % kRun != 0;
    if constexpr (kStride < kPer<Code>) {
      v[r] = summed<kStride * kSize, kWithin * kSize>(v[r]);
      if (inside) v[r] += last_to_all<kStride * kSize>(v[r > 0 ? r - 1 : 0]);
    } else if (inside) {
      v[r] += v[r - kStride / kPer<Code>];
    }
  }
}

// Differences of a block of 64 along all its axes.
template <int D, class Code>
KFN void block_differences(const Code* q, Code* d) {
  using A = Axes<D, Code>;
  Vector<Code> before[A::kHeld] = {}, v[A::kHeld];
  for (int i = 0; i < 64; i += A::kHeld * kPer<Code>) {
    for (int r = 0; r < A::kHeld; ++r) v[r] = load(q + i + r * kPer<Code>);
    subtract_before<1, A::kRow, Code>(v);
    if constexpr (D == 3) subtract_before<4, 16, Code>(v);
    for (int r = 0; r < A::kHeld; ++r) {
      const Vector<Code> here = v[r];
      if constexpr (A::kLast < kPer<Code>)
        store(d + i, here - moved_up<A::kLast * A::kSize, kVectorBytes>(here, before[r]));
      else
        store(d + i + r * kPer<Code>, here - before[r]);
      before[r] = here;
    }
  }
}

template <int D, class Code, int B>
KFN void accumulate_block(Code (&a)[B]) {
  using A = Axes<D, Code>;
  Vector<Code> before[A::kHeld] = {}, v[A::kHeld];
  for (int i = 0; i < B; i += A::kHeld * kPer<Code>) {
    for (int r = 0; r < A::kHeld; ++r) v[r] = load(a + i + r * kPer<Code>);
    if constexpr (D > 1) add_before<1, A::kRow, Code>(v);
    if constexpr (D == 3) add_before<4, 16, Code>(v);
    for (int r = 0; r < A::kHeld; ++r) {
      if constexpr (A::kLast < kPer<Code>) {
        v[r] = summed<A::kLast * A::kSize, kVectorBytes>(v[r]) + before[r];
        before[r] = last_to_all<A::kLast * A::kSize>(v[r]);
      } else {
        before[r] = v[r] += before[r];
      }
      store(a + i + r * kPer<Code>, v[r]);
    }
  }
}

inline constexpr bool kDifferencesInRegisters = true;
template <int D, class Code>
KFN void differences(const Code* q, Code* /*t*/, Code* d, int blocks) {
  for (int b = 0; b < blocks; ++b) block_differences<D>(q + b * 64, d + b * 64);
}

#else

inline constexpr bool kDifferencesInRegisters = false;

// Differences along one axis, to[i] = from[i] - its neighbour, for `blocks` consecutive blocks.
template <int kStride, int kRun, class Code>
KFN void difference(const Code* from, Code* to, int blocks) {
  for (int b = 0; b < blocks; ++b, from += 64, to += 64)
    for (int i = 0; i < 64; ++i)
      to[i] = static_cast<Code>(from[i] - (from[i - kStride] & kNeighbour<Code, kStride, kRun, 64>.mask[i]));
}

// Differences of whole 2-D or 3-D blocks along all axes: q -> d, through t. Each array has kDifferencePad readable
// values before it. All blocks complete an axis before the next one, so no load waits for the store of a neighbour.
template <int D, class Code>
KFN void differences(const Code* q, Code* t, Code* d, int blocks) {
  if constexpr (D == 2) {
    difference<1, 8>(q, t, blocks);
    difference<8, 64>(t, d, blocks);
  } else {
    difference<1, 4>(q, d, blocks);
    difference<4, 16>(d, t, blocks);
    difference<16, 64>(t, d, blocks);
  }
}

template <int kStride, int kRun, int B, class Code>
KFN void running_sum(Code (&a)[B]) {
  for (int i = kStride; i < B; ++i)
    if (i % kRun >= kStride) a[i] = static_cast<Code>(a[i] + a[i - kStride]);
}
template <int D, class Code, int B>
KFN void accumulate_block(Code (&a)[B]) {
  running_sum<1, D == 1 ? B : D == 2 ? 8 : 4>(a);
  if constexpr (D == 2) running_sum<8, B>(a);
  if constexpr (D == 3) running_sum<4, 16>(a);
  if constexpr (D == 3) running_sum<16, B>(a);
}

#endif

PYF_END_TARGET
