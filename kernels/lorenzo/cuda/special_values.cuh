// SPDX-License-Identifier: BSD-3-Clause
// Special values of tiles whose other values are already stored. A thread block takes a special part from the decoder's
// list, replaces values in registers and stores the tile again.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/decode.cuh"
#include "stages/cuda/packed/decode.cuh"

namespace pyfilter::cuda {

// Loads the stored values of this thread's block; 0 outside the array.
template <int S, class Value>
__device__ __forceinline__ void load_stored(const DecodeParams& job, const TileBox& box, const std::uint8_t* out,
                                            Value (&x)[32]) {
  using Tile = TileShape<S>;
  const std::uint64_t stop = min(job.stop, job.grid.values);
#pragma unroll
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned b = threadIdx.x, px = Tile::block_x(b) + i % Tile::kBlockX,
                   py = Tile::block_y(b) + i / Tile::kBlockX % Tile::kBlockY,
                   pz = Tile::block_z(b) + i / (Tile::kBlockX * Tile::kBlockY);
    const std::uint64_t index = box.first + (std::uint64_t{pz} * job.grid.ny + py) * job.grid.nx + px;
    const bool there = px < box.inx && py < box.iny && pz < box.inz && index >= job.start && index < stop;
    x[i] = there ? reinterpret_cast<const Value*>(out)[index - job.start] : Value{0};
  }
}

template <class Map, int S>
__device__ __forceinline__ Fault put_specials(const DecodeParams& job, const DecodeFrame& frame,
                                              const SpecialTile& special, PackedDecodeSpace<Map, S>& space) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const TileBox box = box_of<S>(job.grid, special.tile);
  const bool valid = is_present<S>(box, threadIdx.x);
  if (4 * special.words > max_packed_bytes(sizeof(Value))) return Fault::size;
  const std::uint8_t* const bytes = stage_words(frame.payload + special.at, special.words, space.arena);
  __syncthreads();
  const std::uint32_t word = *reinterpret_cast<const std::uint32_t*>(bytes);
  const TileLocation location = {0, special.words, false, Fault::none};
  Value x[32];
  Fault fault = Fault::none;
  if (word == kPackedVerbatim << 16) {
    fault = read_verbatim_tile<Code>(location, bytes, valid, space, x);
  } else {
    // a special part has no planes, exceptions or first value
    const PackedHead head = read_head(word);
    if (head.base != 0 || head.rate_planes != 0 || head.first_bytes != 0 || (head.flags & kPackedExceptions) != 0)
      return Fault::rate;
    Code z[32], before[kFaceCodes<S>];
    PackedBlock block;
    const std::uint32_t* words = nullptr;
    fault = decode_packed_codes<Map, S>(frame, location, bytes, valid, space, block, words, z, before);
    if (fault == Fault::none) {
      load_stored<S>(job, box, frame.out, x);
      const Map map = decoding_map<Map>(frame);
      if constexpr (Map::kHasSpecial) {
        if ((block.missing != 0 || block.special || block.negative) && !apply_packed_special(map, block, words, x))
          fault = Fault::count;
      }
    }
  }
  if (__syncthreads_or(fault != Fault::none ? 1 : 0) != 0) return fault;  // the part's bytes have been read
  write_packed_row<S>(space.arena, x);
  __syncthreads();
  store_packed<S, Value>(job.grid, space.arena, box, job.aligned, job.start, min(job.stop, job.grid.values), frame.out);
  return Fault::none;
}

template <class Map, int S>
__global__ void __launch_bounds__(kThreads, kPackedDecodeBlocks<sizeof(typename Map::Code), S>)
    special_kernel(const __grid_constant__ StreamDecodeParams job) {
  __shared__ PackedDecodeSpace<Map, S> space;
  const std::uint32_t count = *job.special_count;
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const SpecialTile special = job.specials[i];
    DecodeFrame frame = job.base.frame(special.frame);
    frame.mode = order_of(frame);
    const Fault fault = put_specials<Map, S>(job.base, frame, special, space);
    if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
    __syncthreads();
  }
}

}  // namespace pyfilter::cuda
