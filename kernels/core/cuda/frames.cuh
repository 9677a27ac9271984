// SPDX-License-Identifier: BSD-3-Clause
// The frames of a batch as their headers say, read on the host: sorted by codec and block dimensions, since one launch
// decodes frames that are alike (core/cuda/decode.cu).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda/driver.hpp"
#include "progressive/cuda/driver.cuh"
#include "lorenzo/cuda/driver.cuh"
#include "core/header.hpp"
#include "core/plan.hpp"
#include "core/status.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// Frames of one codec and block dimensions, or tile shape; of lorenzo, of one coder too.
struct FrameGroup {
  const Coder* coder = nullptr;
  const StreamCoder* streams = nullptr;
  std::uint8_t stream_coder = 0;
  std::uint64_t most_units = 0;
  Grid grid;
  const DecodeFrame* frames = nullptr;
  std::size_t count = 0;
};

struct RawCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};

struct SortedFrames {
  FrameInfo first;  // of the batch: all others have its shape and dtype
  std::unique_ptr<DecodeFrame[]> all;
  std::array<FrameGroup, 36> groups;  // of `all`
  std::vector<RawCopy> copies;
  std::vector<ProgressiveFrame> progressive;
};

// Frames that say what no decoder takes, or are no array like the first, are an error. Throws std::bad_alloc.
Status sort_frames(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted);

}  // namespace pyfilter::cuda
