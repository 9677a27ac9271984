// SPDX-License-Identifier: BSD-3-Clause
// Particles of a tile that is encoded: where they are in memory, and their codes.
#pragma once

#include <cstdint>

#include "particles/codes.hpp"
#include "stages/cuda/particles/params.cuh"
#include "stages/quantize.hpp"

namespace pyfilter::cuda {

template <class T, int D>
struct TileSource {
  const T* values;               // of the chunk
  const std::uint32_t* entries;  // of the tile, nullptr where it has the particles that it has in memory
  std::uint32_t first, count, sorted;

  __device__ __forceinline__ TileSource(const ParticleParams& job, std::uint32_t chunk, std::uint32_t tile) {
    values = reinterpret_cast<const T*>(job.base.values + chunk * job.base.value_stride);
    first = tile * kTileParticles;
    count = min(job.particles - first, kTileParticles);
    const std::uint32_t movable = job.order != 0 ? job.movable[chunk] : 0;
    sorted = movable > first ? min(movable - first, count) : 0;
    entries = job.entries != nullptr ? job.entries + std::uint64_t{chunk} * job.particles + first : nullptr;
  }
  __device__ __forceinline__ const T* at(std::uint32_t i) const {
    const std::uint32_t particle = entries != nullptr && i < sorted ? entries[i] : first + i;
    return values + std::uint64_t{particle} * D;
  }
};

// Codes of a particle; false where one of its coordinates has none.
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

// How codes along the axes become keys.
template <class Code, int D>
struct TileFrame {
  Code origin[3] = {};
  unsigned width[3] = {};
  KeyLayout layout;

  __device__ __forceinline__ void take(const Extent<Code> (&extents)[D]) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      origin[d] = static_cast<Code>(extents[d].low);
      width[d] = extents[d].width();
    }
    layout = make_layout(width, lowest_shift(width));
  }
  // Bit planes of offsets with a shift: along an axis, of all.
  __device__ __forceinline__ unsigned planes(int d, unsigned shift) const { return min(shift, width[d]); }
  __device__ __forceinline__ unsigned planes(unsigned shift) const {
    return planes(0, shift) + planes(1, shift) + planes(2, shift);
  }
  __device__ __forceinline__ Code offset(const Code (&q)[D], int d, unsigned bits) const {
    return static_cast<Code>(q[d] - origin[d]) & (bits < 8 * sizeof(Code) ? (Code{1} << bits) - 1 : ~Code{0});
  }
  // Those of all axes side by side, where they have no more than 32 bits.
  __device__ __forceinline__ std::uint32_t offsets(const Code (&q)[D], unsigned shift) const {
    std::uint32_t together = 0, before = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      const unsigned bits = planes(d, shift);
      together |= bits != 0 ? static_cast<std::uint32_t>(offset(q, d, bits)) << before : 0;
      before += bits;
    }
    return together;
  }
  // kMostTwo: layout.two is at most that.
  template <unsigned kMostTwo = 16>
  __device__ __forceinline__ std::uint32_t key(const Code (&q)[D]) const {
    std::uint32_t segment[3] = {};
#pragma unroll
    for (int d = 0; d < D; ++d) segment[d] = segment_of(q[d], origin[d], layout.shift);
    const auto along = [&](int k) {
      const unsigned axis = layout.axis[k];
      return axis == 0 ? segment[0] : axis == 1 ? segment[1] : segment[2];
    };
    return key_of<kMostTwo>(layout, along(0), along(1), D == 3 ? along(2) : 0);
  }
};

}  // namespace pyfilter::cuda
