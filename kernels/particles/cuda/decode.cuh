// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles to values on the GPU (docs/format.md, section 12); particles/cpu/decode.hpp is the same on the
// CPU. A thread block takes a tile. A thread decodes 32 numbers of a sequence or keys: counts of the unary stream's
// ones, word by word, give the end of each number. Then a lane decodes a particle: its key and the planes of its
// offsets become values. A warp stores them in memory order. Sizes are checked before they are used; a contradiction is
// written to the frame's fault word.
#pragma once

#include <algorithm>
#include <cstdint>

#include "particles/head.hpp"
#include "particles/key.hpp"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/rows.cuh"
#include "stages/cuda/tile_decode.cuh"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

// Bytes of a tile that are copied to shared memory. Of a longer tile, offsets are read from global memory, and keys,
// too, if they alone are longer.
inline constexpr std::uint32_t kParticleArena = 12288;
inline constexpr std::uint32_t kNumberLimit = 1u << kMostKeyBits;  // gaps and counts are smaller

template <class T, int D>
struct ParticleDecodeSpace {
  alignas(128) std::uint8_t arena[kParticleArena + 32];
  alignas(16) T values[kWarps][kGroup * D];
  std::uint32_t rows[kRowWords];  // ends of unary codes, then keys
  std::uint32_t segments[4][64];  // SegmentTables
  Exchange low[2], ones[2], keys, starts, largest;
};

// Decodes a sequence of `count` numbers that starts `left` words before the tile's end: this thread's group, padded
// with 0. Returns the sequence's words, 0 (in all threads) if it is damaged or a number is kNumberLimit or more.
template <class Space>
__device__ __forceinline__ std::uint32_t read_numbers(const std::uint32_t* words, std::uint32_t left,
                                                      std::uint32_t count, int exchange, Space& space,
                                                      std::uint32_t (&numbers)[32]) {
  const std::uint32_t thread = threadIdx.x;
  SequenceHead head;
  if (left < 1 || !read_sequence_head(words[0], count, head) || left < head.words() + head.unary_words) return 0;
  const auto mask = [&](std::uint32_t i) { return words[1 + i]; };
  unsigned low = thread < head.groups ? low_bits(head, mask, thread) : 0;
  bool bad = low > 31 || (thread < head.rate_planes && has_stray_bits(head, mask, thread));
  std::uint32_t plane_words = 0;
  const std::uint32_t planes_at =
      head.words() + block_sum_before(min(low, 31u), space.low[exchange], &plane_words, &bad);
  const std::uint32_t unary_at = head.words() + plane_words, size = unary_at + head.unary_words;
  if (bad || size > left) return 0;

  // each thread counts the same number of words of the stream
  const std::uint32_t each = (head.unary_words + kThreads - 1) / kThreads;
  const std::uint32_t first = min(thread * each, head.unary_words), last = min(first + each, head.unary_words);
  std::uint32_t ones = 0, all = 0;
  for (std::uint32_t w = first; w < last; ++w)
    ones += static_cast<std::uint32_t>(__popc(static_cast<int>(words[unary_at + w])));
  bad = last == head.unary_words && first < last && words[unary_at + last - 1] == 0;
  std::uint32_t found = block_sum_before(min(ones, kTileParticles + 1), space.ones[exchange], &all, &bad);
  if (bad || all != count) return 0;
  for (std::uint32_t w = first; w < last; ++w) {
    for (std::uint32_t word = words[unary_at + w]; word != 0; word &= word - 1)
      space.rows[row_index(found++)] = 32 * w + static_cast<std::uint32_t>(__ffs(static_cast<int>(word)));
  }
  unpack_numbers(words + planes_at, static_cast<int>(low), numbers);
  __syncthreads();
  const std::uint32_t* const row = space.rows + thread * kRow;
  const int here = static_cast<int>(min(count - min(count, thread * kGroup), kGroup));
  std::uint32_t end = thread != 0 && here != 0 ? row[-2] : 0, any = 0, most = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t next = row[i], quotient = i < here ? next - end - 1 : 0;
    numbers[i] = i < here ? numbers[i] + (quotient << low) : 0;
    any |= numbers[i];
    most |= quotient;
    end = next;
  }
  const bool large = any >= kNumberLimit || (std::uint64_t{most} << low) >= kNumberLimit;
  return __syncthreads_or(large ? 1 : 0) != 0 ? 0 : size;  // the rows may be overwritten
}

// Replaces a thread's numbers by their running sums, with `step` added to each; returns the thread's sum.
__device__ __forceinline__ std::uint32_t add_up(std::uint32_t (&numbers)[32], std::uint32_t step) {
  std::uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    sum += numbers[i] + step;
    numbers[i] = sum;
  }
  return sum;
}

// Decodes the keys of all ordinary particles to space.rows. Returns their words, 0 if they are damaged.
template <class Space>
__device__ __forceinline__ std::uint32_t read_keys(const std::uint32_t* words, std::uint32_t left,
                                                   std::uint32_t ordinary, bool runs, unsigned bits, Space& space) {
  const std::uint32_t thread = threadIdx.x;
  std::uint32_t* const row = space.rows + thread * kRow;
  std::uint32_t keys[32], all = 0;
  bool bad = false;
  if (!runs) {
    const std::uint32_t size = read_numbers(words, left, ordinary, 0, space, keys);
    if (size == 0) return 0;
    const std::uint32_t sum = add_up(keys, 0);  // below 2^29
    const std::uint32_t before = block_sum_before(min(sum, kNumberLimit), space.keys, &all, &bad);
    if (all >> bits != 0) return 0;
#pragma unroll
    for (int i = 0; i < 32; ++i) row[i] = keys[i] + before;
    return size;
  }
  const std::uint32_t distinct = left < 1 ? 0 : words[0];
  if (distinct == 0 || distinct > ordinary) return 0;
  std::uint32_t size = 1 + read_numbers(words + 1, left - 1, distinct, 0, space, keys);
  if (size == 1) return 0;
  // a distinct key is the sum of gaps up to its own, plus the number of keys before it
  const int here = static_cast<int>(min(distinct - min(distinct, thread * kGroup), kGroup));
  std::uint32_t sum = add_up(keys, 1);
  sum = here != 0 ? sum - (kGroup - static_cast<std::uint32_t>(here)) : 0;
  const std::uint32_t before = block_sum_before(min(sum, kNumberLimit), space.keys, &all, &bad);
  if ((all - 1) >> bits != 0) return 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) keys[i] += before - 1;

  std::uint32_t starts[32];
  const std::uint32_t count_words = read_numbers(words + size, left - size, distinct, 1, space, starts);
  if (count_words == 0) return 0;
  size += count_words;
  sum = add_up(starts, 1);
  sum = here != 0 ? sum - (kGroup - static_cast<std::uint32_t>(here)) : 0;
  std::uint32_t start = block_sum_before(min(sum, kNumberLimit), space.starts, &all, &bad);
  if (all != ordinary) return 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) row[i] = 0;
  __syncthreads();
  // marks the first particle of each run with its key; a running maximum fills the others, since keys ascend
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (i < here) space.rows[row_index(i == 0 ? start : start + starts[i - 1])] = keys[i];
  }
  __syncthreads();
  std::uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    largest = max(largest, row[i]);
    keys[i] = largest;
  }
  const std::uint32_t floor = block_max_before(largest, space.largest);
#pragma unroll
  for (int i = 0; i < 32; ++i) row[i] = max(keys[i], floor);
  return size;
}

// The offset of this lane's particle along an axis, from `count` planes. Called by all lanes of a warp.
template <class Code>
__device__ __forceinline__ Code read_offset(const std::uint32_t* planes, unsigned count) {
  const unsigned lane = threadIdx.x % 32;
  Code offset = transpose_warp(lane < count ? planes[lane] : 0);
  if constexpr (sizeof(Code) == 8)
    if (count > 32) offset |= Code{transpose_warp(32 + lane < count ? planes[32 + lane] : 0)} << 32;
  return offset;
}

// The requested values of a tile, and their destination: value v goes to to[v], for low <= v < high.
template <class T>
struct WantedValues {
  T* to;
  std::uint32_t low, high;

  __device__ __forceinline__ WantedValues(const DecodeParams& job, const DecodeFrame& frame, std::uint64_t first,
                                          std::uint32_t count) {
    low = static_cast<std::uint32_t>(min(max(job.start, first) - first, std::uint64_t{count}));
    high = static_cast<std::uint32_t>(min(max(job.stop, first) - first, std::uint64_t{count}));
    to = reinterpret_cast<T*>(frame.out + (first - job.start) * sizeof(T));
  }
  __device__ __forceinline__ void put(std::uint32_t v, T value) const {
    if (v - low < high - low) to[v] = value;
  }
};

// Tables from four parts of a key to segment numbers, side by side for the axes by falling width. Tables suffice
// because a key's bits are only permuted. Each tile makes its own.
struct SegmentTables {
  const std::uint32_t (*parts)[64];
  unsigned first, second;  // bits of the first number, and of the second
  std::uint32_t first_mask, second_mask;

  __device__ __forceinline__ SegmentTables(const KeyLayout& layout, const std::uint32_t (&tables)[4][64])
      : parts(tables), first(layout.three + layout.two + layout.one), second(layout.three + layout.two) {
    first_mask = (1u << first) - 1;
    second_mask = (1u << second) - 1;
  }
  // Called by all threads of a block; a barrier must follow.
  __device__ __forceinline__ void make(const KeyLayout& layout, std::uint32_t (&tables)[4][64]) const {
    for (unsigned i = threadIdx.x; i < 256; i += kThreads) {
      std::uint32_t a, b, c;
      numbers_of(layout, i % 64 << i / 64 * 6, a, b, c);
      tables[i / 64][i % 64] = a | b << first | c << (first + second);
    }
  }
  __device__ __forceinline__ void take(std::uint32_t key, std::uint32_t (&numbers)[3]) const {
    const std::uint32_t all =
        parts[0][key & 63] | parts[1][key >> 6 & 63] | parts[2][key >> 12 & 63] | parts[3][key >> 18];
    numbers[0] = all & first_mask;
    numbers[1] = all >> first & second_mask;
    numbers[2] = all >> (first + second);
  }
};

// Stores the values of ordinary particles, group by group, from keys in space.rows and planes at `words`.
template <class T, int D>
__device__ __forceinline__ void store_ordinary(const TileHead<typename FloatTraits<T>::Code>& head,
                                               const KeyLayout& layout, const std::uint32_t* words, T step,
                                               const WantedValues<T>& wanted, ParticleDecodeSpace<T, D>& space) {
  using Code = typename FloatTraits<T>::Code;
  const SegmentTables tables(layout, space.segments);
  const bool all_wanted = wanted.low == 0 && wanted.high >= head.ordinary * D;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, shift = layout.shift;
  const bool keyed = layout.bits() != 0;
  const unsigned planes[3] = {head.planes(0), head.planes(1), head.planes(2)}, all = head.planes();
  const unsigned planes_at[3] = {0, planes[0], planes[0] + planes[1]};
  Code origin[3];
  unsigned count[3], at[3];
  std::uint32_t mask[3];
#pragma unroll
  for (int k = 0; k < D; ++k) {
    origin[k] = pick(head.origin, layout.axis[k]);
    count[k] = pick(planes, layout.axis[k]);
    at[k] = pick(planes_at, layout.axis[k]) % 32;  // 32: no bits remain, since earlier axes fill the word
    mask[k] = count[k] < 32 ? (1u << count[k]) - 1 : ~0u;
  }
  T* const row = space.values[warp];
  const std::uint32_t groups = (head.ordinary + kGroup - 1) / kGroup;
#pragma unroll 1
  for (std::uint32_t g = warp; g < groups; g += kWarps) {
    std::uint32_t numbers[3];
    tables.take(keyed ? space.rows[g * kRow + lane] : 0, numbers);
    Code q[3];
#pragma unroll
    for (int k = 0; k < D; ++k) q[k] = origin[k] + static_cast<Code>(Code{numbers[k]} << shift);
    const std::uint32_t* const from = words + std::size_t{g} * all;
    if (all == 0) {
    } else if (all <= 32) {  // one read for the offsets of all axes
      const std::uint32_t offsets = read_offset<std::uint32_t>(from, all);
#pragma unroll
      for (int k = 0; k < D; ++k) q[k] += offsets >> at[k] & mask[k];
    } else {
#pragma unroll
      for (int k = 0; k < D; ++k) q[k] += read_offset<Code>(from + pick(planes_at, layout.axis[k]), count[k]);
    }
#pragma unroll
    for (int k = 0; k < D; ++k) row[lane * D + layout.axis[k]] = value_of_code(step, q[k]);
    __syncwarp();
    const std::uint32_t first = g * kGroup * D, end = head.ordinary * D;
    if (all_wanted && first + kGroup * D <= end) {
      T* const to = wanted.to + first + lane;
#pragma unroll
      for (unsigned k = 0; k < D; ++k) to[32 * k] = row[32 * k + lane];
    } else {
#pragma unroll
      for (unsigned k = 0; k < D; ++k)
        if (const std::uint32_t v = first + 32 * k + lane; v < end) wanted.put(v, row[32 * k + lane]);
    }
    __syncwarp();
  }
}

// Stores the verbatim particles at `words`, and repeats the last one as the tail.
template <class T, int D>
__device__ __forceinline__ void store_stored(const TileHead<typename FloatTraits<T>::Code>& head,
                                             const std::uint32_t* words, const WantedValues<T>& wanted) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint32_t stored = head.stored * D, all = stored + head.repeats * D;
  for (std::uint32_t i = threadIdx.x; i < all; i += kThreads) {
    const std::uint32_t from = i < stored ? i : stored - D + (i - stored) % D;
    Code bits = words[from * (sizeof(T) / 4)];
    if constexpr (sizeof(T) == 8) bits |= Code{words[2 * from + 1]} << 32;
    wanted.put(head.ordinary * D + i, std::bit_cast<T>(bits));
  }
}

template <class T, int D>
__device__ __forceinline__ Fault decode_particle_tile(const DecodeParams& job, const DecodeFrame& frame,
                                                      const TileLocation& location, std::uint32_t tile,
                                                      ParticleDecodeSpace<T, D>& space) {
  using Code = typename FloatTraits<T>::Code;
  const std::uint64_t first = std::uint64_t{tile} * kTileParticles;
  const auto count = static_cast<std::uint32_t>(min(job.grid.values / D - first, std::uint64_t{kTileParticles}));
  const std::uint32_t size = location.count;
  const std::uint8_t* const bytes = frame.payload + 4 * (std::uint64_t{job.tiles} + 1 + location.first);
  if (location.uniform) return Fault::keys;
  const std::uint32_t staged = min(size, kParticleArena / 4);
  const auto *const far = reinterpret_cast<const std::uint32_t*>(bytes), *const near =
                                                                             reinterpret_cast<const std::uint32_t*>(
                                                                                 stage_words(bytes, staged,
                                                                                             space.arena));
  __syncthreads();
  TileHead<Code> head;
  const auto word = [near](std::uint32_t i) { return near[i]; };
  std::uint32_t at = read_head<Code, D>(word, size, count, head);
  if (at == 0) return Fault::keys;
  const std::uint32_t offset_words = head.planes() * ((head.ordinary + kGroup - 1) / kGroup),
                      stored_words = head.stored * D * (sizeof(T) / 4);
  if (size - at < offset_words + stored_words) return Fault::keys;
  const std::uint32_t keys_end = size - offset_words - stored_words;
  KeyLayout layout;
  if (head.ordinary != 0) {
    layout = make_layout(head.width, head.shift);
    SegmentTables(layout, space.segments).make(layout, space.segments);
    if (layout.bits() != 0) {
      const std::uint32_t* const keys = keys_end <= staged ? near : far;
      const std::uint32_t key_words =
          read_keys(keys + at, keys_end - at, head.ordinary, head.runs, layout.bits(), space);
      if (key_words == 0) return Fault::keys;
      at += key_words;
    }
    __syncthreads();
  }
  if (at != keys_end) return Fault::keys;
  const std::uint32_t* const offsets = (size <= staged ? near : far) + at;
  const WantedValues<T> wanted(job, frame, first * D, count * D);
  const auto step = static_cast<T>(frame.step);
  store_ordinary(head, layout, offsets, step, wanted, space);
  if (head.stored != 0) store_stored<T, D>(head, offsets + offset_words, wanted);
  return Fault::none;
}

inline constexpr int kParticleDecodeBlocks = 7;  // the number of blocks a multiprocessor that registers must allow

template <class T, int D>
__global__ void __launch_bounds__(kThreads, kParticleDecodeBlocks)
    particle_decode_kernel(const __grid_constant__ DecodeParams job) {
  __shared__ ParticleDecodeSpace<T, D> space;
  const std::uint32_t index = job.frames != nullptr ? blockIdx.x / job.tile_count : 0;
  const std::uint32_t tile = job.first_tile + (blockIdx.x - index * job.tile_count);
  const DecodeFrame frame = job.frame(index);
  const TileLocation location = find_tile(frame, job.tiles, tile);
  Fault fault = location.fault;
  if (fault == Fault::none) fault = decode_particle_tile<T, D>(job, frame, location, tile, space);
  if (fault != Fault::none && threadIdx.x == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
}

}  // namespace pyfilter::cuda
