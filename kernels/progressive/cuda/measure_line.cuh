// SPDX-License-Identifier: BSD-3-Clause
// Errors of readers of lines, measured (docs/format.md, section 13.6): three levels in one kernel. A warp takes a
// reader; a lane computes 32 points from four known ones, and gets its neighbours' border points. Integers and
// coefficients of a tile are in shared memory, the next tile's in flight. At both ends of a tile a lane computes points
// for its neighbour only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "progressive/choices.hpp"
#include "progressive/cuda/forward.cuh"
#include "progressive/cuda/grids.cuh"
#include "progressive/cuda/inverse.cuh"
#include "progressive/cuda/measured_items.cuh"
#include "progressive/cuda/measured_region.cuh"
#include "progressive/values.hpp"
#include "stages/cuda/residuals.cuh"

namespace pyfilter::cuda {

// A tile's data in shared memory: vectors of 16 bytes, lane after lane, permuted so that concurrent reads of lanes
// avoid each other's banks.
template <class Int>
struct LineMemory {
  static constexpr std::uint32_t kN = kWide<Int>, kFine = kLinePoints / kN;  // vectors of a lane's points
  static constexpr std::uint32_t kBytes = 512 * (kFine + kFine / 8 * 7);     // of 32 lanes; two tiles are stored

  // Number of vectors of its coefficients of a level, the finest of the three first; their offset, behind the points.
  static __device__ __forceinline__ constexpr std::uint32_t part(int level) { return kFine / 2 >> level; }
  static __device__ __forceinline__ constexpr std::uint32_t coefficients_at(int level) {
    return 32 * (2 * kFine - (kFine >> level));
  }

  // Offset of vector i of `count` of a lane: eight adjacent lanes use different banks.
  static __device__ __forceinline__ std::uint32_t vector_at(std::uint32_t lane, std::uint32_t i, std::uint32_t count) {
    const std::uint32_t turn = count < 8 ? lane * count / 8 : lane;
    return lane * count + (i ^ (turn & (count - 1)));
  }
};

// A lane's known points at a level, and their neighbours.
template <class Int, int kCount>
struct LinePoints {
  Int v[kCount], before, behind, further;

  __device__ __forceinline__ void look_aside() {
    before = __shfl_up_sync(kAllLanes, v[kCount - 1], 1);
    behind = __shfl_down_sync(kAllLanes, v[0], 1);
    further = __shfl_down_sync(kAllLanes, v[1], 1);
  }
  // Point i - 1.
  __device__ __forceinline__ Int from_before(int i) const {
    return i == 0 ? before : i <= kCount ? v[(i - 1) % kCount] : i == kCount + 1 ? behind : further;
  }
};

// The refinement of a level of a line.
template <class Int>
struct LineLevel {
  Limits<Int> limits;
  KnownOfUnit<Int> known;
  bool cubic;
  std::int32_t evens;  // number of known points
  const Int* any;      // a valid address

  // Predictions of targets kN u to kN u + kN - 1 of a lane whose first known point is point `first`. `edge` false: none
  // of them is near an end of the line.
  template <int kCount>
  __device__ __forceinline__ Wide<Int> predicted(const LinePoints<Int, kCount>& from, int u, std::int32_t first,
                                                 bool edge) const {
    constexpr int kN = kWide<Int>;
    Wide<Int> made;
    if (cubic) {
#pragma unroll
      for (int k = 0; k < kN; ++k)
        made.v[k] = predict<Stencil::cubic>(from.from_before(kN * u + k + 1), from.from_before(kN * u + k + 2),
                                            from.from_before(kN * u + k), from.from_before(kN * u + k + 3));
    } else {
#pragma unroll
      for (int k = 0; k < kN; ++k)
        made.v[k] = predict<Stencil::linear>(from.from_before(kN * u + k + 1), from.from_before(kN * u + k + 2), Int{0},
                                             Int{0});
    }
    if (edge) {
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        const std::int32_t j = first + kN * u + k;
        if (j == 0 || (j > 0 && j < evens && j + 2 >= evens))
          made.v[k] =
              predict_around(around(static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(evens), cubic, any),
                             from.from_before(kN * u + k), from.from_before(kN * u + k + 1),
                             from.from_before(kN * u + k + 2), from.from_before(kN * u + k + 3));
      }
    }
    return made;
  }
  // All of a lane's points of the next grid.
  template <int kCount, class Coefficients>
  __device__ __forceinline__ LinePoints<Int, 2 * kCount> refined(const LinePoints<Int, kCount>& from,
                                                                 const Coefficients& coefficients, std::int32_t first,
                                                                 bool edge) const {
    constexpr int kN = kWide<Int>;
    LinePoints<Int, 2 * kCount> out;
#pragma unroll
    for (int u = 0; u < kCount / kN; ++u) {
      Wide<Int> made = predicted(from, u, first, edge);
      known.add(limits, made, coefficients(u));
#pragma unroll
      for (int k = 0; k < kN; ++k) {
        out.v[2 * (kN * u + k)] = from.v[kN * u + k];
        out.v[2 * (kN * u + k) + 1] = made.v[k];
      }
    }
    out.look_aside();
    return out;
  }
};

template <class Int>
__device__ __forceinline__ Int magnitude(Int v) {
  return v < 0 ? -v : v;
}

// kLast: the finest grid, which is not stored.
template <class T, bool kLast>
__global__ void __launch_bounds__(32 * kReadersOfBlock, sizeof(T) == 4 ? 4 : 2)
    measure_line_kernel(const __grid_constant__ MeasureLine pass) {
  using Int = typename ProgressiveTraits<T>::Int;
  using Values = Wide<Int>;
  using Shared = LineMemory<Int>;
  constexpr std::uint32_t kN = Shared::kN;
  extern __shared__ __align__(16) std::uint8_t shared_memory[];
  const FrameHead& frame = pass.job.heads[blockIdx.y];
  EncodeNote& note = *pass.job.notes.of(blockIdx.y);
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, index = pass.first + warp;
  if (frame.dead != 0 || pass.first >= note.measures) return;
  const bool works = index < note.measures;
  const ProgressiveHead& head = frame.head;
  const std::int8_t* const state = pass.job.states.of(blockIdx.y) + (works ? index : 0) * kMostUnits;
  const Int* const in = reinterpret_cast<const Int*>(pass.in.of(blockIdx.y, warp));
  const Int* const originals = grid_integers<Int>(pass.job, pass.level);
  const std::uint32_t* const special = pass.job.special_bits(blockIdx.y, pass.level);
  const std::uint32_t size = pass.sizes[0], coarse = pass.sizes[3];

  LineLevel<Int> levels[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const int u = pass.unit[i];
    levels[i] = {{static_cast<Int>(head.low), static_cast<Int>(head.high)},
                 {head.planes[u], state[u]},
                 head.cubic[u] != 0,
                 static_cast<std::int32_t>(pass.sizes[i + 1]),
                 in};
  }

  Values* const tiles = reinterpret_cast<Values*>(shared_memory);
  const std::uint32_t first_tile = blockIdx.x * pass.steps, last_tile = min(first_tile + pass.steps, pass.tiles);
  // entries outside the line are 0
  const auto stage = [&](std::uint32_t tile) {
    Values* const to = tiles + tile % 2 * (Shared::kBytes / 16);
    const std::int32_t begin = (static_cast<std::int32_t>(tile * kLineLanes) - 1) * 4;  // of the known points
    const auto put = [&](Values* there, const Int* from, std::int64_t at, std::uint32_t end) {
      if (at >= 0 && at + kN <= end) {
        copy_16_later(there, from);
      } else {
        Values some = {};
#pragma unroll
        for (std::uint32_t k = 0; k < kN; ++k)
          if (at >= 0 && at + k < end) some.v[k] = from[k];
        *there = some;
      }
    };
    for (std::uint32_t i = threadIdx.x; i < 32 * Shared::kFine; i += blockDim.x) {
      const std::int64_t at = 8 * std::int64_t{begin} + kN * i;
      put(to + Shared::vector_at(i / Shared::kFine, i % Shared::kFine, Shared::kFine), originals + at, at, size);
    }
#pragma unroll
    for (int l = 0; l < 3; ++l) {
      const Int* const slots = reinterpret_cast<const Int*>(pass.job.slots_of(blockIdx.y, pass.unit[l]));
      const std::uint32_t count = Shared::part(l);
      for (std::uint32_t i = threadIdx.x; i < 32 * count; i += blockDim.x) {
        const std::int64_t at = (std::int64_t{begin} << (2 - l)) + kN * i;
        put(to + Shared::coefficients_at(l) + Shared::vector_at(i / count, i % count, count), slots + at, at,
            pass.sizes[l] / 2);
      }
    }
  };
  const auto known_of = [&](std::uint32_t tile) {
    LinePoints<Int, 4> points = {};
    const std::int32_t at = (static_cast<std::int32_t>(tile * kLineLanes + lane) - 1) * 4;
    if (!works || at < 0 || at >= static_cast<std::int32_t>(coarse)) return points;
    const std::uint32_t there = coarse - static_cast<std::uint32_t>(at);
#pragma unroll
    for (std::uint32_t v = 0; v < 4 / kN; ++v) {
      if (there >= (v + 1) * kN) {
        const Values some = load_wide(in + at + v * kN);
#pragma unroll
        for (std::uint32_t k = 0; k < kN; ++k) points.v[v * kN + k] = some.v[k];
      } else {
#pragma unroll
        for (std::uint32_t k = 0; k < kN; ++k)
          if (v * kN + k < there) points.v[v * kN + k] = in[at + v * kN + k];
      }
    }
    return points;
  };

  Int most = 0, found = 0;
  const auto* const measured = static_cast<const volatile unsigned long long*>(&note.measured[index]);
  // the most by which the error of a point of the finest level exceeds that of its prediction
  const KnownOfUnit<Int>& last = levels[0].known;
  const Int reach = static_cast<Int>(coefficient_error(last.planes, last.plane));
  const bool bounded = !last.none();
  if (first_tile < last_tile) stage(first_tile);
  LinePoints<Int, 4> next = known_of(first_tile);
#pragma unroll 1
  for (std::uint32_t tile = first_tile; tile < last_tile; ++tile) {
    LinePoints<Int, 4> points = next;
    wait_for_copies();
    __syncthreads();
    if (tile + 1 < last_tile) {
      stage(tile + 1);
      next = known_of(tile + 1);
    }
    if (!works) continue;
    const std::int32_t first = (static_cast<std::int32_t>(tile * kLineLanes + lane) - 1) * 4;
    const bool edge = tile == 0 || (tile + 1) * kLineLanes * 4 + 8 >= coarse, own = lane != 0 && lane != 31;
    const Values* const fine = tiles + tile % 2 * (Shared::kBytes / 16);
    const auto coefficients = [fine, lane](int l) {
      return [fine, lane, l](int u) {
        return fine[Shared::coefficients_at(l) +
                    Shared::vector_at(lane, static_cast<std::uint32_t>(u), Shared::part(l))];
      };
    };
    points.look_aside();
    const auto above =
        levels[1].refined(levels[2].refined(points, coefficients(2), first, edge), coefficients(1), 2 * first, edge);
    const auto finest = coefficients(0);
    // points beyond the line's end, or of a neighbour, are ignored
    const std::uint32_t begin = own ? 8 * static_cast<std::uint32_t>(first) : 0,
                        count = own && begin < size ? size - begin : 0;
    // bits of these points; special values are ignored, too
    std::uint32_t points_here = count >= kLinePoints ? ~0u : (1u << count) - 1;
    if (special != nullptr && count != 0) points_here &= ~special[begin / 32];
    const auto is_point = [&](std::uint32_t i) { return (points_here >> i & 1) != 0; };
    if constexpr (kLast)
      if (tile % 4 == 0) found = max(found, static_cast<Int>(*measured));
#pragma unroll
    for (int u = 0; u < static_cast<int>(Shared::kFine / 2); ++u) {
      const std::uint32_t at = 2 * kN * static_cast<std::uint32_t>(u);
      Values original[2], even, odd, made = levels[0].predicted(above, u, 4 * first, edge);
#pragma unroll
      for (std::uint32_t h = 0; h < 2; ++h) original[h] = fine[Shared::vector_at(lane, 2 * u + h, Shared::kFine)];
#pragma unroll
      for (std::uint32_t k = 0; k < kN; ++k) {
        even.v[k] = above.v[kN * u + k];
        most = max(most, is_point(at + 2 * k) ? magnitude(even.v[k] - original[2 * k / kN].v[2 * k % kN]) : Int{0});
        odd.v[k] = original[(2 * k + 1) / kN].v[(2 * k + 1) % kN];
      }
      const Values d = finest(u);
      bool larger = true;  // whether a target can exceed the largest error so far
      if (kLast && bounded) {
        Int far = 0;
#pragma unroll
        for (std::uint32_t k = 0; k < kN; ++k)
          far = max(far, is_point(at + 2 * k + 1) ? magnitude(made.v[k] - odd.v[k] + d.v[k]) : Int{0});
        larger = far + reach > found;
      }
      if (larger) {
        levels[0].known.add(levels[0].limits, made, d);
#pragma unroll
        for (std::uint32_t k = 0; k < kN; ++k)
          most = max(most, is_point(at + 2 * k + 1) ? magnitude(made.v[k] - odd.v[k]) : Int{0});
      }
      if constexpr (!kLast) {
        Int* const to = reinterpret_cast<Int*>(pass.out.of(blockIdx.y, warp)) + begin + at;
        Values out[2];
#pragma unroll
        for (std::uint32_t k = 0; k < 2 * kN; ++k) out[k / kN].v[k % kN] = k % 2 == 0 ? even.v[k / 2] : made.v[k / 2];
        if (at + 2 * kN <= count) {
          *reinterpret_cast<Values*>(to) = out[0];
          *reinterpret_cast<Values*>(to + kN) = out[1];
        } else {
#pragma unroll
          for (std::uint32_t k = 0; k < 2 * kN; ++k)
            if (at + k < count) to[k] = out[k / kN].v[k % kN];
        }
      }
    }
    if (kLast && __any_sync(kAllLanes, most > found)) {
      found = most = warp_largest(most);
      if (lane == 0) atomicMax(&note.measured[index], static_cast<unsigned long long>(most));
    }
  }
  if (kLast || !works) return;
  most = warp_largest(most);
  if (lane == 0) atomicMax(&note.measured[index], static_cast<unsigned long long>(most));
}

}  // namespace pyfilter::cuda
