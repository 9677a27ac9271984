// SPDX-License-Identifier: BSD-3-Clause
// The 4096 items of a tile over the threads of a block: 32 consecutive items a thread. The items are a row of shared
// memory, which both the thread and a warp (a lane an item) access without bank conflicts. Sums and transpositions
// across threads.
#pragma once

#include <cstdint>

#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kRowItems = 32;  // of a thread
static_assert(kThreads * kRowItems == 4096);

inline constexpr std::uint32_t kRow = kRowItems + 1;
inline constexpr std::uint32_t kRowWords = kThreads * kRow;

__device__ __forceinline__ std::uint32_t row_index(std::uint32_t item) { return item + item / kRowItems; }

// Selects one of three values in registers.
template <class X>
__device__ __forceinline__ X pick(const X (&of)[3], unsigned i) {
  return i == 0 ? of[0] : i == 1 ? of[1] : of[2];
}

// Shared memory for one value from each warp. Every exchange of a tile has its own, so one barrier each is enough.
using Exchange = std::uint32_t[kWarps];

// Sum over the threads before this one; sets `*all` to the sum over all threads, and `*bad` to its OR over all threads.
__device__ __forceinline__ std::uint32_t block_sum_before(std::uint32_t x, Exchange& warps, std::uint32_t* all,
                                                          bool* bad) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t upto = sum_upto(x);
  if (lane == 31) warps[warp] = upto;
  *bad = __syncthreads_or(*bad ? 1 : 0) != 0;
  std::uint32_t before = upto - x, sum = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    before += w < warp ? warps[w] : 0;
    sum += warps[w];
  }
  *all = sum;
  return before;
}

// Maximum over the threads before this one, 0 for the first.
__device__ __forceinline__ std::uint32_t block_max_before(std::uint32_t x, Exchange& warps) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAllLanes, x, d);
    x = lane >= static_cast<unsigned>(d) ? max(x, before) : x;
  }
  if (lane == 31) warps[warp] = x;
  __syncthreads();
  const std::uint32_t left = __shfl_up_sync(kAllLanes, x, 1);
  std::uint32_t before = lane != 0 ? left : 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) before = max(before, w < warp ? warps[w] : 0);
  return before;
}

// Transposes 32 words, one a lane, as a bit matrix.
__device__ __forceinline__ std::uint32_t transpose_warp(std::uint32_t x) {
  const unsigned lane = threadIdx.x % 32;
  const auto bytes = [&](int d, unsigned low, unsigned high) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, x, d);
    x = __byte_perm(x, other, (lane & static_cast<unsigned>(d)) != 0 ? high : low);
  };
  const auto bits = [&](unsigned d, std::uint32_t mask) {  // the mask drops the bits that wrap around
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, x, static_cast<int>(d));
    const bool high = (lane & d) != 0;
    x = select_bits(x, __funnelshift_r(other, other, high ? d : 32 - d), high ? ~mask : mask);
  };
  bytes(16, 0x5410, 0x3276);
  bytes(8, 0x6240, 0x3715);
  bits(4, 0x0F0F0F0Fu);
  bits(2, 0x33333333u);
  bits(1, 0x55555555u);
  return x;
}

// Inserts byte g of 32 words, from their planes, above the lower bytes; the bytes from there on must be 0.
template <int g>
__device__ __forceinline__ void unpack_plain(std::uint32_t (&planes)[8], std::uint32_t (&words)[32]) {
  transpose_8x8(planes);
  const auto put = [&]<unsigned byte>() {
    constexpr unsigned kPick = (0x3210u & ~(0xFu << (4 * g))) | (4 + byte) << (4 * g);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      std::uint32_t& word = words[8 * static_cast<int>(byte) + j];
      word = pick_bytes<kPick>(g == 0 ? 0 : word, planes[j]);
    }
  };
  put.template operator()<0>();
  put.template operator()<1>();
  put.template operator()<2>();
  put.template operator()<3>();
}

// 32 numbers from `count` planes, at most 31, at `from`. Called by all lanes of a warp, each for its own numbers.
__device__ __forceinline__ void unpack_numbers(const std::uint32_t* from, int count, std::uint32_t (&numbers)[32]) {
  const int most = warp_max(count);
  const auto group = [&]<int g>() {
    std::uint32_t planes[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) planes[k] = 8 * g + k < count ? from[8 * g + k] : 0;
    unpack_plain<g>(planes, numbers);
  };
#pragma unroll
  for (int i = 0; i < 32; ++i) numbers[i] = 0;
  if (most > 0) group.template operator()<0>();
  if (most > 8) group.template operator()<1>();
  if (most > 16) group.template operator()<2>();
  if (most > 24) group.template operator()<3>();
}

}  // namespace pyfilter::cuda
