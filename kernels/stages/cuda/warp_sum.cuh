// SPDX-License-Identifier: BSD-3-Clause
// Sums over lanes, their least and their largest number. The shuffle instruction returns whether its source lane is in
// range, which __shfl_up_sync() drops: using it saves a comparison and a selection a step.
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

inline constexpr std::uint32_t kAllLanes = 0xFFFFFFFFu;

// Adds the value kStep lanes before, if that lane is in the same group of kWidth lanes.
template <int kStep, int kWidth>
__device__ __forceinline__ void add_lane_before(std::uint32_t& x) {
  asm volatile(
      "{\n\t.reg .u32 before;\n\t.reg .pred inside;\n\t"
      "shfl.sync.up.b32 before|inside, %0, %1, %2, 0xffffffff;\n\t"
      "@inside add.u32 %0, %0, before;\n\t}"
      : "+r"(x)
      : "n"(kStep), "n"((32 - kWidth) << 8));
}
template <int kStep, int kWidth>
__device__ __forceinline__ void add_lane_before(std::uint64_t& x) {
  asm volatile(
      "{\n\t.reg .u32 low, high;\n\t.reg .u64 before;\n\t.reg .pred inside;\n\t"
      "mov.b64 {low, high}, %0;\n\t"
      "shfl.sync.up.b32 low|inside, low, %1, %2, 0xffffffff;\n\t"
      "shfl.sync.up.b32 high, high, %1, %2, 0xffffffff;\n\t"
      "mov.b64 before, {low, high};\n\t"
      "@inside add.u64 %0, %0, before;\n\t}"
      : "+l"(x)
      : "n"(kStep), "n"((32 - kWidth) << 8));
}

// Sum over this lane and the earlier lanes at multiples of kLaneStep, in groups of kLanes such lanes.
template <int kLanes = 32, int kLaneStep = 1, class Number>
__device__ __forceinline__ Number sum_upto(Number x) {
  constexpr int kWidth = kLanes * kLaneStep;
  static_assert(kWidth <= 32 && (kLanes & (kLanes - 1)) == 0);
  if constexpr (kLanes > 1) add_lane_before<1 * kLaneStep, kWidth>(x);
  if constexpr (kLanes > 2) add_lane_before<2 * kLaneStep, kWidth>(x);
  if constexpr (kLanes > 4) add_lane_before<4 * kLaneStep, kWidth>(x);
  if constexpr (kLanes > 8) add_lane_before<8 * kLaneStep, kWidth>(x);
  if constexpr (kLanes > 16) add_lane_before<16 * kLaneStep, kWidth>(x);
  return x;
}

// The sum over all lanes.
__device__ __forceinline__ std::uint32_t warp_sum(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAllLanes, x);
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(kAllLanes, x, d);
  return x;
#endif
}

// The largest and the least number of all lanes.
__device__ __forceinline__ int warp_max(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, x);
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = max(x, __shfl_xor_sync(kAllLanes, x, d));
  return x;
#endif
}
__device__ __forceinline__ std::uint32_t warp_min(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAllLanes, x);
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = min(x, __shfl_xor_sync(kAllLanes, x, d));
  return x;
#endif
}
// Two comparisons of 32 bits each: unsigned keys have the order of the numbers, none of which is NaN.
__device__ __forceinline__ double warp_min(double x) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x)),
             key = (bits & kSign) != 0 ? ~bits : bits | kSign;
  const auto high = static_cast<std::uint32_t>(key >> 32), least_high = warp_min(high),
             least_low = warp_min(high == least_high ? static_cast<std::uint32_t>(key) : ~0u);
  const std::uint64_t least = std::uint64_t{least_high} << 32 | least_low;
  return __longlong_as_double(static_cast<long long>((least & kSign) != 0 ? least ^ kSign : ~least));
}

}  // namespace pyfilter::cuda
