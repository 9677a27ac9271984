// SPDX-License-Identifier: BSD-3-Clause
// Encoding tiles on the GPU (docs/format.md, sections 4.2 to 5); stages/tile_encode.hpp is the same for the CPU. Each
// of 128 threads owns 32 values in registers: codes, differences and planes never leave them. Shared memory holds the
// tile's values first, then the tile's bytes; their place in the frame comes from decoupled look-back over the tiles
// before it. Tiles are numbered by tickets, so progress never depends on the order of thread blocks.
#pragma once

#include <cstdint>

#include "core/bits.hpp"
#include "stages/cuda/bit_transpose.cuh"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/look_back.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/special.cuh"
#include "stages/cuda/tile_layout.cuh"
#include "stages/rate.hpp"

namespace pyfilter::cuda {

template <class Value, int D, bool kHasSpecial>
struct EncodeSpace {
  alignas(16) std::uint8_t arena[kArenaBytes<Value>];
  std::conditional_t<D == 1, char, BlockPlaces> places;
  std::uint32_t masks[kHasSpecial ? 3 : 1][kHasSpecial ? kThreads : 1];
  ScanSpace scan;
  std::uint32_t ticket, words_before;
};

// Thread blocks of a multiprocessor that registers must suffice for: they are what hides the memory's latency.
#ifndef PYF_ENCODE_BLOCKS
#define PYF_ENCODE_BLOCKS 8
#endif
template <int kCodeBytes>
inline constexpr int kEncodeBlocks = kCodeBytes == 4 ? PYF_ENCODE_BLOCKS : PYF_ENCODE_BLOCKS / 2;

// Values -> biased codes; true where one must be looked at. What is out of reach is found later, by its width.
template <bool kHasSentinel, class T>
__device__ __forceinline__ bool quantise(const Quantizer<T>& p, const T (&x)[32],
                                         typename FloatTraits<T>::Code (&c)[32]) {
  bool misfit = false;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const T t = magic_form(p, x[i]), decoded = decoded_value(p.step, t);
    misfit = misfit || !keeps_bound(p, x[i], decoded);
    if constexpr (kHasSentinel) misfit = misfit || x[i] == p.sentinel || decoded == p.sentinel;
    c[i] = std::bit_cast<typename FloatTraits<T>::Code>(t);
  }
  return misfit;
}

template <class Code>
__device__ __forceinline__ Code combine(const Code (&z)[32]) {
  Code any = 0;
#pragma unroll
  for (int i = 1; i < 32; ++i) any |= z[i];
  return any;
}

// Values whose codes were summed from residuals of at most this many bits, and a first one of at most five more, are
// within reach, which is 2^(f - 1) quanta (f the bits of a fraction): 2^(f - 3) and 63 * 2^(f - 8) together are less.
template <class Code>
inline constexpr int kReachBits = (sizeof(Code) == 4 ? 23 : 52) - 7;

// What a thread knows of its 32 values once they are residuals.
template <class Code>
struct Residuals {
  Code z[32];
  Code any;    // OR of all but the block's first
  Code first;  // the block's first, in the threads of half 0
};

template <class Map, int D>
__device__ __forceinline__ void finish_residuals(std::uint8_t mode, int half, Residuals<typename Map::Code>& r) {
  make_residuals<Map, D>(mode != 2, half, r.z);
  r.any = combine(r.z) | (half != 0 ? r.z[0] : 0);
  r.first = r.z[0];
  if constexpr (D > 1) r.any |= __shfl_xor_sync(kAllLanes, r.any, 1);
}

// This thread's values. All threads of the block take part; theirs are in rows of the arena afterwards.
template <int D, class Value, class Space>
__device__ __forceinline__ void load_values(const EncodeParams& job, const std::uint8_t* values, std::uint32_t tile,
                                            int blocks, bool valid, Space& space, Value (&x)[32]) {
  if constexpr (D == 1) {
    load_rows<Value>(job.grid, values, tile, job.aligned, space.arena);
  } else if constexpr (kStaged<D, Value>) {
    const bool whole = find_places<D>(job.grid, tile, blocks, space.places) && job.aligned;
    load_blocks<D, Value>(job.grid, values, blocks, whole, space.places, space.arena);
  } else {
    const std::uint32_t block = tile * kTileBlocks<D> + threadIdx.x / 2;
    if (valid) {
      load_half(HalfBlock<D>(job.grid, block, static_cast<int>(threadIdx.x % 2)), values, job.aligned, x);
    } else {
#pragma unroll
      for (int i = 0; i < 32; ++i) x[i] = 0;
    }
    return;
  }
  __syncthreads();
  read_row(space.arena, x);
}

// Loads and quantises this thread's values. All threads of the block take part.
template <class Map, int D, class Space>
__device__ __forceinline__ Specials encode_values(const EncodeParams& job, const Map& map, const std::uint8_t* values,
                                                  std::uint32_t tile, int blocks, bool valid, Space& space,
                                                  Residuals<typename Map::Code>& r) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  const int half = D == 1 ? 0 : static_cast<int>(threadIdx.x % 2);
  Specials special;
  Value x[32];
  load_values<D>(job, values, tile, blocks, valid, space, x);
  if constexpr (!Map::kHasSpecial) {
#pragma unroll
    for (int i = 0; i < 32; ++i) r.z[i] = Map::encode_biased(x[i]);
    finish_residuals<Map, D>(0, half, r);
  } else {
    const Quantizer<Value>& p = map.quantizer;
    Value* const row = row_of<Value>(space.arena, static_cast<int>(threadIdx.x));
    bool misfit = p.has_sentinel ? quantise<true>(p, x, r.z) : quantise<false>(p, x, r.z);
    finish_residuals<Map, D>(job.mode, half, r);
    const Code wide = (r.any >> kReachBits<Code>) | (r.first >> (kReachBits<Code> + (job.mode == 2 ? 0 : 5)));
    if (__any_sync(kAllLanes, valid && wide != 0)) {
      for (int i = 0; i < 32 && valid; ++i) misfit = misfit || !in_reach(p, row[i]);
    }
    if (__any_sync(kAllLanes, valid && misfit)) {
      special = note_specials<D>(p, half, valid, row);
      read_row(space.arena, r.z);
      finish_residuals<Map, D>(job.mode, half, r);
    }
  }
  return special;
}

// Bytes of the residuals' planes, eight at a time, to this thread's words.
template <class Code>
__device__ __forceinline__ void write_planes(const Code (&z)[32], int planes, std::uint32_t* to) {
  const int highest = warp_max(planes);
  const auto group = [&]<int g>(auto word) {
    if (8 * g >= highest) return;
    std::uint32_t w[8];
    pack_group<g % 4>(word, w);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (8 * g + k < planes) to[8 * g + k] = w[k];
  };
  const auto low = [&](int i) { return static_cast<std::uint32_t>(z[i]); };
  group.template operator()<0>(low);
  group.template operator()<1>(low);
  group.template operator()<2>(low);
  group.template operator()<3>(low);
  if constexpr (sizeof(Code) == 8) {
    const auto high = [&](int i) { return static_cast<std::uint32_t>(z[i] >> 32); };
    group.template operator()<4>(high);
    group.template operator()<5>(high);
    group.template operator()<6>(high);
    group.template operator()<7>(high);
  }
}

// What comes before the planes of a special block, and verbatim blocks. `to` is where this thread's words start.
template <class Map, int D>
__device__ __noinline__ void write_special(const EncodeParams& job, const std::uint8_t* values, std::uint32_t tile,
                                           std::uint32_t rate, const std::uint32_t* masks, std::uint32_t verbatim,
                                           std::uint32_t partner_words, std::uint32_t* to) {
  using Value = typename Map::Value;
  constexpr int kHalves = kBlockValues<D> / 32, kValueWords = sizeof(Value) / 4;
  const int half = D == 1 ? 0 : static_cast<int>(threadIdx.x % 2);
  const std::uint32_t block = tile * kTileBlocks<D> + threadIdx.x / (D == 1 ? 1 : 2);
  const HalfBlock<D == 1 ? 2 : D> place(job.grid, D == 1 ? 0 : block, half);
  const auto copy_value = [&](int i, std::uint32_t* words) {
    std::uint64_t index = 0;
    if constexpr (D == 1) {
      index = std::uint64_t{block} * 32 + static_cast<unsigned>(i);
      if (index >= job.grid.values) index = job.grid.values - 1;
    } else {
      index = place.value_at(i);
    }
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + index * sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) words[w] = from[w];
  };
  if (rate == kRateVerbatim) {
    for (int i = 0; i < 32; ++i) copy_value(i, to + i * kValueWords);
    return;
  }
  if (half != 0) to -= partner_words;  // the block's first word
  const std::uint32_t present = rate - kRateSentinel;
  for (int m = 0; m < 3; ++m) {
    if ((present >> m & 1) == 0) continue;
    to[half] = masks[m * kThreads];
    to += kHalves;
  }
  to += verbatim * kValueWords;  // of the half before
  for (std::uint32_t rest = masks[2 * kThreads]; rest != 0; rest &= rest - 1, to += kValueWords)
    copy_value(__ffs(static_cast<int>(rest)) - 1, to);
}

template <class Map, int D>
__device__ __forceinline__ Map make_map(const EncodeParams& job, const ChunkPlan& plan) {
  if constexpr (Map::kHasSpecial) {
    using Value = typename Map::Value;
    return Map(make_quantizer(static_cast<Value>(plan.bound), static_cast<Value>(plan.step), plan.has_sentinel != 0,
                              static_cast<typename Map::Code>(plan.sentinel)));
  } else {
    return Map();
  }
}

template <class Map, int D>
__device__ __forceinline__ void encode_tile(const EncodeParams& job, std::uint32_t chunk, std::uint32_t tile,
                                            EncodeSpace<typename Map::Value, D, Map::kHasSpecial>& space) {
  using Value = typename Map::Value;
  using Code = typename Map::Code;
  constexpr int kHalves = D == 1 ? 1 : 2, kValueWords = (sizeof(Value) + 3) / 4;
  const std::uint8_t* const values = job.values + chunk * job.value_stride;
  std::uint8_t* const frame = job.frames + chunk * job.frame_stride;
  const int thread = static_cast<int>(threadIdx.x), half = thread % kHalves;
  const int blocks = static_cast<int>(min(job.blocks - tile * kTileBlocks<D>, std::uint32_t{kTileBlocks<D>}));
  const int threads = blocks * kHalves;
  const bool valid = thread < threads;
  const Map map = make_map<Map, D>(job, job.plans[chunk]);

  Residuals<Code> r;
  const Specials special = encode_values<Map, D>(job, map, values, tile, blocks, valid, space, r);

  // rates and sizes
  const bool outlier = Map::kHasSpecial ? job.mode == 0 : true;
  std::uint32_t rate = 0, inner = 0;
  if (half == 0) {
    const int first_width = bit_width(r.first);
    int width = bit_width(r.any);
    if (!outlier && first_width > width) width = first_width;
    inner = rate = choose_rate(width, outlier ? first_width : width);
    if (Map::kHasSpecial && special.masks != 0)
      rate = special_rate(special.only_sentinels, special.masks, special.verbatim_count, sizeof(Value), 32 * kHalves,
                          decode_rate(static_cast<std::uint8_t>(inner)));
    if (!valid) inner = rate = 0;
  }
  if constexpr (D > 1) {
    const std::uint32_t both = __shfl_sync(kAllLanes, rate | inner << 8, (thread % 32) & ~1);
    rate = both & 0xFF;
    inner = both >> 8;
  }
  const Rate decoded_rate = decode_rate(static_cast<std::uint8_t>(inner));
  std::uint32_t planes = decoded_rate.planes, outlier_bytes = half == 0 ? decoded_rate.outlier_bytes : 0;
  std::uint32_t words = planes;
  if constexpr (Map::kHasSpecial) {
    if (rate >= kRateSentinel) {
      space.masks[0][thread] = special.sentinel;
      space.masks[1][thread] = special.nan;
      space.masks[2][thread] = special.verbatim;
      if (!is_special_rate(static_cast<std::uint8_t>(rate))) {
        planes = outlier_bytes = 0;
        words = rate == kRateVerbatim ? 32 * kValueWords : 0;
      } else if (half == 0) {
        words += static_cast<std::uint32_t>(__popc(special.masks)) * kHalves + special.verbatim_count * kValueWords;
      }
    }
  }
  if (!valid) words = planes = outlier_bytes = 0;
  std::uint32_t specials_before = 0;
  const Taken before =
      scan_warp(Taken(words, outlier_bytes), valid, valid && half == 0, rate, specials_before, space.scan);
  __syncthreads();  // the rows are read, too: the arena is free for the tile's bytes
  const Placed at = scan_block(before, specials_before, threads, space.scan);

  // the tile's size, known to its successors as early as can be
  const bool uniform = at.common_rate != kMixed && at.total_specials == 0;
  const std::uint32_t rate_bytes = uniform ? 1 : static_cast<std::uint32_t>(blocks);
  const std::uint32_t outliers_at = rate_bytes + 2 * at.total_specials;
  const std::uint32_t parts_end = outliers_at + at.total_outlier_bytes;
  const std::uint32_t words_at = (parts_end + 3) / 4;
  const std::uint32_t tile_words = uniform && at.common_rate == 0 ? 0 : words_at + at.total_words;
  TileState state;
  state.d_tile_descriptors = job.states + std::size_t{chunk} * job.tile_states;
  if (thread == 0) {
    if (tile == 0)
      state.SetInclusive(0, tile_words);
    else
      state.SetPartial(static_cast<int>(tile), tile_words);
  }

  // the tile's bytes
  std::uint8_t* const bytes = space.arena;
  std::uint32_t* const word_part = reinterpret_cast<std::uint32_t*>(bytes) + words_at;
  if (tile_words != 0) {
    if (valid && half == 0 && !uniform) bytes[thread / kHalves] = static_cast<std::uint8_t>(rate);
    if (thread == 0 && uniform) bytes[0] = static_cast<std::uint8_t>(rate);
    const std::uint64_t first = planes < 64 ? static_cast<std::uint64_t>(r.first) >> planes : 0;
    for (std::uint32_t i = 0; i < outlier_bytes; ++i)
      bytes[outliers_at + at.outlier_bytes + i] = static_cast<std::uint8_t>(first >> (8 * i));
    if (thread < static_cast<int>(4 * words_at - parts_end)) bytes[parts_end + static_cast<unsigned>(thread)] = 0;
    std::uint32_t planes_at = at.words;
    if constexpr (Map::kHasSpecial) {
      const std::uint32_t partner_words = D == 1 ? 0 : __shfl_xor_sync(kAllLanes, words, 1);
      const std::uint32_t partner_verbatim =
          D == 1 ? 0 : __shfl_xor_sync(kAllLanes, static_cast<std::uint32_t>(__popc(special.verbatim)), 1);
      if (valid && rate > kRateSentinel) {
        if (is_special_rate(static_cast<std::uint8_t>(rate)) && half == 0) {
          bytes[rate_bytes + 2 * at.specials] = static_cast<std::uint8_t>(inner);
          bytes[rate_bytes + 2 * at.specials + 1] = static_cast<std::uint8_t>(special.verbatim_count);
        }
        write_special<Map, D>(job, values, tile, rate, &space.masks[0][thread], half != 0 ? partner_verbatim : 0,
                              partner_words, word_part + at.words);
        if (half == 0) planes_at += words - planes;
      }
    }
    write_planes(r.z, static_cast<int>(planes), word_part + planes_at);
  }

  // its place
  if (thread < 32) {
    const std::uint32_t prefix = tile != 0 ? look_back(state, tile, tile_words) : 0;
    if (thread == 0) space.words_before = prefix;
  }
  __syncthreads();
  const std::uint32_t words_before = space.words_before;
  auto* const directory = reinterpret_cast<std::uint32_t*>(frame + 4 * job.header_words);
  const std::uint64_t end = 4 * (std::uint64_t{job.tiles} + 1 + words_before + tile_words);
  if (thread == 0) directory[tile] = words_before | (uniform ? 0x80000000u : 0);
  if (end < job.value_bytes) {  // else the frame becomes a raw one
    std::uint32_t* const to = directory + job.tiles + 1 + words_before;
    for (std::uint32_t i = threadIdx.x; i < tile_words; i += kThreads)
      to[i] = reinterpret_cast<const std::uint32_t*>(bytes)[i];
  }
  if (tile == job.tiles - 1) {
    const bool raw = end >= job.value_bytes;
    if (thread == 0) {
      directory[job.tiles] = words_before + tile_words;
      job.raw[chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.counters->raw_chunks, 1);
    }
    if (thread < 32) write_header(job, chunk, raw, raw ? job.value_bytes : end);
  }
}

template <class Map, int D>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks<sizeof(typename Map::Code)>)
    encode_kernel(const __grid_constant__ EncodeParams job) {
  __shared__ EncodeSpace<typename Map::Value, D, Map::kHasSpecial> space;
  constexpr bool kExact = !Map::kHasSpecial;
  if (kExact && job.exact_pass && job.counters->exact_chunks == 0) return;
  // A tile gets its number when a thread block is ready for it: those before it are being worked on or done.
  const std::uint32_t all = job.tiles * job.chunks;
  do {
    if (threadIdx.x == 0) space.ticket = atomicAdd(&job.counters->ticket[kExact ? 1 : 0], 1);
    __syncthreads();
    const std::uint32_t ticket = space.ticket;
    if (ticket >= all) return;
    const std::uint32_t chunk = ticket / job.tiles, tile = ticket % job.tiles;
    if ((job.plans[chunk].quantise != 0) != kExact) encode_tile<Map, D>(job, chunk, tile, space);
    if (job.exact_pass) __syncthreads();
  } while (job.exact_pass);
}

}  // namespace pyfilter::cuda
