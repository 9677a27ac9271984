// SPDX-License-Identifier: BSD-3-Clause
// Batches of chunks on the GPU (absent.cpp in builds without CUDA). Device calls put work on
// a stream and return; nothing inside waits for the device, but what codecs' rooms say. Frames are byte for byte those
// of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Devices that the driver shows; an error where there is no driver, no device, or the process was forked after CUDA
// was initialised.
Status cuda_device_count(int* count) noexcept;

// `count` chunks of one shape at values, values + value_stride, ..., all in device memory, to frames at frames,
// frames + frame_stride, ...; frame_bytes[i] (device memory) becomes the size of frame i.
struct CudaEncodeBatch {
  const void* values = nullptr;
  std::size_t value_stride = 0;
  void* frames = nullptr;
  std::size_t frame_stride = 0;
  std::uint64_t* frame_bytes = nullptr;
  std::size_t count = 0;
  void* stream = nullptr;          // cudaStream_t
  const double* bounds = nullptr;  // device memory: the absolute bound of each chunk instead of the request's
};
Status cuda_encode(const Request& request, const CudaEncodeBatch& batch) noexcept;

// One frame of a batch to decode. `header` is a copy in host memory of at least the frame's header.
struct CudaFrame {
  const void* header = nullptr;
  std::size_t header_bytes = 0;
  const void* frame = nullptr;  // device
  std::size_t frame_bytes = 0;
  void* values = nullptr;  // device
};

// Values [start, stop) of every frame, each `value_bytes` bytes. All frames have one shape and dtype. faults[i]
// (device memory) becomes 0, or says what is wrong with frame i: cuda_fault().
Status cuda_decode(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, void* stream) noexcept;
Status cuda_fault(std::uint32_t fault) noexcept;

// Moves `count` frames from slots of `slot_bytes` bytes, a multiple of 16, one behind the other: frame i to where it
// ends before packed + ends[i], a multiple of 16. sizes and ends are device memory. Up to 15 bytes behind a frame are
// read.
Status cuda_pack_frames(const void* slots, std::size_t slot_bytes, const std::uint64_t* sizes,
                        const std::uint64_t* ends, std::size_t count, void* packed, void* stream) noexcept;

// Host memory, for the HDF5 pipeline: copies there and back and waits. Same contracts as encode() and decode_range()
// of api.hpp, whose checks were made.
Status cuda_encode_host(const Request& request, const void* values, std::size_t value_bytes, void* frame,
                        std::size_t* frame_bytes) noexcept;
Status cuda_decode_host(const void* frame, std::size_t frame_bytes, std::uint64_t start, std::uint64_t stop,
                        void* values, std::size_t value_bytes) noexcept;

// Gives pooled device memory that nothing uses back to the driver.
Status cuda_release_memory() noexcept;

}  // namespace pyfilter
