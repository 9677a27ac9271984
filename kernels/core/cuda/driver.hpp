// SPDX-License-Identifier: BSD-3-Clause
// Batches of chunks on the GPU. Calls with device memory put work on a stream and return without waiting, except for
// codecs that say that they wait. Frames are equal to those of the CPU, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Sets *count to the number of devices. An error if there is no driver or no device, or if the process was forked after
// CUDA was initialised.
Status cuda_device_count(int* count) noexcept;

// Encodes `count` chunks of one shape. Chunk i is at values + i * value_stride, its frame goes to frames + i *
// frame_stride, and the frame's size to frame_bytes[i]; all are in device memory.
struct CudaEncodeBatch {
  const void* values = nullptr;
  std::size_t value_stride = 0;
  void* frames = nullptr;
  std::size_t frame_stride = 0;
  std::uint64_t* frame_bytes = nullptr;
  std::size_t count = 0;
  void* stream = nullptr;          // cudaStream_t
  const double* bounds = nullptr;  // device memory: the bound of each chunk, in place of the request's absolute or
                                   // pointwise one
};
// The chunks [first, first + count) of a batch.
CudaEncodeBatch slice(const CudaEncodeBatch& batch, std::size_t first, std::size_t count) noexcept;
Status cuda_encode(const Request& request, const CudaEncodeBatch& batch) noexcept;

// One frame of a batch to decode. `header` is a copy in host memory of at least the frame's header.
struct CudaFrame {
  const void* header = nullptr;
  std::size_t header_bytes = 0;
  const void* frame = nullptr;  // device
  std::size_t frame_bytes = 0;
  void* values = nullptr;  // device
};

// Decodes the values [start, stop) of every frame, `value_bytes` bytes each. All frames have one shape and dtype.
// faults[i] (device memory) becomes 0, or a fault of frame i, which cuda_fault() turns into a Status.
Status cuda_decode(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, void* stream) noexcept;
Status cuda_fault(std::uint32_t fault) noexcept;

// Packs `count` frames from slots of `slot_bytes` bytes, a multiple of 16. Frame i is moved so that it ends, padded to
// a multiple of 16 bytes, at packed + ends[i]. sizes and ends are in device memory. Up to 15 bytes after a frame are
// read.
Status cuda_pack_frames(const void* slots, std::size_t slot_bytes, const std::uint64_t* sizes,
                        const std::uint64_t* ends, std::size_t count, void* packed, void* stream) noexcept;

// Encodes and decodes values in host memory, for the HDF5 pipeline: copies to the device and back, and waits. Called by
// encode() and decode_range() of api.hpp, which have checked the arguments.
Status cuda_encode_host(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                        std::size_t* frame_bytes) noexcept;
Status cuda_decode_host(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                        void* values, std::size_t value_bytes) noexcept;

// Returns unused device memory of the pools to the driver.
Status cuda_release_memory() noexcept;

}  // namespace pyfilter
