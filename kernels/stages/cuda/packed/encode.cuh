// SPDX-License-Identifier: BSD-3-Clause
// Encoding packed tiles on the GPU (docs/format.md, section 7); stages/packed/encode.hpp is the same for the CPU. Each
// of 128 threads owns a block of 32 values in registers, as codes, differences and planes. Tickets, the waiting tile
// and the scanner are those of tile_encode.cuh.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/packed/lorenzo.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/packed/special.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/placement.cuh"
#include "stages/cuda/tile_values.cuh"

namespace pyfilter::cuda {

template <class Map, int S>
struct PackedEncodeSpace {
  using Code = typename Map::Code;
  alignas(16) std::uint8_t arena[kPackedArenaBytes<typename Map::Value>];
  union {
    Faces<S, Code> faces;
    SortSpace sort;
  };
  PackedMaskSpace<Map> masks;
  alignas(16) WarpShare shares[kWarps];
  ScannerSpace scanner;
  TileBox boxes[2];  // of this tile and the next
  Waiting waiting_tile;
  Code first;
  std::uint32_t ticket, words_before;
  // behind the rest, as large as the launch makes it: the bytes of a tile that waits for its place
  alignas(16) std::uint8_t waiting[16];
};

// Thread blocks of a multiprocessor that registers must suffice for.
template <int kCodeBytes, int S>
inline constexpr int kPackedEncodeBlocks = kCodeBytes == 8 ? 3
                                           : S == kChain   ? 6
                                                           : 5;

// What a thread block can do for its next tile before it has one hand free: find out where it lies, and move its values
// towards the processor.
template <int S, class Value>
__device__ __forceinline__ void look_ahead_packed(const EncodeParams& job, std::uint32_t task, TileBox& next) {
  const std::uint32_t number = task - 1;
  if (number >= job.tiles * job.chunks) return;
  const auto [chunk, tile] = divide(number, job.grid.by_tiles);
  const TileBox box = box_of<S>(job.grid, tile);
  if (S != kChain && threadIdx.x == 0) next = box;
  // 64-bit values of planes and volumes come 2 % faster unasked, of chains 4 % slower
  if constexpr (sizeof(Value) < 8 || S == kChain || S == kColumns)
    prefetch_packed<S, Value>(job.grid, job.values + chunk * job.value_stride, box);
}

// Values -> biased codes; true where one must be looked at. Chains find what is out of reach later, by its width.
template <int S, bool kHasSentinel, class T>
__device__ __forceinline__ bool quantise_all(const Quantizer<T>& p, const T (&x)[32],
                                             typename FloatTraits<T>::Code (&c)[32]) {
  bool misfit = false;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const T t = magic_form(p, x[i]), decoded = decoded_value(p.step, t);
    misfit = misfit | !keeps_bound(p, x[i], decoded);
    if constexpr (S != kChain) misfit = misfit | !in_reach(p, x[i]);
    if constexpr (kHasSentinel) misfit = misfit | (x[i] == p.sentinel) | (decoded == p.sentinel);
    c[i] = std::bit_cast<typename FloatTraits<T>::Code>(t);
  }
  return misfit;
}

// Chains and columns: differences within the block, in place, but for the first. Returns the last code.
template <int S, class Code>
__device__ __forceinline__ Code difference_block(Code (&c)[32], bool differences) {
  const Code last = c[31];
  if constexpr (S == kColumns || (S == kChain && sizeof(Code) == 4)) {
    const Code taken = S == kColumns || differences ? 1 : 0;  // one multiplication and addition, no branch
#pragma unroll
    for (int i = 31; i > 0; --i) c[i] -= taken * c[i - 1];
  } else if constexpr (S == kChain) {
    if (differences) {
#pragma unroll
      for (int i = 31; i > 0; --i) c[i] -= c[i - 1];
    }
  }
  return last;
}

// Whether all codes of a chain's block are within reach, 2^(f - 1) quanta (f the bits of a fraction), by its
// differences: a first code of f - 4 bits as a residual and 31 steps of f - 7 bits stay below 2^(f - 5) + 2^(f - 3).
template <class Map>
__device__ __forceinline__ bool surely_in_reach(const Spread<typename Map::Code>& rest, typename Map::Code first) {
  using Code = typename Map::Code;
  constexpr int kFraction = FloatTraits<typename Map::Value>::kFractionBits;
  return (rest.bits() >> (kFraction - 8) | zigzag(static_cast<Code>(first - Map::kBias)) >> (kFraction - 4)) == 0;
}

// Loads a tile; codes of this thread's block to c (of chains and columns differenced within it), the last of them to
// `last`, the tile's faces to shared memory. All threads take part; behind it the arena is free. True in all of them if
// one has special values.
template <class Map, int S, class Space>
__device__ __forceinline__ bool packed_codes(const EncodeParams& job, const ChunkPlan& plan, const std::uint8_t* values,
                                             const TileBox& box, bool valid, Space& space, typename Map::Code (&c)[32],
                                             typename Map::Code& last, Spread<typename Map::Code>& rest,
                                             PackedNotes& notes) {
  using Value = typename Map::Value;
  constexpr bool kLogarithms = (Map::kMasks & kMaskNegative) != 0;
  const bool differences = S != kChain || plan.predictor >> 16 != 0;
  const ReadyQuantizer<Map> ready(plan);  // before the values: it comes while they do
  load_packed<S, Value>(job.grid, values, box, job.aligned, space.arena);
  await_values<S>();
  const auto sort_specials = [&] {
    bool any = false;
    if constexpr (Map::kHasSpecial) {
      PackedNotes found;  // apart from the caller's, which then need no address
      any = note_packed_specials<Map, S>(plan, valid, space.arena, space.sort, space.masks, found);
      notes = found;
      read_packed_row<S>(space.arena, c);
      __syncthreads();
      show_face<S>(c, space.faces);
      last = difference_block<S>(c, differences);
      if constexpr (S == kChain) rest = spread_of_rest(c);
      __syncthreads();
    }
    return any;
  };
  if constexpr (kLogarithms) {
    return sort_specials();
  } else if constexpr (!Map::kHasSpecial) {
    Value x[32];
    read_packed_row<S>(space.arena, x);
#pragma unroll
    for (int i = 0; i < 32; ++i) c[i] = Map::encode_biased(x[i]);
    show_face<S>(c, space.faces);
    last = difference_block<S>(c, differences);
    if constexpr (S == kChain) rest = spread_of_rest(c);
    __syncthreads();
    return false;
  } else {
    Value x[32];
    read_packed_row<S>(space.arena, x);
    const Quantizer<Value>& p = ready.quantizer;
    bool misfit = p.has_sentinel ? quantise_all<S, true>(p, x, c) : quantise_all<S, false>(p, x, c);
    show_face<S>(c, space.faces);
    last = difference_block<S>(c, differences);
    if constexpr (S == kChain) {
      rest = spread_of_rest(c);
      if (__any_sync(kAllLanes, !differences || !surely_in_reach<Map>(rest, c[0]))) {
        const Value* const row = packed_row<S, Value>(space.arena);
        for (int i = 0; i < 32; ++i) misfit = misfit || !in_reach(p, row[i]);
      }
    }
    if (__syncthreads_or(misfit ? 1 : 0) == 0) return false;
    return sort_specials();
  }
}

// Where a tile's parts start, in bytes of the tile but for `words` and `size`.
struct PackedTile {
  PackedHead head;
  std::uint32_t descriptors, exceptions, masks, words;  // of the tile
  std::uint32_t parts_end;
  std::uint32_t masked_blocks, own_mask, own_group;                     // of its mask section, by number
  std::uint32_t own_descriptor, own_exception, own_words, own_present;  // of this thread, by number
  std::uint32_t tile_words;
  bool with_exceptions, verbatim;
};

// The tile's layout from the shares of its warps. `with_more`: whether it has special or absent blocks.
template <bool kExceptions, class Value>
__device__ __forceinline__ PackedTile lay_out(const WarpShare (&shares)[kWarps], bool with_more,
                                              std::uint32_t tile_flags, std::uint32_t before_in_warp,
                                              std::uint32_t groups_in_warp, std::uint32_t first_bytes) {
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::uint32_t below = (1u << threadIdx.x % 32) - 1;
  const auto count = [](std::uint32_t bits) { return static_cast<std::uint32_t>(__popc(static_cast<int>(bits))); };
  PackedTile t = {};
  uint4 share[kWarps];  // words, widths, saved, exceptions
#pragma unroll
  for (int w = 0; w < kWarps; ++w) share[w] = *reinterpret_cast<const uint4*>(&shares[w]);
  if constexpr (kExceptions) t.with_exceptions = exceptions_pay(share[0].z + share[1].z + share[2].z + share[3].z);
  std::uint32_t narrowest = 255, widest = 0, words = 0, exception_count = 0, special_count = 0, groups = 0, present = 0;
  const unsigned shift = t.with_exceptions ? 16 : 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const std::uint32_t widths = share[w].y >> shift & 0xFFFF, taken = t.with_exceptions ? share[w].w : 0;
    narrowest = min(narrowest, widths & 0xFF);
    widest = max(widest, widths >> 8);
    if (w == warp) {
      t.own_words = words + (before_in_warp >> shift & 0xFFFF);
      t.own_exception = exception_count + count(taken & below);
    }
    words += share[w].x >> shift & 0xFFFF;
    if constexpr (kExceptions) exception_count += count(taken);
  }
  if (with_more) {
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) {
        t.own_descriptor = special_count + count(shares[w].special & below);
        t.own_present = present + count(shares[w].present & below);
        t.own_mask = t.masked_blocks + count(shares[w].masked & below);
        t.own_group = groups + groups_in_warp;
      }
      special_count += count(shares[w].special);
      t.masked_blocks += count(shares[w].masked);
      groups += shares[w].groups;
      present += count(shares[w].present);
    }
  } else {
    present = kPackedBlocks;
    t.own_present = threadIdx.x;
  }
  t.head.base = narrowest;
  t.head.rate_planes = static_cast<std::uint32_t>(bit_width(widest - narrowest));
  t.head.first_bytes = first_bytes;
  t.head.flags =
      tile_flags | (exception_count != 0 ? kPackedExceptions : 0) | (special_count != 0 ? kPackedSpecial : 0);
  t.descriptors = t.head.bytes() + t.head.tile_planes() * kPackedPlaneBytes;
  t.exceptions = t.descriptors + 2 * special_count;
  t.masks = t.exceptions + 2 * exception_count;
  t.parts_end = t.masks + t.masked_blocks + nibble_bytes(groups);
  t.words = (t.parts_end + 3) / 4;
  t.tile_words = t.head.word() == 0 ? 0 : t.words + words;
  const std::uint32_t verbatim_words = 1 + present * 32 * static_cast<std::uint32_t>(sizeof(Value) / 4);
  t.verbatim = t.tile_words > verbatim_words;
  if (t.verbatim) t.tile_words = verbatim_words;
  return t;
}

// Encodes a tile into shared memory and puts the one that waits there to its place.
template <class Map, int S, bool kExceptions>
__device__ __forceinline__ void encode_packed(const EncodeParams& job, std::uint32_t chunk, std::uint32_t tile,
                                              std::uint32_t next_task, int parity, PackedEncodeSpace<Map, S>& space) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kValueWords = (sizeof(Value) + 3) / 4;
  const std::uint8_t* const values = job.values + chunk * job.value_stride;
  const ChunkPlan& plan = job.plans[chunk];
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const TileBox box = S == kChain ? box_of<S>(job.grid, tile) : space.boxes[parity];
  const bool whole = is_whole<S>(box), valid = whole || is_present<S>(box, thread);

  Code z[32], last;
  PackedNotes notes;
  Spread<Code> spread;
  const bool with_more = packed_codes<Map, S>(job, plan, values, box, valid, space, z, last, spread, notes) || !whole;
  const auto order = static_cast<int>(plan.predictor >> 16);
  if (S == kChain && order == 0) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      if (i > 0 || thread > 0) z[i] -= Map::kBias;
    spread = spread_of_rest(z);
  } else {
    packed_differences<S>(order, last, z, space.faces);
  }
  Code first = 0;
  if (thread == 0) {
    first = zigzag(static_cast<Code>(z[0] - Map::kBias));
    space.first = first;
    z[0] = 0;
  }
  if constexpr (S != kChain) spread = spread_of_rest(z);
  spread.add(z[0]);

  // planes and sizes
  const int width = valid ? spread.planes() : 0, highest = warp_max(width);
  std::uint32_t w[kExceptions ? 8 * sizeof(Code) : 1];
  Exception split{width, 0};
  if constexpr (kExceptions) {
    pack_all(z, highest, w);
    split = split_planes(width, highest, w);
  }
  const bool described = notes.masks != 0;
  const std::uint32_t special_words =
      described ? static_cast<std::uint32_t>(__popc(static_cast<int>(notes.masks))) + notes.verbatim_count * kValueWords
                : 0;
  std::uint32_t groups_upto = 0;
  const auto fewer = static_cast<std::uint32_t>(width - split.planes);
  const std::uint32_t words =
      (static_cast<unsigned>(width) + special_words) | (static_cast<unsigned>(split.planes) + special_words) << 16;
  const std::uint32_t upto = sum_upto(words);
  {
    WarpShare share;
    const std::uint32_t narrow = warp_min(valid ? static_cast<unsigned>(width) : 255);
    share.widths = narrow | static_cast<unsigned>(highest) << 8;
    share.saved = share.exceptions = 0;
    if constexpr (kExceptions) {
      const std::uint32_t narrow_left = warp_min(valid ? static_cast<unsigned>(split.planes) : 255);
      const std::uint32_t wide_left = warp_max_u(static_cast<unsigned>(split.planes));
      share.widths |= narrow_left << 16 | wide_left << 24;
      share.saved = warp_sum(fewer != 0 ? 32 * fewer - kExceptionCost : 0);
      share.exceptions = __ballot_sync(kAllLanes, fewer != 0);
    }
    auto* const to = reinterpret_cast<uint4*>(&space.shares[warp]);
    if (with_more) {
      share.special = __ballot_sync(kAllLanes, described);
      share.masked = __ballot_sync(kAllLanes, notes.residual != 0);
      share.present = __ballot_sync(kAllLanes, valid);
      groups_upto = sum_upto(static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(notes.residual)))));
      if (lane == 31) to[1] = make_uint4(share.special, share.masked, share.present, groups_upto);
      groups_upto -= static_cast<std::uint32_t>(__popc(static_cast<int>(nibbles_of(notes.residual))));
    }
    if (lane == 31) to[0] = make_uint4(upto, share.widths, share.saved, share.exceptions);
  }
  if (thread == 0) space.ticket = next_task;
  __syncthreads();
  const auto first_bytes = static_cast<std::uint32_t>(bit_width(space.first) + 7) / 8;
  const PackedTile t =
      lay_out<kExceptions, Value>(space.shares, with_more, notes.tile_flags, upto - words, groups_upto, first_bytes);
  if (thread == 0) post_size(job.sums, chunk * job.tiles + tile, t.tile_words);
  // by now the sizes of all tiles before the waiting one are there, or soon will be
  look_ahead_packed<S, Value>(job, space.ticket, space.boxes[parity ^ 1]);
  const uint2 asked = ask_place(job, space.waiting_tile);

  // the tile's bytes
  std::uint8_t* const bytes = space.arena;
  auto* const tile_words = reinterpret_cast<std::uint32_t*>(bytes);
  if (t.tile_words != 0 && !t.verbatim) {
    if constexpr (Map::kHasSpecial) {
      if ((t.head.flags & kPackedMissing) != 0)
        write_mask_section(notes.residual, t.masks, t.own_mask, t.masked_blocks, t.own_group, t.parts_end, tile_words);
    }
    if (thread == 0) {
      tile_words[0] = t.head.word();
      if (first_bytes != 0) tile_words[1] = static_cast<std::uint32_t>(first);
      if (first_bytes > 4) tile_words[2] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(first) >> 32);
      for (std::uint32_t at = t.parts_end; at % 4 != 0; ++at) bytes[at] = 0;
    }
    const int planes = t.with_exceptions ? split.planes : width;
    std::uint32_t* plane = tile_words + t.head.bytes() / 4 + warp;
    const std::uint32_t above = valid ? static_cast<unsigned>(planes) - t.head.base : 0;
#pragma unroll 1
    for (std::uint32_t r = 0; r < t.head.rate_planes; ++r, plane += 4) {
      const std::uint32_t bits = __ballot_sync(kAllLanes, (above >> r & 1) != 0);
      if (lane == 0) *plane = bits;
    }
    if (lane == 0) {
      if ((t.head.flags & kPackedExceptions) != 0) {
        *plane = space.shares[warp].exceptions;
        plane += 4;
      }
      if ((t.head.flags & kPackedMissing) != 0) {
        *plane = space.shares[warp].masked;
        plane += 4;
      }
      if ((t.head.flags & kPackedSpecial) != 0) *plane = space.shares[warp].special;
    }
    if (t.with_exceptions && fewer != 0)
      *reinterpret_cast<std::uint16_t*>(bytes + t.exceptions + 2 * t.own_exception) =
          static_cast<std::uint16_t>(split.entry);
    std::uint32_t* to = tile_words + t.words + t.own_words;
    if constexpr (Map::kHasSpecial) {
      if (described) {
        bytes[t.descriptors + 2 * t.own_descriptor] = static_cast<std::uint8_t>(notes.masks);
        bytes[t.descriptors + 2 * t.own_descriptor + 1] = static_cast<std::uint8_t>(notes.verbatim_count);
        to = write_packed_special<Map, S>(job, values, box, space.masks, to);
      }
    }
    if constexpr (kExceptions)
      write_all(w, planes, highest, to);
    else
      write_planes(z, planes, to);
  } else if (t.verbatim) {
    if (thread == 0) tile_words[0] = kPackedVerbatim << 16;
    if (valid) write_verbatim_block<S, Value>(job, values, box, t.own_present, tile_words + 1);
  }
  find_place(job, space.waiting_tile, asked, space);
  __syncthreads();

  // the waiting tile goes, this one waits: through registers, or with one more barrier if it is large
  const auto* const from = reinterpret_cast<const uint4*>(bytes);
  auto* const to = reinterpret_cast<uint4*>(space.waiting);
  uint4 piece = {};
  if (4 * thread < t.tile_words) piece = from[thread];
  if (space.waiting_tile.there) place_tile(job, space.waiting_tile, space.words_before, space.waiting);
  __syncthreads();
  const bool waits = 4 * t.tile_words <= job.waiting_bytes;
  const Waiting made = {chunk, tile, t.tile_words, true, false};
  if (thread == 0) space.waiting_tile = {chunk, tile, t.tile_words, waits, false};
  if (!waits) {  // a device with little shared memory
    find_place(job, made, {}, space);
    __syncthreads();
    place_tile(job, made, space.words_before, bytes);
    __syncthreads();
    return;
  }
  if (4 * thread < t.tile_words) to[thread] = piece;
  if (t.tile_words <= 4 * kThreads) return;
#pragma unroll 1
  for (std::uint32_t at = thread + kThreads; 4 * at < t.tile_words; at += kThreads) to[at] = from[at];
  __syncthreads();
}

template <class Map, int S, bool kExceptions>
__global__ void __launch_bounds__(kThreads, kPackedEncodeBlocks<sizeof(typename Map::Code), S>)
    packed_encode_kernel(const __grid_constant__ EncodeParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<PackedEncodeSpace<Map, S>*>(shared_memory);
  constexpr bool kExact = !Map::kHasSpecial;
  follow();
  if (job.counters->packed_chunks[job.pass] == 0) return;
  const std::uint32_t all = job.tiles * job.chunks;
  std::uint32_t* const tasks = &job.counters->packed_task[job.pass];
  if (threadIdx.x == 0) space.ticket = atomicAdd(tasks, 1);
  __syncthreads();
  std::uint32_t task = space.ticket;
  if (task == 0) {
    scan_sizes(job.sums, all, space.scanner);
    return;
  }
  int parity = 0;
  if (threadIdx.x == 0) space.waiting_tile.there = false;
  look_ahead_packed<S, typename Map::Value>(job, task, space.boxes[0]);
  __syncthreads();
  for (; task <= all; parity ^= 1) {
    const std::uint32_t number = task - 1;
    const auto [chunk, tile] = divide(number, job.grid.by_tiles);
    const std::uint32_t next = threadIdx.x == 0 ? atomicAdd(tasks, 1) : 0;
    const ChunkPlan& plan = job.plans[chunk];
    const uint2 pass = *reinterpret_cast<const uint2*>(&plan.quantise);  // and the predictor
    if ((pass.x != 0) != kExact && (pass.y & 0xFF) == S) {
      encode_packed<Map, S, kExceptions>(job, chunk, tile, next, parity, space);
    } else {  // of another pass
      if (threadIdx.x == 0) {
        space.ticket = next;
        post_size(job.sums, number, 0);
      }
      __syncthreads();
      look_ahead_packed<S, typename Map::Value>(job, space.ticket, space.boxes[parity ^ 1]);
      __syncthreads();
    }
    task = space.ticket;
  }
  __syncthreads();  // the last tile waits
  find_place(job, space.waiting_tile, {}, space);
  __syncthreads();
  if (space.waiting_tile.there) place_tile(job, space.waiting_tile, space.words_before, space.waiting);
}

}  // namespace pyfilter::cuda
