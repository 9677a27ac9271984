// SPDX-License-Identifier: BSD-3-Clause
// The device sort of CUB that is used: the same result, by other means.
#pragma once

#include "cuda_runtime.h"

namespace cub {

template <class T>
struct DoubleBuffer {
  T* buffers[2];
  int selector = 0;
  DoubleBuffer(T* a, T* b) : buffers{a, b} {}
};

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void* memory, std::size_t& bytes, DoubleBuffer<Key>& keys, DoubleBuffer<Value>& values,
                               std::uint64_t count, int first_bit, int end_bit, cudaStream_t) {
    if (memory == nullptr) {
      bytes = 1;
      return cudaSuccess;
    }
    std::vector<std::pair<Key, Value>> all(count);
    for (std::uint64_t i = 0; i < count; ++i)
      all[i] = {keys.buffers[keys.selector][i], values.buffers[values.selector][i]};
    const auto digits = [&](Key key) {
      const std::uint64_t upto = end_bit < 64 ? (std::uint64_t{1} << end_bit) - 1 : ~std::uint64_t{0};
      return (std::uint64_t{key} & upto) >> first_bit;
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return digits(a.first) < digits(b.first); });
    keys.selector ^= 1;
    values.selector ^= 1;
    for (std::uint64_t i = 0; i < count; ++i)
      std::tie(keys.buffers[keys.selector][i], values.buffers[values.selector][i]) = all[i];
    return cudaSuccess;
  }
};

}  // namespace cub
