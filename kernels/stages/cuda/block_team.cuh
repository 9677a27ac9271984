// SPDX-License-Identifier: BSD-3-Clause
// The threads of a thread block, and of a warp, as teams (stages/team.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cub/block/block_radix_sort.cuh>

#include "core/bits.hpp"
#include "stages/cuda/warp_sum.cuh"
#include "stages/team.hpp"

namespace pyfilter::cuda {

// Functions that take any team are compiled for the host, too; there the members below are not called.
#if defined(__CUDA_ARCH__) || defined(PYF_SIMT)
#define PYF_DEVICE_ONLY(...) __VA_ARGS__
#else
#define PYF_DEVICE_ONLY(...)
#endif

// Joins what kLanes neighbouring lanes have: first neighbours, then neighbouring pairs.
template <std::uint32_t kLanes, class X, class Join>
KFN X join_lanes(X own, const Join& join) {
  static_assert(sizeof(X) % 4 == 0);
  for (std::uint32_t by = 1; by < kLanes; by *= 2) {
    std::uint32_t words[sizeof(X) / 4];
    std::memcpy(words, &own, sizeof own);
    PYF_DEVICE_ONLY(for (std::uint32_t& word : words) word = __shfl_xor_sync(kAllLanes, word, static_cast<int>(by));)
    X other;
    std::memcpy(&other, words, sizeof own);
    own = join(own, other);
  }
  return own;
}

struct WarpTeam {
  static constexpr std::uint32_t kSize = 32;

  KFN static std::uint32_t rank() {
    std::uint32_t own = 0;
    PYF_DEVICE_ONLY(own = threadIdx.x % 32;)
    return own;
  }
  KFN static void wait() { PYF_DEVICE_ONLY(__syncwarp();) }
  template <class X, class Join>
  KFN static X joined(X own, const Join& join) {
    return join_lanes<32>(own, join);
  }
  template <class X>
  KFN static X least(X own) {
    PYF_DEVICE_ONLY(own = warp_min(own);)
    return own;
  }
  KFN static std::uint32_t sum(std::uint32_t own) {
    PYF_DEVICE_ONLY(own = warp_sum(own);)
    return own;
  }
};

// Numbers that a thread block sorts at a time, by the registers of its threads.
template <class U, std::uint32_t kThreadCount>
struct TileOfSort {
  static constexpr std::uint32_t kItems = 9, kNumbers = kItems * kThreadCount;
  using Sort = cub::BlockRadixSort<U, static_cast<int>(kThreadCount), static_cast<int>(kItems)>;
};

// Shared memory of a team.
template <std::uint32_t kThreadCount>
struct alignas(16) TeamSpace {
  template <class U>
  using Storage = typename TileOfSort<U, kThreadCount>::Sort::TempStorage;

  unsigned char joined[kThreadCount / 32][16];
  std::uint32_t sums[kThreadCount / 32];
  alignas(16) unsigned char sort[std::max(sizeof(Storage<std::uint32_t>), sizeof(Storage<std::uint64_t>))];
};

// Returns the shared memory of the team. Teams call this function instead of holding a pointer: the compiler reads
// through a pointer in an object by generic loads, which are slower than loads from shared memory.
template <std::uint32_t kThreadCount>
__device__ __forceinline__ TeamSpace<kThreadCount>& team_space() {
  __shared__ TeamSpace<kThreadCount> space;
  return space;
}

template <std::uint32_t kThreadCount>
struct BlockTeam {
  static constexpr std::uint32_t kSize = kThreadCount, kWarpCount = kSize / 32;
  static_assert((kWarpCount & (kWarpCount - 1)) == 0 && kWarpCount <= 32);

  KFN static std::uint32_t rank() {
    std::uint32_t own = 0;
    PYF_DEVICE_ONLY(own = threadIdx.x;)
    return own;
  }
  KFN static void wait() { PYF_DEVICE_ONLY(__syncthreads();) }
  KFN static void add(std::uint32_t& sum, std::uint32_t x) { PYF_DEVICE_ONLY(atomicAdd(&sum, x);) }
  template <class U>
  KFN static U replace(U& place, U expected, U wanted) {
    U before = expected;
    if constexpr (sizeof(U) == 8) {
      PYF_DEVICE_ONLY(before = static_cast<U>(atomicCAS(reinterpret_cast<unsigned long long*>(&place),
                                                        static_cast<unsigned long long>(expected),
                                                        static_cast<unsigned long long>(wanted)));)
    } else {
      PYF_DEVICE_ONLY(before = atomicCAS(&place, expected, wanted);)
    }
    return before;
  }
  template <class X, class Join>
  KFN X joined(X own, const Join& join) const {
    static_assert(sizeof(X) <= sizeof space().joined[0]);
    own = join_lanes<32>(own, join);
    if (rank() % 32 == 0) std::memcpy(space().joined[rank() / 32], &own, sizeof own);
    wait();
    std::memcpy(&own, space().joined[rank() % kWarpCount], sizeof own);
    own = join_lanes<kWarpCount>(own, join);
    wait();
    return own;
  }
  KFN std::uint32_t sum_before(std::uint32_t own, std::uint32_t* all) const {
    std::uint32_t upto = own;
    PYF_DEVICE_ONLY(upto = sum_upto(own);)
    if (rank() % 32 == 31) space().sums[rank() / 32] = upto;
    wait();
    std::uint32_t before = upto - own, total = 0;
    for (std::uint32_t w = 0; w < kWarpCount; ++w) {
      before += w < rank() / 32 ? space().sums[w] : 0;
      total += space().sums[w];
    }
    wait();
    *all = total;
    return before;
  }
  template <class Work>
  KFN static void with_few(const Work& work) {
    wait();
    if (rank() < 32) work(WarpTeam{});
    wait();
  }
  template <class Work>
  KFN static void each_of_few(std::uint32_t count, const Work& work) {
    wait();
    for (std::uint32_t i = rank() / 32; i < count; i += kWarpCount) work(WarpTeam{}, i);
    wait();
  }
  // Tiles are sorted one after the other, by the bits that are used. Then each number counts those of the other tiles
  // that come before it.
  template <class U>
  KFN void sort(U* numbers, std::uint32_t count, U* other) const {
    using Tile = TileOfSort<U, kThreadCount>;
    wait();
    U used = 0;
    for (std::uint32_t i = rank(); i < count; i += kSize) used |= numbers[i];
    used = joined(used, [](U a, U b) { return a | b; });
    const int bits = std::max(bit_width(used), 1);
    const U last = static_cast<U>(~U{0}) >> (8 * static_cast<int>(sizeof(U)) - bits);
    PYF_DEVICE_ONLY(for (std::uint32_t from = 0; from < count; from += Tile::kNumbers) {
      U own[Tile::kItems];
      for (std::uint32_t k = 0; k < Tile::kItems; ++k) {
        const std::uint32_t i = from + k * kSize + threadIdx.x;
        own[k] = i < count ? numbers[i] : last;
      }
      __syncthreads();
      typename Tile::Sort(*reinterpret_cast<typename Tile::Sort::TempStorage*>(space().sort))
          .SortBlockedToStriped(own, 0, bits);
      for (std::uint32_t k = 0; k < Tile::kItems; ++k) {
        const std::uint32_t i = from + k * kSize + threadIdx.x;
        if (i < count) numbers[i] = own[k];
      }
      __syncthreads();
    })
    if (count <= Tile::kNumbers) return;
    for (std::uint32_t i = rank(); i < count; i += kSize) {
      const U own = numbers[i];
      const std::uint32_t mine = i / Tile::kNumbers;
      std::uint32_t place = i % Tile::kNumbers;
      for (std::uint32_t tile = 0; tile * Tile::kNumbers < count; ++tile) {
        if (tile == mine) continue;
        const U* const first = numbers + tile * Tile::kNumbers;
        std::uint32_t low = 0, high = std::min(count - tile * Tile::kNumbers, std::uint32_t{Tile::kNumbers});
        while (low < high) {
          const std::uint32_t middle = (low + high) / 2;
          const bool before = first[middle] < own || (tile < mine && first[middle] == own);
          low = before ? middle + 1 : low;
          high = before ? high : middle;
        }
        place += low;
      }
      other[place] = own;
    }
    wait();
    for (std::uint32_t i = rank(); i < count; i += kSize) numbers[i] = other[i];
    wait();
  }

 private:
  KFN static TeamSpace<kThreadCount>& space() {
    TeamSpace<kThreadCount>* own = nullptr;
    PYF_DEVICE_ONLY(own = &team_space<kThreadCount>();)
    return *own;
  }
};

#undef PYF_DEVICE_ONLY

}  // namespace pyfilter::cuda
