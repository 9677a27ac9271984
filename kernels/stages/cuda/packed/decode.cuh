// SPDX-License-Identifier: BSD-3-Clause
// Decoding packed tiles on the GPU (docs/format.md, section 7); stages/packed/decode.hpp is the same for the CPU. A
// thread block takes a tile, each thread a block of 32 values. Sizes must add up before anything is read by them, so no
// read leaves the tile whatever its bytes say; what does not add up is noted in the frame's fault word.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/packed/lorenzo.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/tile_decode.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
struct PackedDecodeSpace {
  alignas(16) std::uint8_t arena[kPackedArenaBytes<typename Map::Value>];
  Faces<S, typename Map::Code> faces;
  std::uint32_t words[kWarps], exceptions[kWarps], special[kWarps];
};

template <int kCodeBytes, int S>
inline constexpr int kPackedDecodeBlocks = kCodeBytes == 8                ? 4
                                           : S == kChain || S == kColumns ? 8
                                                                          : 6;

// Residuals from `planes` planes at `from`, and an exception's bits above them. A whole warp must come here together.
template <class Code>
__device__ __forceinline__ void read_split_planes(const std::uint32_t* from, int planes, std::uint32_t entry,
                                                  Code (&z)[32]) {
  constexpr int kBits = 8 * sizeof(Code);
  const unsigned position = entry & 31;
  const std::uint64_t high = planes < kBits ? static_cast<std::uint64_t>(entry >> 5) << planes : 0;
  const auto extra = static_cast<Code>(high);
  const auto load = [&](int group, std::uint32_t(&w)[8]) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int p = 8 * group + k;
      w[k] = (p < planes ? from[p] : 0) | static_cast<std::uint32_t>(extra >> p & 1) << position;
    }
  };
  unpack_all(warp_max(max(planes, bit_width(extra))), load, z);
}

// What a thread's block has in its tile.
struct PackedBlock {
  int planes = 0;
  bool exception = false, empty = false, special = false;
  std::uint32_t masks = 0, verbatim = 0;  // of a special block
};

// Decodes a tile up to the codes of each thread before those of warps before are added, which are right where no thread
// returns a fault.
template <class Map, int S>
__device__ __forceinline__ Fault decode_packed_codes(const DecodeFrame& frame, const TilePlace& place,
                                                     const std::uint8_t* bytes, bool valid,
                                                     PackedDecodeSpace<Map, S>& space, PackedBlock& block,
                                                     const std::uint32_t*& block_words, typename Map::Code (&z)[32],
                                                     typename Map::Code (&before)[kFaceCodes<S>]) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr std::uint32_t kValueWords = sizeof(Value) / 4;
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(bytes);
  const PackedHead head = place.count != 0 ? read_head(words[0]) : PackedHead{};
  const std::uint32_t size = 4 * place.count;
  if (place.uniform) return Fault::rate;
  if (place.count != 0 && !head_allowed(words[0], sizeof(Code), frame.has_sentinel != 0, !Map::kHasSpecial))
    return Fault::rate;
  const std::uint32_t planes_at = place.count != 0 ? head.bytes() / 4 : 0;
  const std::uint32_t descriptors = 4 * planes_at + head.tile_planes() * kPackedPlaneBytes;
  if (descriptors > size) return Fault::size;  // the same in all threads up to here

  // planes of the tile
  Fault fault = Fault::none;
  std::uint32_t width = valid ? head.base : 0, all = 0;
  const std::uint32_t* plane = words + planes_at + warp;
  const std::uint32_t present = __ballot_sync(kAllLanes, valid);
  const auto take = [&] {
    const std::uint32_t bits = *plane;
    plane += 4;
    all |= bits;
    return bits;
  };
  for (std::uint32_t r = 0; r < head.rate_planes; ++r) width += (take() >> lane & 1) << r;
  const std::uint32_t exceptions = (head.flags & kPackedExceptions) != 0 ? take() : 0;
  const std::uint32_t empty = (head.flags & kPackedVoid) != 0      ? take()
                              : (head.flags & kPackedAllVoid) != 0 ? present
                                                                   : 0;
  const std::uint32_t special = (head.flags & kPackedSpecial) != 0 ? take() : 0;
  if ((all & ~present) != 0 || (empty & special) != 0) fault = Fault::rate;
  if (width > 8 * sizeof(Code)) fault = Fault::rate;
  block.planes = static_cast<int>(width);
  block.exception = (exceptions >> lane & 1) != 0;
  block.empty = (empty >> lane & 1) != 0;
  block.special = (special >> lane & 1) != 0;
  if (lane == 0) {
    space.exceptions[warp] = exceptions;
    space.special[warp] = special;
  }
  std::uint32_t special_before = 0, specials = 0;
  if ((head.flags & kPackedSpecial) != 0) {
    __syncthreads();
    special_before = static_cast<std::uint32_t>(__popc(static_cast<int>(special & ((1u << lane) - 1))));
    for (unsigned w = 0; w < kWarps; ++w) {
      const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(space.special[w])));
      if (w < warp) special_before += here;
      specials += here;
    }
    if (descriptors + 2 * specials > size) {
      fault = Fault::size;
    } else if (block.special) {
      block.masks = bytes[descriptors + 2 * special_before];
      block.verbatim = bytes[descriptors + 2 * special_before + 1];
      if (block.masks < 1 || block.masks > 7 || block.verbatim > 32 ||
          ((block.masks & kMaskVerbatim) == 0 && block.verbatim != 0) ||
          ((block.masks & kMaskSentinel) != 0 && frame.has_sentinel == 0))
        fault = Fault::rate;
    }
  }
  const std::uint32_t before_planes =
      fault == Fault::none && block.special
          ? static_cast<std::uint32_t>(__popc(static_cast<int>(block.masks))) + block.verbatim * kValueWords
          : 0;
  const std::uint32_t taken = fault == Fault::none ? width + before_planes : 0, upto = sum_upto(taken);
  if (lane == 31) space.words[warp] = upto;
  if (__syncthreads_or(fault != Fault::none ? 1 : 0) != 0) return fault != Fault::none ? fault : Fault::rate;
  std::uint32_t at = upto - taken, total = 0, exceptions_before = 0, entries = 0;
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) at += space.words[w];
    total += space.words[w];
    const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(space.exceptions[w])));
    if (w < warp) exceptions_before += here;
    entries += here;
  }
  const std::uint32_t entries_at = descriptors + 2 * specials, end = entries_at + 2 * entries;
  const std::uint32_t words_at = (end + 3) / 4;
  if (words_at + total != place.count) return Fault::size;
  if (end % 4 != 0 && thread == 0 && *reinterpret_cast<const std::uint16_t*>(bytes + end) != 0) fault = Fault::padding;

  // first value
  std::uint64_t first = 0;
  if (thread == 0 && head.first_bytes != 0) {
    first = words[1];
    if (head.first_bytes > 4) first |= static_cast<std::uint64_t>(words[2]) << 32;
    if (head.first_bytes < 8 && first >> (8 * head.first_bytes) != 0) fault = Fault::padding;
  }

  // planes -> differences -> sums
  std::uint32_t entry = 0;
  if (block.exception) {
    const std::uint32_t mine =
        exceptions_before + static_cast<std::uint32_t>(__popc(static_cast<int>(exceptions & ((1u << lane) - 1))));
    entry = *reinterpret_cast<const std::uint16_t*>(bytes + entries_at + 2 * mine);
  }
  block_words = words + words_at + at;
  if ((head.flags & kPackedExceptions) != 0)  // in all threads
    read_split_planes(block_words + before_planes, block.planes, entry, z);
  else
    read_planes(block_words + before_planes, block.planes, z);
#pragma unroll
  for (int i = 0; i < 32; ++i) z[i] = unzigzag(z[i]);
  if (thread == 0) z[0] = static_cast<Code>(unzigzag(static_cast<Code>(first)) + Map::kBias);
  packed_sums<S>(static_cast<int>(frame.mode), z, before, space.faces);
  return fault;
}

// Puts the special values of a block in their places; false where the masks contradict the descriptor.
template <class Map>
__device__ __forceinline__ bool apply_packed_special(const Quantizer<typename Map::Value>& p, const PackedBlock& block,
                                                     const std::uint32_t* words, typename Map::Value (&x)[32]) {
  if (block.empty) {
#pragma unroll
    for (int i = 0; i < 32; ++i) x[i] = std::bit_cast<typename Map::Value>(p.sentinel_bits);
  }
  if (!block.special) return true;
  return apply_special<Map, 1>(p, kRateSentinel + block.masks, 0, block.verbatim, words, x);
}

template <class Map, int S>
__global__ void __launch_bounds__(kThreads, kPackedDecodeBlocks<sizeof(typename Map::Code), S>)
    packed_decode_kernel(const __grid_constant__ DecodeParams job) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  __shared__ PackedDecodeSpace<Map, S> space;
  const std::uint32_t tile = job.first_tile + blockIdx.x % job.tile_count;
  const DecodeFrame& frame = job.frames != nullptr ? job.frames[blockIdx.x / job.tile_count] : job.only_frame;
  const TilePlace place = find_tile(frame, job.tiles, tile);
  const TileBox box = box_of<S>(job.grid, tile);
  const bool valid = is_present<S>(box, threadIdx.x);
  Fault fault = place.fault;
  if (fault == Fault::none && 4 * place.count > max_packed_bytes(sizeof(Value))) fault = Fault::size;
  if (fault != Fault::none) {  // in all threads
    if (threadIdx.x == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
    return;
  }
  const std::uint8_t* const bytes =
      stage_words(frame.payload + 4 * (std::uint64_t{job.tiles} + 1 + place.first), place.count, space.arena);
  __syncthreads();
  Value x[32];
  const bool verbatim = place.count != 0 && *reinterpret_cast<const std::uint32_t*>(bytes) == kPackedVerbatim << 16;
  if (verbatim) {
    // values of the present blocks, behind the head
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr std::uint32_t kValueWords = sizeof(Value) / 4;
    const std::uint32_t present = __ballot_sync(kAllLanes, valid);
    if (lane == 0) space.words[warp] = static_cast<std::uint32_t>(__popc(static_cast<int>(present)));
    __syncthreads();
    std::uint32_t before = static_cast<std::uint32_t>(__popc(static_cast<int>(present & ((1u << lane) - 1)))), all = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      if (w < warp) before += space.words[w];
      all += space.words[w];
    }
    if (place.uniform || place.count != 1 + all * 32 * kValueWords) fault = Fault::size;
    const auto* const from = reinterpret_cast<const std::uint32_t*>(bytes) + 1 + before * 32 * kValueWords;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      Code bits = 0;
      if (valid && fault == Fault::none) {
        bits = from[i * kValueWords];
        if constexpr (kValueWords == 2) bits |= static_cast<Code>(from[2 * i + 1]) << 32;
      }
      x[i] = std::bit_cast<Value>(bits);
    }
  } else {
    Code z[32], before[kFaceCodes<S>];
    PackedBlock block;
    const std::uint32_t* words = nullptr;
    fault = decode_packed_codes<Map, S>(frame, place, bytes, valid, space, block, words, z, before);
    const Map map = decoding_map<Map>(frame);
    __syncthreads();  // faces are there
    if (fault == Fault::none) {
      add_before<S>(z, before, space.faces);
#pragma unroll
      for (int i = 0; i < 32; ++i) x[i] = map.decode_biased(z[i]);
      if constexpr (Map::kHasSpecial) {
        if ((block.empty || block.special) && !apply_packed_special<Map>(map.quantizer, block, words, x))
          fault = Fault::count;
      }
    }
  }
  if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  if (__syncthreads_or(fault != Fault::none ? 1 : 0) != 0) return;  // the tile's bytes are read
  write_packed_row<S>(space.arena, x);
  __syncthreads();
  store_packed<S, Value>(job.grid, space.arena, box, job.aligned, job.start, min(job.stop, job.grid.values), frame.out);
}

}  // namespace pyfilter::cuda
