// SPDX-License-Identifier: BSD-3-Clause
// Channels: batches of chunks between host memory and a device (channel.cu). A channel is a CUDA stream with buffers
// for one batch, used by one host thread, which waits for its copies and kernels. Several channels overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// A stream of a device, and buffers for one batch.
struct CudaChannel {
  std::int32_t device;
  std::int32_t reserved;
  void* stream;
  // in device memory
  std::uint8_t* values;
  std::uint8_t* frames;
  std::uint8_t* notes;  // 8 bytes for each chunk: frame sizes or faults
  // in pinned host memory
  std::uint8_t* host_values;  // staging buffer of two halves, used in turn; NULL: the caller's values are pinned
  std::uint8_t* host_frames;
  std::uint8_t* host_notes;
  std::size_t host_value_bytes, host_frame_bytes;
};

// Lets a thread wait for its stream without keeping a core busy. open() makes the channel's device the current device
// of the thread.
class CudaWaiter {
 public:
  CudaWaiter() = default;
  ~CudaWaiter() { close(); }
  CudaWaiter(const CudaWaiter&) = delete;
  CudaWaiter& operator=(const CudaWaiter&) = delete;
  Status open(const CudaChannel& channel) noexcept;
  void close() noexcept;
  Status wait(const CudaChannel& channel, const char* what) const noexcept;
  // mark() records an event on the stream for a half of the staging buffer; reach() waits for that event.
  Status mark(const CudaChannel& channel, std::size_t half) const noexcept;
  Status reach(std::size_t half) const noexcept;

 private:
  void* events_[3] = {};
};

// The values of a batch in host memory. Without `move`, the chunks are contiguous from `first` on. With `move`, they
// may be anywhere: move() copies chunks between their memory and a contiguous buffer. The channel's host_values must
// then hold at least two chunks.
struct CudaChannelValues {
  std::uint8_t* first = nullptr;
  void (*move)(void* context, std::size_t chunk, std::size_t count, std::uint8_t* buffer) = nullptr;
  void* context = nullptr;
};

// open() and wait() of a waiter, for the host library (bridge/functions.hpp).
Status cuda_open_waiter(CudaWaiter& waiter, const CudaChannel& channel) noexcept;
Status cuda_wait(const CudaWaiter& waiter, const CudaChannel& channel, const char* what) noexcept;

// Encodes `count` chunks. Frame i is then at channel.frames + i * stride, its size (64 bits) in channel.host_notes.
Status cuda_channel_encode(const CudaChannel& channel, const CudaWaiter& waiter, const Request& request,
                           const CudaChannelValues& values, std::size_t count, std::size_t chunk_bytes,
                           std::size_t stride) noexcept;
// Copies `count` frames from number `first` on to channel.host_frames, each to its offset there.
Status cuda_channel_fetch(const CudaChannel& channel, const CudaWaiter& waiter, std::size_t first, std::size_t count,
                          std::size_t stride, const std::uint64_t* offsets) noexcept;

// Frames of chunks in channel.host_frames, `bytes` in total.
struct CudaChannelFrames {
  Dtype dtype;
  std::size_t count, bytes, chunk_bytes;
  const std::uint64_t* offsets;
  const std::uint64_t* sizes;     // bytes of each frame that are in memory
  const std::uint32_t* segments;  // for frames read in parts: segments of each; NULL: the frames are whole
  std::uint32_t level;            // for frames read in parts: the level of the grid to decode
};
Status cuda_channel_decode(const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelFrames& frames,
                           const CudaChannelValues& values) noexcept;

}  // namespace pyfilter
