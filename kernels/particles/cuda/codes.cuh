// SPDX-License-Identifier: BSD-3-Clause
// The particles of a tile as codes, distributed over the threads of a block (particles/cpu/encode.hpp is the same on
// the CPU). All threads share facts: the codes' extent, the special particles, and the tail of equal particles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "particles/codes.hpp"
#include "particles/cuda/params.cuh"
#include "particles/cuda/source.cuh"
#include "particles/key.hpp"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

inline constexpr int kTileThreads = 512, kTileWarps = kTileThreads / 32;  // of a block that encodes a tile
inline constexpr int kItems = static_cast<int>(kTileParticles) / kTileThreads;

// The position of a thread's item: positions are dealt out in turn.
__device__ __forceinline__ std::uint32_t position_of(int item) {
  return threadIdx.x + static_cast<unsigned>(item) * kTileThreads;
}
struct TurnPositions {
  __device__ __forceinline__ static std::uint32_t of(int item) { return position_of(item); }
};

// The shared-memory word of position `rank`. A thread takes eight consecutive words, as two quads. The quads of every
// other four threads are swapped, so that the quads of eight threads are in different banks.
__device__ __forceinline__ std::uint32_t word_of(std::uint32_t rank) { return rank ^ (rank >> 3 & 4); }
// Loads this thread's eight words.
__device__ __forceinline__ void take_words(const std::uint32_t* words, std::uint32_t (&own)[kItems]) {
  const auto* const quads = reinterpret_cast<const uint4*>(words) + 2 * threadIdx.x;
  const unsigned first = threadIdx.x >> 2 & 1;
  const uint4 low = quads[first], high = quads[first ^ 1];
  own[0] = low.x;
  own[1] = low.y;
  own[2] = low.z;
  own[3] = low.w;
  own[4] = high.x;
  own[5] = high.y;
  own[6] = high.z;
  own[7] = high.w;
}
static_assert(kItems == 8);

template <class X>
__device__ __forceinline__ X warp_least(X x) {
  if constexpr (sizeof(X) == 4) {
    if constexpr (std::is_signed_v<X>) {
#if __CUDA_ARCH__ >= 800
      return __reduce_min_sync(kAllLanes, x);
#else
      return static_cast<X>(~static_cast<X>(warp_max(static_cast<int>(~x))));
#endif
    } else {
      return warp_min(x);
    }
  } else {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      const X other = __shfl_xor_sync(kAllLanes, x, d);
      x = other < x ? other : x;
    }
    return x;
  }
}

template <class X>
__device__ __forceinline__ X warp_most(X x) {
  return static_cast<X>(~warp_least(static_cast<X>(~x)));
}

// The sum of earlier warps' numbers, in all lanes.
__device__ __forceinline__ std::uint32_t warps_before(const std::uint32_t (&of_warps)[kTileWarps]) {
  const unsigned lane = threadIdx.x % 32;
  return warp_sum(lane < threadIdx.x / 32 ? of_warps[lane] : 0);
}
// The sum over all warps.
__device__ __forceinline__ std::uint32_t all_warps(const std::uint32_t (&of_warps)[kTileWarps]) {
  const unsigned lane = threadIdx.x % 32;
  return warp_sum(lane < kTileWarps ? of_warps[lane] : 0);
}

// Codes of a thread's particles.
template <class T, int D>
struct ThreadCodes {
  using Code = typename FloatTraits<T>::Code;
  Code q[kItems][D];
  std::uint32_t special;  // bit k: item k
};

// Retries the items of `codes.special`, whose first code does not fit.
template <int D, class T, class Source, class SourceOf>
__device__ __forceinline__ void look_again(const Quantizer<T>& p, const Source& source, const SourceOf& source_of,
                                           ThreadCodes<T, D>& codes) {
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    if ((codes.special >> k & 1) == 0) continue;
    if (code_particle<D>(p, source.at(source_of(k)), codes.q[k])) codes.special &= ~(1u << k);
  }
}

// source_of(k): the index in the tile of the particle at item k; there are `count`. kWhole: a whole tile.
template <bool kWhole, bool kHasSentinel, int D, class T, class Source, class SourceOf>
__device__ __forceinline__ void code_items_of(const Quantizer<T>& p, const Source& source, std::uint32_t count,
                                              const SourceOf& source_of, ThreadCodes<T, D>& codes) {
  constexpr int kAhead = sizeof(T) == 4 ? kItems : kItems / 4;  // particles whose loads are in flight together
  codes.special = 0;
#pragma unroll
  for (int from = 0; from < kItems; from += kAhead) {
    T values[kAhead][D];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int k = from + j;
      const T* const at = source.at(kWhole || position_of(k) < count ? source_of(k) : 0);
#pragma unroll
      for (int d = 0; d < D; ++d) values[j][d] = at[d];
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int k = from + j;
      bool fits = true;
#pragma unroll
      for (int d = 0; d < D; ++d) fits = first_code<kHasSentinel>(p, values[j][d], codes.q[k][d]) & fits;
      codes.special |= (fits || (!kWhole && position_of(k) >= count) ? 0u : 1u) << k;
    }
  }
  if (codes.special != 0) look_again<D>(p, source, source_of, codes);
}
template <int D, class T, class Source, class SourceOf>
__device__ __forceinline__ void code_items(const Quantizer<T>& p, const Source& source, std::uint32_t count,
                                           const SourceOf& source_of, ThreadCodes<T, D>& codes) {
  if (p.has_sentinel)
    code_items_of<false, true>(p, source, count, source_of, codes);
  else if (count == kTileParticles)
    code_items_of<true, false>(p, source, count, source_of, codes);
  else
    code_items_of<false, false>(p, source, count, source_of, codes);
}

// Facts about a tile's codes, in all threads: the extent of ordinary ones, the number of special particles, and the
// first of them.
template <class Code, int D>
struct CodeSummary {
  Extent<Code> extents[D];
  std::uint32_t specials, first_special;
};

// Shared memory for one result from each warp.
template <class Code, int D>
struct SummarySpace {
  std::make_signed_t<Code> low[kTileWarps][D], high[kTileWarps][D];
  std::uint32_t counts[kTileWarps], firsts[kTileWarps];
};

// Reduces the warps' results to the block's. A barrier; also returns whether any thread set `flag`.
template <class Code, int D>
__device__ __forceinline__ bool join_extents(const Extent<Code> (&own)[D], bool flag, SummarySpace<Code, D>& space,
                                             Extent<Code> (&all)[D]) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int d = 0; d < D; ++d) {
    const auto low = warp_least(own[d].low), high = warp_most(own[d].high);
    if (lane == 0) {
      space.low[warp][d] = low;
      space.high[warp][d] = high;
    }
  }
  const bool any = __syncthreads_or(flag ? 1 : 0) != 0;
#pragma unroll
  for (int d = 0; d < D; ++d) {
    all[d].low = warp_least(space.low[lane % kTileWarps][d]);  // each lane loads the result of one warp
    all[d].high = warp_most(space.high[lane % kTileWarps][d]);
  }
  return any;
}

// Two barriers if there are special particles, else one; overwrites the space.
template <class T, int D>
__device__ __forceinline__ void summarise(const ThreadCodes<T, D>& codes, std::uint32_t count,
                                          SummarySpace<typename FloatTraits<T>::Code, D>& space,
                                          CodeSummary<typename FloatTraits<T>::Code, D>& all) {
  using Code = typename FloatTraits<T>::Code;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Extent<Code> own[D];
  if (codes.special == 0 && count == kTileParticles) {
#pragma unroll
    for (int k = 0; k < kItems; ++k)
#pragma unroll
      for (int d = 0; d < D; ++d) own[d].add(&codes.q[k][d], 1);
  } else {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const bool counts = position_of(k) < count && (codes.special >> k & 1) == 0;
#pragma unroll
      for (int d = 0; d < D; ++d) {
        Extent<Code> with = own[d];
        with.add(&codes.q[k][d], 1);
        own[d].low = counts ? with.low : own[d].low;
        own[d].high = counts ? with.high : own[d].high;
      }
    }
  }
  const bool any = join_extents(own, codes.special != 0, space, all.extents);
  all.specials = 0;
  all.first_special = ~0u;
  if (!any) return;
  const std::uint32_t first = codes.special != 0 ? position_of(__ffs(static_cast<int>(codes.special)) - 1) : ~0u;
  const std::uint32_t specials = warp_sum(static_cast<std::uint32_t>(__popc(static_cast<int>(codes.special))));
  const std::uint32_t first_of_warp = warp_least(first);
  if (lane == 0) {
    space.counts[warp] = specials;
    space.firsts[warp] = first_of_warp;
  }
  __syncthreads();
  all.specials = warp_sum(lane < kTileWarps ? space.counts[lane] : 0);
  all.first_special = warp_least(space.firsts[lane % kTileWarps]);
}

// Whether two particles are equal bit for bit; whether a particle is zero.
template <class T, int D>
__device__ __forceinline__ bool same_bits(const T* a, const T* b) {
  using Code = typename FloatTraits<T>::Code;
  Code differ = 0;
#pragma unroll
  for (int d = 0; d < D; ++d) differ |= std::bit_cast<Code>(a[d]) ^ std::bit_cast<Code>(b[d]);
  return differ == 0;
}
template <class T, int D>
__device__ __forceinline__ bool is_zero(const T* a) {
  using Code = typename FloatTraits<T>::Code;
  Code any = 0;
#pragma unroll
  for (int d = 0; d < D; ++d) any |= std::bit_cast<Code>(a[d]);
  return any == 0;
}

// tail_of() of particles/cpu/encode.hpp. source_at(p): the index in the tile of the particle at position p, for any
// thread.
template <int D, class Source, class SourceAt, class Space>
__device__ __forceinline__ std::uint32_t find_tail(const Source& source, const SourceAt& source_at, Space& space) {
  const std::uint32_t lane = threadIdx.x % 32, last = source.count - 1;
  using T = typename Source::Value;
  const T* const end = source.at(source_at(last));
  const bool same = lane <= last && same_bits<T, D>(source.at(source_at(last - min(lane, last))), end);
  const std::uint32_t lanes = __ballot_sync(kAllLanes, same);
  std::uint32_t tail = lanes == kAllLanes ? 32 : static_cast<std::uint32_t>(__ffs(static_cast<int>(~lanes)) - 1);
  if (tail == 32 && last >= 32) {  // the same in all warps
    std::uint32_t upto = 0;        // the end of the last particle that differs
#pragma unroll 1
    for (int k = 0; k < kItems; ++k) {
      const std::uint32_t p = position_of(k);
      if (p < last && !same_bits<T, D>(source.at(source_at(p)), end)) upto = p + 1;
    }
    upto = ~warp_least(~upto);
    __syncthreads();
    if (lane == 0) space.counts[threadIdx.x / 32] = upto;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < kTileWarps; ++w) upto = max(upto, space.counts[w]);
    __syncthreads();
    tail = source.count - upto;
  }
  return is_zero<T, D>(end) || tail >= kGroup ? tail : 0;
}

}  // namespace pyfilter::cuda
