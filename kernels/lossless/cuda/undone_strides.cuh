// SPDX-License-Identifier: BSD-3-Clause
// Sums that undo the differences of a model (docs/format.md, section 15.2): over lanes along short strides, and lags of
// numbers along long ones.
#pragma once

#include <cstdint>

#include "lossless/binned_model.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

// The differences of a model as a warp undoes them: strides below 32, and the lags of numbers for all others.
struct UndoneStrides {
  static constexpr std::uint32_t kMostLags = (1u << kMostStrides) - 1;

  std::uint32_t shorts, short_stride[kMostStrides];
  std::uint32_t lags, lag[kMostLags], subtracted;  // subtracted: a bit for each lag

  __device__ __forceinline__ void find(const BinnedParts& model) {
    std::uint32_t longs = 0, stride[kMostStrides] = {};
    shorts = lags = subtracted = 0;
    for (std::uint32_t k = 0; k < model.strides; ++k)
      if (model.stride[k] < 32)
        short_stride[shorts++] = model.stride[k];
      else
        stride[longs++] = model.stride[k];
    for (std::uint32_t chosen = 1; chosen < 1u << longs; ++chosen) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = 0; k < longs; ++k) sum += (chosen >> k & 1) != 0 ? stride[k] : 0;
      if (sum >= model.unit_values) continue;  // there is no such number
      if (__popc(chosen) % 2 == 0) subtracted |= 1u << lags;
      lag[lags++] = sum;
    }
  }
};

// What a loop over steps is compiled for.
enum class Sums { none, one, two, three, any };  // along short strides; one to three: of stride 1
enum class Lags { none, one, three, any };       // of numbers along long strides; three: those of two strides

// Sums over this lane and the lanes before, side by side.
template <class U>
__device__ __forceinline__ void sum_both(U& x, std::uint32_t& bits) {
  add_lane_before<1, 32>(bits);
  add_lane_before<1, 32>(x);
  add_lane_before<2, 32>(bits);
  add_lane_before<2, 32>(x);
  add_lane_before<4, 32>(bits);
  add_lane_before<4, 32>(x);
  add_lane_before<8, 32>(bits);
  add_lane_before<8, 32>(x);
  add_lane_before<16, 32>(bits);
  add_lane_before<16, 32>(x);
}

// Sums along short strides.
template <class U, Sums kSums>
struct ShortSums {
  static constexpr std::uint32_t kSumsOfOnes = kSums == Sums::one     ? 1
                                               : kSums == Sums::two   ? 2
                                               : kSums == Sums::three ? 3
                                                                      : 0;
  U before[kSums == Sums::any ? kMostStrides : kSumsOfOnes + 1] = {};  // the sums of the step before

  // Returns the sums of numbers, and replaces `bits` by its sums over lanes.
  __device__ __forceinline__ U add(const UndoneStrides& undone, U x, std::uint32_t& bits) {
    if constexpr (kSumsOfOnes != 0) {
      sum_both(x, bits);
      x = continued(0, x, 31);
#pragma unroll
      for (std::uint32_t k = 1; k < kSumsOfOnes; ++k) x = continued(k, sum_upto(x), 31);
      return x;
    }
    bits = sum_upto(bits);
    return kSums == Sums::none ? x : add_any(undone, x);
  }

 private:
  __device__ __forceinline__ U continued(std::uint32_t k, U x, std::uint32_t source) {
    x += __shfl_sync(kAllOfWarp, before[k], static_cast<int>(source));
    before[k] = x;
    return x;
  }
  __device__ __forceinline__ U add_any(const UndoneStrides& undone, U x) {
#pragma unroll
    for (std::uint32_t k = 0; k < sizeof before / sizeof(U); ++k) {
      if (k >= undone.shorts) break;
      const std::uint32_t stride = undone.short_stride[k];
      std::uint32_t source = 31;  // the lane of the step before whose sum this lane continues
      if (stride == 1) {
        x = sum_upto(x);
      } else {
        source = 32 + lane_of_warp() - stride * (lane_of_warp() / stride + 1);
#pragma unroll 1
        for (std::uint32_t by = stride; by < 32; by *= 2) {
          const U other = __shfl_up_sync(kAllOfWarp, x, by);
          if (lane_of_warp() >= by) x += other;
        }
      }
      x = continued(k, x, source);
    }
    return x;
  }
};

}  // namespace pyfilter::cuda
