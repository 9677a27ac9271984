// SPDX-License-Identifier: BSD-3-Clause
// CUDA errors as Status, the check that this process may use CUDA, and device memory from this library's pool.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"

namespace pyfilter::cuda {

// `what` names the call in the error's text. Clears the runtime's last error.
Status check(cudaError_t error, const char* what) noexcept;

// An error unless CUDA can be used here. There must be a driver and a device, and no fork since the process first used
// CUDA. Cheap after the first call.
Status usable() noexcept;

// Whether this process, not only its parent, has used CUDA.
bool used_here() noexcept;

// Device memory of one call, allocated and freed in the order of its stream: freed after the work queued before.
class Workspace {
 public:
  explicit Workspace(cudaStream_t stream) noexcept : stream_(stream) {}
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  Status allocate(std::size_t bytes) noexcept;
  [[nodiscard]] std::uint8_t* data() const noexcept { return data_; }

 private:
  cudaStream_t stream_;
  std::uint8_t* data_ = nullptr;
};

// Arrays that share an allocation. Without memory, add() counts bytes only; with memory it sets the array, too.
class Arrays {
 public:
  explicit Arrays(std::uint8_t* memory = nullptr) noexcept : memory_(memory) {}
  template <class T>
  void add(T*& array, std::size_t count) noexcept {
    if (memory_ != nullptr) array = reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += padded(count * sizeof(T));
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

 private:
  std::uint8_t* memory_;
  std::size_t bytes_ = 0;
};

// Allocates the arrays that lay_out(arrays) adds.
template <class LayOut>
Status allocate_arrays(Workspace& workspace, const LayOut& lay_out) {
  Arrays sizes;
  lay_out(sizes);
  PYF_TRY(workspace.allocate(sizes.bytes()));
  Arrays arrays(workspace.data());
  lay_out(arrays);
  return kOk;
}

// Total memory of the current device.
Status device_memory(std::uint64_t* bytes) noexcept;

// Returns the pools' unused memory to the driver; only for a process that has used CUDA.
Status release_pools() noexcept;

}  // namespace pyfilter::cuda
