// SPDX-License-Identifier: BSD-3-Clause
// The launchers of lorenzo for one map, by tile shape. Numbers of thread blocks are bounded: the kernels walk over what
// is left.
#pragma once

#include <algorithm>
#include <cstddef>

#include "stages/cuda/coder.cuh"
#include "stages/cuda/entropy/count.cuh"
#include "stages/cuda/entropy/decode.cuh"
#include "stages/cuda/entropy/huffman_encode.cuh"
#include "stages/cuda/entropy/rans_encode.cuh"
#include "stages/cuda/entropy/residuals.cuh"
#include "stages/cuda/entropy/special_values.cuh"

namespace pyfilter::cuda {

// Sets aside shared memory for a kernel, and counts the thread blocks that the device runs at once.
template <class Kernel>
cudaError_t resident_blocks(Kernel kernel, int threads, std::size_t shared_bytes, unsigned* blocks) {
  int device = 0, processors = 0, each = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  PYF_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, shared_bytes));
  *blocks = static_cast<unsigned>(std::max(1, each * processors));
  return cudaSuccess;
}
// Thread blocks of each chunk or frame, so that all of them have about as many as the device runs at once.
inline unsigned blocks_each(unsigned resident, std::uint64_t wanted, std::uint32_t count) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, (resident + count - 1) / count));
}

template <class Map, int S>
cudaError_t launch_residuals(const StreamParams& job, cudaStream_t stream) {
  constexpr int kRounds = 4;  // of the device's blocks: tiles differ
  unsigned resident = 0;
  const std::size_t bytes = sizeof(ResidualSpace<Map, S>);
  PYF_CUDA_TRY(resident_blocks(residual_kernel<Map, S>, kThreads, bytes, &resident));
  const unsigned blocks = std::min(job.base.tiles * job.base.chunks, kRounds * resident);
  residual_kernel<Map, S><<<blocks, kThreads, bytes, stream>>>(job);
  return cudaGetLastError();
}

template <class Code, int S>
cudaError_t launch_count(const StreamParams& job, cudaStream_t stream) {
  unsigned resident = 0;
  PYF_CUDA_TRY(resident_blocks(count_kernel<Code, S>, kThreads, sizeof(CountSpace), &resident));
  const TileSample sample(job.base.tiles);
  const unsigned blocks = blocks_each(resident, (sample.count + 3) / 4, job.base.chunks);
  count_kernel<Code, S><<<dim3(blocks, job.base.chunks), kThreads, sizeof(CountSpace), stream>>>(job);
  return cudaGetLastError();
}

template <class Code, int S>
cudaError_t launch_streams(const StreamParams& job, cudaStream_t stream) {
  unsigned resident = 0;
  const auto kernel = job.coder == kRans ? rans_encode_kernel<Code, S> : huffman_encode_kernel<Code, S>;
  const std::size_t bytes = job.coder == kRans ? kMostTables * kSymbols * sizeof(DeviceEntry) : 0;
  PYF_CUDA_TRY(resident_blocks(kernel, kStreamThreads, bytes, &resident));
  const unsigned blocks = blocks_each(resident, (job.base.tiles + kStreamWarps - 1) / kStreamWarps, job.base.chunks);
  kernel<<<dim3(blocks, job.base.chunks), kStreamThreads, bytes, stream>>>(job);
  return cudaGetLastError();
}

// Behind the tables: groups, then what is special in them. `most_units`: of a frame.
template <class Map, int S>
cudaError_t launch_stream_decode(const StreamDecodeParams& job, std::uint8_t coder, std::uint32_t most_units,
                                 std::uint32_t frames, cudaStream_t stream) {
  unsigned resident = 0;
  if (coder == kRans) {
    constexpr int kWarpsHere = kRansWarps<Map, S>;
    constexpr std::size_t kBytes =
        kTableAlignment + kTableBytes + kWarpsHere * sizeof(DecodeWarpSpace<Map, RansSource<Map, S>>);
    PYF_CUDA_TRY(resident_blocks(rans_decode_kernel<Map, S>, 32 * kWarpsHere, kBytes, &resident));
    const unsigned blocks = blocks_each(resident, (most_units + kWarpsHere - 1) / kWarpsHere, frames);
    rans_decode_kernel<Map, S><<<dim3(blocks, frames), 32 * kWarpsHere, kBytes, stream>>>(job);
  } else {
    constexpr int kWarpsHere = kHuffmanWarps<Map>;
    constexpr std::size_t kBytes =
        sizeof(HuffmanTables) + kWarpsHere * sizeof(DecodeWarpSpace<Map, HuffmanSource<Map>>);
    PYF_CUDA_TRY(resident_blocks(huffman_decode_kernel<Map, S>, 32 * kWarpsHere, kBytes, &resident));
    const unsigned blocks = blocks_each(resident, (most_units + kWarpsHere - 1) / kWarpsHere, frames);
    huffman_decode_kernel<Map, S><<<dim3(blocks, frames), 32 * kWarpsHere, kBytes, stream>>>(job);
  }
  PYF_CUDA_TRY(cudaGetLastError());
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
