// SPDX-License-Identifier: BSD-3-Clause
// Chunks of an array in memory (pyf_grid of c_api.h): the part of the array in each chunk, and copies of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error_text.hpp"
#include "core/prefetch.hpp"
#include "core/types.hpp"
#include "filter/c_api.h"

namespace pyfilter::filter {

inline constexpr std::uint64_t kRowsAskedAhead = 2048;  // bytes

inline void copy_items(std::uint8_t* to, std::int64_t to_stride, const std::uint8_t* from, std::int64_t from_stride,
                       std::uint64_t count, std::size_t item) {
  const auto each = [&](auto bytes) {
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(to + static_cast<std::int64_t>(i) * to_stride, from + static_cast<std::int64_t>(i) * from_stride,
                  bytes);
  };
  const auto whole = static_cast<std::int64_t>(item);
  if (to_stride == whole && from_stride == whole)
    std::memcpy(to, from, count * item);
  else if (item == 4)
    each(std::integral_constant<std::size_t, 4>{});
  else if (item == 8)
    each(std::integral_constant<std::size_t, 8>{});
  else
    each(item);
}

// The chunks of an array, numbered in C order of their grid.
class ChunkGrid {
 public:
  explicit ChunkGrid(const pyf_grid& grid) : grid_(grid) {
    bytes_ = grid.item_bytes;
    for (int axis = rank() - 1; axis >= 0; --axis) {
      inner_[axis] = bytes_;
      bytes_ *= grid.chunk[axis];
      count_[axis] = (grid.begin[axis] + grid.extents[axis] + grid.chunk[axis] - 1) / grid.chunk[axis];
    }
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // of a chunk
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t all = 1;
    for (int axis = 0; axis < rank(); ++axis) all *= count_[axis];
    return all;
  }

  // The part of a chunk that is inside the array.
  struct Part {
    std::uint8_t* first;  // in the array
    std::uint64_t low[kMaxRank], extent[kMaxRank];
    bool whole = true;
  };
  [[nodiscard]] Part part(std::uint64_t number) const {
    Part part;
    part.first = static_cast<std::uint8_t*>(grid_.values);
    for (int axis = rank() - 1; axis >= 0; --axis) {
      const std::uint64_t chunk = grid_.chunk[axis], begin = grid_.begin[axis], start = number % count_[axis] * chunk,
                          stop = std::min(start + chunk, begin + grid_.extents[axis]);
      number /= count_[axis];
      part.low[axis] = start < begin ? begin - start : 0;
      part.extent[axis] = stop - start - part.low[axis];
      part.first += static_cast<std::int64_t>(start + part.low[axis] - begin) * grid_.strides[axis];
      part.whole = part.whole && part.extent[axis] == chunk;
    }
    return part;
  }

  // Whether a part is a whole chunk that is contiguous in the array.
  [[nodiscard]] bool in_place(const Part& part) const {
    if (!part.whole || reinterpret_cast<std::uintptr_t>(part.first) % grid_.item_bytes != 0) return false;
    for (int axis = 0; axis < rank(); ++axis)
      if (grid_.chunk[axis] != 1 && grid_.strides[axis] != static_cast<std::int64_t>(inner_[axis])) return false;
    return true;
  }

  // gather() copies a part from the array to a chunk's buffer; values outside of the array become *padding. scatter()
  // copies it back.
  void gather(const Part& part, const void* padding, std::uint8_t* block) const {
    if (in_place(part)) {
      std::memcpy(block, part.first, bytes_);
      return;
    }
    if (!part.whole)
      copy_items(block, static_cast<std::int64_t>(grid_.item_bytes), static_cast<const std::uint8_t*>(padding), 0,
                 bytes_ / grid_.item_bytes, grid_.item_bytes);
    copy<false>(part, 0, part.first, block + offset(part));
  }
  void scatter(const Part& part, std::uint8_t* block) const { copy<true>(part, 0, part.first, block + offset(part)); }

 private:
  [[nodiscard]] int rank() const { return static_cast<int>(grid_.rank); }
  [[nodiscard]] std::uint64_t offset(const Part& part) const {
    std::uint64_t at = 0;
    for (int axis = 0; axis < rank(); ++axis) at += part.low[axis] * inner_[axis];
    return at;
  }
  template <bool kToArray>
  void copy(const Part& part, int axis, std::uint8_t* array, std::uint8_t* block) const {
    const std::int64_t stride = grid_.strides[axis];
    const auto inner = static_cast<std::int64_t>(inner_[axis]);
    if (axis == rank() - 1) {
      if constexpr (kToArray)
        copy_items(array, stride, block, inner, part.extent[axis], grid_.item_bytes);
      else
        copy_items(block, inner, array, stride, part.extent[axis], grid_.item_bytes);
      return;
    }
    const std::uint64_t row = part.extent[rank() - 1] * grid_.item_bytes,
                        ahead = std::clamp<std::uint64_t>(kRowsAskedAhead / std::max<std::uint64_t>(row, 1), 1, 32);
    for (std::uint64_t i = 0; i < part.extent[axis]; ++i, array += stride, block += inner) {
      // rows are in different pages, where the processor's own prefetcher does not find the next one
      if (axis == rank() - 2) {
        if (i + ahead < part.extent[axis]) ask<kToArray>(array + static_cast<std::int64_t>(ahead) * stride, row);
      } else if (axis == rank() - 3 && i + 1 < part.extent[axis]) {
        for (std::uint64_t k = 0; k < std::min(ahead, part.extent[axis + 1]); ++k)
          ask<kToArray>(array + stride + static_cast<std::int64_t>(k) * grid_.strides[axis + 1], row);
      }
      copy<kToArray>(part, axis + 1, array, block);
    }
  }
  template <bool kToArray>
  static void ask(const std::uint8_t* at, std::uint64_t bytes) {
    bytes = std::min(bytes, kRowsAskedAhead);
    if constexpr (kToArray) {
      ask_for_stores(at, 0, bytes);
    } else {
      for (std::uint64_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
    }
  }

  const pyf_grid& grid_;
  std::uint64_t bytes_;
  std::uint64_t inner_[kMaxRank], count_[kMaxRank];
};

// Checks the fields of a grid.
inline Status check_grid(const pyf_grid* grid) {
  if (grid == nullptr) return fail(Code::invalid_argument, "grid is NULL");
  if (grid->rank < 1 || grid->rank > static_cast<std::uint32_t>(kMaxRank))
    return fail(Code::invalid_argument, "the grid has %u dimensions, allowed: 1 to %d", grid->rank, kMaxRank);
  for (std::uint32_t axis = 0; axis < grid->rank; ++axis)
    if (grid->chunk[axis] == 0 || grid->begin[axis] >= grid->chunk[axis])
      return fail(Code::invalid_argument,
                  "the first chunk begins %llu values before the array, must be fewer than the chunk's %llu",
                  static_cast<unsigned long long>(grid->begin[axis]),
                  static_cast<unsigned long long>(grid->chunk[axis]));
  return kOk;
}

// Also checks that the grid has `count` chunks.
inline Status check_grid(const pyf_grid* grid, std::size_t count) {
  PYF_TRY(check_grid(grid));
  const std::uint64_t chunks = ChunkGrid(*grid).count();
  if (chunks == count) return kOk;
  return fail(Code::invalid_argument, "the grid has %llu chunks, but count is %zu",
              static_cast<unsigned long long>(chunks), count);
}

}  // namespace pyfilter::filter
