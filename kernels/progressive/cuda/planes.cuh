// SPDX-License-Identifier: BSD-3-Clause
// The bit plane stage: coefficients of tiles to planes of their magnitudes and signs, and back. A block takes a tile, a
// warp a quarter of its words; a warp transposes 32 words of 32 planes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "progressive/cuda/params.cuh"
#include "stages/cuda/rows.cuh"

namespace pyfilter::cuda {

inline constexpr int kPlaneThreads = 128;
inline constexpr std::uint32_t kQuarter = 32;  // words of a warp

template <class Int>
struct PlaneMemory {
  static constexpr int kHalves = sizeof(Int) / 4;
  std::uint32_t word[kPlaneThreads / 32][kHalves][32][33];  // by plane and word
};

// A slot's planes -> coefficients, in place; `top`: number of planes so far.
template <class Int>
__device__ __forceinline__ void planes_to_slot(std::uint32_t* slot, int top, PlaneMemory<Int>& memory) {
  using U = std::make_unsigned_t<Int>;
  constexpr int kHalves = PlaneMemory<Int>::kHalves, kSign = 8 * static_cast<int>(sizeof(Int)) - 1;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp * kQuarter;
#pragma unroll
  for (int h = 0; h < kHalves; ++h)
#pragma unroll 8
    for (int p = 0; p < 32; ++p)
      memory.word[warp][h][p][lane] =
          32 * h + p < top ? slot[static_cast<std::uint32_t>(32 * h + p) * kTileWords + first + lane] : 0;
  const std::uint32_t signs = top != 0 ? slot[kSign * kTileWords + first + lane] : 0;
  __syncthreads();
  Int* const to = reinterpret_cast<Int*>(slot) + 32 * first;
#pragma unroll 4
  for (unsigned j = 0; j < kQuarter; ++j) {
    U magnitude = transpose_warp(memory.word[warp][0][lane][j]);
    if constexpr (kHalves == 2)
      magnitude |= static_cast<U>(transpose_warp(memory.word[warp][kHalves - 1][lane][j])) << 32;
    const U negative = U{0} - (__shfl_sync(kAllLanes, signs, j) >> lane & 1);
    to[32 * j + lane] = static_cast<Int>((magnitude ^ negative) - negative);
  }
}

// Coefficients -> planes, from slot to slot or in place; planes from `top` on are not written. Signs of zeros are
// positive. Returns the largest magnitude of the warp's quarter.
template <class Int>
__device__ __forceinline__ std::uint64_t slot_to_planes(const std::uint32_t* from, std::uint32_t* to, int top,
                                                        PlaneMemory<Int>& memory) {
  using U = std::make_unsigned_t<Int>;
  constexpr int kHalves = PlaneMemory<Int>::kHalves, kBits = 8 * sizeof(Int);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = warp * kQuarter;
  const Int* const values = reinterpret_cast<const Int*>(from) + 32 * first;
  std::uint32_t signs = 0;
  U most = 0;
#pragma unroll 4
  for (unsigned j = 0; j < kQuarter; ++j) {
    const Int d = values[32 * j + lane];
    const U negative = static_cast<U>(d >> (kBits - 1)), magnitude = (static_cast<U>(d) ^ negative) - negative;
    memory.word[warp][0][lane][j] = transpose_warp(static_cast<std::uint32_t>(magnitude));
    if constexpr (kHalves == 2)
      memory.word[warp][kHalves - 1][lane][j] = transpose_warp(static_cast<std::uint32_t>(magnitude >> 32));
    const std::uint32_t sign = __ballot_sync(kAllLanes, negative != 0);
    if (lane == j) signs = sign;
    most = magnitude > most ? magnitude : most;
  }
  __syncthreads();
  for (int p = 0; p < top; ++p)
    to[static_cast<std::uint32_t>(p) * kTileWords + first + lane] = memory.word[warp][p / 32][p % 32][lane];
  to[(kBits - 1) * kTileWords + first + lane] = signs;
  return warp_largest(most);
}

template <class Int>
__global__ void __launch_bounds__(kPlaneThreads) encode_planes_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ PlaneMemory<Int> memory;
  const FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0) return;
  int u = job.shared->layout.units - 1;
  while (job.shared->first_tile[u] > blockIdx.x) --u;
  const int planes = head.head.planes[u];
  const std::size_t at = blockIdx.x * job.slot_words();
  if (planes == 0) return;
  const std::uint64_t most =
      slot_to_planes<Int>(job.slots.of(blockIdx.y) + at, job.planes.of(blockIdx.y) + at, planes, memory);
  if (threadIdx.x % 32 == 0) job.largest.of(blockIdx.y)[4 * blockIdx.x + threadIdx.x / 32] = most;
}

// The tiles of the requested units, from `first_tile` on.
template <class Int>
__global__ void __launch_bounds__(kPlaneThreads)
    decode_planes_kernel(const __grid_constant__ ProgressiveDecode job, std::uint32_t first_tile) {
  __shared__ PlaneMemory<Int> memory;
  if (job.heads[blockIdx.y].dead != 0) return;
  const std::size_t tile = first_tile + blockIdx.x;
  planes_to_slot<Int>(job.slots.of(blockIdx.y) + tile * job.slot_words(), job.tops.of(blockIdx.y)[tile], memory);
}

}  // namespace pyfilter::cuda
