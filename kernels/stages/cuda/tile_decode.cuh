// SPDX-License-Identifier: BSD-3-Clause
// Decoding tiles on the GPU (docs/format.md, sections 4.2 to 6); stages/tile_decode.hpp is the same on the CPU. A
// thread block copies a tile, located by the directory, into shared memory. Each thread finds its planes, turns them
// into 32 values in registers and stores them. Sizes must add up before they are used, so no read leaves the tile,
// whatever its bytes. A contradiction is written to the frame's fault word.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/tile_layout.cuh"
#include "stages/quantize.hpp"
#include "stages/rate.hpp"

namespace pyfilter::cuda {

// A tile's bytes share the memory of its values. In a small tile whose warps store only their own rows, the bytes have
// memory of their own. So no warp waits until all warps have read them.
template <class Value, int kBytes, bool kOwnRows>
struct DecodeArena {
  static constexpr std::uint32_t kApartBytes = kOwnRows ? 1024 * sizeof(Value) : 0;
  alignas(128) std::uint8_t arena[kBytes];
  alignas(128) std::uint8_t apart[kApartBytes + 32];

  __device__ __forceinline__ bool is_apart(std::uint32_t bytes) const { return kOwnRows && bytes <= kApartBytes; }
  __device__ __forceinline__ std::uint8_t* bytes_memory(std::uint32_t bytes) { return is_apart(bytes) ? apart : arena; }

  // Called after `bytes` bytes are read, before values are written to the arena. False if a thread that stores this
  // thread's values found a fault.
  __device__ __forceinline__ bool end_reading(std::uint32_t bytes, Fault fault) const {
    if (is_apart(bytes)) return __any_sync(kAllLanes, fault != Fault::none) == 0;
    return __syncthreads_or(fault != Fault::none ? 1 : 0) == 0;
  }
};

template <class Value, int D>
struct DecodeSpace : DecodeArena<Value, kArenaBytes<Value>, D == 1> {
  std::conditional_t<D == 1, char, BlockOffsets> offsets;
  ScanSpace scan;
};

// The number of thread blocks a multiprocessor that registers must allow.
template <int kCodeBytes>
inline constexpr int kDecodeBlocks = kCodeBytes == 4 ? 8 : 5;

// Tells the compiler that a pointer is to shared memory, which it cannot see after a load or a selection.
template <class T>
__device__ __forceinline__ T* in_shared(T* pointer) {
  __builtin_assume(__isShared(pointer));
  return pointer;
}

// About as many tiles as a device decodes at once.
inline constexpr std::uint32_t kTilesAhead = 1024;

// Prefetches, to the L2 cache, a tile that a later thread block decodes, which then waits less.
__device__ __forceinline__ void prefetch_ahead(const DecodeParams& job, const DecodeFrame& frame, std::uint32_t tile) {
  tile += kTilesAhead;
  // by the last warp, which has the least to do while a small tile loads
  if (threadIdx.x < kThreads - 32 || tile - job.first_tile >= job.tile_count) return;
  const TileLocation location = find_tile(frame, job.tiles, tile);
  if (location.fault != Fault::none) return;  // the block that decodes the tile reports the fault
  const std::uint8_t* const from = frame.payload + 4 * (std::uint64_t{job.tiles} + 1 + location.first);
  const std::uint32_t bytes = min(4 * location.count, 1u << 16);  // the directory may be damaged
  prefetch_range<32>(from, bytes, threadIdx.x % 32);
}

// Copies `count` words to shared memory, 16 bytes at a time if source and destination have the same alignment. Calls
// meanwhile() while the copy is in flight.
template <class Meanwhile>
__device__ __forceinline__ const std::uint8_t* stage_words(const std::uint8_t* from, std::uint32_t count,
                                                           std::uint8_t* arena, const Meanwhile& meanwhile) {
  const auto misplaced = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % 32 / 4);
  std::uint8_t* const to = arena + 4 * misplaced;
  const std::uint32_t head = min((4 - misplaced % 4) % 4, count), pieces = (count - head) / 4;
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < pieces; i += kThreads)
    __pipeline_memcpy_async(to + 4 * head + 16 * i, from + 4 * head + 16 * i, 16);
  __pipeline_commit();
  const std::uint32_t tail = head + 4 * pieces;
  if (threadIdx.x < head)
    reinterpret_cast<std::uint32_t*>(to)[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(from)[threadIdx.x];
  if (threadIdx.x < count - tail)
    reinterpret_cast<std::uint32_t*>(to)[tail + threadIdx.x] =
        reinterpret_cast<const std::uint32_t*>(from)[tail + threadIdx.x];
  meanwhile();
  __pipeline_wait_prior(0);
  return in_shared(to);
}
__device__ __forceinline__ const std::uint8_t* stage_words(const std::uint8_t* from, std::uint32_t count,
                                                           std::uint8_t* arena) {
  return stage_words(from, count, arena, [] {});
}

// Differences from the planes of their residuals: plane(p) returns plane p, or 0 if the block has fewer; `highest`:
// planes of the warp's widest block.
template <class Code, class Plane>
__device__ __forceinline__ void unpack_all(int highest, const Plane& plane, Code (&d)[32]) {
  const std::uint32_t sign = plane(0);
  const auto load = [&](int group, std::uint32_t(&w)[8]) {
#pragma unroll
    for (int k = 0; k < 8; ++k) w[k] = plane(8 * group + k + 1) ^ sign;
  };
  std::uint32_t low[32];
  const auto unpack = [&](int first, std::uint32_t(&words)[32]) {
    const auto at = [&](int i) -> std::uint32_t& { return words[i]; };
    std::uint32_t w[8];
    load(first, w);
    unpack_group<0>(w, at);
    if (highest > 8 * (first + 1)) {
      load(first + 1, w);
      unpack_group<1>(w, at);
    }
    if (highest > 8 * (first + 2)) {
      load(first + 2, w);
      unpack_group<2>(w, at);
    }
    if (highest > 8 * (first + 3)) {
      load(first + 3, w);
      unpack_group<3>(w, at);
    }
  };
  unpack(0, low);
  if constexpr (sizeof(Code) == 4) {
#pragma unroll
    for (int i = 0; i < 32; ++i) d[i] = low[i];
  } else if (highest <= 32) {
#pragma unroll
    for (int i = 0; i < 32; ++i) d[i] = static_cast<Code>(static_cast<std::int64_t>(static_cast<std::int32_t>(low[i])));
  } else {
    std::uint32_t high[32];
    unpack(4, high);
#pragma unroll
    for (int i = 0; i < 32; ++i) d[i] = low[i] | static_cast<Code>(high[i]) << 32;
  }
}

// Differences from `planes` planes of their residuals, staged in shared memory. All lanes of the warp must call it.
template <class Code>
__device__ __forceinline__ void read_planes(const std::uint32_t* staged, int planes, Code (&d)[32]) {
  const std::uint32_t* const from = in_shared(staged);
  unpack_all(warp_max(planes), [=](int p) { return p < planes ? from[p] : 0; }, d);
}

// A thread's share of a special block, from its descriptor.
struct SpecialPart {
  std::uint32_t inner = 0, verbatim = 0, masks = 0;
};

// The sizes that a rate code implies; a fault if the code is not allowed here.
template <class Map, int D>
__device__ __forceinline__ Fault size_of_block(bool has_sentinel, std::uint32_t rate, int half,
                                               const SpecialPart& special, std::uint32_t& planes,
                                               std::uint32_t& outlier_bytes, std::uint32_t& words) {
  using Value = typename Map::Value;
  constexpr int kHalves = D == 1 ? 1 : 2, kValueWords = (sizeof(Value) + 3) / 4;
  planes = outlier_bytes = words = 0;
  std::uint32_t inner = rate;
  if (rate >= kRateSentinel) {
    if (!Map::kHasSpecial) return Fault::rate;
    if (rate == kRateVerbatim) {
      words = 32 * kValueWords;
      return Fault::none;
    }
    const std::uint32_t masks = rate - kRateSentinel;
    if ((rate == kRateSentinel || (masks & kMaskSentinel) != 0) && !has_sentinel) return Fault::rate;
    if (rate == kRateSentinel) return Fault::none;
    inner = special.inner;
    if (inner > kLastPlainRate || special.verbatim > kBlockValues<D> ||
        ((masks & kMaskVerbatim) == 0 && special.verbatim != 0))
      return Fault::rate;
    if (half == 0) words = static_cast<std::uint32_t>(__popc(masks)) * kHalves + special.verbatim * kValueWords;
  }
  const Rate r = decode_rate(static_cast<std::uint8_t>(inner));
  if (r.planes > 8 * sizeof(typename Map::Code)) return Fault::rate;
  planes = r.planes;
  outlier_bytes = half == 0 ? r.outlier_bytes : 0;
  words += planes;
  return Fault::none;
}

// Writes the special values of a block to their positions; false if the masks contradict the descriptor.
template <class Map, int D>
__device__ __forceinline__ bool apply_special(const Quantizer<typename Map::Value>& p, std::uint32_t rate, int half,
                                              std::uint32_t verbatim, const std::uint32_t* words,
                                              typename Map::Value (&x)[32]) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kHalves = D == 1 ? 1 : 2, kValueWords = sizeof(Value) / 4;
  if (rate == kRateSentinel || rate == kRateVerbatim) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      Code bits = p.sentinel_bits;
      if (rate == kRateVerbatim) {
        bits = words[i * kValueWords];
        if constexpr (kValueWords == 2) bits |= static_cast<Code>(words[2 * i + 1]) << 32;
      }
      x[i] = std::bit_cast<Value>(bits);
    }
    return true;
  }
  const std::uint32_t present = rate - kRateSentinel;
  std::uint32_t mask[3];
  std::uint32_t count = 0, before = 0;
#pragma unroll
  for (int m = 0; m < 3; ++m) {
    const bool there = (present >> m & 1) != 0;
    mask[m] = there ? words[half] : 0;
    if (m == 2 && there) {
      for (int h = 0; h < kHalves; ++h) {
        count += static_cast<std::uint32_t>(__popc(words[h]));
        if (h < half) before = count;
      }
    }
    if (there) words += kHalves;
  }
  if (count != verbatim) return false;
  words += before * kValueWords;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    Code bits = std::bit_cast<Code>(x[i]);
    if ((mask[0] >> i & 1) != 0) bits = p.sentinel_bits;
    if ((mask[1] >> i & 1) != 0) bits = FloatTraits<Value>::kQuietNan;
    if ((mask[2] >> i & 1) != 0) {
      bits = words[0];
      if constexpr (kValueWords == 2) bits |= static_cast<Code>(words[1]) << 32;
      words += kValueWords;
    }
    x[i] = std::bit_cast<Value>(bits);
  }
  return true;
}

template <class Map>
__device__ __forceinline__ Map decoding_map(const DecodeFrame& frame) {
  if constexpr (Map::kHasSpecial) {
    return Map(frame.bound, frame.step, frame.has_sentinel != 0, frame.sentinel);
  } else {
    return Map();
  }
}

// Decodes a tile up to the values of each thread, which are valid if no thread returns a fault.
template <class Map, int D>
__device__ __forceinline__ Fault decode_values(const DecodeParams& job, const DecodeFrame& frame, std::uint32_t tile,
                                               const TileLocation& location, int blocks, const Map& map,
                                               DecodeSpace<typename Map::Value, D>& space,
                                               typename Map::Value (&x)[32]) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kHalves = D == 1 ? 1 : 2;
  const int thread = static_cast<int>(threadIdx.x), half = thread % kHalves, threads = blocks * kHalves;
  const bool valid = thread < threads;
  const std::uint32_t size = 4 * location.count;
  const std::uint32_t rate_bytes = location.uniform ? (size != 0 ? 1 : 0) : static_cast<std::uint32_t>(blocks);
  if (size > max_tile_bytes(sizeof(Value)) || rate_bytes > size) return Fault::size;
  const std::uint8_t* const bytes =
      in_shared(stage_words(frame.payload + 4 * (std::uint64_t{job.tiles} + 1 + location.first), location.count,
                            space.bytes_memory(size), [&] { prefetch_ahead(job, frame, tile); }));
  __syncthreads();

  // rates
  std::uint32_t rate = location.uniform ? (size != 0 ? bytes[0] : 0) : valid ? bytes[thread / kHalves] : 0;
  if (!valid) rate = 0;
  std::uint32_t planes, outlier_bytes, words, specials_before = 0;
  SpecialPart special;
  const bool masked = valid && is_special_rate(static_cast<std::uint8_t>(rate));
  if (location.uniform && masked) rate = 256;  // reported below
  Fault fault = Fault::none;
  if (Map::kHasSpecial && __syncthreads_or(masked ? 1 : 0) != 0) {
    scan_warp(Taken(0, 0), valid, valid && half == 0, rate & 0xFF, specials_before, space.scan);
    __syncthreads();
    const std::uint32_t at = scan_block(Taken(0, 0), specials_before, threads, space.scan).specials;
    // a thread of half 1 has already counted its own block
    const std::uint32_t descriptor = rate_bytes + 2 * (at - (half != 0 ? 1 : 0));
    if (masked && rate != 256) {
      if (descriptor + 2 > size) {
        fault = Fault::size;
      } else {
        special = {bytes[descriptor], bytes[descriptor + 1], rate - kRateSentinel};
      }
    }
    __syncthreads();  // the scan's memory is reused
  }
  if (rate == 256) fault = Fault::rate;
  planes = outlier_bytes = words = 0;
  if (valid && fault == Fault::none)
    fault = size_of_block<Map, D>(frame.has_sentinel != 0, rate, half, special, planes, outlier_bytes, words);
  const Taken before =
      scan_warp(Taken(words, outlier_bytes), valid, valid && half == 0, rate & 0xFF, specials_before, space.scan);
  const int bad = __syncthreads_or(fault != Fault::none ? static_cast<int>(fault) : 0);
  if (bad != 0) return fault != Fault::none ? fault : Fault::rate;
  const Placed at = scan_block(before, specials_before, threads, space.scan);
  const std::uint32_t outliers_at = rate_bytes + 2 * at.total_specials;
  const std::uint32_t parts_end = outliers_at + at.total_outlier_bytes, words_at = (parts_end + 3) / 4;
  if (words_at + at.total_words != location.count) return Fault::size;
  if (thread < static_cast<int>(4 * words_at - parts_end) && bytes[parts_end + static_cast<unsigned>(thread)] != 0)
    fault = Fault::padding;

  // planes -> codes -> values
  const auto* const block_words = reinterpret_cast<const std::uint32_t*>(bytes) + words_at + at.words;
  Code z[32];
  read_planes(block_words + (words - planes) * (rate == kRateVerbatim ? 0 : 1), static_cast<int>(planes), z);
  if (outlier_bytes != 0) {
    std::uint64_t high = 0;
    for (std::uint32_t i = 0; i < outlier_bytes; ++i)
      high |= static_cast<std::uint64_t>(bytes[outliers_at + at.outlier_bytes + i]) << (8 * i);
    z[0] = unzigzag(static_cast<Code>(zigzag(z[0]) + static_cast<Code>(high << planes)));
  }
  undo_residuals<Map, D>(frame.mode != 2, half, z);
#pragma unroll
  for (int i = 0; i < 32; ++i) x[i] = map.decode_biased(z[i]);
  if constexpr (Map::kHasSpecial) {
    const std::uint32_t partner_words = D == 1 ? 0 : __shfl_xor_sync(kAllLanes, words, 1);
    const bool from_start = half != 0 && masked;  // the masks are at the start of the block
    if (valid && rate >= kRateSentinel &&
        !apply_special<Map, D>(map.quantizer, rate, half, special.verbatim,
                               block_words - (from_start ? partner_words : 0), x))
      fault = Fault::count;
  }
  return fault;
}

template <class Map, int D, bool kOneFrame>
__global__ void __launch_bounds__(kThreads, kDecodeBlocks<sizeof(typename Map::Code)>)
    decode_kernel(const __grid_constant__ DecodeParams job) {
  using Value = typename Map::Value;
  __shared__ DecodeSpace<Value, D> space;
  constexpr int kHalves = D == 1 ? 1 : 2;
  const std::uint32_t index = kOneFrame ? 0 : blockIdx.x / job.tile_count;
  const std::uint32_t tile = job.first_tile + (blockIdx.x - index * job.tile_count);
  const DecodeFrame frame = kOneFrame ? job.only_frame : job.frames[index];
  const TileLocation location = find_tile(frame, job.tiles, tile);
  const int blocks = static_cast<int>(min(job.blocks - tile * kTileBlocks<D>, std::uint32_t{kTileBlocks<D>}));
  if constexpr (D > 1 && kStaged<D, Value>) find_block_offsets<D>(job.grid, tile, job.blocks, space.offsets);
  Value x[32];
  Fault fault = location.fault;
  if (fault == Fault::none)
    fault = decode_values<Map, D>(job, frame, tile, location, blocks, decoding_map<Map>(frame), space, x);
  if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  if constexpr (kStaged<D, Value>) {
    if (!space.end_reading(4 * location.count, fault)) return;
    write_row(space.arena, x);
    if constexpr (D == 1) {
      __syncwarp();
      store_rows<Value>(space.arena, tile, job.start, min(job.stop, job.grid.values), frame.out);
    } else {
      __syncthreads();
      store_blocks<D, Value>(job.grid, space.arena, blocks, space.offsets.all_whole() && job.aligned, space.offsets,
                             job.start, job.stop, frame.out);
    }
  } else {
    const std::uint32_t block = tile * kTileBlocks<D> + threadIdx.x / kHalves;
    if (block < job.blocks && fault == Fault::none)
      store_half(HalfBlock<D>(job.grid, block, static_cast<int>(threadIdx.x) % kHalves), x, job.aligned, job.start,
                 job.stop, frame.out);
  }
}

}  // namespace pyfilter::cuda
