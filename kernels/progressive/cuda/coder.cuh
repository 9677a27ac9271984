// SPDX-License-Identifier: BSD-3-Clause
// The launchers of progressive frames for one dtype.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "progressive/cuda/forward.cuh"
#include "progressive/cuda/inverse.cuh"
#include "progressive/cuda/launch.cuh"
#include "progressive/cuda/measure.cuh"
#include "progressive/cuda/measure_line.cuh"
#include "progressive/cuda/measure_passes.cuh"
#include "progressive/cuda/planes.cuh"
#include "progressive/cuda/scan.cuh"
#include "progressive/cuda/special_fill.cuh"
#include "progressive/cuda/special_scan.cuh"
#include "progressive/cuda/specials.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

template <class T>
cudaError_t launch_decode_planes(const ProgressiveDecode& job, std::uint32_t first_tile, cudaStream_t stream) {
  return launch(decode_planes_kernel<typename ProgressiveTraits<T>::Int>, dim3(job.tiles - first_tile, job.frame_count),
                kPlaneThreads, stream, job, first_tile);
}

template <class T>
cudaError_t launch_inverse(const InversePass& pass, int axis, bool last, cudaStream_t stream) {
  const auto kernel = axis == 0   ? (last ? inverse_kernel<T, 0, true> : inverse_kernel<T, 0, false>)
                      : axis == 1 ? (last ? inverse_kernel<T, 1, true> : inverse_kernel<T, 1, false>)
                                  : (last ? inverse_kernel<T, 2, true> : inverse_kernel<T, 2, false>);
  const RowBlocks rows(pass.from.z * pass.from.y, pass.from.x, kPassEach<typename ProgressiveTraits<T>::Int>);
  InversePass job = pass;
  job.share = rows;
  return launch(kernel, dim3(rows.blocks, pass.job.frame_count), kGridThreads, stream, job);
}

template <class T>
cudaError_t launch_roots(const InversePass& pass, cudaStream_t stream) {
  return launch(roots_to_values_kernel<T>, dim3(1, pass.job.frame_count), kGridThreads, stream, pass);
}

template <class T>
cudaError_t launch_put_specials(const SpecialDecode& job, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((job.stop - job.start) / kMaskThreads + 1, 4224 / job.job.frame_count + 1));
  if (const cudaError_t e = launch(put_missing_kernel<T>, dim3(blocks, job.job.frame_count), kMaskThreads, stream, job);
      e != cudaSuccess)
    return e;
  return launch(put_verbatim_kernel<T>, dim3(1, job.job.frame_count), 32, stream, job);
}

// Blocks that share the values of each frame.
inline dim3 scan_blocks(const ProgressiveEncode& job) {
  constexpr std::uint64_t kEach = 16 * kScanThreads, kMostBlocks = 2112;
  const unsigned frames = job.frame_count;
  return dim3(static_cast<unsigned>(std::min(job.count / kEach + 1, kMostBlocks / frames + 1)), frames);
}

template <class T>
cudaError_t launch_quantise(const ProgressiveEncode& job, RangeKeys* ranges, cudaStream_t stream) {
  const dim3 each(1, job.frame_count), all = scan_blocks(job);
  PYF_CUDA_TRY(launch(begin_chunks_kernel<T>, each, 32, stream, job));
  PYF_CUDA_TRY(launch(scan_values_kernel<T>, all, kScanThreads, stream, job));
  PYF_CUDA_TRY(launch(look_kernel<T>, each, 64, stream, job));
  PYF_CUDA_TRY(launch(second_look_kernel<T>, all, kScanThreads, stream, job));
  if (job.bound_mode == Bound::relative) {
    PlanParams plan = {};
    plan.has_fill = job.has_fill;
    plan.fill = job.fill;
    plan.without_zeros = job.without_zeros;
    plan.count = job.count;
    plan.values = job.values;
    plan.value_stride = job.value_stride;
    plan.ranges = ranges;
    PYF_CUDA_TRY(launch(range_kernel<T>, all, kPlanThreads, stream, plan));
  }
  PYF_CUDA_TRY(launch(choose_step_kernel<T>, each, 32, stream, job, static_cast<const RangeKeys*>(ranges)));
  PYF_CUDA_TRY(launch(quantise_kernel<T>, all, kScanThreads, stream, job));
  return launch(check_range_kernel<T>, each, 32, stream, job);
}

template <class Int, bool kFills>
cudaError_t launch_forward_level(const ProgressiveEncode& job, const ProgressiveLayout& layout, int level,
                                 cudaStream_t stream) {
  const Extents g = layout.grids[level];
  ForwardLevel pass = {job, level, {-1, -1, -1}, 1, 1, 1, 1};
  units_of_level(layout, level, pass.unit);
  const std::uint64_t threads = g.x / 2 / kWide<Int>;
  while (pass.across < 32 && pass.across < threads) pass.across *= 2;
  pass.pieces = static_cast<std::uint32_t>(tiles_along(threads, pass.across));
  constexpr std::uint64_t kBusy = 132 * 8;
  const auto blocks = [&] {
    pass.groups = static_cast<std::uint32_t>(tiles_along(g.y, pass.rows));
    return tiles_along(g.z * pass.groups * pass.pieces, kGridThreads / pass.across);
  };
  while (pass.rows < 8 && pass.rows < g.y && blocks() * job.frame_count > 2 * kBusy) pass.rows *= 2;
  return launch(forward_level_kernel<Int, kFills>, dim3(static_cast<unsigned>(blocks()), job.frame_count), kGridThreads,
                stream, pass);
}

template <class Int>
cudaError_t launch_coarsen(const ProgressiveEncode& job, const ProgressiveLayout& layout, cudaStream_t stream) {
  for (int level = 1; level <= layout.levels; ++level) {
    const Extents g = layout.grids[level];
    const RowBlocks rows(g.z * g.y, g.x);
    const RowShare& share = rows;
    PYF_CUDA_TRY(
        launch(coarsen_kernel<Int>, dim3(rows.blocks, job.frame_count), kGridThreads, stream, job, level, share));
  }
  return cudaSuccess;
}

// Rows of any length of a unit.
inline cudaError_t launch_rows(void (*kernel)(const ProgressiveEncode, int, RowShare), const ProgressiveEncode& job,
                               const ProgressiveLayout& layout, int u, cudaStream_t stream) {
  const Extents shape = layout.unit[u].shape;
  const RowBlocks rows(shape.z * shape.y, shape.x);
  const RowShare& share = rows;
  return launch(kernel, dim3(rows.blocks, job.frame_count), kGridThreads, stream, job, u, share);
}

template <class T>
cudaError_t launch_forward(const ProgressiveEncode& job, const ProgressiveLayout& layout, cudaStream_t stream) {
  using Int = typename ProgressiveTraits<T>::Int;
  PYF_CUDA_TRY(launch_coarsen<Int>(job, layout, stream));
  PYF_CUDA_TRY(launch(choose_basis_kernel<Int, 256>, dim3(static_cast<unsigned>(layout.units), job.frame_count), 256,
                      stream, job, 0));
  for (int u = layout.units - 1; u >= 0; --u) {
    const int level = layout.unit[u].level;
    if (has_wide_rows(layout, level, sizeof(Int))) {
      if (u + 1 == layout.units || layout.unit[u + 1].level != level)
        PYF_CUDA_TRY((launch_forward_level<Int, false>(job, layout, level, stream)));
      continue;
    }
    PYF_CUDA_TRY(launch_rows(forward_kernel<Int>, job, layout, u, stream));
  }
  return cudaSuccess;
}

template <class T>
cudaError_t launch_quantise_specials(const ProgressiveEncode& job, cudaStream_t stream) {
  const dim3 each(1, job.frame_count), all = scan_blocks(job);
  PYF_CUDA_TRY(launch(begin_specials_kernel, each, 32, stream, job));
  PYF_CUDA_TRY(launch(name_sentinel_kernel<T>, each, 32, stream, job));
  PYF_CUDA_TRY(launch(quantise_specials_kernel<T>, all, kScanThreads, stream, job));
  PYF_CUDA_TRY(launch(check_range_kernel<T>, each, 32, stream, job));
  return launch(coarsen_specials_kernel, all, kScanThreads, stream, job);
}

template <class T>
cudaError_t launch_forward_specials(const ProgressiveEncode& job, const ProgressiveLayout& layout,
                                    cudaStream_t stream) {
  using Int = typename ProgressiveTraits<T>::Int;
  PYF_CUDA_TRY(launch_coarsen<Int>(job, layout, stream));
  constexpr std::uint64_t kSmall = 16384;  // points of a grid that a block does in a few microseconds
  int u = 0;
  while (u < layout.units && layout.grids[layout.unit[u].level].count() <= kSmall) ++u;
  PYF_CUDA_TRY(launch(fill_small_units_kernel<Int>, dim3(1, job.frame_count), kFillThreads, stream, job, u));
  const dim3 each(1, job.frame_count);
  const auto fill_unit = [&] {
    PYF_CUDA_TRY(launch(choose_basis_kernel<Int, kFillThreads>, each, kFillThreads, stream, job, u));
    return launch_rows(fill_unit_kernel<Int>, job, layout, u++, stream);
  };
  while (u < layout.units) {
    const int level = layout.unit[u].level;
    if (!has_wide_rows(layout, level, sizeof(Int))) {
      PYF_CUDA_TRY(fill_unit());
      continue;
    }
    if (layout.unit[u].axis == 0) PYF_CUDA_TRY(fill_unit());
    const int first = u;
    while (u < layout.units && layout.unit[u].level == level) ++u;
    PYF_CUDA_TRY(launch(choose_level_bases_kernel<Int>, each, kFillThreads, stream, job, first, u));
    PYF_CUDA_TRY((launch_forward_level<Int, true>(job, layout, level, stream)));
  }
  return cudaSuccess;
}

template <class T>
cudaError_t launch_encode_planes(const ProgressiveEncode& job, cudaStream_t stream) {
  return launch(encode_planes_kernel<typename ProgressiveTraits<T>::Int>, dim3(job.tiles, job.frame_count),
                kPlaneThreads, stream, job);
}

template <class T>
cudaError_t launch_measure_pass(const MeasurePass& pass, int axis, bool last, cudaStream_t stream) {
  const auto kernel = axis == 0   ? (last ? measure_pass_kernel<T, 0, true> : measure_pass_kernel<T, 0, false>)
                      : axis == 1 ? (last ? measure_pass_kernel<T, 1, true> : measure_pass_kernel<T, 1, false>)
                                  : (last ? measure_pass_kernel<T, 2, true> : measure_pass_kernel<T, 2, false>);
  const RowBlocks rows(pass.from.z * pass.from.y, pass.from.x, kPassEach<typename ProgressiveTraits<T>::Int>);
  MeasurePass job = pass;
  job.share = rows;
  return launch(kernel, dim3(rows.blocks, pass.job.frame_count), kGridThreads, stream, job);
}

// How rows and planes of a level are divided: pieces of a row overlap by a thread's values at each end.
template <class Int>
void share_out(MeasureLevel& level, std::uint32_t warps_of_task) {
  constexpr std::uint64_t kN = kWide<Int>, kBusy = 132 * 24;
  const std::uint64_t threads = (level.from.x + kN - 1) / kN;
  std::uint64_t best = ~std::uint64_t{0};
  for (std::uint32_t lanes = 32; lanes != 0; lanes /= 2) {
    if (lanes < 8 && lanes < threads) break;
    const std::uint64_t pieces = threads <= lanes ? 1 : (threads - 2 + lanes - 3) / (lanes - 2);
    if (lanes * pieces >= best + best / 8) continue;  // short pieces are skipped more often
    best = lanes * pieces;
    level.lanes = lanes;
    level.pieces = static_cast<std::uint32_t>(pieces);
  }
  // without a pass along z, the rows in front of a march need not be computed
  const std::uint64_t rows = level.from.y, per_march = level.from.z * level.pieces * level.lanes * warps_of_task / 32;
  std::uint64_t steps = level.to.z > 1 ? 16 : best >= 32 ? 32 : 1;
  while (steps > 1 && (steps / 2 >= rows || per_march * tiles_along(rows, steps) < kBusy)) steps /= 2;
  level.steps = static_cast<std::uint32_t>(steps);
  level.marches = static_cast<std::uint32_t>(tiles_along(rows, steps));
}

template <class T, bool kHasZ, bool kLast, bool kWideRows, bool kSpecial>
cudaError_t launch_level(const MeasureLevel& level, dim3 blocks, std::uint32_t warps, cudaStream_t stream) {
  const auto kernel = &measure_kernel<T, kHasZ, kLast, kWideRows, kSpecial>;
  constexpr std::size_t kMost = MeasuredItems<kHasZ>::bytes(kReadersOfBlock);
  PYF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kMost)));
  kernel<<<blocks, 32 * warps, MeasuredItems<kHasZ>::bytes(warps), stream>>>(level);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_measure(const MeasureLevel& given, const ProgressiveLayout& layout, cudaStream_t stream) {
  using Int = typename ProgressiveTraits<T>::Int;
  MeasureLevel level = given;
  share_out<Int>(level, level.readers * level.job.frame_count);
  const std::uint64_t tasks = level.from.z * level.pieces * level.marches, of_warp = 32 / level.lanes;
  const dim3 blocks(static_cast<unsigned>((tasks + of_warp - 1) / of_warp), level.job.frame_count);
  using Yes = std::true_type;
  using No = std::false_type;
  const auto by = [&](auto has_z, auto last, auto wide, auto special) {
    return launch_level<T, decltype(has_z)::value, decltype(last)::value, decltype(wide)::value,
                        decltype(special)::value>(level, blocks, level.readers, stream);
  };
  const auto by_rows = [&](auto has_z, auto last) {
    if (!has_wide_rows(layout, level.level, sizeof(Int))) return by(has_z, last, No(), Yes());
    return level.job.special.data != nullptr ? by(has_z, last, Yes(), Yes()) : by(has_z, last, Yes(), No());
  };
  const auto by_level = [&](auto has_z) { return level.level == 0 ? by_rows(has_z, Yes()) : by_rows(has_z, No()); };
  return level.to.z > 1 ? by_level(Yes()) : by_level(No());
}

template <class T>
cudaError_t launch_measure_line(const MeasureLine& given, const ProgressiveLayout& layout, cudaStream_t stream) {
  constexpr std::uint32_t kSharedBytes = 2 * LineMemory<typename ProgressiveTraits<T>::Int>::kBytes, kBusy = 132 * 16;
  MeasureLine line = given;
  for (int i = 0; i < 4; ++i) line.sizes[i] = static_cast<std::uint32_t>(layout.grids[line.level + i].x);
  for (int u = 0; u < layout.units; ++u)
    if (const int i = layout.unit[u].level - line.level; i >= 0 && i < 3) line.unit[i] = u;
  line.tiles = (line.sizes[3] + 4 * kLineLanes - 1) / (4 * kLineLanes);
  line.steps = std::clamp(line.tiles * line.job.frame_count / kBusy, 1u, 16u);
  const auto kernel = line.level == 0 ? &measure_line_kernel<T, true> : &measure_line_kernel<T, false>;
  PYF_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kSharedBytes)));
  const dim3 blocks((line.tiles + line.steps - 1) / line.steps, line.job.frame_count);
  kernel<<<blocks, 32 * line.readers, kSharedBytes, stream>>>(line);
  return cudaGetLastError();
}

template <class T>
inline constexpr ProgressiveKernels kProgressiveKernels{
    &launch_decode_planes<T>,     &launch_inverse<T>,          &launch_roots<T>,
    &launch_put_specials<T>,      &launch_quantise<T>,         &launch_forward<T>,
    &launch_quantise_specials<T>, &launch_forward_specials<T>, &launch_encode_planes<T>,
    &launch_measure_pass<T>,      &launch_measure<T>,          &launch_measure_line<T>};

}  // namespace pyfilter::cuda
