// SPDX-License-Identifier: BSD-3-Clause
// Batches of chunks between host memory and a device (core/cuda/channel.cu; core/cuda/absent.cpp in builds without
// CUDA): copies and kernels of one batch on one stream, by one thread, which waits for them. Several channels overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// A stream of a device, and memory for a batch.
struct CudaChannel {
  std::int32_t device;
  std::int32_t reserved;
  void* stream;
  // device
  std::uint8_t* values;
  std::uint8_t* frames;
  std::uint8_t* notes;  // 8 bytes a chunk
  // host, pinned
  std::uint8_t* host_values;  // two halves that values pass through by turns; NULL: the caller's values are pinned
  std::uint8_t* host_frames;
  std::uint8_t* host_notes;
  std::size_t host_value_bytes, host_frame_bytes;
};

// What a thread waits by, without keeping a core busy. open() makes the channel's device the thread's.
class CudaWaiter {
 public:
  CudaWaiter() = default;
  ~CudaWaiter() { close(); }
  CudaWaiter(const CudaWaiter&) = delete;
  CudaWaiter& operator=(const CudaWaiter&) = delete;
  Status open(const CudaChannel& channel) noexcept;
  void close() noexcept;
  Status wait(const CudaChannel& channel, const char* what) const noexcept;
  // A place on the stream for each half of the channel's memory for values, and the wait for it.
  Status mark(const CudaChannel& channel, std::size_t half) const noexcept;
  Status reach(std::size_t half) const noexcept;

 private:
  void* events_[3] = {};
};

// The values of a batch in host memory: one chunk behind the other from `first` on, or, with `move`, anywhere: it
// copies chunks of the batch between there and a buffer in which they lie so. The channel's host_values must have room
// for two.
struct CudaChannelValues {
  std::uint8_t* first = nullptr;
  void (*move)(void* context, std::size_t chunk, std::size_t count, std::uint8_t* buffer) = nullptr;
  void* context = nullptr;
};

// Encodes `count` chunks; frames are every `stride` bytes then, their sizes (64 bits
// each) in channel.host_notes.
// open() and wait() of a waiter, for the other library (bridge/functions.hpp).
Status cuda_open_waiter(CudaWaiter& waiter, const CudaChannel& channel) noexcept;
Status cuda_wait(const CudaWaiter& waiter, const CudaChannel& channel, const char* what) noexcept;

Status cuda_channel_encode(const CudaChannel& channel, const CudaWaiter& waiter, const Request& request,
                           const CudaChannelValues& values, std::size_t count, std::size_t chunk_bytes,
                           std::size_t stride) noexcept;
// Copies frames `first` and behind, `count` of them, to channel.host_frames, each to its place.
Status cuda_channel_fetch(const CudaChannel& channel, const CudaWaiter& waiter, std::size_t first, std::size_t count,
                          std::size_t stride, const std::uint64_t* places) noexcept;

// Frames of chunks in channel.host_frames, `bytes` in all.
struct CudaChannelFrames {
  Dtype dtype;
  std::size_t count, bytes, chunk_bytes;
  const std::uint64_t* places;
  const std::uint64_t* sizes;     // of what is there of each
  const std::uint32_t* segments;  // of frames that are read in parts: how many; NULL: the frames are whole
  std::uint32_t level;            // of the grids that these are decoded to
};
Status cuda_channel_decode(const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelFrames& frames,
                           const CudaChannelValues& values) noexcept;

}  // namespace pyfilter
