// SPDX-License-Identifier: BSD-3-Clause
// The launchers of lorenzo for one map, by tile shape. The number of thread blocks is bounded; kernels loop over the
// remaining work.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/cuda/sizes.cuh"
#include "lorenzo/cuda/blocks.cuh"
#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/rans_decode.cuh"
#include "lorenzo/cuda/residual_values.cuh"
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
template <class Code, int S>
cudaError_t launch_rans_residuals(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream);

// Chains: values at once.
template <class Map>
cudaError_t launch_rans_chains(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream) {
  constexpr auto kernel = rans_decode_kernel<Map>;
  WarpLaunch launch;
  PYF_CUDA_TRY(launch.find(kernel, kRansWarps<Map>, RansShare::kBlockBytes + kRansZeroBytes<Map>,
                           RansShare::kRing + kRunBytes<typename Map::Value>));
  const unsigned blocks = launch.own_blocks(job.frames, units);
  const unsigned warps = launch.fewest_warps(units, blocks);
  kernel<<<dim3(blocks, job.frames), 32 * warps, launch.bytes_for(warps), stream>>>(job);
  return cudaGetLastError();
}

// Memory that keeps a kernel of planes with unaligned rows at six thread blocks a multiprocessor. With more, more
// sectors leave the second-level cache half written.
template <class Map, int S>
cudaError_t idle_bytes(const DecodeParams& job, std::size_t* bytes) {
  constexpr int kBlocks = 6;
  *bytes = 0;
  if (S == kVolume || job.aligned || kResidualValueBlocks<sizeof(typename Map::Code), S> <= kBlocks) return cudaSuccess;
  int device = 0;
  SharedMemory shared;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(shared.find(device));
  const int idle = shared.of_block(kBlocks) - static_cast<int>(sizeof(ResidualValueSpace<Map, S>));
  *bytes = static_cast<std::size_t>(std::clamp(idle / 256 * 256, 0, 24 * 1024));
  return cudaSuccess;
}

// Other shapes: residuals, then values, of as many frames or tiles of a frame as there are slots for.
template <class Map, int S>
cudaError_t launch_rans_tiles(const StreamDecodeParams& job, std::uint32_t units, cudaStream_t stream) {
  const std::uint32_t end = job.base.first_tile + job.base.tile_count;
  const std::uint64_t each = residual_slots(job.base);
  std::size_t idle = 0;
  PYF_CUDA_TRY((idle_bytes<Map, S>(job.base, &idle)));
  const auto decode = [&](const StreamDecodeParams& part) {
    PYF_CUDA_TRY(
        (launch_rans_residuals<typename Map::Code, S>(part, std::min(units, part.base.tile_count + 1), stream)));
    residual_value_kernel<Map, S><<<part.base.tile_count * part.frames, kThreads, idle, stream>>>(part);
    return cudaGetLastError();
  };
  const auto shares = [](std::uint64_t all, std::uint64_t most) {  // `all` in as few equal shares as `most` allows
    const std::uint64_t count = (all + most - 1) / most;
    return (all + count - 1) / count;
  };
  // fewer slots than wanted are those of whole groups
  const auto groups_of = [](std::uint64_t tiles) { return (tiles + kMostGroupTiles - 1) / kMostGroupTiles; };
  const std::uint64_t frames_each = shares(job.frames, std::max<std::uint64_t>(1, job.slots / each)),
                      tiles_each = shares(groups_of(each), groups_of(job.slots)) * kMostGroupTiles;
  StreamDecodeParams part = job;
  for (std::uint32_t frame = 0; frame < job.frames; frame += part.frames) {
    part.first_frame = frame;
    part.frames = static_cast<std::uint32_t>(std::min<std::uint64_t>(frames_each, job.frames - frame));
    for (std::uint32_t tile = job.base.first_tile, next; tile < end; tile = next) {
      const std::uint64_t behind = tile / kMostGroupTiles * kMostGroupTiles + tiles_each;
      next = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, behind));
      part.base.first_tile = tile;
      part.base.tile_count = next - tile;
      PYF_CUDA_TRY(decode(part));
    }
  }
  return cudaSuccess;
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
    if constexpr (S == kChain)
      PYF_CUDA_TRY(launch_rans_chains<Map>(job, most_units, stream));
    else
      PYF_CUDA_TRY((launch_rans_tiles<Map, S>(job, most_units, stream)));
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
                                          &launch_streams<typename Map::Code, S>, &launch_stream_decode<Map, S>,
                                          S == kChain ? 0 : residual_bytes_of_tile(sizeof(typename Map::Code))};

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
