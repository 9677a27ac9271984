// SPDX-License-Identifier: BSD-3-Clause
// The launchers of one map, and the choice of block dimensions, for the codecs' coders.cu.
#pragma once

#include <algorithm>
#include <cstddef>

#include "stages/cuda/launch.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/cuda/tile_encode.cuh"

namespace pyfilter::cuda {

// The number of thread blocks that run at once (more would only wait), and their shared memory. A multiprocessor's
// shared memory is divided by the blocks that its registers allow. So even tiles that hardly get smaller fit while they
// wait for their offset.
template <class Kernel>
cudaError_t plan_blocks(Kernel kernel, int fixed, int blocks, int most_waiting, std::uint32_t* waiting_bytes,
                        std::size_t* shared_bytes, std::uint32_t* resident) {
  constexpr int kReserved = 1024;  // reserved by the system in each block
  int device = 0, all = 0, most = 0, per_processor = 0, processors = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const int available = std::min(all / blocks - kReserved, most) - fixed;
  const int waiting = std::clamp(available / 16 * 16, 16, most_waiting);
  *shared_bytes = static_cast<std::size_t>(fixed + waiting);
  *waiting_bytes = static_cast<std::uint32_t>(waiting);
  PYF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, fixed + waiting));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kThreads, *shared_bytes));
  *resident = static_cast<std::uint32_t>(per_processor * processors);
  return cudaSuccess;
}

template <class Map, int D>
cudaError_t launch_encode(const EncodeParams& params, cudaStream_t stream) {
  EncodeParams job = params;
  std::size_t shared_bytes = 0;
  std::uint32_t resident = 0;
  using Space = EncodeSpace<typename Map::Value, D, Map::kHasSpecial>;
  PYF_CUDA_TRY(plan_blocks(encode_kernel<Map, D>, static_cast<int>(offsetof(Space, waiting)), kEncodeBlocks<Map, D>,
                           kMostWaiting<typename Map::Value>, &job.waiting_bytes, &shared_bytes, &resident));
  const std::uint32_t tasks = params.tiles * params.chunks + 1;  // plus the scanner
  return launch_behind(encode_kernel<Map, D>, std::min(tasks, resident), kThreads, shared_bytes, stream, job);
}

template <class Map, int D>
cudaError_t launch_decode(const DecodeParams& params, std::uint32_t frames, cudaStream_t stream) {
  if (params.frames == nullptr)
    decode_kernel<Map, D, true><<<params.tile_count, kThreads, 0, stream>>>(params);
  else
    decode_kernel<Map, D, false><<<params.tile_count * frames, kThreads, 0, stream>>>(params);
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
