// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block put together, differences along its axes and the running sums that undo them. With the vocabulary a
// block stays in registers between the axes, whatever a register holds of it: part of a row, a row, or several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

// All ones where a value of a block has a neighbour `stride` before it in the same run of `run` values, else 0.
template <class Code, int kStride, int kRun, int B>
struct NeighbourMask {
  alignas(64) Code mask[B];
  constexpr NeighbourMask() : mask{} {
    for (int i = 0; i < B; ++i) mask[i] = i % kRun < kStride ? Code{0} : static_cast<Code>(~Code{0});
  }
};
template <class Code, int kStride, int kRun, int B>
inline constexpr NeighbourMask<Code, kStride, kRun, B> kNeighbour{};

// Rows of this many bytes that join_rows() takes at once, and puts one after another.
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
  if constexpr (kRowBytes % kVectorBytes == 0) {  // which memcpy would do in halves
    for (int i = 0; i < kRowBytes; i += kVectorBytes) store(to + i, load(rows[0] + i));
    return;
  }
#endif
  std::memcpy(to, rows[0], kRowBytes);
}

#if defined(PYF_VECTORS)

// How a block of D dimensions lies in vectors: its last axis is that of its slowest index, and a step along that is in
// kHeld vectors, or several are in one.
template <int D, class Code>
struct Axes {
  static constexpr int kRow = D == 1 ? 32 : D == 2 ? 8 : 4;   // values
  static constexpr int kLast = D == 1 ? 1 : D == 2 ? 8 : 16;  // from step to step of the last axis
  static constexpr int kHeld = kLast > kPer<Code> ? kLast / kPer<Code> : 1;
  static constexpr int kSize = static_cast<int>(sizeof(Code));
};

// Differences within vectors, of values kStride apart in runs of kRun values.
template <int kStride, int kRun, class Code, int kHeld>
KFN void subtract_before(Vector<Code> (&v)[kHeld]) {
  constexpr int kSize = sizeof(Code), kWithin = kRun < kPer<Code> ? kRun : kPer<Code>;
  for (int r = kHeld; r-- > 0;) {
    const bool inside = r * kPer<Code> % kRun != 0;  // of a run
    if constexpr (kStride < kPer<Code>)
      v[r] -= moved_up<kStride * kSize, kWithin * kSize>(v[r], inside ? v[r > 0 ? r - 1 : 0] : Vector<Code>{});
    else if (inside)
      v[r] -= v[r - kStride / kPer<Code>];
  }
}

// Running sums are the way back. Within 16 bytes sums are moved up and added, the more the further; totals of halves
// are carried on.
template <int kStride, int kRun, class V>
KFN V summed(V v) {  // both in bytes
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

// to[i] = from[i] - its neighbour along one axis, for `blocks` blocks one after another.
template <int kStride, int kRun, class Code>
KFN void difference(const Code* from, Code* to, int blocks) {
  for (int b = 0; b < blocks; ++b, from += 64, to += 64)
    for (int i = 0; i < 64; ++i)
      to[i] = static_cast<Code>(from[i] - (from[i - kStride] & kNeighbour<Code, kStride, kRun, 64>.mask[i]));
}

// Differences of whole 2-D or 3-D blocks along all their axes, q -> d, through t; all three have kDifferencePad
// readable values before them. One axis is done for all blocks before the next, so no load waits for the store of its
// neighbour.
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
