// SPDX-License-Identifier: BSD-3-Clause
// A codec as core/cuda/ sees it: functions that the codec's folder defines, and the frames that they decode.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/channel.hpp"
#include "core/cuda/driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

// Faults that a decoder finds in a frame.
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
  keys,      // in a tile whose values are sorted
  segments,  // in a frame that is read in parts
  list,      // an index beyond its list of values
  wide       // residuals too wide for this decoder: another decoder takes the tile; the frame is not damaged
};

// A frame to decode: fields of its header, checked by the host.
struct DecodeFrame {
  const std::uint8_t* payload;  // begins after the header
  std::uint64_t payload_bytes;
  std::uint8_t* out;  // memory for value `start`
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

// Frames of one codec that one launch can decode: group() is equal for all.
struct FrameGroup {
  FrameInfo info;  // header of one of them; all have the same shape and dtype
  const DecodeFrame* frames = nullptr;
  const DecodeFrame* on_device = nullptr;  // copy in device memory; only if there are several
  std::size_t count = 0;
};
inline constexpr std::uint32_t kGroupsOfCodec = 16;

struct Coder;  // stages/cuda/params.cuh

struct DeviceCodec {
  // Encodes a batch of chunks of `count` values, which has been checked. It may wait for the device.
  Status (*encode)(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);
  // Frames of the same shape and dtype with the same number, below kGroupsOfCodec, are decoded together.
  std::uint32_t (*group)(const FrameInfo& info);
  // Returns DecodeFrame::mode, which only the codec's kernels read.
  std::uint32_t (*mode)(const FrameInfo& info);
  // Decodes the values [start, stop) of each frame of a group. May throw std::bad_alloc.
  Status (*decode)(const FrameGroup& group, std::uint64_t start, std::uint64_t stop, cudaStream_t stream);

  // Decodes frames of a channel in part (channel.hpp); nullptr: frames are always whole. May throw std::bad_alloc.
  Status (*decode_parts)(const CudaChannel& channel, const CudaChannelFrames& frames);
  // Called by other codecs that fall back on this one: returns the launchers for packed tiles of a shape.
  const Coder* (*packed_coder)(Dtype dtype, int tile_shape, bool exact, bool pointwise);
};

// nullptr where registry.json has no codec of this id.
const DeviceCodec* device_codec_of(std::uint8_t id) noexcept;

}  // namespace pyfilter::cuda
