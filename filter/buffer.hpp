// SPDX-License-Identifier: BSD-3-Clause
// ChunkBuffer: memory that HDF5 takes over, allocated by the allocator with which the caller's HDF5 frees it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "filter/caller.hpp"

namespace pyfilter::filter {

class ChunkBuffer {
 public:
  ChunkBuffer(const Hdf5& hdf5, std::size_t bytes) : hdf5_(hdf5), bytes_(bytes) {
    data_ = hdf5.H5allocate_memory != nullptr ? hdf5.H5allocate_memory(bytes, 0) : std::malloc(bytes);
  }
  ~ChunkBuffer() { release(data_); }
  ChunkBuffer(const ChunkBuffer&) = delete;
  ChunkBuffer& operator=(const ChunkBuffer&) = delete;

  [[nodiscard]] void* data() const { return data_; }

  // Asks for large pages: fresh memory then takes one page fault for each 2 MiB instead of 512. Page faults can take
  // longer than decoding.
  void expect_all() const {
#if defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t kPage = 4096;
    if (data_ == nullptr || bytes_ < kLarge) return;
    const auto start = (reinterpret_cast<std::uintptr_t>(data_) + kPage - 1) / kPage * kPage;
    const auto end = (reinterpret_cast<std::uintptr_t>(data_) + bytes_) / kPage * kPage;
    madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);  // advice only: failure is no error
#endif
  }

  // Shrinks the buffer if less than half is used: parallel writers hold many chunks at once.
  void shrink(std::size_t used) {
    if (used == 0 || used > bytes_ / 2) return;
    void* const smaller =
        hdf5_.H5resize_memory != nullptr ? hdf5_.H5resize_memory(data_, used) : std::realloc(data_, used);
    if (smaller == nullptr) return;
    data_ = smaller;
    bytes_ = used;
  }

  // Frees HDF5's buffer and replaces it by this memory.
  void replace(void** buffer, std::size_t* buffer_bytes) {
    release(*buffer);
    *buffer = data_;
    *buffer_bytes = bytes_;
    data_ = nullptr;
  }

 private:
  static constexpr std::size_t kLarge = std::size_t{4} << 20;

  void release(void* memory) const {
    if (memory == nullptr) return;
    if (hdf5_.H5free_memory != nullptr)
      hdf5_.H5free_memory(memory);
    else
      std::free(memory);
  }

  const Hdf5& hdf5_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace pyfilter::filter
