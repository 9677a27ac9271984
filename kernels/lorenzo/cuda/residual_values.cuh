// SPDX-License-Identifier: BSD-3-Clause
// Residuals that rans_residuals.cuh has left in memory to values: a thread block takes a tile, each thread a block of
// 32 values, as for packed tiles (stages/cuda/packed/decode.cuh).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lorenzo/cuda/params.cuh"
#include "lorenzo/cuda/rans_residuals.cuh"
#include "stages/cuda/loaded.cuh"
#include "stages/cuda/packed/decode.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
struct ResidualValueSpace {
  alignas(16) std::uint8_t arena[kPackedArenaBytes<typename Map::Value>];
  Faces<S, typename Map::Code> faces;
};

// The residuals of this thread's block, coded block number `index` of its tile.
template <class Code>
__device__ __forceinline__ void load_residuals(const ResidualSlot<Code>& slot, const TileResiduals& tile,
                                               std::uint32_t index, Code (&z)[32]) {
  const std::uint32_t round = index / 32, lane = index % 32;
  std::uint32_t words[8];
#pragma unroll
  for (unsigned f = 0; f < 8; ++f) words[f] = __ldcs(slot.bytes(round, lane) + 32 * f);
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) z[i] = words[i / 4] >> 8 * (i % 4) & 0xFF;
  const std::uint32_t halves = tile.halves >> 8 * round & 0xFF, codes = tile.codes >> 8 * round & 0xFF;
  if ((halves | codes) == 0) return;
#pragma unroll
  for (unsigned f = 0; f < 8; ++f) {
    if ((halves >> f & 1) != 0) {
      read_halves(__ldcs(slot.halves(round, f, lane)), z[4 * f], z[4 * f + 1], z[4 * f + 2], z[4 * f + 3]);
    } else if ((codes >> f & 1) != 0) {
      alignas(16) Code four[4];
#pragma unroll
      for (unsigned p = 0; p < sizeof four / 16; ++p)
        reinterpret_cast<uint4*>(four)[p] = __ldcs(slot.codes(round, f, lane) + p);
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) z[4 * f + i] = four[i];
    }
  }
}

// Thread blocks of a multiprocessor: as many as registers allow without spilling.
template <int kCodeBytes, int S>
inline constexpr int kResidualValueBlocks = kCodeBytes == 8 ? 4
                                            : S == kVolume  ? 7
                                                            : 8;

// Frames with a fault, and verbatim tiles, are left out.
template <class Map, int S>
__global__ void __launch_bounds__(kThreads, kResidualValueBlocks<sizeof(typename Map::Code), S>)
    residual_value_kernel(const __grid_constant__ StreamDecodeParams job) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  __shared__ ResidualValueSpace<Map, S> space;
  const DecodeParams& base = job.base;
  const std::uint32_t number = blockIdx.x / base.tile_count, index = job.first_frame + number;
  const std::uint32_t tile = base.first_tile + (blockIdx.x - number * base.tile_count);
  const DecodeFrame frame = base.frame(index);
  const std::size_t slot = residual_slot_of(job, index, tile);
  const TileResiduals here = job.residual_tiles[slot];
  // looked at when residuals are on their way, too; volumes have no register to keep it
  std::uint32_t fault = *frame.fault;
  if constexpr (S != kVolume) use_from_here(fault);
  if (S == kVolume && (fault != 0 || here.verbatim != 0)) return;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const TileBox box = box_of<S>(base.grid, tile);
  std::uint32_t own = 0, before_own = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) before_own += static_cast<std::uint32_t>(__popc(static_cast<int>(here.coded[w])));
    if (w == warp) own = here.coded[w];
  }
  before_own += static_cast<std::uint32_t>(__popc(static_cast<int>(own & ((1u << lane) - 1))));
  Code z[32], before[kFaceCodes<S>];
  if ((own >> lane & 1) != 0) {
    load_residuals(ResidualSlot<Code>(job, slot), here, before_own, z);
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] = unzigzag(z[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] = 0;
  }
  if (fault != 0 || here.verbatim != 0) return;  // in all threads; any residuals are in the slot
  if (threadIdx.x == 0) z[0] = static_cast<Code>(here.first) + Map::kBias;
  packed_sums<S>(static_cast<int>(order_of(frame)), z, before, space.faces);
  const Map map = decoding_map<Map>(frame);
  __syncthreads();  // faces are written
  add_before<S>(z, before, space.faces);
  Value x[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) x[i] = map.decode_biased(z[i]);
  write_packed_row<S>(space.arena, x);
  await_values<S>();
  store_packed<S, Value>(base.grid, space.arena, box, base.aligned, base.start, min(base.stop, base.grid.values),
                         frame.out);
}

}  // namespace pyfilter::cuda
