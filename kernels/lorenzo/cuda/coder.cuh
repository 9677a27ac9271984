// SPDX-License-Identifier: BSD-3-Clause
// The launchers of lorenzo for one map, by tile shape. The number of thread blocks is bounded; kernels loop over the
// remaining work.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/cuda/sizes.cuh"
#include "lorenzo/cuda/blocks.cuh"
#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_frames.cuh"
#include "lorenzo/cuda/residuals.cuh"
#include "lorenzo/cuda/special_values.cuh"
#include "stages/cuda/coder.cuh"
#include "stages/cuda/warp_launch.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
cudaError_t launch_residuals(const StreamParams& job, cudaStream_t stream) {
  constexpr int kRounds = 4;  // waves of the device's thread blocks: tiles differ in their work
  unsigned resident = 0;
  const std::size_t bytes = sizeof(ResidualSpace<Map, S>);
  PYF_CUDA_TRY(resident_blocks(residual_kernel<Map, S>, kThreads, bytes, &resident));
  const unsigned blocks = std::min(job.base.tiles * job.base.chunks, kRounds * resident);
  residual_kernel<Map, S><<<blocks, kThreads, bytes, stream>>>(job);
  return cudaGetLastError();
}

// Launchers that depend on the code width only; instantiated with one map for each width (codes.cuh).
template <class Code, int S>
cudaError_t launch_count(const StreamParams& job, cudaStream_t stream);
template <class Code, int S>
cudaError_t launch_streams(const StreamParams& job, cudaStream_t stream);

// Frames share all thread blocks if otherwise a tenth of the device or more would be idle. Unaligned rows of planes and
// volumes do not: they spill more registers.
template <class Map, int S>
cudaError_t launch_rans(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream) {
  constexpr auto own = rans_decode_kernel<Map, S, false>;
  using Own = RansShare<Map, false>;
  WarpLaunch launch;
  PYF_CUDA_TRY(launch.find(own, kRansWarps<Map, S, false>, Own::kBlockBytes, Own::kWarpBytes));
  const unsigned blocks = launch.own_blocks(job.frames, units);
  if constexpr (S != kChain) {
    constexpr unsigned kMostBlocks = 8;  // for each frame: more blocks would differ more in their work
    const unsigned all = blocks * job.frames, turns = (all + launch.resident - 1) / launch.resident;
    if (10 * all < 9 * launch.resident * turns && blocks < kMostBlocks && units >= usual_size(launch.warps, 1) &&
        (S == kColumns || job.base.aligned)) {
      constexpr auto shared = rans_decode_kernel<Map, S, true>;
      using Shared = RansShare<Map, true>;
      PYF_CUDA_TRY(launch.find(shared, kRansWarps<Map, S, true>, Shared::kBlockBytes, Shared::kWarpBytes));
      shared<<<launch.resident, 32 * launch.warps, launch.bytes, stream>>>(job);
      return cudaGetLastError();
    }
  }
  const unsigned warps = launch.fewest_warps(units, blocks);
  own<<<dim3(blocks, job.frames), 32 * warps, launch.bytes_for(warps), stream>>>(job);
  return cudaGetLastError();
}

template <class Map, int S, class Residual>
cudaError_t launch_huffman(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream) {
  constexpr auto kernel = huffman_decode_kernel<Map, S, Residual>;
  WarpLaunch launch;
  PYF_CUDA_TRY(launch.find(kernel, (kHuffmanWarps<Map, S, Residual>), sizeof(HuffmanTables),
                           sizeof(typename HuffmanSource<Map, Residual>::WarpSpace)));
  const unsigned blocks = launch.own_blocks(job.frames, units);
  const unsigned warps = launch.fewest_warps(units, blocks);
  kernel<<<dim3(blocks, job.frames), 32 * warps, launch.bytes_for(warps), stream>>>(job);
  return cudaGetLastError();
}

// Launches that follow the tables: groups, then their special values. `most_units`: the most groups of a frame.
template <class Map, int S>
cudaError_t launch_stream_decode(const StreamDecodeParams& job, std::uint8_t coder, std::uint32_t most_units,
                                 std::uint32_t frames, cudaStream_t stream) {
  unsigned resident = 0;
  if (is_rans(coder)) {
    PYF_CUDA_TRY((launch_rans<Map, S>(job, most_units, stream)));
  } else {
    PYF_CUDA_TRY((launch_huffman<Map, S, std::uint8_t>(job, most_units, stream)));
    PYF_CUDA_TRY((launch_huffman<Map, S, std::uint16_t>(job, most_units, stream)));
    PYF_CUDA_TRY((launch_huffman<Map, S, typename Map::Code>(job, most_units, stream)));
  }
  if (job.base.tile_count != job.base.tiles) {
    check_groups_kernel<<<dim3(std::min(64u, most_units / kCheckThreads + 1), frames), kCheckThreads, 0, stream>>>(job);
    PYF_CUDA_TRY(cudaGetLastError());
  }
  PYF_CUDA_TRY(resident_blocks(special_kernel<Map, S>, kThreads, 0, &resident));
  const std::uint64_t tiles = std::uint64_t{job.base.tile_count} * frames;
  special_kernel<Map, S><<<static_cast<unsigned>(std::min<std::uint64_t>(tiles, resident)), kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class Map, int S>
inline constexpr StreamCoder kStreamCoder{&launch_residuals<Map, S>, &launch_count<typename Map::Code, S>,
                                          &launch_streams<typename Map::Code, S>, &launch_stream_decode<Map, S>};

template <class Map>
const StreamCoder* stream_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kStreamCoder<Map, kChain>;
    case kPlane:
      return &kStreamCoder<Map, kPlane>;
    case kVolume:
      return &kStreamCoder<Map, kVolume>;
    case kColumns:
      return &kStreamCoder<Map, kColumns>;
    default:
      return nullptr;
  }
}

}  // namespace pyfilter::cuda
