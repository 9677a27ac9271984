// SPDX-License-Identifier: BSD-3-Clause
// Tiles to residuals for an entropy coder (tile_residuals() of lorenzo/cpu/residuals.hpp is the same on the CPU). Each
// of 128 threads keeps a block of 32 values in registers, as for packed tiles. Residuals and special parts wait in
// their tiles' slots.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "lorenzo/cuda/params.cuh"
#include "stages/cuda/packed/codes.cuh"
#include "stages/cuda/packed/layout.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
struct ResidualSpace {
  using Code = typename Map::Code;
  alignas(16) std::uint8_t arena[kPackedArenaBytes<typename Map::Value>];
  union {
    Faces<S, Code> faces;
    SortSpace sort;
  };
  PackedMaskSpace<Map> masks;
  alignas(16) WarpShare shares[kWarps];
  std::uint32_t coded[kWarps], width[kWarps];
};

// Writes a tile's special part (a packed tile without planes) to the arena; returns its words.
template <class Map, int S>
__device__ __noinline__ std::uint32_t write_special_part(const EncodeParams& job, const std::uint8_t* values,
                                                         const TileBox& box, bool valid, const PackedNotes& notes,
                                                         ResidualSpace<Map, S>& space, bool* verbatim) {
  using Value = typename Map::Value;
  constexpr std::uint32_t kValueWords = sizeof(Value) / 4;
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const bool described = notes.masks != 0;
  const std::uint32_t words =
      described ? static_cast<std::uint32_t>(__popc(static_cast<int>(notes.masks))) + notes.verbatim_count * kValueWords
                : 0;
  const std::uint32_t upto = sum_upto(words);
  const auto groups = static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(notes.residual))));
  const std::uint32_t groups_upto = sum_upto(groups);
  WarpShare share = {};
  share.special = __ballot_sync(kAllLanes, described);
  share.masked = __ballot_sync(kAllLanes, notes.residual != 0);
  share.present = __ballot_sync(kAllLanes, valid);
  if (lane == 31) {
    share.words = upto;
    share.widths = share.present == 0 ? 255 : 0;
    share.groups = groups_upto;
    space.shares[warp] = share;
  }
  __syncthreads();
  const PackedTile t =
      lay_out<false, Value>(space.shares, true, notes.tile_flags, upto - words, groups_upto - groups, 0);
  *verbatim = t.verbatim;
  auto* const tile_words = reinterpret_cast<std::uint32_t*>(space.arena);
  if (t.tile_words == 0) return 0;
  if (t.verbatim) {
    if (thread == 0) tile_words[0] = kPackedVerbatim << 16;
    if (valid) write_verbatim_block<S, Value>(job, values, box, t.own_present, tile_words + 1);
    __syncthreads();
    return t.tile_words;
  }
  if ((t.head.flags & kPackedMissing) != 0)
    write_mask_section(notes.residual, t.masks, t.own_mask, t.masked_blocks, t.own_group, t.parts_end, tile_words);
  if (thread == 0) {
    tile_words[0] = t.head.word();
    for (std::uint32_t at = t.parts_end; at % 4 != 0; ++at) space.arena[at] = 0;
  }
  if (lane == 0) {
    std::uint32_t* plane = tile_words + t.head.bytes() / 4 + warp;
    if ((t.head.flags & kPackedMissing) != 0) {
      *plane = space.shares[warp].masked;
      plane += 4;
    }
    if ((t.head.flags & kPackedSpecial) != 0) *plane = space.shares[warp].special;
  }
  if (described) {
    space.arena[t.descriptors + 2 * t.own_descriptor] = static_cast<std::uint8_t>(notes.masks);
    space.arena[t.descriptors + 2 * t.own_descriptor + 1] = static_cast<std::uint8_t>(notes.verbatim_count);
    write_packed_special<Map, S>(job, values, box, space.masks, tile_words + t.words + t.own_words);
  }
  __syncthreads();
  return t.tile_words;
}

// The width for residuals of both widths.
__device__ __forceinline__ std::uint32_t wider(std::uint32_t a, std::uint32_t b) {
  return a == kNoteWide || b == kNoteWide ? kNoteWide : max(a, b);
}

template <class Map, int S>
__device__ __forceinline__ void residuals_of_tile(const StreamParams& job, std::uint32_t chunk, std::uint32_t tile,
                                                  ResidualSpace<Map, S>& space) {
  using Code = typename Map::Code;
  const std::uint8_t* const values = job.base.values + chunk * job.base.value_stride;
  const ChunkPlan& plan = job.base.plans[chunk];
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const TileBox box = box_of<S>(job.base.grid, tile);
  const bool whole = is_whole_tile<S>(job.base.grid, tile, box), valid = whole || is_present<S>(box, thread);
  const std::size_t slot = std::size_t{chunk} * job.slots + tile;
  TileNote& note = job.notes[slot];

  Code z[32], last;
  PackedNotes notes;
  Spread<Code> spread;
  const bool special = packed_codes<Map, S>(job.base, plan, values, box, whole, valid, space, z, last, spread, notes);
  std::uint32_t special_words = 0;
  bool verbatim = false;
  const int order = order_of(plan);
  if (S == kChain && order == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i > 0 || thread > 0) z[i] -= Map::kBias;
  } else {
    packed_differences<S>(order, last, z, space.faces);
  }
  if (thread == 0) {
    const auto first = static_cast<Code>(z[0] - Map::kBias);
    note.first = first;
    if (S != kChain) note.carry = first;
    z[0] = S == kChain && order == 0 ? first : 0;
  }
  if (S == kChain && thread == kThreads - 1) note.carry = static_cast<Code>(last - Map::kBias);
  if (special) {      // the same in all threads
    __syncthreads();  // the faces have been read
    special_words = write_special_part<Map, S>(job.base, values, box, valid, notes, space, &verbatim);
    auto* const to = reinterpret_cast<std::uint32_t*>(job.specials + slot * special_slot(job.value_size));
    for (std::uint32_t i = thread; i < special_words; i += kThreads)
      to[i] = reinterpret_cast<const std::uint32_t*>(space.arena)[i];
  }
  Code any = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    z[i] = zigzag(z[i]);
    any |= z[i];
  }
  if (!valid) any = 0;
  const std::uint32_t coded = __ballot_sync(kAllLanes, any != 0);
  const bool wide = __any_sync(kAllLanes, any >> 16 != 0), halves = __any_sync(kAllLanes, any >> 8 != 0);
  if (lane == 0) {
    space.coded[warp] = coded;
    space.width[warp] = wide ? kNoteWide : halves ? kNoteHalves : kNoteBytes;
  }
  __syncthreads();
  std::uint32_t width = space.width[0];
#pragma unroll
  for (unsigned w = 1; w < kWarps; ++w) width = wider(width, space.width[w]);
  std::uint32_t index = static_cast<std::uint32_t>(__popc(static_cast<int>(coded & ((1u << lane) - 1))));
  for (unsigned w = 0; w < warp; ++w) index += static_cast<std::uint32_t>(__popc(static_cast<int>(space.coded[w])));
  index += (space.coded[0] & 1) == 0 && thread != 0 ? 1 : 0;
  if (lane == 0) note.coded[warp] = verbatim ? 0 : coded;
  if (thread == 0) {
    note.special_words = special_words;
    note.flags = width | (verbatim ? kNoteVerbatim : 0);
  }
  if (!verbatim && (any != 0 || thread == 0)) {
    std::uint8_t* const to = job.residuals + slot * residual_slot(sizeof(Code));
    auto* const words = reinterpret_cast<std::uint32_t*>(to) + index % 32;
    if (width == kNoteBytes) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t low = static_cast<std::uint32_t>(z[4 * i]) | static_cast<std::uint32_t>(z[4 * i + 1]) << 8,
                            high = static_cast<std::uint32_t>(z[4 * i + 2]) | static_cast<std::uint32_t>(z[4 * i + 3])
                                                                                  << 8;
        words[index / 32 * 256 + 32 * static_cast<unsigned>(i)] = low | high << 16;
      }
    } else if (width == kNoteHalves) {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        words[index / 32 * 512 + 32 * static_cast<unsigned>(i)] =
            static_cast<std::uint32_t>(z[2 * i]) | static_cast<std::uint32_t>(z[2 * i + 1]) << 16;
    } else {
      auto* const codes = reinterpret_cast<Code*>(to) + index / 32 * 1024 + index % 32;
#pragma unroll
      for (int i = 0; i < 32; ++i) codes[32 * i] = z[i];
    }
  }
  __syncthreads();
}

template <int kCodeBytes>
inline constexpr int kResidualBlocks = kCodeBytes == 8 ? 3 : 6;

template <class Map, int S>
__global__ void __launch_bounds__(kThreads, kResidualBlocks<sizeof(typename Map::Code)>)
    residual_kernel(const __grid_constant__ StreamParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<ResidualSpace<Map, S>*>(shared_memory);
  if (job.shape_chunks[S] == 0) return;
  const TileSample sample(job.base.tiles);
  const bool sampled = job.taken == TilesTaken::sampled;
  const std::uint32_t each = sampled ? static_cast<std::uint32_t>(sample.count) : job.base.tiles,
                      all = each * job.base.chunks;
  for (std::uint32_t number = blockIdx.x; number < all; number += gridDim.x) {
    const std::uint32_t chunk = job.base.chunks == 1 ? 0 : number / each, number_in_chunk = number - chunk * each,
                        tile = sampled ? static_cast<std::uint32_t>(sample.tile(number_in_chunk)) : number_in_chunk;
    if (job.taken == TilesTaken::others && sample.has(tile)) continue;
    if (takes_part(job.base.plans[chunk], S)) residuals_of_tile<Map, S>(job, chunk, tile, space);
  }
}

// Writes the residuals of a block, number `index` of its tile, to the tile's slot.
template <class Code>
__device__ __forceinline__ void read_residuals(const std::uint8_t* slot, std::uint32_t width, std::uint32_t index,
                                               Code (&z)[32]) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(slot) + index % 32;
  if (width == kNoteBytes) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t word = words[index / 32 * 256 + 32 * static_cast<unsigned>(i)];
#pragma unroll
      for (int k = 0; k < 4; ++k) z[4 * i + k] = word >> 8 * k & 0xFF;
    }
  } else if (width == kNoteHalves) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const std::uint32_t word = words[index / 32 * 512 + 32 * static_cast<unsigned>(i)];
      z[2 * i] = word & 0xFFFF;
      z[2 * i + 1] = word >> 16;
    }
  } else {
    const auto* const codes = reinterpret_cast<const Code*>(slot) + index / 32 * 1024 + index % 32;
#pragma unroll
    for (int i = 0; i < 32; ++i) z[i] = codes[32 * i];
  }
}

// Writes the first block's residuals.
template <class Code>
__device__ __forceinline__ Code first_of_block(const std::uint8_t* slot, std::uint32_t width, std::uint32_t index) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(slot) + index % 32;
  return width == kNoteBytes    ? static_cast<Code>(words[index / 32 * 256] & 0xFF)
         : width == kNoteHalves ? static_cast<Code>(words[index / 32 * 512] & 0xFFFF)
                                : reinterpret_cast<const Code*>(slot)[index / 32 * 1024 + index % 32];
}

}  // namespace pyfilter::cuda
