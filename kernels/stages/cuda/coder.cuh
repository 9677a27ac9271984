// SPDX-License-Identifier: BSD-3-Clause
// Helper for the rooms' cuda.cu: the launchers of one map, and the choice of block dimensions.
#pragma once

#include <algorithm>

#include "stages/cuda/launch.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/cuda/tile_encode.cuh"

namespace pyfilter::cuda {

// As many thread blocks as run at a time: more would only wait.
template <class Kernel>
cudaError_t resident_blocks(Kernel kernel, int* blocks) {
  int device = 0, per_processor = 0, processors = 0;
  if (const cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return e;
  if (const cudaError_t e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      e != cudaSuccess)
    return e;
  if (const cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kThreads, 0);
      e != cudaSuccess)
    return e;
  *blocks = per_processor * processors;
  return cudaSuccess;
}

template <class Map, int D>
cudaError_t launch_encode(const EncodeParams& params, cudaStream_t stream) {
  int resident = 0;
  if (const cudaError_t e = resident_blocks(encode_kernel<Map, D>, &resident); e != cudaSuccess) return e;
  const std::uint32_t tasks = params.tiles * params.chunks + 1;  // and the scanner
  return launch_behind(encode_kernel<Map, D>, std::min(tasks, static_cast<std::uint32_t>(resident)), kThreads, stream,
                       params);
}

template <class Map, int D>
cudaError_t launch_decode(const DecodeParams& params, std::uint32_t frames, cudaStream_t stream) {
  decode_kernel<Map, D><<<params.tile_count * frames, kThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

template <class Map, int D>
inline constexpr Coder kCoder{&launch_encode<Map, D>, &launch_decode<Map, D>};

template <class Map>
const Coder* coder(int block_dims) {
  switch (block_dims) {
    case 1:
      return &kCoder<Map, 1>;
    case 2:
      return &kCoder<Map, 2>;
    case 3:
      return &kCoder<Map, 3>;
    default:
      return nullptr;
  }
}

}  // namespace pyfilter::cuda
