// SPDX-License-Identifier: BSD-3-Clause
// The particles of a tile to encode: their addresses in memory, and their codes.
#pragma once

#include <cstdint>

#include "particles/codes.hpp"
#include "particles/cuda/params.cuh"
#include "stages/cuda/rows.cuh"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

// kEntries: the chunk is sorted, so the tile's particles are scattered in memory.
template <class T, int D, bool kEntries>
struct TileSource {
  using Value = T;
  const T* values;               // of the chunk; without entries, of the tile
  const std::uint32_t* entries;  // of the tile
  std::uint32_t first, count, sorted;

  __device__ __forceinline__ TileSource(const ParticleParams& job, std::uint32_t chunk, std::uint32_t tile) {
    values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
    first = tile * kTileParticles;
    count = min(job.particles - first, kTileParticles);
    const std::uint32_t movable = job.order != 0 ? job.movable[chunk] : 0;
    sorted = movable > first ? min(movable - first, count) : 0;
    if constexpr (kEntries)
      entries = job.entries + std::uint64_t{chunk} * job.particles + first;
    else
      values += std::uint64_t{first} * D;
  }
  __device__ __forceinline__ const T* at(std::uint32_t i) const {
    if constexpr (kEntries)
      return values + std::uint64_t{i < sorted ? entries[i] : first + i} * D;
    else
      return values + i * D;
  }
};

// Codes of a particle; false if a coordinate has none.
template <int D, bool kHasSentinel = true, class T>
__device__ __forceinline__ bool code_particle(const Quantizer<T>& p, const T* x,
                                              typename FloatTraits<T>::Code (&q)[D]) {
  T value[D];
#pragma unroll
  for (int d = 0; d < D; ++d) value[d] = x[d];
  bool ordinary = true;
#pragma unroll
  for (int d = 0; d < D; ++d) ordinary = code_value<kHasSentinel>(p, value[d], q[d]) && ordinary;
  return ordinary;
}

// Keeps a value that is the same in all threads in a register, so that it is not recomputed for each particle.
__device__ __forceinline__ void keep(std::uint32_t& x) { asm("" : "+r"(x)); }

// The mapping from codes along the axes to keys.
template <class Code, int D>
struct TileFrame {
  Code origin[3] = {};
  unsigned width[3] = {};
  KeyLayout layout;

  __device__ __forceinline__ void take_extents(const Extent<Code> (&extents)[D]) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      origin[d] = static_cast<Code>(extents[d].low);
      width[d] = extents[d].width();
    }
  }
  __device__ __forceinline__ void take(const Extent<Code> (&extents)[D]) {
    take_extents(extents);
    layout = make_layout(width, lowest_shift_by_lanes());
  }
  // lowest_shift(), with one candidate shift a lane.
  __device__ __forceinline__ unsigned lowest_shift_by_lanes() const {
    for (unsigned first = 0;; first += 32) {
      const unsigned shift = first + threadIdx.x % 32;
      unsigned bits = 0;
#pragma unroll
      for (int d = 0; d < D; ++d) bits += max(width[d], shift) - shift;
      const std::uint32_t enough = __ballot_sync(kAllLanes, bits <= kMostKeyBits);
      if (enough != 0) return first + static_cast<unsigned>(__ffs(static_cast<int>(enough)) - 1);
    }
  }
  // Bit planes of offsets with a shift: along an axis; of all axes.
  __device__ __forceinline__ unsigned planes(int d, unsigned shift) const { return min(shift, width[d]); }
  __device__ __forceinline__ unsigned planes(unsigned shift) const {
    return planes(0, shift) + planes(1, shift) + planes(2, shift);
  }
  __device__ __forceinline__ Code offset(const Code (&q)[D], int d, unsigned bits) const {
    return static_cast<Code>(q[d] - origin[d]) & (bits < 8 * sizeof(Code) ? (Code{1} << bits) - 1 : ~Code{0});
  }
};

// Keys of particles in a frame, and their offsets of all axes side by side, if they fit 32 bits. kMostTwo: an upper
// limit of layout.two.
template <class Code, int D, unsigned kMostTwo>
struct KeyMaker {
  Code origin[D];
  KeyLayout layout;
  KeyOffsets bit_offsets;
  std::uint32_t mask[D], at[D];

  __device__ __forceinline__ explicit KeyMaker(const TileFrame<Code, D>& frame)
      : layout(frame.layout), bit_offsets(key_offsets(frame.layout)) {
    unsigned before[3] = {}, bits[3] = {};
#pragma unroll
    for (int d = 0; d < D; ++d) {
      bits[d] = frame.planes(d, layout.shift);
      if (d + 1 < D) before[d + 1] = before[d] + bits[d];
    }
#pragma unroll
    for (int d = 0; d < D; ++d) {
      origin[d] = frame.origin[d];
      mask[d] = bits[d] < 32 ? (1u << bits[d]) - 1 : ~0u;
      at[d] = before[d] % 32;  // 32: no bits remain
      keep(mask[d]);
      keep(at[d]);
      keep(bit_offsets.three[d]);
      keep(bit_offsets.two[d]);
    }
  }
  __device__ __forceinline__ std::uint32_t key(const Code (&q)[D]) const {
    std::uint32_t segment[3] = {};
#pragma unroll
    for (int d = 0; d < D; ++d) segment[d] = segment_of(q[d], origin[d], layout.shift);
    return key_of < D == 3, kMostTwo > (layout, bit_offsets, segment[0], segment[1], segment[2]);
  }
  __device__ __forceinline__ std::uint32_t offsets(const Code (&q)[D]) const {
    std::uint32_t together = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) together |= (static_cast<std::uint32_t>(q[d] - origin[d]) & mask[d]) << at[d];
    return together;
  }
};

// Calls make(maker) with the key maker of a frame; layout.two is small for most frames.
template <class Code, int D, class Make>
__device__ __forceinline__ void with_keys(const TileFrame<Code, D>& frame, const Make& make) {
  if (frame.layout.two == 0)
    make(KeyMaker<Code, D, 0>(frame));
  else if (frame.layout.two <= 2)
    make(KeyMaker<Code, D, 2>(frame));
  else
    make(KeyMaker<Code, D, 16>(frame));
}

}  // namespace pyfilter::cuda
