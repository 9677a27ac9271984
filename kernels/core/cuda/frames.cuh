// SPDX-License-Identifier: BSD-3-Clause
// The frames of a batch as their headers say, read on the host: sorted by codec and group, since one launch decodes
// frames that are alike (decode.cu).
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
  std::size_t grouped = 0;  // the first of `all`, which groups have
  std::vector<CodecGroup> groups;
  std::vector<RawCopy> copies;
};

// Frames that say what no decoder takes, or are no array like the first, are an error. Throws std::bad_alloc.
Status sort_frames(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted);

}  // namespace pyfilter::cuda
