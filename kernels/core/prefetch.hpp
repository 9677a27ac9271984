// SPDX-License-Identifier: BSD-3-Clause
// Prefetching for stores. A processor loads a cache line before it stores to it, even if the whole line is written.
// Hardware prefetches less for stores than for loads. Prefetching made decoding 1.4 to 3 times as fast
// (docs/lab/cpu-memory.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyfilter {

inline constexpr std::size_t kAskedAhead = 4096;  // bytes ahead of sequential stores

// Prefetches `bytes` of memory from at + ahead on. They may lie outside of the array: nothing is read.
[[gnu::always_inline]] inline void ask_for_stores(const void* at, std::size_t ahead, std::size_t bytes) {
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(at) + ahead;
  for (std::size_t line = 0; line < bytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(first + line), 1);
}

}  // namespace pyfilter
