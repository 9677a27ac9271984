// SPDX-License-Identifier: BSD-3-Clause
// Progressive's entry in core's table of device codecs: batches of chunks, batches of frames, and partial frames of a
// channel.
#include <algorithm>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/codec.cuh"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "progressive/cuda/driver.cuh"
#include "progressive/head.hpp"

namespace pyfilter::cuda {
namespace {

std::uint32_t group(const FrameInfo& /*info*/) { return 0; }
std::uint32_t mode(const FrameInfo& /*info*/) { return 0; }

Status decode(const FrameGroup& group, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  std::vector<ProgressiveFrame> frames;
  frames.reserve(group.count);
  for (std::size_t i = 0; i < group.count; ++i) {
    const DecodeFrame& frame = group.frames[i];
    frames.push_back({frame.payload, frame.payload_bytes, frame.out, frame.fault, frame.step, frame.sentinel,
                      frame.has_sentinel, kAllSegments});
  }
  return decode_progressive_frames(group.info, frames, 0, start, stop, stream);
}

bool same_shape(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.dims.begin(), a.dims.begin() + a.rank, b.dims.begin());
}

Status decode_parts(const CudaChannel& channel, const CudaChannelFrames& frames) {
  std::vector<ProgressiveFrame> batch;
  batch.reserve(frames.count);
  FrameInfo first;
  const auto stream = static_cast<cudaStream_t>(channel.stream);
  auto* const faults = reinterpret_cast<std::uint32_t*>(channel.notes);
  for (std::size_t i = 0; i < frames.count; ++i) {
    FrameInfo info;
    std::uint64_t end = 0;
    PYF_TRY(check_progressive_part(channel.host_frames + frames.offsets[i], frames.sizes[i], frames.segments[i],
                                   frames.level, frames.chunk_bytes, &info, &end));
    if (i == 0) first = info;
    if (info.dtype != frames.dtype || !same_shape(info.shape, first.shape))
      return fail(Code::corrupt, "the frame's shape or dtype is not the chunk's");
    batch.push_back(progressive_part(info, channel.frames + frames.offsets[i], end,
                                     channel.values + i * frames.chunk_bytes, faults + i, frames.segments[i]));
  }
  PYF_TRY(check(cudaMemsetAsync(faults, 0, frames.count * sizeof *faults, stream), "cudaMemsetAsync"));
  return decode_progressive_frames(first, batch, static_cast<int>(frames.level), 0,
                                   frames.chunk_bytes / dtype_bytes(frames.dtype), stream);
}

}  // namespace

extern const DeviceCodec kProgressiveDevice;
const DeviceCodec kProgressiveDevice{encode_progressive_chunks, group, mode, decode, decode_parts, nullptr};

}  // namespace pyfilter::cuda
