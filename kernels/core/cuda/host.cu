// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes chunks in host memory with the GPU, for the HDF5 pipeline (driver.hpp). Each call copies to the
// device, computes and copies back, on a stream of its own.
#include <cstring>

#include "core/api.hpp"
#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "core/cuda/side_stream.cuh"
#include "core/error_text.hpp"

namespace pyfilter {
namespace {

using cuda::check;
using cuda::Workspace;

// One stream for each call: pooling them would leave a thread's stream behind when it ends.
class Stream {
 public:
  ~Stream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  Status create() { return check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

Status cuda_device_count(int* count) noexcept {
  *count = 0;
  PYF_TRY(cuda::usable());
  return check(cudaGetDeviceCount(count), "cudaGetDeviceCount");
}

Status cuda_encode_host(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                        std::size_t* frame_bytes) noexcept {
  PYF_TRY(cuda::usable());
  const std::size_t capacity = max_frame_bytes(request);
  Stream stream;
  PYF_TRY(stream.create());
  Workspace workspace(stream.get());
  PYF_TRY(workspace.allocate(padded(value_bytes) + padded(capacity) + sizeof(std::uint64_t)));
  std::uint8_t* const memory = workspace.data();
  CudaEncodeBatch batch;
  batch.values = memory;
  batch.frames = memory + padded(value_bytes);
  batch.frame_stride = padded(capacity);
  batch.frame_bytes = reinterpret_cast<std::uint64_t*>(memory + padded(value_bytes) + padded(capacity));
  batch.count = 1;
  batch.stream = stream.get();
  PYF_TRY(check(cudaMemcpyAsync(memory, values, value_bytes, cudaMemcpyHostToDevice, stream.get()), "copy to device"));
  PYF_TRY(cuda_encode(request, batch));
  std::uint64_t size = 0;
  PYF_TRY(check(cudaMemcpyAsync(&size, batch.frame_bytes, sizeof size, cudaMemcpyDeviceToHost, stream.get()),
                "copy of the size"));
  PYF_TRY(check(cudaStreamSynchronize(stream.get()), "encoding on the device"));
  if (size > capacity) return fail(Code::internal, "the device reports a frame of %zu bytes", std::size_t{size});
  PYF_TRY(check(cudaMemcpyAsync(frame, batch.frames, size, cudaMemcpyDeviceToHost, stream.get()), "copy of the frame"));
  PYF_TRY(check(cudaStreamSynchronize(stream.get()), "copy of the frame"));
  *frame_bytes = static_cast<std::size_t>(size);
  return kOk;
}

Status cuda_decode_host(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                        void* values, std::size_t value_bytes) noexcept {
  PYF_TRY(cuda::usable());
  Stream stream;
  PYF_TRY(stream.create());
  Workspace workspace(stream.get());
  PYF_TRY(workspace.allocate(padded(frame_bytes) + padded(value_bytes) + sizeof(std::uint32_t)));
  std::uint8_t* const memory = workspace.data();
  auto* const fault_at = reinterpret_cast<std::uint32_t*>(memory + padded(frame_bytes) + padded(value_bytes));
  const CudaFrame one{frame, frame_bytes, memory, frame_bytes, memory + padded(frame_bytes)};
  PYF_TRY(check(cudaMemcpyAsync(memory, frame, frame_bytes, cudaMemcpyHostToDevice, stream.get()), "copy to device"));
  PYF_TRY(cuda_decode(&one, 1, start, stop, value_bytes, fault_at, stream.get()));
  std::uint32_t fault = 0;
  PYF_TRY(check(cudaMemcpyAsync(&fault, fault_at, sizeof fault, cudaMemcpyDeviceToHost, stream.get()),
                "copy of the fault word"));
  PYF_TRY(check(cudaMemcpyAsync(values, one.values, value_bytes, cudaMemcpyDeviceToHost, stream.get()),
                "copy of the values"));
  PYF_TRY(check(cudaStreamSynchronize(stream.get()), "decoding on the device"));
  return cuda_fault(fault);
}

Status cuda_release_memory() noexcept {
  if (!cuda::used_here()) return kOk;
  cuda::release_sides();
  return cuda::release_pools();
}

}  // namespace pyfilter
