// SPDX-License-Identifier: BSD-3-Clause
// Measures the largest errors of readers: decodes the first segments, block by block of the array, for all readers at
// once. So little memory is needed, and all of it stays in the cache.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/cpu_driver.hpp"
#include "core/target.hpp"
#include "progressive/cpu/measured_block.hpp"
#include "progressive/memory.hpp"

PYF_BEGIN_TARGET

// Measures the errors of all readers. False if memory runs out.
template <class T, class Int>
inline bool measure_errors(const Points<Int>& q, const ProgressiveHead& head, const KindOf<T>* kind, const void* values,
                           std::uint64_t conversion, MeasuredReader* readers, int count) {
  const ProgressiveLayout& layout = q.layout;
  // if most points are skipped, larger blocks have fewer points in their margins
  const std::uint64_t bytes = std::uint64_t{1} << (FinestGrid<T, Int>::serves(layout) ? 20 : 18);
  const Extents whole = layout.grids[0], block = block_extents<Int>(whole, bytes);
  const std::uint64_t nz = tiles_along(whole.z, block.z), ny = tiles_along(whole.y, block.y),
                      nx = tiles_along(whole.x, block.x);
  const auto sizes = MeasuredBlock<T, Int>::sizes(layout, block);
  std::atomic<bool> good{true};
  in_parallel(nz * ny * nx, 1, [&](std::uint64_t number) {
    std::uint8_t* const memory = thread_scratch(sizes.bytes());
    if (memory == nullptr) {
      good = false;
      return;
    }
    const std::uint64_t x = number % nx * block.x, y = number / nx % ny * block.y, z = number / nx / ny * block.z;
    const Region region{
        {z, y, x}, {std::min(z + block.z, whole.z), std::min(y + block.y, whole.y), std::min(x + block.x, whole.x)}};
    MeasuredBlock<T, Int> here(q, head, kind, values, region, sizes, memory);
    for (int i = 0; i < count; ++i) here.measure(readers[i], conversion);
  });
  return good;
}

PYF_END_TARGET
