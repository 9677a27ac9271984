// SPDX-License-Identifier: BSD-3-Clause
// Plain tiles: whole tiles sorted by themselves, all of whose values are given back by their first code. Threads hold
// their particles' codes, one word each, from the load of the values on. The extent of the codes shows whether a tile
// is plain. Usually it also proves that all values keep the bound, so values are not loaded again.
#pragma once

#include <cstdint>
#include <limits>

#include "particles/cuda/codes.cuh"
#include "particles/cuda/source.cuh"
#include "particles/key.hpp"

namespace pyfilter::cuda {

// Positions of a plain tile as thread and item. A thread loads 16 bytes of each axis together, then the 16 bytes behind
// those of all threads.
template <class T>
struct NeighbourPositions {
  static constexpr int kNeighbours = static_cast<int>(sizeof(uint4) / sizeof(T));
  static_assert(kItems % kNeighbours == 0);

  __device__ __forceinline__ static std::uint32_t of(int item) {
    constexpr auto kEach = static_cast<unsigned>(kNeighbours);
    return threadIdx.x * kEach +
           (static_cast<unsigned>(item) / kEach * kTileThreads * kEach + static_cast<unsigned>(item) % kEach);
  }
};

// A thread's values of a whole tile: as many as registers hold.
template <class T, int D>
struct HeldValues {
  static constexpr int kHeld = sizeof(T) == 4 ? kItems : kItems / 2;
  T x[kHeld][D];

  // Loads items from `item` on.
  template <class Source>
  __device__ __forceinline__ void take(const Source& source, int item) {
    using Positions = NeighbourPositions<T>;
    constexpr int kEach = Positions::kNeighbours;
    static_assert(kItems % kHeld == 0 && kHeld % kEach == 0);
    if (reinterpret_cast<std::uintptr_t>(source.values) % sizeof(uint4) == 0) {
#pragma unroll
      for (int first = 0; first < kHeld; first += kEach) {
        const auto* const from = reinterpret_cast<const uint4*>(source.at(Positions::of(item + first)));
        struct {
          uint4 quads[D];
        } read;
#pragma unroll
        for (int i = 0; i < D; ++i) read.quads[i] = from[i];
        struct Values {
          T x[kEach][D];
        };
        const Values values = std::bit_cast<Values>(read);
#pragma unroll
        for (int j = 0; j < kEach; ++j)
#pragma unroll
          for (int d = 0; d < D; ++d) x[first + j][d] = values.x[j][d];
      }
    } else {
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        const T* const at = source.at(Positions::of(item + k));
#pragma unroll
        for (int d = 0; d < D; ++d) x[k][d] = at[d];
      }
    }
  }
};

// Minimum and maximum of each warp's held codes.
struct alignas(16) HeldEnds {
  std::int32_t least[4], most[4];
};

// A thread's first codes as words; kZero is added to each.
template <class T, int D>
struct HeldCodes {
  static constexpr std::int32_t kZero = sizeof(T) == 4 ? FloatTraits<float>::kMagicBits : 0;
  // The largest magnitude of codes of a plain tile; all values with such codes are in reach.
  static constexpr std::int32_t kMost = 1 << (sizeof(T) == 4 ? 21 : 30);
  static_assert(FloatTraits<T>::kFractionBits - 1 > (sizeof(T) == 4 ? 21 : 30));
  std::int32_t q[kItems][D];
  bool far = false;  // a code does not fit a word

  // `values`: the thread's first values.
  template <class Source>
  __device__ __forceinline__ HeldCodes(const Quantizer<T>& p, const Source& source, const HeldValues<T, D>& values) {
    constexpr int kHeld = HeldValues<T, D>::kHeld;
    std::uint32_t other = code(p, values, 0);
#pragma unroll
    for (int item = kHeld; item < kItems; item += kHeld) {
      HeldValues<T, D> next;
      next.take(source, item);
      other |= code(p, next, item);
    }
    far = other != 0;
  }
  // Codes of items from `item` on; returns 0 if they fit words.
  __device__ __forceinline__ std::uint32_t code(const Quantizer<T>& p, const HeldValues<T, D>& values, int item) {
    std::uint32_t other = 0;
#pragma unroll
    for (int k = 0; k < HeldValues<T, D>::kHeld; ++k)
#pragma unroll
      for (int d = 0; d < D; ++d) {
        const auto bits = std::bit_cast<typename FloatTraits<T>::Code>(magic_form(p, values.x[k][d]));
        q[item + k][d] = static_cast<std::int32_t>(bits);
        if constexpr (sizeof(T) == 8)  // its high half is the sign extension of the low half
          other |= (static_cast<std::uint32_t>(bits >> 32) + (static_cast<std::uint32_t>(bits) >> 31)) ^
                   static_cast<std::uint32_t>(FloatTraits<double>::kMagicBits >> 32);
      }
    return other;
  }
  // Input of find_extents(), after a barrier. NaN and values out of reach exceed kMost.
  __device__ __forceinline__ void share(HeldEnds (&warps)[kTileWarps]) const {
    HeldEnds& to = warps[threadIdx.x / 32];
#pragma unroll
    for (int d = 0; d < D; ++d) {
      std::int32_t least = q[0][d], most = q[0][d];
#pragma unroll
      for (int k = 1; k + 1 < kItems; k += 2) {
        least = __vimin3_s32(least, q[k][d], q[k + 1][d]);
        most = __vimax3_s32(most, q[k][d], q[k + 1][d]);
      }
      least = min(least, q[kItems - 1][d]);
      most = far ? std::numeric_limits<std::int32_t>::max() : max(most, q[kItems - 1][d]);
      least = warp_least(least);
      most = warp_most(most);
      if (threadIdx.x % 32 == 0) {
        to.least[d] = least;
        to.most[d] = most;
      }
    }
  }
};

// The extent of all codes, from all warps' shared extremes, by any warp; false if a value may be out of reach.
template <class T, int D>
__device__ __forceinline__ bool find_extents(const HeldEnds (&warps)[kTileWarps],
                                             Extent<typename FloatTraits<T>::Code> (&all)[D]) {
  constexpr std::int32_t kZero = HeldCodes<T, D>::kZero, kMost = HeldCodes<T, D>::kMost;
  const HeldEnds& of_warp = warps[threadIdx.x % kTileWarps];
  bool fits = true;
#pragma unroll
  for (int d = 0; d < D; ++d) {
    const std::int32_t least = warp_least(of_warp.least[d]), most = warp_most(of_warp.most[d]);
    fits = fits && least >= kZero - kMost && most <= kZero + kMost;
    all[d].low = least - kZero;
    all[d].high = most - kZero;
  }
  return fits;
}

// Whether all values whose codes are in such an extent keep the bound. A value x and its code q differ by half a step
// and two rounding errors. These are a fraction e of x in the step's inverse, and a fraction e of q * step. Here e is
// half a unit in the last place of 1. The rounding errors add up to (2 |q| + 0.6) e steps; the comparison takes
// slightly more.
template <int D, class T>
__device__ __forceinline__ bool surely_fit(const Quantizer<T>& p,
                                           const Extent<typename FloatTraits<T>::Code> (&extents)[D]) {
  using S = std::make_signed_t<typename FloatTraits<T>::Code>;
  constexpr T kHalfBit = T{1} / (typename FloatTraits<T>::Code{2} << FloatTraits<T>::kFractionBits),
              kNormal = std::numeric_limits<T>::min() / (kHalfBit * kHalfBit);
  S most = 0;
#pragma unroll
  for (int d = 0; d < D; ++d) most = max(most, max(static_cast<S>(-extents[d].low), static_cast<S>(extents[d].high)));
  return p.step > kNormal && p.step < 1 / kNormal &&
         p.step * (static_cast<T>(2 * most + 2) * kHalfBit) <= p.bound - p.step / 2;
}

// Keys by tables that each tile makes: what each segment along each axis adds to a key. The tables of the axes by
// falling width have offsets in words from a common start.
inline constexpr unsigned kTableLevels = 12;  // bits of a segment number at most; the third axis has at most 8
struct KeyTables {
  std::uint32_t at[3];  // offsets of tables of 2^12, 2^12 and 2^8 words

  __device__ __forceinline__ static bool suit(const KeyLayout& layout) {
    return layout.three + layout.two + layout.one <= kTableLevels;
  }
  // Called by all threads of a block; a barrier must follow.
  template <int D>
  __device__ __forceinline__ void make(unsigned three, unsigned two, unsigned one, std::uint32_t* words) const {
    const unsigned both = three + two, all = both + one, two_at = 3 * three, one_at = two_at + 2 * two;
    // the widest axis first, then the others, so that threads share the work evenly
    for (std::uint32_t i = threadIdx.x; i < 2u << all; i += kTileThreads) {
      const std::uint32_t n = i & ((1u << all) - 1);
      const std::uint32_t twos = spread_two<kTableLevels>(n >> three & ((1u << two) - 1)) << two_at,
                          threes = D == 3 ? spread_three(n & ((1u << three) - 1)) : 0;
      if (i == n) {
        words[at[0] + n] = n >> both << one_at | twos << 1 | threes << 2;
      } else {
        words[at[1] + n] = twos | threes << 1;
        if (D == 3 && n < 1u << three) words[at[2] + n] = threes;
      }
    }
  }
};

// Keys and offsets of held codes. The start of an axis's table is added to its origin, so that a code's segment number
// is its table index. With a larger shift the sum would not fit a word.
inline constexpr unsigned kMostTableShift = 16;
template <int D>
struct PlainKeys {
  std::uint32_t origin[D], mask[D], factor[D];
  unsigned shift, three, two, one;
  unsigned bits, planes;

  PlainKeys() = default;
  template <class Code>
  __device__ __forceinline__ PlainKeys(const TileFrame<Code, D>& frame, std::int32_t zero, const KeyTables& tables)
      : shift(frame.layout.shift),
        three(frame.layout.three),
        two(frame.layout.two),
        one(frame.layout.one),
        bits(frame.layout.bits()),
        planes(frame.planes(frame.layout.shift)) {
    unsigned before = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      const auto axis = static_cast<unsigned>(d);
      const unsigned count = frame.planes(d, shift);
      const std::uint32_t table = frame.layout.axis[0] == axis   ? tables.at[0]
                                  : frame.layout.axis[1] == axis ? tables.at[1]
                                                                 : tables.at[2];
      origin[d] = static_cast<std::uint32_t>(frame.origin[d]) + static_cast<std::uint32_t>(zero) - (table << shift);
      mask[d] = count < 32 ? (1u << count) - 1 : ~0u;
      factor[d] = before < 32 ? 1u << before : 0;  // else no bits remain
      before += count;
    }
  }
  __device__ __forceinline__ void take(const std::int32_t (&q)[D], const std::uint32_t* tables, std::uint32_t& key,
                                       std::uint32_t& offsets) const {
    key = offsets = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      const std::uint32_t code = static_cast<std::uint32_t>(q[d]) - origin[d];
      key |= tables[code >> shift];
      offsets += (code & mask[d]) * factor[d];
    }
  }
};

}  // namespace pyfilter::cuda
