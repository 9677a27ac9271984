// SPDX-License-Identifier: BSD-3-Clause
// What a codec is to the device's side of core/: the functions that its room exports, and the frames that they decode.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/channel.hpp"
#include "core/cuda/driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// Faults that the decoder finds in a frame; 0 is none.
enum class Fault : std::uint32_t {
  none,
  directory,
  size,
  rate,
  padding,
  count,
  tables,
  head,
  state,
  stream,
  keys,      // of a tile whose values are sorted
  segments,  // of a frame that is read in parts
  wide       // residuals that a decoder has no room for: another decodes them, no frame is damaged by it
};

// A frame to decode: as its header says, with bounds checked by the host.
struct DecodeFrame {
  const std::uint8_t* payload;  // behind the header
  std::uint64_t payload_bytes;
  std::uint8_t* out;  // where value `start` goes
  std::uint32_t* fault;
  double bound, step;
  std::uint64_t sentinel;
  std::uint32_t has_sentinel, mode;  // DeviceCodec::mode

  __host__ __device__ static std::uint32_t stream_mode(std::uint32_t order, std::uint32_t coder, std::uint32_t log2) {
    return order | coder << 8 | log2 << 16;
  }
  __device__ __forceinline__ std::uint32_t order() const { return mode & 0xFF; }
  __device__ __forceinline__ std::uint32_t coder() const { return mode >> 8 & 0xFF; }
  __host__ __device__ std::uint32_t group_log2() const { return mode >> 16; }
};

// Frames of one codec that one launch can decode: of one group().
struct FrameGroup {
  FrameInfo info;  // of one of them; all have its shape and dtype
  const DecodeFrame* frames = nullptr;
  const DecodeFrame* on_device = nullptr;  // the same in device memory, where there is more than one
  std::size_t count = 0;
};
inline constexpr std::uint32_t kGroupsOfCodec = 16;

struct Coder;  // stages/cuda/params.cuh

struct DeviceCodec {
  // Encodes a batch that has been checked, of chunks of `count` values.
  Status (*encode)(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);
  // Frames of a shape and dtype that are decoded together have one number, below kGroupsOfCodec.
  std::uint32_t (*group)(const FrameInfo& info);
  // What threads need to know of a frame besides (DecodeFrame::mode).
  std::uint32_t (*mode)(const FrameInfo& info);
  // Decodes the values [start, stop) of each frame of a group. May throw std::bad_alloc.
  Status (*decode)(const FrameGroup& group, std::uint64_t start, std::uint64_t stop, cudaStream_t stream);

  // For codecs whose frames can be read in parts: those of a channel (core/cuda/channel.hpp). May throw std::bad_alloc.
  Status (*decode_parts)(const CudaChannel& channel, const CudaChannelFrames& frames);
  // For other codecs to fall back on: the launchers for packed tiles of a shape.
  const Coder* (*packed_coder)(Dtype dtype, int tile_shape, bool exact, bool pointwise);
};

// nullptr where registry.json has no codec of this id.
const DeviceCodec* device_codec_of(std::uint8_t id) noexcept;

}  // namespace pyfilter::cuda
