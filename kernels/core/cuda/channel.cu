// SPDX-License-Identifier: BSD-3-Clause
// Copies, encodes and decodes batches of chunks between host memory and a device (channel.hpp).
#include "core/cuda/channel.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/codec.cuh"
#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "core/past_cache.hpp"
#include "core/threads.hpp"

namespace pyfilter {
namespace {

using cuda::check;

cudaStream_t stream_of(const CudaChannel& channel) { return static_cast<cudaStream_t>(channel.stream); }

Status copy(const CudaChannel& channel, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return check(cudaMemcpyAsync(to, from, bytes, kind, stream_of(channel)), "cudaMemcpyAsync");
}

// Spins, then sleeps 20 us at a time. The driver's own blocking wait takes 0.3 ms to wake up, as long as copying 16 MB.
Status wait_for(void* event, const char* what) {
  cudaError_t found = cudaErrorNotReady;
  const auto waiting = [&] {
    found = cudaEventQuery(static_cast<cudaEvent_t>(event));
    if (found != cudaErrorNotReady) return false;
    (void)cudaGetLastError();  // clears the error, which the next launch would report
    return true;
  };
  spin_while(waiting);
  while (found == cudaErrorNotReady && waiting()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return check(found, what);
}

// Bytes of values that are staged at a time: at most half of the staging buffer, and whole chunks if they are moved.
// The buffer is small so that it stays in the cache; otherwise host memory would limit the speed.
std::size_t piece_bytes(const CudaChannel& channel, const CudaChannelValues& values, std::size_t chunk_bytes) {
  const std::size_t half = channel.host_value_bytes / 2;
  return values.move == nullptr ? half : half / chunk_bytes * chunk_bytes;
}

Status to_device(const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelValues& values,
                 std::size_t bytes, std::size_t chunk_bytes) {
  if (channel.host_values == nullptr) return copy(channel, channel.values, values.first, bytes, cudaMemcpyHostToDevice);
  const std::size_t most = piece_bytes(channel, values, chunk_bytes);
  for (std::size_t at = 0, piece = 0; at < bytes; at += most, ++piece) {
    const std::size_t half = piece % 2, here = std::min(most, bytes - at);
    if (piece >= 2) PYF_TRY(waiter.reach(half));
    std::uint8_t* const by = channel.host_values + half * most;
    if (values.move == nullptr)
      std::memcpy(by, values.first + at, here);
    else
      values.move(values.context, at / chunk_bytes, here / chunk_bytes, by);
    PYF_TRY(copy(channel, channel.values + at, by, here, cudaMemcpyHostToDevice));
    PYF_TRY(waiter.mark(channel, half));
  }
  return kOk;
}

Status to_host(const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelValues& values, std::size_t bytes,
               std::size_t chunk_bytes) {
  if (channel.host_values == nullptr) return copy(channel, values.first, channel.values, bytes, cudaMemcpyDeviceToHost);
  const std::size_t most = piece_bytes(channel, values, chunk_bytes);
  const auto begin = [&](std::size_t at, std::size_t half) {
    PYF_TRY(copy(channel, channel.host_values + half * most, channel.values + at, std::min(most, bytes - at),
                 cudaMemcpyDeviceToHost));
    return waiter.mark(channel, half);
  };
  PYF_TRY(begin(0, 0));
  for (std::size_t at = 0, piece = 0; at < bytes; at += most, ++piece) {
    const std::size_t half = piece % 2, here = std::min(most, bytes - at);
    if (bytes - at > most) PYF_TRY(begin(at + most, 1 - half));
    PYF_TRY(waiter.reach(half));
    std::uint8_t* const by = channel.host_values + half * most;
    if (values.move == nullptr)
      copy_past_cache(values.first + at, by, here);
    else
      values.move(values.context, at / chunk_bytes, here / chunk_bytes, by);
  }
  return kOk;
}

Status decode_whole(const CudaChannel& channel, const CudaChannelFrames& frames) {
  std::vector<CudaFrame> batch(frames.count);
  for (std::size_t i = 0; i < frames.count; ++i) {
    const std::uint8_t* const header = channel.host_frames + frames.offsets[i];
    FrameInfo info;
    PYF_TRY(frame_info(header, frames.sizes[i], &info));
    if (info.value_bytes != frames.chunk_bytes || info.dtype != frames.dtype)
      return fail(Code::corrupt, "the frame's shape or dtype is not the chunk's");
    batch[i] = {header, frames.sizes[i], channel.frames + frames.offsets[i], frames.sizes[i],
                channel.values + i * frames.chunk_bytes};
  }
  return cuda_decode(batch.data(), frames.count, 0, frames.chunk_bytes / dtype_bytes(frames.dtype), frames.chunk_bytes,
                     reinterpret_cast<std::uint32_t*>(channel.notes), channel.stream);
}

// All frames have the codec of the first frame.
Status decode_parts(const CudaChannel& channel, const CudaChannelFrames& frames) {
  FrameInfo info;
  PYF_TRY(frame_info(channel.host_frames + frames.offsets[0], frames.sizes[0], &info));
  const auto decode = cuda::device_codec_of(info.codec)->decode_parts;
  if (info.stored_raw || decode == nullptr)
    return fail(Code::unsupported, "frames of codec %d%s cannot be read in parts", info.codec,
                info.stored_raw ? ", stored raw," : "");
  return decode(channel, frames);
}

}  // namespace

void CudaWaiter::close() noexcept {
  for (void*& event : events_) {
    if (event != nullptr) (void)cudaEventDestroy(static_cast<cudaEvent_t>(event));
    event = nullptr;
  }
}

Status CudaWaiter::open(const CudaChannel& channel) noexcept {
  PYF_TRY(cuda::usable());
  PYF_TRY(check(cudaSetDevice(channel.device), "cudaSetDevice"));
  for (void*& event : events_) {
    cudaEvent_t made = nullptr;
    PYF_TRY(check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate"));
    event = made;
  }
  return kOk;
}

Status CudaWaiter::wait(const CudaChannel& channel, const char* what) const noexcept {
  PYF_TRY(mark(channel, 2));
  return wait_for(events_[2], what);
}

Status CudaWaiter::mark(const CudaChannel& channel, std::size_t half) const noexcept {
  return check(cudaEventRecord(static_cast<cudaEvent_t>(events_[half]), stream_of(channel)), "cudaEventRecord");
}

Status CudaWaiter::reach(std::size_t half) const noexcept { return wait_for(events_[half], "copies of values"); }

Status cuda_channel_encode(const CudaChannel& channel, const CudaWaiter& waiter, const Request& request,
                           const CudaChannelValues& values, std::size_t count, std::size_t chunk_bytes,
                           std::size_t stride) noexcept {
  PYF_TRY(to_device(channel, waiter, values, count * chunk_bytes, chunk_bytes));
  PYF_TRY(cuda_encode(request, {channel.values, chunk_bytes, channel.frames, stride,
                                reinterpret_cast<std::uint64_t*>(channel.notes), count, channel.stream}));
  PYF_TRY(copy(channel, channel.host_notes, channel.notes, count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost));
  return waiter.wait(channel, "encoding on the device");
}

Status cuda_channel_fetch(const CudaChannel& channel, const CudaWaiter& waiter, std::size_t first, std::size_t count,
                          std::size_t stride, const std::uint64_t* offsets) noexcept {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&size, channel.host_notes + (first + i) * sizeof size, sizeof size);
    PYF_TRY(copy(channel, channel.host_frames + offsets[i], channel.frames + (first + i) * stride, size,
                 cudaMemcpyDeviceToHost));
  }
  return waiter.wait(channel, "copies of frames");
}

Status cuda_channel_decode(const CudaChannel& channel, const CudaWaiter& waiter, const CudaChannelFrames& frames,
                           const CudaChannelValues& values) noexcept {
  const std::size_t value_bytes = frames.count * frames.chunk_bytes, note_bytes = frames.count * sizeof(std::uint32_t);
  try {
    PYF_TRY(copy(channel, channel.frames, channel.host_frames, frames.bytes, cudaMemcpyHostToDevice));
    const Status launched = frames.segments == nullptr ? decode_whole(channel, frames) : decode_parts(channel, frames);
    if (!launched.ok()) {
      PYF_TRY(waiter.wait(channel, "decoding on the device"));  // before the channel's buffers are used again
      return launched;
    }
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu frames", frames.count);
  }
  PYF_TRY(copy(channel, channel.host_notes, channel.notes, note_bytes, cudaMemcpyDeviceToHost));
  PYF_TRY(to_host(channel, waiter, values, value_bytes, frames.chunk_bytes));
  PYF_TRY(waiter.wait(channel, "decoding on the device"));
  for (std::size_t i = 0; i < frames.count; ++i) {
    std::uint32_t fault = 0;
    std::memcpy(&fault, channel.host_notes + i * sizeof fault, sizeof fault);
    if (fault != 0) return cuda_fault(fault);
  }
  return kOk;
}

}  // namespace pyfilter
