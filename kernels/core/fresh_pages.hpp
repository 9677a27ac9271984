// SPDX-License-Identifier: BSD-3-Clause
// Makes the pages of a large frame before threads write to them. A frame's memory is usually new. Threads that meet at
// a new page of 2 MiB all clear one, and all but one of these are thrown away: the pages came one after the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pyfilter {

class FreshPages {
 public:
  static constexpr std::size_t kPage = 2 << 20, kAhead = 8 * kPage, kLeastBytes = 16 * kPage;

  FreshPages(std::uint8_t* memory, std::size_t bytes, int threads) {
#if defined(__linux__)
    if (threads < 2 || bytes < kLeastBytes) return;
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (address + kPage - 1) / kPage * kPage, end = (address + bytes) / kPage * kPage;
    first_ = reinterpret_cast<std::uint8_t*>(first);
    bytes_ = std::max(first, end) - first;
#endif
  }
  // Makes the next page, if the first `used` bytes come near to it. Called by all threads. Content does not change.
  void prepare([[maybe_unused]] std::size_t used) {
#if defined(__linux__)
    if (made_ >= bytes_ || made_ >= used + kAhead) return;
    const std::size_t at = made_.fetch_add(kPage);
    if (at < bytes_ && madvise(first_ + at, kPage, kPopulateWrite) != 0) bytes_ = 0;  // an older system
#endif
  }

 private:
  static constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14; older headers lack it

  std::uint8_t* first_ = nullptr;
  std::atomic<std::size_t> bytes_{0}, made_{0};
};

}  // namespace pyfilter
