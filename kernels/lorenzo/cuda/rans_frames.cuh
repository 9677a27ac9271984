// SPDX-License-Identifier: BSD-3-Clause
// Frames of rans streams to values: which groups of which frames a warp decodes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "lorenzo/cuda/frame_places.cuh"
#include "lorenzo/cuda/rans_decode.cuh"

namespace pyfilter::cuda {

// Warps of a thread block, the only block of its multiprocessor: as many as registers and shared memory allow. Shared
// memory holds the tables of two frames if blocks share all frames. Columns have fewer warps with more registers: if
// few of their blocks are coded, rounds and runs overlap irregularly, and spilled values are used often.
template <class Map, int S, bool kShared>
inline constexpr int kRansWarps = sizeof(typename Map::Code) == 8 ? ((S == kPlane || S == kVolume) || kShared ? 12 : 16)
                                  : S == kChain && !kShared       ? 32
                                  : S != kColumns && kShared      ? 20
                                                                  : 16;

// Each frame has thread blocks of its own (the y dimension) or, with kShared, all frames are divided evenly among the
// blocks.
template <class Map, int S, bool kShared>
__global__ void __launch_bounds__(32 * kRansWarps<Map, S, kShared>, 1)
    rans_decode_kernel(const __grid_constant__ StreamDecodeParams job) {
  using Source = RansSource<Map, S, kShared>;
  using Share = RansShare<Map, kShared>;
  extern __shared__ __align__(1024) uint4 shared_memory[];
  const std::uint32_t base = shared_address(shared_memory);
  const Share share = {reinterpret_cast<std::uint8_t*>(shared_memory) +
                       (Share::kAlignment - base % Share::kAlignment) % Share::kAlignment};
  const unsigned warp = threadIdx.x / 32;
  typename Source::WarpSpace space = {reinterpret_cast<std::uint16_t*>(share.ring(warp)), share.rows(warp),
                                      share.zeros(), reinterpret_cast<WarpTile*>(share.rows(warp) + Share::kRows)};
  for (unsigned i = threadIdx.x; i < Share::kZeros / 4; i += blockDim.x)
    reinterpret_cast<std::uint32_t*>(share.zeros())[i] = 0;
  const auto decode = [&](const BlockFrame<Map>& frame, std::uint32_t number) {
    decode_unit<Map, S, Source>(job, frame.frame, frame.groups, frame.map, frame.index, frame.table_bytes, false,
                                frame.units, frame.first + number * frame.step, frame.tables, space);
  };
  if constexpr (!kShared) {
    if (threadIdx.x == 0) open_frame<false>(job, blockIdx.y, shared_address(share.tables(0)), share.frame(0));
    __syncthreads();
    copy_tables(job, share.frame(0), share.tables(0), threadIdx.x, blockDim.x);
    __syncthreads();
    const BlockFrame<Map> frame = share.frame(0);  // a single frame fits registers
    for (std::uint32_t number = warp; number < frame.count; number += blockDim.x / 32) decode(frame, number);
  } else {
    const FramePlaces<Map> places = {job, share, shared_start(job, blockIdx.x).frame,
                                     min(shared_start(job, blockIdx.x + 1).frame, job.frames - 1)};
    places.begin();
#pragma unroll 1
    for (std::uint32_t index = places.first; index <= places.last;) {
      const unsigned place = (index - places.first) % 2;
      const std::uint32_t left = places.take(place);
      if (left != 0) {
        const BlockFrame<Map>& frame = share.frame(place);
        decode(frame, frame.count - left);
        places.leave(place);
      } else if (++index <= places.last) {
        places.wait(index);
      }
    }
  }
}

}  // namespace pyfilter::cuda
