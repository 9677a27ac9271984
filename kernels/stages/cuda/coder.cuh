// SPDX-License-Identifier: BSD-3-Clause
// The launchers of one map, and the choice of block dimensions, for the codecs' coders.cu.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "stages/cuda/launch.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/cuda/tile_encode.cuh"

namespace pyfilter::cuda {

// The number of thread blocks that run at once (more would only wait), and their shared memory; of it, bytes for a tile
// that waits.
struct BlockPlan {
  std::size_t shared_bytes = 0;
  std::uint32_t waiting_bytes = 0, resident = 0;
};

// A multiprocessor's shared memory is divided by the blocks that its registers allow. So even tiles that hardly get
// smaller fit while they wait for their offset.
template <class Kernel>
cudaError_t plan_blocks(Kernel kernel, int device, int fixed, int blocks, int most_waiting, BlockPlan* plan) {
  SharedMemory shared;
  int most = 0, per_processor = 0, processors = 0;
  PYF_CUDA_TRY(shared.find(device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  PYF_CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  const int available = std::min(shared.of_block(blocks), most) - fixed;
  const int waiting = std::clamp(available / 16 * 16, 16, most_waiting);
  const auto shared_bytes = static_cast<std::size_t>(fixed + waiting);
  PYF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, fixed + waiting));
  PYF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kThreads, shared_bytes));
  *plan = {shared_bytes, static_cast<std::uint32_t>(waiting), static_cast<std::uint32_t>(per_processor * processors)};
  return cudaSuccess;
}

// Launches an encoder over all tiles. Its plan is made once for each device: the queries take several microseconds.
template <auto kKernel>
cudaError_t launch_tiles(const EncodeParams& params, int fixed, int blocks, int most_waiting, cudaStream_t stream) {
  constexpr int kMostDevices = 64;
  static std::mutex mutex;
  static BlockPlan plans[kMostDevices];
  int device = 0;
  PYF_CUDA_TRY(cudaGetDevice(&device));
  BlockPlan plan;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    BlockPlan& known = plans[device % kMostDevices];
    if (known.shared_bytes == 0 || device >= kMostDevices)
      PYF_CUDA_TRY(plan_blocks(kKernel, device, fixed, blocks, most_waiting, &known));
    plan = known;
  }
  EncodeParams job = params;
  job.waiting_bytes = plan.waiting_bytes;
  const std::uint32_t tasks = params.tiles * params.chunks + 1;  // plus the scanner
  return launch_behind(kKernel, std::min(tasks, plan.resident), kThreads, plan.shared_bytes, stream, job);
}

template <class Map, int D>
cudaError_t launch_encode(const EncodeParams& params, cudaStream_t stream) {
  using Space = EncodeSpace<typename Map::Value, D, Map::kHasSpecial>;
  return launch_tiles<encode_kernel<Map, D>>(params, static_cast<int>(offsetof(Space, waiting)), kEncodeBlocks<Map, D>,
                                             kMostWaiting<typename Map::Value>, stream);
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
