// SPDX-License-Identifier: BSD-3-Clause
// Words of a tile in the lanes of a warp, four each, and bits at any offset of a payload (docs/format.md, section
// 13.5).
#pragma once

#include <cstdint>

#include "progressive/tile.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// Words 4 * lane to 4 * lane + 3 of a tile.
struct alignas(16) LaneWords {
  std::uint32_t w[4];
};

// Which bits of a mask move by one, two and four positions so that those of each byte come to lie side by side, lowest
// first. The parity of the zeros below tells (Warren, Hacker's Delight, 7-4).
struct ByteMoves {
  std::uint32_t by[3];

  __device__ __forceinline__ explicit ByteMoves(std::uint32_t mask) {
    std::uint32_t left = mask, zeros = ~mask << 1 & 0xFEFEFEFEu;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      std::uint32_t odd = zeros;
      odd ^= odd << 1 & 0xFEFEFEFEu;
      odd ^= odd << 2 & 0xFCFCFCFCu;
      odd ^= odd << 4 & 0xF0F0F0F0u;
      by[i] = odd & left;
      left = (left ^ by[i]) | by[i] >> (1 << i);
      zeros &= ~odd;
    }
  }
};
// The number of ones in lower bytes, for each byte: shifts use the low five bits.
__device__ __forceinline__ std::uint32_t ones_in_lower_bytes(std::uint32_t mask) {
  std::uint32_t n = mask - (mask >> 1 & 0x55555555u);
  n = (n & 0x33333333u) + (n >> 2 & 0x33333333u);
  n = (n + (n >> 4)) & 0x0F0F0F0Fu;
  return n * 0x01010100u;
}

// Moves the bits of a mask to the low bits of a word: first inside of each byte, then bytes beside each other.
__device__ __forceinline__ std::uint32_t compress_bits(std::uint32_t bits, std::uint32_t mask) {
  const ByteMoves moves(mask);
  std::uint32_t x = bits & mask;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t moved = x & moves.by[i];
    x = (x ^ moved) | moved >> (1 << i);
  }
  const std::uint32_t below = ones_in_lower_bytes(mask);
  return (x & 0xFF) | __funnelshift_l(0, x >> 8 & 0xFF, below >> 8) | __funnelshift_l(0, x >> 16 & 0xFF, below >> 16) |
         __funnelshift_l(0, x >> 24, below >> 24);
}

// The inverse: moves the low bits of a word to the positions of a mask.
__device__ __forceinline__ std::uint32_t spread_bits(std::uint32_t bits, std::uint32_t mask) {
  const std::uint32_t below = ones_in_lower_bytes(mask), first = below >> 8;
  std::uint32_t x = __byte_perm(
      __byte_perm(bits, __funnelshift_r(bits, 0, first), 0x40),
      __byte_perm(__funnelshift_r(bits, 0, below >> 16), __funnelshift_r(bits, 0, below >> 24), 0x40), 0x5410);
  const ByteMoves moves(mask);
#pragma unroll
  for (int i = 2; i >= 0; --i) x = (x & ~moves.by[i]) | (x << (1 << i) & moves.by[i]);
  return x & mask;
}

// Gathers the bits of a lane's words selected by masks, side by side. If all masks of the warp have few ones, or few
// zeros, a loop runs over these, for the four words together.
inline constexpr int kFewGathered = 5, kFewSkipped = 6;
__device__ __forceinline__ LaneWords gather_words(const LaneWords& words, const LaneWords& mask) {
  int most = 0, least = 32;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int n = __popc(static_cast<int>(mask.w[j]));
    most = max(most, n);
    least = min(least, n == 0 ? 32 : n);
  }
  LaneWords out;
  if (!__any_sync(kAllLanes, most > kFewGathered)) {
    LaneWords picked = mask;
    std::uint32_t at = 1, any = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      out.w[j] = 0;
      any |= mask.w[j];
    }
    for (; any != 0; at += at) {
      any = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t low = picked.w[j] & (0u - picked.w[j]);
        out.w[j] |= (words.w[j] & low) != 0 ? at : 0;
        any |= picked.w[j] ^= low;
      }
    }
  } else if (!__any_sync(kAllLanes, 32 - least > kFewSkipped)) {
    LaneWords holes;
    std::uint32_t any = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      out.w[j] = mask.w[j] == 0 ? 0 : words.w[j];
      holes.w[j] = mask.w[j] == 0 ? 0 : ~mask.w[j];
      any |= holes.w[j];
    }
    while (any != 0) {  // from the highest hole down: bits above it move down by one
      any = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (holes.w[j] == 0) continue;
        const std::uint32_t below = (1u << (31 - __clz(static_cast<int>(holes.w[j])))) - 1;
        out.w[j] = (out.w[j] & below) | (out.w[j] >> 1 & ~below);
        any |= holes.w[j] &= below;
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) out.w[j] = compress_bits(words.w[j], mask.w[j]);
  }
  return out;
}
// The inverse for a lane's words, chosen in the same way.
inline constexpr int kFewOnes = 5, kFewZeros = 8;
__device__ __forceinline__ LaneWords scatter_words(const LaneWords& bits, const LaneWords& mask) {
  int most = 0, least = 32;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int n = __popc(static_cast<int>(mask.w[j]));
    most = max(most, n);
    least = min(least, n == 0 ? 32 : n);
  }
  LaneWords out;
  if (!__any_sync(kAllLanes, 32 - least > kFewZeros)) {
    LaneWords holes;
    std::uint32_t any = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      out.w[j] = bits.w[j];
      holes.w[j] = mask.w[j] == 0 ? 0 : ~mask.w[j];
      any |= holes.w[j];
    }
    while (any != 0) {
      any = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {  // bits from the lowest hole on move up by one
        out.w[j] += out.w[j] & (holes.w[j] | ~(holes.w[j] - 1));
        any |= holes.w[j] &= holes.w[j] - 1;
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) out.w[j] &= mask.w[j];
  } else if (!__any_sync(kAllLanes, most > kFewOnes)) {
    LaneWords rest = bits, picked = mask;
    std::uint32_t any = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      out.w[j] = 0;
      any |= mask.w[j];
    }
    while (any != 0) {
      any = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t others = picked.w[j] & (picked.w[j] - 1);
        out.w[j] |= (rest.w[j] & 1) != 0 ? picked.w[j] ^ others : 0;
        rest.w[j] >>= 1;
        any |= picked.w[j] = others;
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) out.w[j] = spread_bits(bits.w[j], mask.w[j]);
  }
  return out;
}

// Sum over the lanes before this one, and over all.
template <class Sum>
__device__ __forceinline__ Sum warp_sum_before(Sum own, Sum& all) {
  const Sum sum = sum_upto(own);
  all = __shfl_sync(kAllLanes, sum, 31);
  return sum - own;
}
template <class Sum>
__device__ __forceinline__ Sum warp_total(Sum own) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) own += __shfl_xor_sync(kAllLanes, own, d);
  return own;
}

template <class Value>
__device__ __forceinline__ Value warp_largest(Value own) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) own = max(own, __shfl_xor_sync(kAllLanes, own, d));
  return own;
}

template <class Bits>
__device__ __forceinline__ Bits warp_combined_or(Bits own) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) own |= __shfl_xor_sync(kAllLanes, own, d);
  return own;
}

// Sum over the threads before this one, in a block of kThreadCount; `memory` has a number for each warp and one more.
template <int kThreadCount, class Sum>
__device__ __forceinline__ Sum sum_before(Sum own, Sum* memory, Sum& all) {
  const unsigned warp = threadIdx.x / 32;
  Sum of_warp;
  Sum before = warp_sum_before(own, of_warp);
  __syncthreads();
  if (threadIdx.x % 32 == 0) memory[warp] = of_warp;
  __syncthreads();
  all = 0;
  for (unsigned w = 0; w < kThreadCount / 32; ++w) {
    if (w == warp) before += all;
    all += memory[w];
  }
  return before;
}

// Significant neighbours (that have had a one) of a tile's open positions, counted up to two, from the words of
// significant positions.
struct LaneNeighbours {
  LaneWords one, two;
};
__device__ __forceinline__ LaneNeighbours count_neighbours(TileForm form, const LaneWords& known) {
  const unsigned lane = threadIdx.x % 32;
  LaneNeighbours n;
  std::uint32_t before = __shfl_up_sync(kAllLanes, known.w[3], 1), behind = __shfl_down_sync(kAllLanes, known.w[0], 1);
  if (lane == 0) before = 0;
  if (lane == 31) behind = 0;
  if (form == TileForm::volume) {  // a slab is 16 words: four lanes
    if (lane % 4 == 0) before = 0;
    if (lane % 4 == 3) behind = 0;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const std::uint32_t k = known.w[j], left = j > 0 ? known.w[j > 0 ? j - 1 : 0] : before,
                        right = j < 3 ? known.w[j < 3 ? j + 1 : 3] : behind;
    std::uint32_t one, two = 0;
    if (form == TileForm::line) {
      one = k << 1 | left >> 31;
      add_neighbour(k >> 1 | right << 31, one, two);
    } else {
      one = k << 1;
      add_neighbour(k >> 1, one, two);
      add_neighbour(left, one, two);
      add_neighbour(right, one, two);
    }
    if (form == TileForm::volume) {
      const std::uint32_t above = __shfl_up_sync(kAllLanes, k, 4), below = __shfl_down_sync(kAllLanes, k, 4);
      add_neighbour(lane < 4 ? 0 : above, one, two);
      add_neighbour(lane >= 28 ? 0 : below, one, two);
    }
    n.one.w[j] = one;
    n.two.w[j] = two;
  }
  return n;
}

// The part of a tile inside its unit: words of its first rows, positions of their first columns; of lines, the first
// positions.
struct TileBounds {
  std::uint32_t z, y, x;
};
__device__ __forceinline__ TileBounds bounds_of_tile(const ProgressiveUnit& unit, std::uint32_t tile) {
  const auto gx = static_cast<std::uint32_t>(unit.grid.x), gy = static_cast<std::uint32_t>(unit.grid.y);
  const std::uint32_t tx = tile % gx, row = tile / gx, ty = row % gy, tz = row / gy;
  const auto left = [](std::uint64_t extent, std::uint64_t first, std::uint64_t most) {
    return static_cast<std::uint32_t>(min(extent - first, most));
  };
  return {left(unit.tiled.z, tz * unit.tile.z, unit.tile.z), left(unit.tiled.y, ty * unit.tile.y, unit.tile.y),
          left(unit.tiled.x, tx * unit.tile.x, unit.tile.x)};
}
__device__ __forceinline__ std::uint32_t first_bits(std::uint32_t count) {
  return count >= 32 ? ~0u : (1u << count) - 1;
}
__device__ __forceinline__ LaneWords valid_words(TileForm form, const TileBounds& bounds) {
  const unsigned lane = threadIdx.x % 32;
  LaneWords valid;
#pragma unroll
  for (unsigned j = 0; j < 4; ++j) {
    const std::uint32_t w = 4 * lane + j;
    if (form == TileForm::line)
      valid.w[j] = bounds.x <= 32 * w ? 0 : first_bits(bounds.x - 32 * w);
    else if (form == TileForm::plane)
      valid.w[j] = w < bounds.y ? first_bits(bounds.x) : 0;
    else
      valid.w[j] = w / 16 < bounds.z && w % 16 < bounds.y ? first_bits(bounds.x) : 0;
  }
  return valid;
}

// The open positions of a lane's words, by class.
struct LaneClasses {
  LaneWords open;
  LaneNeighbours known;

  __device__ __forceinline__ std::uint32_t word(int c, int j) const {
    return class_mask(c, open.w[j], known.one.w[j], known.two.w[j]);
  }
  __device__ __forceinline__ LaneWords mask(int c) const { return {{word(c, 0), word(c, 1), word(c, 2), word(c, 3)}}; }
};
__device__ __forceinline__ LaneClasses classify_words(TileForm form, const LaneWords& known, const LaneWords& valid) {
  LaneClasses classes;
  classes.known = count_neighbours(form, known);
#pragma unroll
  for (int j = 0; j < 4; ++j) classes.open.w[j] = valid.w[j] & ~known.w[j];
  return classes;
}
// The number of a lane's positions in each class, in 16 bits each.
__device__ __forceinline__ std::uint64_t count_classes(const LaneClasses& classes) {
  std::uint64_t counts = 0;
#pragma unroll
  for (int c = 0; c < kClasses; ++c) {
    std::uint32_t n = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) n += static_cast<std::uint32_t>(__popc(static_cast<int>(classes.word(c, j))));
    counts |= static_cast<std::uint64_t>(n) << (16 * c);
  }
  return counts;
}
// The sums over all lanes.
__device__ __forceinline__ std::uint64_t warp_total_of_classes(std::uint64_t counts) {
  const std::uint32_t low = warp_sum(static_cast<std::uint32_t>(counts)),
                      high = warp_sum(static_cast<std::uint32_t>(counts >> 32));
  return low | static_cast<std::uint64_t>(high) << 32;
}
__device__ __forceinline__ std::uint32_t count_of(std::uint64_t counts, int c) {
  return static_cast<std::uint32_t>(counts >> (16 * c)) & 0xFFFF;
}
__device__ __forceinline__ std::uint32_t count_words(const LaneWords& words) {
  std::uint32_t n = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) n += static_cast<std::uint32_t>(__popc(static_cast<int>(words.w[j])));
  return n;
}

// 32 bits near the end of a payload; bits beyond the end are zeros.
static __device__ __noinline__ std::uint32_t last_bits(const std::uint32_t* words, std::uint64_t bytes,
                                                       std::uint64_t bit) {
  std::uint64_t held = 0;
#pragma unroll 1
  for (unsigned b = 0; b < 5; ++b)
    if (bit / 8 + b < bytes)
      held |= static_cast<std::uint64_t>(reinterpret_cast<const std::uint8_t*>(words)[bit / 8 + b]) << (8 * b);
  return static_cast<std::uint32_t>(held >> (bit % 8));
}

// The bits of a payload that starts at a multiple of four bytes. Nothing beyond its end is read.
struct PayloadWords {
  const std::uint32_t* words;
  std::uint64_t bytes;

  __device__ __forceinline__ PayloadWords(const std::uint8_t* payload, std::uint64_t count)
      : words(reinterpret_cast<const std::uint32_t*>(payload)), bytes(count) {}
  // 32 bits from bit number `bit` on.
  __device__ __forceinline__ std::uint32_t bits(std::uint64_t bit) const {
    const std::uint64_t i = bit / 32;
    if (4 * i + 8 > bytes) return last_bits(words, bytes, bit);
    return __funnelshift_r(words[i], words[i + 1], static_cast<unsigned>(bit % 32));
  }
};

}  // namespace pyfilter::cuda
