// SPDX-License-Identifier: BSD-3-Clause
// Writes a lane's values along its row, 16 bytes at a time if all rows begin at a multiple of 16 bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "adaptive/cuda/params.cuh"
#include "adaptive/cuda/value_cursor.cuh"
#include "adaptive/tile.hpp"

namespace pyfilter::cuda {

template <class T>
struct Output {
  static constexpr std::uint32_t kGroup = 16 / sizeof(T);

  T* out;
  std::uint64_t count;  // number of requested values
  ValueCursor cursor;   // counted from the first requested value
  bool grouped;
  T held[kGroup - 1];  // the previous values, latest last

  // in_order: the values of a row are coded one after another.
  PYF_LANES Output begin(const AdaptiveDecode& job, const AdaptiveGrid& grid, T* out, const AdaptiveTile& tile,
                         const Lattice& lattice, const Layout& l, const Place& place, bool in_order) {
    Output o;
    o.out = out;
    o.count = job.stop - job.start;
    o.cursor = ValueCursor::begin(tile, lattice, l, place);
    o.cursor.index -= job.start;
    const std::uint64_t rows =
        (tile.first | (tile.rows > 1 ? tile.row_stride : 0) | (tile.planes > 1 ? tile.plane_stride : 0));
    o.grouped = in_order && o.cursor.along == 1 && o.count == grid.values && grid.is_full() && rows % kGroup == 0 &&
                reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
#pragma unroll
    for (T& value : o.held) value = 0;
    return o;
  }
  // Advances by a step; `z`: the lane's plane before the step.
  __device__ __forceinline__ void next(const Place& place, std::int32_t z) { cursor.next(place, z); }
  __device__ __forceinline__ void put(std::uint32_t x, std::uint32_t length, T value) {
    const std::uint64_t index = cursor.index;
    if (!grouped) {
      if (index < count) out[index] = value;
      return;
    }
    const std::uint32_t part = x % kGroup;
    if (part == kGroup - 1) {
      T group[kGroup];
#pragma unroll
      for (std::uint32_t i = 0; i + 1 < kGroup; ++i) group[i] = held[i];
      group[kGroup - 1] = value;
      uint4 words;
      std::memcpy(&words, group, sizeof words);
      *reinterpret_cast<uint4*>(out + (index - (kGroup - 1))) = words;
    } else if (x + 1 == length) {
      out[index] = value;
#pragma unroll
      for (std::uint32_t i = 1; i < kGroup; ++i)
        if (i <= part) out[index - i] = held[kGroup - 1 - i];
    }
#pragma unroll
    for (std::uint32_t i = 0; i + 2 < kGroup; ++i) held[i] = held[i + 1];
    held[kGroup - 2] = value;
  }
};

}  // namespace pyfilter::cuda
