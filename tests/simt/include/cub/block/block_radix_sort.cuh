// SPDX-License-Identifier: BSD-3-Clause
// The block sort of CUB that kernels use: the same result, by other means.
#pragma once

#include "cuda_runtime.h"

namespace cub {

struct NullType {};

template <class Key, int kThreads, int kItems, class Value = NullType, int kDigit = 4>
class BlockRadixSort {
 public:
  using Entry = std::pair<Key, Value>;
  struct TempStorage {
    Entry* all;  // not in shared memory, which is too small for it
  };
  explicit BlockRadixSort(TempStorage& room) : room_(room) {}

  void SortBlockedToStriped(Key (&keys)[kItems], int first_bit, int end_bit) {
    Value none[kItems];
    SortBlockedToStriped(keys, none, first_bit, end_bit);
  }

  void SortBlockedToStriped(Key (&keys)[kItems], Value (&values)[kItems], int first_bit, int end_bit) {
    if (threadIdx.x == 0) room_.all = new Entry[kThreads * kItems];
    __syncthreads();
    Entry* const all = room_.all;
    for (int k = 0; k < kItems; ++k) all[threadIdx.x * kItems + k] = {keys[k], values[k]};
    __syncthreads();
    if (threadIdx.x == 0) {
      const auto digits = [&](const Entry& entry) {
        const std::uint64_t kept = end_bit == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end_bit) - 1;
        return (std::uint64_t{entry.first} & kept) >> first_bit;
      };
      std::stable_sort(all, all + kThreads * kItems,
                       [&](const Entry& a, const Entry& b) { return digits(a) < digits(b); });
    }
    __syncthreads();
    for (int k = 0; k < kItems; ++k) std::tie(keys[k], values[k]) = all[k * kThreads + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) delete[] all;
  }

 private:
  TempStorage& room_;
};

}  // namespace cub
