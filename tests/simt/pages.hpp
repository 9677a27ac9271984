// SPDX-License-Identifier: BSD-3-Clause
// Memory that ends at a page boundary: an access beyond it is a segmentation fault.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "machine.hpp"

namespace simt {

inline std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
inline std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Pages whose last page cannot be accessed; of a stack, which grows downwards, the first page.
struct Pages {
  std::uint8_t* memory = nullptr;
  std::size_t bytes = 0;  // accessible bytes

  Pages() = default;
  Pages(std::size_t wanted, int flags, bool guard_first = false) : bytes(round_up(wanted, page_bytes())) {
    void* const all = mmap(nullptr, bytes + page_bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (all == MAP_FAILED) mistake("no memory: %zu bytes", bytes);
    memory = static_cast<std::uint8_t*>(all);
    if (mprotect(guard_first ? memory : memory + bytes, page_bytes(), PROT_NONE) != 0) mistake("mprotect failed");
  }
  Pages(Pages&& other) noexcept : memory(std::exchange(other.memory, nullptr)), bytes(other.bytes) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Pages() {
    if (memory != nullptr) munmap(memory, bytes + page_bytes());
  }
  [[nodiscard]] std::uint8_t* end() const { return memory + bytes; }
};

}  // namespace simt
