// SPDX-License-Identifier: BSD-3-Clause
// The launchers of packed tiles for one map, by tile shape.
#pragma once

#include <algorithm>
#include <cstddef>

#include "hierarchical_delta/cuda/encode.cuh"
#include "stages/cuda/coder.cuh"
#include "stages/cuda/packed/decode.cuh"

namespace pyfilter::cuda {

template <class Map, int S, bool kExceptions>
cudaError_t launch_packed_encode(const EncodeParams& params, cudaStream_t stream) {
  const auto kernel = packed_encode_kernel<Map, S, kExceptions>;
  using Space = PackedEncodeSpace<Map, S>;
  EncodeParams job = params;
  std::size_t shared_bytes = 0;
  std::uint32_t resident = 0;
  PYF_CUDA_TRY(plan_blocks(kernel, static_cast<int>(offsetof(Space, waiting)),
                           kPackedEncodeBlocks<sizeof(typename Map::Code), S>, kMostWaiting<typename Map::Value>,
                           &job.waiting_bytes, &shared_bytes, &resident));
  const std::uint32_t tasks = params.tiles * params.chunks + 1;  // plus the scanner
  return launch_behind(kernel, std::min(tasks, resident), kThreads, shared_bytes, stream, job);
}

template <class Map, int S>
cudaError_t launch_packed_decode(const DecodeParams& params, std::uint32_t frames, cudaStream_t stream) {
  if (params.frames == nullptr)
    packed_decode_kernel<Map, S, true><<<params.tile_count, kThreads, 0, stream>>>(params);
  else
    packed_decode_kernel<Map, S, false><<<params.tile_count * frames, kThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

template <class Map, int S>
cudaError_t launch_either_encode(const EncodeParams& params, cudaStream_t stream) {
  return params.exceptions ? launch_packed_encode<Map, S, true>(params, stream)
                           : launch_packed_encode<Map, S, false>(params, stream);
}

template <class Map, int S>
inline constexpr Coder kPackedCoder{&launch_either_encode<Map, S>, &launch_packed_decode<Map, S>};

template <class Map>
const Coder* packed_coder(int tile_shape) {
  switch (tile_shape) {
    case kChain:
      return &kPackedCoder<Map, kChain>;
    case kPlane:
      return &kPackedCoder<Map, kPlane>;
    case kVolume:
      return &kPackedCoder<Map, kVolume>;
    case kColumns:
      return &kPackedCoder<Map, kColumns>;
    default:
      return nullptr;
  }
}

}  // namespace pyfilter::cuda
