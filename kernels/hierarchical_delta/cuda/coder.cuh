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
  using Space = PackedEncodeSpace<Map, S>;
  return launch_tiles<packed_encode_kernel<Map, S, kExceptions>>(params, static_cast<int>(offsetof(Space, waiting)),
                                                                 kPackedEncodeBlocks<sizeof(typename Map::Code), S>,
                                                                 kMostWaiting<typename Map::Value>, stream);
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
