// SPDX-License-Identifier: BSD-3-Clause
// Derived types on the GPU (docs/format.md, section 16): kernels convert values to arrays of a base type, and back; the
// codecs' kernels see the base type. Bounds and headers are the host's, from the functions that the CPU's encoder uses
// (core/base_values.hpp, core/half_values.hpp). So encoders of these types wait for the device.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/cuda/driver.hpp"
#include "core/cuda/lists.cuh"
#include "core/cuda/memory.cuh"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// As DeviceCodec::encode, for a request of a derived type. May throw std::bad_alloc, as the next two.
Status encode_derived(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);
// The same for 16-bit floats with a bound, a part of a batch that fits into memory.
Status encode_halves(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);
// The same for values that are encoded as a base array of the same size. `base`: the request for the base array.
Status encode_as_base(const Request& request, const Request& base, const CudaEncodeBatch& batch, std::uint64_t count);

// As cuda_decode(). `first`: header of a frame. Fault words have been set to 0. May throw std::bad_alloc.
Status decode_derived(const CudaFrame* frames, std::size_t count, const FrameInfo& first, std::uint64_t start,
                      std::uint64_t stop, std::size_t value_bytes, std::uint32_t* faults, cudaStream_t stream);

// Divides `count` chunks that need `bytes` each into groups of about the same size that fit into device memory
// together. *together: chunks of a group, at least 1.
Status chunks_together(std::size_t count, std::size_t bytes, std::size_t* together) noexcept;

// Copies to host memory, and waits.
template <class T>
Status fetch(const T* from, std::size_t count, std::vector<T>& to, cudaStream_t stream) {
  to.resize(count);
  PYF_TRY(check(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "copy to host"));
  return check(cudaStreamSynchronize(stream), "encoding on the device");
}

// A frame of a base array, of which a frame of a derived type is made.
struct DerivedFrame {
  const std::uint8_t* base;                   // device
  std::uint8_t* to;                           // device; may be `base`
  std::uint64_t bytes = 0;                    // of the new frame; 0: none is made
  std::uint64_t header = 0, base_header = 0;  // bytes of both headers
};

// The headers of such frames, which the host reads and writes.
class DerivedHeaders {
 public:
  DerivedHeaders(std::size_t most_frames, std::size_t most_bytes, cudaStream_t stream)
      : most_(most_frames), stride_((most_bytes + 15) / 16 * 16), stream_(stream) {}
  // Adds this object's memory.
  void lay_out(Arrays& arrays) {
    arrays.add(on_device_, most_ * stride_);
    arrays.add(copies_, 2 * most_);
  }
  Status read(const std::vector<DerivedFrame>& frames, std::size_t header_bytes);
  // Of frame i as it was read; then, as it is to be written.
  [[nodiscard]] std::uint8_t* of(std::size_t i) { return headers_.data() + i * stride_; }
  // Writes frames: their headers, and what follows unless it is in its place.
  Status write(const std::vector<DerivedFrame>& frames);

 private:
  std::size_t most_, stride_;
  cudaStream_t stream_;
  std::vector<std::uint8_t> headers_;
  std::uint8_t* on_device_ = nullptr;
  ArrayCopy* copies_ = nullptr;
};

}  // namespace pyfilter::cuda
