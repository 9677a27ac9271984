// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of error measurement for each step along y (measure.cuh): its contents, how they are copied there, and
// a reader's value of a coefficient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "progressive/choices.hpp"
#include "progressive/cuda/inverse.cuh"
#include "progressive/transform.hpp"
#include "stages/cuda/copy_later.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Vectors of a lane for a step: shared by all readers, and a reader's own.
template <bool kHasZ>
struct MeasuredItems {
  static constexpr std::uint32_t kRows = kHasZ ? 2 : 1, kAlongZ = 0, kAlongY = kHasZ ? 1 : 0, kAlongX = kAlongY + kRows,
                                 kOriginals = kAlongX + 2 * kRows, kShared = kOriginals + 4 * kRows,
                                 kOwn = kHasZ ? 4 : 1;
  // bytes, for `readers` warps
  static constexpr std::size_t vectors(std::uint32_t readers) { return 2 * 512 * (kShared + readers * kOwn); }
  static constexpr std::size_t bytes(std::uint32_t readers) {
    return vectors(readers) + 32 * sizeof(std::int64_t) * (kShared + kOwn) + kShared * sizeof(std::uint64_t);
  }
};

// `count` bits from bit `at` on, in the low bits of a word.
__device__ __forceinline__ std::uint32_t bits_from(const std::uint32_t* words, std::uint64_t at, std::uint32_t count) {
  const auto bit = static_cast<std::uint32_t>(at % 32);
  return __funnelshift_r(words[at / 32], bit > 32 - count ? words[at / 32 + 1] : 0, bit);
}

// The originals, but where a bit of `skip` is set the made value: its error is 0. Bit 2 k belongs to value k.
template <class Int>
__device__ __forceinline__ Wide<Int> with_made(const Wide<Int>& originals, const Wide<Int>& made, std::uint32_t skip) {
  Wide<Int> out;
#pragma unroll
  for (unsigned k = 0; k < kWide<Int>; ++k) out.v[k] = (skip >> (2 * k) & 1) != 0 ? made.v[k] : originals.v[k];
  return out;
}

// A reader's value of a coefficient of a unit.
template <class Int>
struct KnownOfUnit {
  int planes, plane;

  __device__ __forceinline__ bool none() const { return plane >= planes; }
  __device__ __forceinline__ void add(const Limits<Int>& limits, Wide<Int>& predicted, const Wide<Int>& d) const {
    if (none()) {
#pragma unroll
      for (unsigned k = 0; k < kWide<Int>; ++k) predicted.v[k] = clamp_to(limits, predicted.v[k]);
      return;
    }
    Wide<Int> part = d;
    if (plane >= 0) {
      const KnownPart<Int> known(plane);
#pragma unroll
      for (unsigned k = 0; k < kWide<Int>; ++k) part.v[k] = known(d.v[k]);
    }
#pragma unroll
    for (unsigned k = 0; k < kWide<Int>; ++k) predicted.v[k] = inverse_value(limits, predicted.v[k], part.v[k]);
  }
};

}  // namespace pyfilter::cuda
