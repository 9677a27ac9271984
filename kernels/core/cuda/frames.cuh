// SPDX-License-Identifier: BSD-3-Clause
// The frames of a batch, their headers read on the host, sorted by codec and group. One launch decodes the frames of a
// group (decode.cu).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda/codec.cuh"
#include "core/cuda/driver.hpp"
#include "core/status.hpp"

namespace pyfilter::cuda {

struct RawCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};

struct CodecGroup : FrameGroup {
  const DeviceCodec* codec = nullptr;
};

struct SortedFrames {
  std::unique_ptr<DecodeFrame[]> all;
  std::size_t grouped = 0;  // number of frames in groups, which come first in `all`
  std::vector<CodecGroup> groups;
  std::vector<RawCopy> copies;
};

// Fails if a header is invalid, or has another shape or dtype than the first. Throws std::bad_alloc.
Status sort_frames(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted);

}  // namespace pyfilter::cuda
