// SPDX-License-Identifier: BSD-3-Clause
// Differences through a packed tile and their sums (docs/format.md, section 7.3), by threads with a block each.
// stages/packed/differences.hpp is the same on the CPU. Blocks are numbered along z, then y, then x. Neighbours along z
// and y are lanes of one warp; along x every second pair is. For the other pairs, codes of the previous warp come
// through shared memory (`faces`, after a barrier). Codes are biased; the bias cancels except in the tile's first code.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tile_shape.hpp"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

// The face of a block: the codes that its right neighbour needs, its last column (chain: its last code; columns: the
// first).
template <int S>
inline constexpr int kFaceCodes = S == kPlane    ? 4
                                  : S == kVolume ? 8
                                                 : 1;
template <int S>
inline constexpr int kFaceLanes = S == kPlane || S == kVolume ? 16 : 1;  // lanes whose face the next warp needs

template <int S, class Code>
struct Faces {
  Code code[kWarps][kFaceCodes<S>][kFaceLanes<S>];
};

// Code `k` of a block's face.
template <int S>
__device__ __forceinline__ constexpr int face_position(int k) {
  return S == kPlane ? 8 * k + 7 : S == kVolume ? 4 * k + 3 : S == kColumns ? 0 : 31;
}
// Whether the next warp needs this lane's face.
template <int S>
__device__ __forceinline__ bool shows_face(int lane) {
  return S == kChain ? lane == 31 : S == kColumns ? lane == 0 : lane >= 16;
}

template <int S, class Code>
__device__ __forceinline__ void show_face(const Code (&c)[32], Faces<S, Code>& faces) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  if (!shows_face<S>(lane)) return;
#pragma unroll
  for (int k = 0; k < kFaceCodes<S>; ++k) faces.code[warp][k][lane % kFaceLanes<S>] = c[face_position<S>(k)];
}

// Differences along an axis in `count` lines. A line has `kLanes` lanes, kLaneStep apart, and kRun positions of a
// block, kStep apart. position(line) is a line's first position in the block. `applies`: whether lines are differenced,
// or a function of the line.
template <int kLaneStep, int kRun, int kStep, int kLines, class Code, class Applies, class Position>
__device__ __forceinline__ void axis_differences(Code (&c)[32], bool starts, Applies applies, Position position) {
#pragma unroll
  for (int line = 0; line < kLines; ++line) {
    const int at = position(line);
    const Code before = __shfl_up_sync(kAllLanes, c[at + (kRun - 1) * kStep], kLaneStep);
    if constexpr (std::is_same_v<Applies, bool>) {
      if (!applies) continue;
    } else if (!applies(line)) {
      continue;
    }
#pragma unroll
    for (int i = kRun - 1; i > 0; --i) c[at + i * kStep] -= c[at + (i - 1) * kStep];
    if (!starts) c[at] -= before;
  }
}

// Adds to each line the sum of the lines before it in earlier lanes or, with kApart, returns that sum separately.
template <int kLaneStep, int kLanes, int kRun, int kStep, int kLines, bool kApart = false, class Code, class Position>
__device__ __forceinline__ void axis_sums(Code (&c)[32], bool applies, Position position, Code* line_before = nullptr) {
#pragma unroll
  for (int line = 0; line < kLines; ++line) {
    const int at = position(line);
    Code sum[kRun];
    sum[0] = c[at];
#pragma unroll
    for (int i = 1; i < kRun; ++i) sum[i] = sum[i - 1] + c[at + i * kStep];
    const Code before = sum_upto<kLanes, kLaneStep>(sum[kRun - 1]) - sum[kRun - 1];
    if constexpr (kApart) line_before[line] = before;
    if (!applies) continue;
#pragma unroll
    for (int i = 0; i < kRun; ++i) c[at + i * kStep] = kApart ? sum[i] : sum[i] + before;
  }
}

// Codes -> differences, in place. Requires faces. The tile's first code stays. Chains and columns are already
// differenced within their blocks; `last` has the blocks' last codes.
template <int S, class Code>
__device__ __forceinline__ void packed_differences(int order, Code last, Code (&c)[32], const Faces<S, Code>& faces) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  if constexpr (S == kChain || S == kColumns) {
    const Code before = __shfl_up_sync(kAllLanes, last, 1);
    const Code left = warp > 0 ? faces.code[warp - 1][0][0] : 0;  // columns: the row's first code, of lane 0
    c[0] -= lane > 0 ? before : left;
  } else {
    // along x
    constexpr int kRow = S == kPlane ? 8 : 4;
    const bool first = warp == 0 && lane < 16;
#pragma unroll
    for (int k = 0; k < kFaceCodes<S>; ++k) {
      Code left = __shfl_up_sync(kAllLanes, c[face_position<S>(k)], 16);
      if (lane < 16 && warp > 0) left = faces.code[warp - 1][k][lane];
#pragma unroll
      for (int x = kRow - 1; x > 0; --x) c[k * kRow + x] -= c[k * kRow + x - 1];
      if (!first) c[k * kRow] -= left;
    }
    if constexpr (S == kPlane) {
      const bool top = lane % 16 == 0;
      if (order >= 2)
        axis_differences<1, 4, 8, 8>(c, top, true, [](int line) { return line; });
      else
        axis_differences<1, 4, 8, 1>(c, top, first, [](int) { return 0; });
    } else {
      const int bz = lane % 4, by = lane / 4 % 4;
      if (order >= 2)
        axis_differences<4, 4, 4, 8>(c, by == 0, true, [](int line) { return line / 4 * 16 + line % 4; });
      else
        axis_differences<4, 4, 4, 2>(c, by == 0, first, [](int line) { return line * 16; });
      if (order >= 3)
        axis_differences<1, 2, 16, 16>(c, bz == 0, true, [](int line) { return line; });
      else
        axis_differences<1, 2, 16, 1>(c, bz == 0, first && by == 0, [](int) { return 0; });
    }
  }
}

// Differences of the order below -> of kOrder, in place. Lines through the tile's first position have them already.
template <int S, int kOrder, class Code>
__device__ __forceinline__ void raise_order(Code (&c)[32]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool first = threadIdx.x < 16;
  if constexpr (S == kPlane) {
    static_assert(kOrder == 2);
    axis_differences<1, 4, 8, 8>(
        c, lane % 16 == 0, [=](int line) { return line > 0 || !first; }, [](int line) { return line; });
  } else if constexpr (kOrder == 2) {
    const int by = lane / 4 % 4;
    axis_differences<4, 4, 4, 8>(
        c, by == 0, [=](int line) { return line % 4 > 0 || !first; },
        [](int line) { return line / 4 * 16 + line % 4; });
  } else {
    const int bz = lane % 4, by = lane / 4 % 4;
    axis_differences<1, 2, 16, 16>(
        c, bz == 0, [=](int line) { return line > 0 || !first || by != 0; }, [](int line) { return line; });
  }
}

// Differences of planes and volumes -> sums over 32 blocks, in place. The carry into each line along x is not added; it
// goes to `before`. `first`: these are the tile's first blocks along x.
template <int S, class Code>
__device__ __forceinline__ void lane_sums(int order, bool first, Code (&c)[32], Code (&before)[kFaceCodes<S>]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  constexpr int kRow = S == kPlane ? 8 : 4;
  if constexpr (S == kPlane) {
    if (order >= 2)
      axis_sums<1, 16, 4, 8, 8>(c, true, [](int line) { return line; });
    else
      axis_sums<1, 16, 4, 8, 1>(c, first, [](int) { return 0; });
  } else {
    const int by = lane / 4 % 4;
    if (order >= 3)
      axis_sums<1, 4, 2, 16, 16>(c, true, [](int line) { return line; });
    else
      axis_sums<1, 4, 2, 16, 1>(c, first && by == 0, [](int) { return 0; });
    if (order >= 2)
      axis_sums<4, 4, 4, 4, 8>(c, true, [](int line) { return line / 4 * 16 + line % 4; });
    else
      axis_sums<4, 4, 4, 4, 2>(c, first, [](int line) { return line * 16; });
  }
  axis_sums<16, 2, kRow, 1, kFaceCodes<S>, true>(c, true, [](int line) { return line * kRow; }, before);
}

// Differences -> sums, in place, without the carry into each line along x. `before` is the carry over the lanes of this
// warp; faces carry it to the next warps. Part 2 follows a barrier.
template <int S, class Code>
__device__ __forceinline__ void packed_sums(int order, Code (&c)[32], Code (&before)[kFaceCodes<S>],
                                            Faces<S, Code>& faces) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  if constexpr (S == kColumns) {
    show_face<S>(c, faces);
    axis_sums<1, 32, 32, 1, 1, true>(c, true, [](int) { return 0; }, before);
  } else if constexpr (S == kChain) {  // add_before() makes the sums
    Code total = 0;
#pragma unroll
    for (int i = 0; i < 32; i += 2) total += c[i] + c[i + 1];  // one instruction adds three numbers
    const Code upto = sum_upto(total);
    before[0] = upto - total;
    if (lane == 31) faces.code[warp][0][0] = upto;
  } else {
    lane_sums<S>(order, warp == 0 && lane < 16, c, before);
    if (lane >= 16) {
#pragma unroll
      for (int k = 0; k < kFaceCodes<S>; ++k) faces.code[warp][k][lane - 16] = c[face_position<S>(k)] + before[k];
    }
  }
}

template <int S, class Code>
__device__ __forceinline__ void add_before(Code (&c)[32], Code (&before)[kFaceCodes<S>], const Faces<S, Code>& faces) {
  constexpr int kRow = 32 / kFaceCodes<S>;
  const int lane = static_cast<int>(threadIdx.x % kFaceLanes<S>), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
  for (int k = 0; k < kFaceCodes<S>; ++k) {
#pragma unroll
    for (int w = 0; w < kWarps - 1; ++w)
      if (w < warp) before[k] += faces.code[w][k][lane];
    if constexpr (S == kChain) {
      c[0] += before[k];
#pragma unroll
      for (int x = 1; x < kRow; ++x) c[x] += c[x - 1];
    } else {
#pragma unroll
      for (int x = 0; x < kRow; ++x) c[k * kRow + x] += before[k];
    }
  }
}

}  // namespace pyfilter::cuda
