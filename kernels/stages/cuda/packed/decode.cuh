// SPDX-License-Identifier: BSD-3-Clause
// Decoding packed tiles on the GPU (docs/format.md, section 7); stages/packed/decode.hpp is the same on the CPU. A
// thread block takes a tile, each thread a block of 32 values. Sizes must add up before they are used, so no read
// leaves the tile, whatever its bytes. A contradiction is written to the frame's fault word.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/packed/differences.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/logarithm.hpp"
#include "stages/packed/layout.hpp"
#include "stages/packed/missing.hpp"
#include "stages/packed/special.hpp"

namespace pyfilter::cuda {

template <class Map, int S>
struct PackedDecodeSpace : DecodeArena<typename Map::Value, kPackedArenaBytes<typename Map::Value>, S == kChain> {
  Faces<S, typename Map::Code> faces;
  std::uint32_t words[kWarps], exceptions[kWarps], special[kWarps], masked[kWarps], groups[kWarps];
};

// Thread blocks a multiprocessor: as many as registers allow without spilling.
template <int kCodeBytes, int S>
inline constexpr int kPackedDecodeBlocks =
    kCodeBytes == 8 ? (S == kChain ? 5 : 4) : (S == kChain || S == kColumns ? 8 : 6);

// Differences from `planes` planes of their residuals at `from`, and the exception's bits above these. All lanes of the
// warp must call it.
template <class Code>
__device__ __forceinline__ void read_split_planes(const std::uint32_t* staged, int planes, std::uint32_t entry,
                                                  Code (&d)[32]) {
  constexpr int kBits = 8 * sizeof(Code);
  const std::uint32_t* const from = in_shared(staged);
  const unsigned position = entry & 31;
  const std::uint64_t high = planes < kBits ? static_cast<std::uint64_t>(entry >> 5) << planes : 0;
  const auto extra = static_cast<Code>(high);
  const auto plane = [=](int p) {
    const std::uint32_t high = p < kBits ? static_cast<std::uint32_t>(extra >> p & 1) << position : 0;
    return (p < planes ? from[p] : 0) | high;
  };
  unpack_all(warp_max(max(planes, bit_width(extra))), plane, d);
}

// The parts of a thread's block in its tile.
struct PackedBlock {
  int planes = 0;
  bool exception = false, special = false, negative = false;
  std::uint32_t masks = 0, verbatim = 0;  // of a special block
  std::uint32_t missing = 0;
};

// This block's mask from its residual and earlier masks, which are in lanes of this warp.
template <int S>
__device__ __forceinline__ std::uint32_t mask_of_residual(std::uint32_t residual) {
  constexpr int kStep = static_cast<int>(TileShape<S>::kBlocksZ);
  constexpr int kRows = S == kChain ? 32 : static_cast<int>(TileShape<S>::kBlocksY);
  const int b = static_cast<int>(threadIdx.x), y = b / kStep % kRows, z = b % kStep;
  const bool has_above = block_above<S>(b) >= 0, has_before = block_before<S>(b) >= 0;
  std::uint32_t mask = 0;
#pragma unroll 1
  for (int step = 0; step < kRows + kStep - 1; ++step) {
    const std::uint32_t above = __shfl_up_sync(kAllLanes, mask, kStep), before = __shfl_up_sync(kAllLanes, mask, 1),
                        both = __shfl_up_sync(kAllLanes, mask, kStep + 1);
    if (y + z != step) continue;
    mask = mask_from<S>(residual, has_above ? above : 0, has_before ? before : 0, has_above && has_before ? both : 0);
  }
  return mask;
}

// Reads the masks of missing values from the section at byte `at` of a tile of `size` bytes; sets `taken` to its
// length. Called by all threads of the block.
template <class Space>
__device__ __noinline__ Fault read_mask_section(const std::uint8_t* bytes, std::uint32_t at, std::uint32_t size,
                                                std::uint32_t masked, Space& space, std::uint32_t& taken,
                                                std::uint32_t& residual) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint32_t own = static_cast<std::uint32_t>(__popc(static_cast<int>(masked & ((1u << lane) - 1)))), blocks = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(space.masked[w])));
    if (w < warp) own += here;
    blocks += here;
  }
  residual = taken = 0;
  if (at + blocks > size) return Fault::size;  // in all threads
  const bool mine = (masked >> lane & 1) != 0;
  const std::uint32_t used = mine ? bytes[at + own] : 0;
  Fault fault = mine && used == 0 ? Fault::rate : Fault::none;
  const auto count = static_cast<std::uint32_t>(__popc(static_cast<int>(used)));
  std::uint32_t group = sum_upto(count), groups = 0;
  if (lane == 31) space.groups[warp] = group;
  __syncthreads();
  group -= count;
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) group += space.groups[w];
    groups += space.groups[w];
  }
  taken = blocks + nibble_bytes(groups);
  if (at + taken > size) return Fault::size;  // in all threads
  const std::uint8_t* const from = bytes + at + blocks;
  for (std::uint32_t rest = used; rest != 0; rest &= rest - 1, ++group) {
    const std::uint32_t bits = from[group / 2] >> 4 * (group % 2) & 15;
    if (bits == 0) fault = Fault::rate;
    residual |= bits << 4 * (__ffs(static_cast<int>(rest)) - 1);
  }
  if (threadIdx.x == 0 && groups % 2 != 0 && from[groups / 2] >> 4 != 0) fault = Fault::padding;
  return fault;
}

// Decodes a tile up to the codes of each thread, before the sums of earlier warps are added. The codes are valid if no
// thread returns a fault.
template <class Map, int S>
__device__ __forceinline__ Fault decode_packed_codes(const DecodeFrame& frame, const TileLocation& location,
                                                     const std::uint8_t* bytes, bool valid,
                                                     PackedDecodeSpace<Map, S>& space, PackedBlock& block,
                                                     const std::uint32_t*& block_words, typename Map::Code (&z)[32],
                                                     typename Map::Code (&before)[kFaceCodes<S>]) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr std::uint32_t kValueWords = sizeof(Value) / 4;
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const auto* const words = in_shared(reinterpret_cast<const std::uint32_t*>(bytes));
  const PackedHead head = location.count != 0 ? read_head(words[0]) : PackedHead{};
  const std::uint32_t size = 4 * location.count;
  if (location.uniform) return Fault::rate;
  constexpr bool kSigns = (Map::kMasks & kMaskNegative) != 0;
  Fault fault = Fault::none;
  // one thread checks the head; no read leaves the tile whatever the head contains
  if (thread == 0 && location.count != 0 &&
      !head_allowed(words[0], packed_rules(sizeof(Code), frame.has_sentinel != 0, !Map::kHasSpecial, kSigns)))
    fault = Fault::rate;
  const std::uint32_t planes_at = location.count != 0 ? head.bytes() / 4 : 0;
  const std::uint32_t descriptors = 4 * planes_at + head.tile_planes() * kPackedPlaneBytes;
  if (descriptors > size) return Fault::size;  // the same in all threads up to here

  // planes of the tile
  std::uint32_t width = valid ? head.base : 0, all = 0;
  const std::uint32_t* plane = words + planes_at + warp;
  const std::uint32_t present = __ballot_sync(kAllLanes, valid);
  const auto take = [&] {
    const std::uint32_t bits = *in_shared(plane);
    plane += 4;
    all |= bits;
    return bits;
  };
#pragma unroll
  for (std::uint32_t r = 0; r < kMostRatePlanes; ++r) {
    if (r == head.rate_planes) break;
    const std::uint32_t bits = in_shared(plane)[4 * r];
    all |= bits;
    width += (bits >> lane & 1) << r;
  }
  plane += 4 * head.rate_planes;
  const std::uint32_t exceptions = (head.flags & kPackedExceptions) != 0 ? take() : 0;
  const std::uint32_t masked = (head.flags & kPackedMissing) != 0 ? take() : 0;
  const std::uint32_t special = (head.flags & kPackedSpecial) != 0 ? take() : 0;
  if ((all & ~present) != 0) fault = Fault::rate;
  if (width > 8 * sizeof(Code)) fault = Fault::rate;
  block.planes = static_cast<int>(width);
  block.exception = (exceptions >> lane & 1) != 0;
  block.special = (special >> lane & 1) != 0;
  block.negative = (head.flags & kPackedNegative) != 0;
  if ((head.flags & kPackedAllMissing) != 0) block.missing = kAllLanes;
  if (lane == 0) {
    space.exceptions[warp] = exceptions;
    space.special[warp] = special;
    space.masked[warp] = masked;
  }
  std::uint32_t special_before = 0, specials = 0;
  std::uint32_t mask_bytes = 0;
  if ((head.flags & (kPackedSpecial | kPackedMissing)) != 0) {
    __syncthreads();
    special_before = static_cast<std::uint32_t>(__popc(static_cast<int>(special & ((1u << lane) - 1))));
    std::uint32_t entries_here = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      const auto here = static_cast<std::uint32_t>(__popc(static_cast<int>(space.special[w])));
      if (w < warp) special_before += here;
      specials += here;
      entries_here += static_cast<std::uint32_t>(__popc(static_cast<int>(space.exceptions[w])));
    }
    if (descriptors + 2 * (specials + entries_here) > size) return Fault::size;  // in all threads
    if (block.special) {
      block.masks = bytes[descriptors + 2 * special_before];
      block.verbatim = bytes[descriptors + 2 * special_before + 1];
      if (block.masks == 0 || (block.masks & ~(Map::kMasks & ~kMaskSentinel)) != 0 || block.verbatim > 32 ||
          ((block.masks & kMaskVerbatim) == 0 && block.verbatim != 0))
        fault = Fault::rate;
    }
    if constexpr (Map::kHasSpecial) {
      if ((head.flags & kPackedMissing) != 0) {
        std::uint32_t residual = 0;
        const Fault section = read_mask_section(bytes, descriptors + 2 * (specials + entries_here), size, masked, space,
                                                mask_bytes, residual);
        if (section != Fault::none) fault = section;
        block.missing = (head.flags & kPackedPlainMasks) != 0 ? residual : mask_of_residual<S>(residual);
      }
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
  const std::uint32_t entries_at = descriptors + 2 * specials, end = entries_at + 2 * entries + mask_bytes;
  const std::uint32_t words_at = (end + 3) / 4;
  if (words_at + total != location.count) return Fault::size;
  if (thread == 0)
    for (std::uint32_t i = end; i < 4 * words_at; ++i)
      if (bytes[i] != 0) fault = Fault::padding;

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
  if (thread == 0) z[0] = static_cast<Code>(unzigzag(static_cast<Code>(first)) + Map::kBias);
  if (S == kChain && frame.mode == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i > 0 || thread > 0) z[i] += Map::kBias;
    return fault;
  }
  packed_sums<S>(static_cast<int>(frame.mode), z, before, space.faces);
  return fault;
}

// Writes the special values of a block to their positions; false if the masks contradict the descriptor.
template <class Map>
__device__ __forceinline__ bool apply_packed_special(const Map& map, const PackedBlock& block,
                                                     const std::uint32_t* words, typename Map::Value (&x)[32]) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kValueWords = sizeof(Value) / 4;
  constexpr int kTop = 8 * sizeof(Code) - 1;
  const auto mask_of = [&](std::uint32_t bit) { return block.special && (block.masks & bit) != 0 ? *words++ : 0u; };
  const std::uint32_t nan = mask_of(kMaskNan), verbatim = mask_of(kMaskVerbatim), zero = mask_of(kMaskZero),
                      other = mask_of(kMaskNegative), negative = block.negative ? ~other : other;
  if (static_cast<std::uint32_t>(__popc(static_cast<int>(verbatim))) != block.verbatim) return false;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    Code bits = std::bit_cast<Code>(x[i]);
    if constexpr ((Map::kMasks & kMaskZero) != 0) {
      if ((zero >> i & 1) != 0) bits = 0;
      bits |= static_cast<Code>(negative >> i & 1) << kTop;
    }
    if ((block.missing >> i & 1) != 0) bits = map.quantizer.sentinel_bits;
    if ((nan >> i & 1) != 0) bits = FloatTraits<Value>::kQuietNan;
    if ((verbatim >> i & 1) != 0) {
      bits = *words++;
      if constexpr (kValueWords == 2) bits |= static_cast<Code>(*words++) << 32;
    }
    x[i] = std::bit_cast<Value>(bits);
  }
  return true;
}

// A verbatim tile: the values of the present blocks, after the head. Called by all threads.
template <class Code, class Value, class Space>
__device__ __forceinline__ Fault read_verbatim_tile(const TileLocation& location, const std::uint8_t* bytes, bool valid,
                                                    Space& space, Value (&x)[32]) {
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
  const bool fits = !location.uniform && location.count == 1 + all * 32 * kValueWords;
  const auto* const from = reinterpret_cast<const std::uint32_t*>(bytes) + 1 + before * 32 * kValueWords;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    Code bits = 0;
    if (valid && fits) {
      bits = from[i * kValueWords];
      if constexpr (kValueWords == 2) bits |= static_cast<Code>(from[2 * i + 1]) << 32;
    }
    x[i] = std::bit_cast<Value>(bits);
  }
  return fits ? Fault::none : Fault::size;
}

template <class Map, int S, bool kOneFrame>
__global__ void __launch_bounds__(kThreads, kPackedDecodeBlocks<sizeof(typename Map::Code), S>)
    packed_decode_kernel(const __grid_constant__ DecodeParams job) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  __shared__ PackedDecodeSpace<Map, S> space;
  const std::uint32_t index = kOneFrame ? 0 : blockIdx.x / job.tile_count;
  const std::uint32_t tile = job.first_tile + (blockIdx.x - index * job.tile_count);
  const DecodeFrame frame = kOneFrame ? job.only_frame : job.frames[index];
  const TileLocation location = find_tile(frame, job.tiles, tile);
  const TileBox box = box_of<S>(job.grid, tile);
  const bool valid = is_present<S>(box, threadIdx.x);
  Fault fault = location.fault;
  if (fault == Fault::none && 4 * location.count > max_packed_bytes(sizeof(Value))) fault = Fault::size;
  if (fault != Fault::none) {  // in all threads
    if (threadIdx.x == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
    return;
  }
  const std::uint8_t* const bytes =
      stage_words(frame.payload + 4 * (std::uint64_t{job.tiles} + 1 + location.first), location.count,
                  space.bytes_memory(4 * location.count), [&] { prefetch_ahead(job, frame, tile); });
  __syncthreads();
  Value x[32];
  const bool verbatim = location.count != 0 && *reinterpret_cast<const std::uint32_t*>(bytes) == kPackedVerbatim << 16;
  if (verbatim) {
    fault = read_verbatim_tile<Code>(location, bytes, valid, space, x);
  } else {
    Code z[32], before[kFaceCodes<S>];
    PackedBlock block;
    const std::uint32_t* words = nullptr;
    fault = decode_packed_codes<Map, S>(frame, location, bytes, valid, space, block, words, z, before);
    const Map map = decoding_map<Map>(frame);
    __syncthreads();  // faces are written
    if (fault == Fault::none) {
      if (S != kChain || frame.mode != 0) add_before<S>(z, before, space.faces);
#pragma unroll
      for (int i = 0; i < 32; ++i) x[i] = map.decode_biased(z[i]);
      if constexpr (Map::kHasSpecial) {
        if ((block.missing != 0 || block.special || block.negative) && !apply_packed_special(map, block, words, x))
          fault = Fault::count;
      }
    }
  }
  if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  if (!space.end_reading(4 * location.count, fault)) return;
  write_packed_row<S>(space.arena, x);
  await_values<S>();
  store_packed<S, Value>(job.grid, space.arena, box, job.aligned, job.start, min(job.stop, job.grid.values), frame.out);
}

}  // namespace pyfilter::cuda
