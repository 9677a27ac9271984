// SPDX-License-Identifier: BSD-3-Clause
// Decoding groups of frames in tiles, from the host's side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cuda/codec.cuh"
#include "core/cuda/sizes.cuh"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

// The parameters of a group's launch, without its frames.
Status decode_params(const FrameGroup& group, const Grid& grid, std::uint64_t start, std::uint64_t stop,
                     DecodeParams& job);

// Calls launch(job, frames) for parts of a group of at most `most` frames.
template <class Launch>
Status decode_in_parts(const FrameGroup& group, DecodeParams& job, std::size_t most, const Launch& launch) {
  for (std::size_t done = 0; done < group.count;) {
    const std::size_t here = std::min({group.count - done, most, std::size_t{kMostOfLaunch}});
    job.frames = group.count == 1 ? nullptr : group.on_device + done;
    job.only_frame = group.frames[0];
    PYF_TRY(launch(job, static_cast<std::uint32_t>(here)));
    done += here;
  }
  return kOk;
}

// Decodes frames whose tiles need no other tile.
Status decode_tile_frames(const FrameGroup& group, const Grid& grid, const Coder* coder, std::uint64_t start,
                          std::uint64_t stop, cudaStream_t stream);

}  // namespace pyfilter::cuda
