// SPDX-License-Identifier: BSD-3-Clause
// Tiles of particles as codes (particles/order.hpp and CodedTile of particles/encode.hpp do the same on the CPU): a
// thread block takes a tile, sorts its particles by the keys of their own extent where they may be moved, and finds its
// tail, its special particles, the extent of all others and whether their keys rise.
#pragma once

#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

#include "particles/codes.hpp"
#include "particles/key.hpp"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/particles/params.cuh"
#include "stages/cuda/particles/source.cuh"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

inline constexpr int kSortThreads = 256, kSortWarps = kSortThreads / 32;
inline constexpr int kSortItems = static_cast<int>(kTileParticles) / kSortThreads;
inline constexpr int kSortDigit = 5;  // bits of a key that a pass sorts by
// Of particles that stay where they are, behind all others.
inline constexpr std::uint32_t kStayingKey = 2 * static_cast<std::uint32_t>(kLastKey) - 1;

using TileSort = cub::BlockRadixSort<std::uint32_t, kSortThreads, kSortItems, std::uint32_t, kSortDigit>;

template <class Code, int D>
struct PrepareSpace {
  union {
    typename TileSort::TempStorage sort;
    std::uint32_t keys[kTileParticles + kTileParticles / kSortItems];
  };
  std::uint32_t offsets[kTileParticles];  // of the particles before they are sorted
  std::make_signed_t<Code> low[kSortWarps][D], high[kSortWarps][D];
  std::uint32_t counts[kSortWarps], firsts[kSortWarps];
};

// The particle at position p of a tile as thread and item: positions are dealt out in turns.
__device__ __forceinline__ std::uint32_t position_of(int item) {
  return threadIdx.x + static_cast<unsigned>(item) * kSortThreads;
}

template <class X>
__device__ __forceinline__ X warp_least(X x) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    const X other = __shfl_xor_sync(kAllLanes, x, d);
    x = other < x ? other : x;
  }
  return x;
}

// Codes of the particles of a thread.
template <class T, int D>
struct ThreadCodes {
  using Code = typename FloatTraits<T>::Code;
  Code q[kSortItems][D];
  std::uint32_t special;  // bit k: item k
};

// place(k) says which particle of the tile is item k; there are `count`.
template <bool kHasSentinel, int D, class T, class Place>
__device__ __forceinline__ void code_items_of(const Quantizer<T>& p, const TileSource<T, D>& source,
                                              std::uint32_t count, const Place& place, ThreadCodes<T, D>& codes) {
  codes.special = 0;
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    bool ordinary = true;
#pragma unroll
    for (int d = 0; d < D; ++d) codes.q[k][d] = 0;
    if (position_of(k) < count) ordinary = code_particle<D, kHasSentinel>(p, source.at(place(k)), codes.q[k]);
    codes.special |= (ordinary ? 0u : 1u) << k;
  }
}
template <int D, class T, class Place>
__device__ __forceinline__ void code_items(const Quantizer<T>& p, const TileSource<T, D>& source, std::uint32_t count,
                                           const Place& place, ThreadCodes<T, D>& codes) {
  if (p.has_sentinel)
    code_items_of<true>(p, source, count, place, codes);
  else
    code_items_of<false>(p, source, count, place, codes);
}

// Calls each(k, key) with the keys of a thread's particles: axes differ by few bits mostly.
template <class Code, int D, class T, class Each>
__device__ __forceinline__ void for_keys(const TileFrame<Code, D>& frame, const ThreadCodes<T, D>& codes,
                                         const Each& each) {
  const auto all = [&]<unsigned kMostTwo>() {
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) each(k, frame.template key<kMostTwo>(codes.q[k]));
  };
  if (frame.layout.two == 0)
    all.template operator()<0>();
  else if (frame.layout.two <= 2)
    all.template operator()<2>();
  else
    all.template operator()<16>();
}

// What all threads know of the tile's codes: their extent but for special ones, how many special ones there are and
// where the first is.
template <class Code, int D>
struct CodeSummary {
  Extent<Code> extents[D];
  std::uint32_t specials, first_special;
};

template <class T, int D, class Space>
__device__ __forceinline__ void summarise(const ThreadCodes<T, D>& codes, std::uint32_t count, Space& space,
                                          CodeSummary<typename FloatTraits<T>::Code, D>& all) {
  using Code = typename FloatTraits<T>::Code;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Extent<Code> own[D];
  if (codes.special == 0 && count == kTileParticles) {
#pragma unroll
    for (int k = 0; k < kSortItems; ++k)
#pragma unroll
      for (int d = 0; d < D; ++d) own[d].add(&codes.q[k][d], 1);
  } else {
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) {
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
#pragma unroll
  for (int d = 0; d < D; ++d) {
    own[d].low = warp_least(own[d].low);
    own[d].high = static_cast<decltype(own[d].high)>(~warp_least(static_cast<decltype(own[d].high)>(~own[d].high)));
  }
  const std::uint32_t first = codes.special != 0 ? position_of(__ffs(static_cast<int>(codes.special)) - 1) : ~0u;
  std::uint32_t specials = static_cast<std::uint32_t>(__popc(static_cast<int>(codes.special)));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) specials += __shfl_xor_sync(kAllLanes, specials, d);
  const std::uint32_t first_of_warp = warp_least(first);
  __syncthreads();  // the space may have been read before
  if (lane == 0) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      space.low[warp][d] = own[d].low;
      space.high[warp][d] = own[d].high;
    }
    space.counts[warp] = specials;
    space.firsts[warp] = first_of_warp;
  }
  __syncthreads();
  all.specials = 0;
  all.first_special = ~0u;
#pragma unroll
  for (int d = 0; d < D; ++d) all.extents[d] = {};
#pragma unroll
  for (int w = 0; w < kSortWarps; ++w) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      all.extents[d].low = min(all.extents[d].low, space.low[w][d]);
      all.extents[d].high = max(all.extents[d].high, space.high[w][d]);
    }
    all.specials += space.counts[w];
    all.first_special = min(all.first_special, space.firsts[w]);
  }
}

// Whether two particles are the same bit for bit; whether one is zero.
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

// tail_of() of particles/encode.hpp. place_at(p) says which particle of the tile is at position p, by any thread.
template <int D, class T, class PlaceAt, class Space>
__device__ __forceinline__ std::uint32_t find_tail(const TileSource<T, D>& source, const PlaceAt& place_at,
                                                   Space& space) {
  const std::uint32_t lane = threadIdx.x % 32, last = source.count - 1;
  const T* const end = source.at(place_at(last));
  const bool same = lane <= last && same_bits<T, D>(source.at(place_at(last - min(lane, last))), end);
  const std::uint32_t lanes = __ballot_sync(kAllLanes, same);
  std::uint32_t tail = lanes == kAllLanes ? 32 : static_cast<std::uint32_t>(__ffs(static_cast<int>(~lanes)) - 1);
  if (tail == 32 && last >= 32) {  // the same in all warps
    std::uint32_t upto = 0;        // behind the last particle that differs
#pragma unroll 1
    for (int k = 0; k < kSortItems; ++k) {
      const std::uint32_t p = position_of(k);
      if (p < last && !same_bits<T, D>(source.at(place_at(p)), end)) upto = p + 1;
    }
    upto = ~warp_least(~upto);
    __syncthreads();
    if (lane == 0) space.counts[threadIdx.x / 32] = upto;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < kSortWarps; ++w) upto = max(upto, space.counts[w]);
    tail = source.count - upto;
  }
  return is_zero<T, D>(end) || tail >= kGroup ? tail : 0;
}

// Whether the offsets of all axes make a word.
template <class Code, int D>
__device__ __forceinline__ bool may_have_offsets(const TileFrame<Code, D>& frame) {
  const unsigned planes = frame.planes(frame.layout.shift);
  return planes != 0 && planes <= 32;
}

// Sorts the tile's particles; `places` become those at this thread's positions, `keys` their keys.
template <int D, class T, class Space>
__device__ __forceinline__ void sort_particles(const Quantizer<T>& p, const TileSource<T, D>& source, Space& space,
                                               CodeSummary<typename FloatTraits<T>::Code, D>& summary,
                                               TileFrame<typename FloatTraits<T>::Code, D>& frame,
                                               std::uint32_t (&keys)[kSortItems], std::uint32_t (&places)[kSortItems]) {
  ThreadCodes<T, D> codes;
  code_items<D>(p, source, source.sorted, [](int k) { return position_of(k); }, codes);
  summarise(codes, source.sorted, space, summary);
  frame.take(summary.extents);
  for_keys(frame, codes, [&](int k, std::uint32_t key) {
    const std::uint32_t at = position_of(k);
    if ((codes.special >> k & 1) != 0) key = static_cast<std::uint32_t>(kLastKey);
    space.keys[at + at / kSortItems] = at < source.sorted ? key : kStayingKey;
  });
  if (may_have_offsets(frame)) {
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) space.offsets[position_of(k)] = frame.offsets(codes.q[k], frame.layout.shift);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    places[k] = threadIdx.x * kSortItems + static_cast<unsigned>(k);
    keys[k] = space.keys[threadIdx.x * (kSortItems + 1) + static_cast<unsigned>(k)];
  }
  __syncthreads();
  const bool all = source.sorted == kTileParticles && summary.specials == 0;
  const unsigned bits = all ? frame.layout.bits() : kMostKeyBits + 1;
  if (bits != 0)
    TileSort(space.sort).SortBlockedToStriped(keys, places, 0, static_cast<int>(bits));
  else
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) places[k] = position_of(k);
  __syncthreads();
}

template <class T, int D, bool kSorts>
__global__ void __launch_bounds__(kSortThreads, sizeof(T) == 4 ? 3 : 2)
    prepare_particles_kernel(const __grid_constant__ ParticleParams job) {
  using Code = typename FloatTraits<T>::Code;
  __shared__ PrepareSpace<Code, D> space;
  __shared__ std::uint16_t shared_places[kSorts ? kTileParticles : 1];
  const std::uint32_t number = blockIdx.x, chunk = number / job.base.tiles, tile = number - chunk * job.base.tiles;
  if (job.base.plans[chunk].quantise == 0) return;
  const Quantizer<T> p = job.base.plans[chunk].template quantizer<T>();
  const TileSource<T, D> source(job, chunk, tile);

  CodeSummary<Code, D> summary;
  TileFrame<Code, D> frame;
  std::uint32_t keys[kSortItems], places[kSortItems];
  if constexpr (kSorts) {
    sort_particles<D>(p, source, space, summary, frame, keys, places);
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) shared_places[position_of(k)] = static_cast<std::uint16_t>(places[k]);
    __syncthreads();
  } else {
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) places[k] = position_of(k);
  }
  const auto place_at = [&](std::uint32_t at) { return kSorts ? shared_places[at] : at; };
  const std::uint32_t tail = find_tail<D>(source, place_at, space);
  const std::size_t first = std::size_t{number} * kTileParticles;
  bool ordered = true, has_offsets = false;
  std::uint32_t ordinary = source.count - summary.specials;
  // once sorted, a whole tile without a tail is what it was sorted by
  if (!kSorts || source.sorted != source.count || tail != 0) {
    ThreadCodes<T, D> codes;
    const std::uint32_t limit = source.count - tail;
    code_items<D>(p, source, limit, [&](int k) { return places[k]; }, codes);
    summarise(codes, limit, space, summary);
    ordinary = limit - summary.specials;
    ordered = summary.specials == 0 || summary.first_special == ordinary;
    frame = {};
    if (ordered && ordinary != 0) {
      frame.take(summary.extents);
      for_keys(frame, codes, [&](int k, std::uint32_t key) {
        keys[k] = key;
        space.keys[position_of(k)] = key;
      });
      __syncthreads();
      bool falls = false;
#pragma unroll
      for (int k = 0; k < kSortItems; ++k) {
        const std::uint32_t at = position_of(k);
        falls = falls || (at != 0 && at < ordinary && keys[k] < space.keys[at - 1]);
      }
      ordered = __syncthreads_or(falls ? 1 : 0) == 0;
      has_offsets = ordered && may_have_offsets(frame);
      if (has_offsets) {
#pragma unroll
        for (int k = 0; k < kSortItems; ++k)
          if (position_of(k) < ordinary)
            job.offsets[first + position_of(k)] = frame.offsets(codes.q[k], frame.layout.shift);
      }
    }
  } else {
    if (ordinary == 0) frame = {};
    has_offsets = may_have_offsets(frame);
    if (has_offsets) {
#pragma unroll
      for (int k = 0; k < kSortItems; ++k) job.offsets[first + position_of(k)] = space.offsets[places[k]];
    }
  }
  if (threadIdx.x == 0) {
    ParticleNote note = {};
#pragma unroll
    for (int d = 0; d < D; ++d) {
      note.origin[d] = frame.origin[d];
      note.width[d] = static_cast<std::uint8_t>(frame.width[d]);
    }
    note.tail = tail;
    note.specials = summary.specials;
    note.ordered = ordered ? 1 : 0;
    note.has_offsets = has_offsets ? 1 : 0;
    job.notes[number] = note;
  }
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    const std::uint32_t at = position_of(k);
    if (at >= source.count) continue;
    if (ordered && frame.layout.bits() != 0) job.keys[first + at] = keys[k];
    if constexpr (kSorts) job.places[first + at] = static_cast<std::uint16_t>(places[k]);
  }
}

}  // namespace pyfilter::cuda
