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
#include "core/cuda/lists.cuh"
#include "core/status.hpp"

namespace pyfilter::cuda {

struct CodecGroup : FrameGroup {
  const DeviceCodec* codec = nullptr;
};

struct SortedFrames {
  std::unique_ptr<DecodeFrame[]> all;
  std::size_t grouped = 0;  // number of frames in groups, which come first in `all`
  std::vector<CodecGroup> groups;
  std::vector<ArrayCopy> copies;
};

// The values [start, stop) to decode. `of_base`: these are values of the base array, where the dtype is a derived one
// (core/base_values.hpp).
struct AskedValues {
  std::uint64_t start, stop;
  bool of_base;
};

// `first`: the header of one of the frames. Fails if a header is invalid, or has another shape or dtype. Throws
// std::bad_alloc.
Status sort_frames(const CudaFrame* frames, std::size_t count, const FrameInfo& first, const AskedValues& asked,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted);
// Sorts and decodes a batch. `value_bytes`: of a frame; not read for values of a base array. Throws std::bad_alloc.
Status decode_frames(const CudaFrame* frames, std::size_t count, const FrameInfo& first, const AskedValues& asked,
                     std::size_t value_bytes, std::uint32_t* faults, cudaStream_t stream);

}  // namespace pyfilter::cuda
