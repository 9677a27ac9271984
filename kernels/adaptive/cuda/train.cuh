// SPDX-License-Identifier: BSD-3-Clause
// The kernels that make models, with a thread block for a part of a chunk. Some choose its axes, then its predictor,
// and train that (train/). One makes the tables of its symbols, after all tiles have been coded, and writes the model.
#pragma once

#include <cstdint>

#include "adaptive/cuda/code_tiles.cuh"
#include "adaptive/cuda/tiles.cuh"
#include "adaptive/model_write.hpp"
#include "stages/cuda/train_tables.cuh"

namespace pyfilter::cuda {

// Calls work(team, space, trainer, part, masks) for the parts that `wanted(part)` names, a block each.
template <class T, class Wanted, class Work>
__device__ __forceinline__ void each_part(const AdaptiveEncode& job, const EncodeOrder& order, const Wanted& wanted,
                                          const Work& work) {
  TrainShared& shared = train_shared();
  const TrainTeam team;
  TrainSpace& space = job.spaces[blockIdx.x];
  if (threadIdx.x == 0) {
    space.logs = {job.logs};
    job.solving_sizes.lay_out(job.solving + blockIdx.x * job.solving_sizes.bytes(), shared.staged, space);
  }
  for (std::uint32_t part = blockIdx.x; part < job.part_count(); part += gridDim.x) {
    if (job.plan_of(part).quantise == 0 || !wanted(part)) continue;
    if (threadIdx.x == 0) space.activity = job.activity + std::size_t{part} * job.most_tiles;
    load_grid(order, part, shared.grid);
    WarpTiles<T> tiles{job,
                       order,
                       job.scratch + std::size_t{blockIdx.x} * kTrainWarps * job.scratch_bytes,
                       job.scratch_bytes,
                       job.sample_sizes.in(job.samples + blockIdx.x * job.sample_sizes.bytes()),
                       values_of<T>(job, part),
                       scale_of<T>(job, part),
                       TileCrop(shared.grid)};
    Trainer trainer(team, tiles, shared.grid, job.taps_of(order), job.choice, space, false);
    work(team, space, trainer, part, job.plan_of(part).has_sentinel != 0);
    __syncthreads();
  }
}

// Whether a part may have other axes than its own.
__device__ __forceinline__ bool has_others(const AdaptiveEncode& job, std::uint32_t part) {
  for (std::uint32_t i = 1; i < job.orders; ++i)
    if (job.order[i].grids[part].values != 0) return true;
  return false;
}

// Estimates the bits of parts with one of the axes that they may have.
template <class T>
static __global__ void __launch_bounds__(kTrainThreads, 2)
    rate_axes_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  const EncodeOrder& order = job.order[order_index];
  each_part<T>(
      job, order, [&](std::uint32_t part) { return order.grids[part].values != 0 && has_others(job, part); },
      [&](const TrainTeam&, TrainSpace&, auto& trainer, std::uint32_t part, bool masks) {
        const double bits = trainer.rate(masks);
        if (threadIdx.x == 0) job.rated[order_index * job.part_count() + part] = bits;
      });
}
static __global__ void __launch_bounds__(kTrainThreads) choose_axes_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint32_t part = blockIdx.x * kTrainThreads + threadIdx.x;
  if (part >= job.part_count()) return;
  std::uint32_t chosen = 0;
  if (job.plan_of(part).quantise != 0 && has_others(job, part)) {
    double least = kBetterAxes * job.rated[part];
    for (std::uint32_t i = 1; i < job.orders; ++i) {
      const double bits = job.rated[i * job.part_count() + part];
      if (job.order[i].grids[part].values == 0 || bits >= least) continue;
      least = bits;
      chosen = i;
    }
  }
  job.chosen[part] = chosen;
}

template <class T>
static __global__ void __launch_bounds__(kTrainThreads, 2)
    train_adaptive_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  each_part<T>(
      job, job.order[order_index], [&](std::uint32_t part) { return job.chosen[part] == order_index; },
      [&](const TrainTeam& team, TrainSpace& space, auto& trainer, std::uint32_t part, bool masks) {
        TrainedModel& out = job.trained[part];
        const std::uint32_t trial = trainer.choose(masks);
        trainer.finish_contexts(trial);
        __syncthreads();
        const auto* const from = reinterpret_cast<const std::uint32_t*>(&space.trials[trial].model);
        each(team, sizeof(AdaptiveModel) / 4,
             [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&out.model)[i] = from[i]; });
        if (threadIdx.x == 0) out.total_activity = space.total_activity;
      });
}

static __global__ void __launch_bounds__(kTrainThreads)
    make_tables_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  __shared__ AdaptiveGrid grid;
  const TrainTeam team;
  const EncodeOrder& order = job.order[order_index];
  const AdaptiveTaps& taps = job.taps_of(order);
  TrainSpace& space = job.spaces[blockIdx.x];
  for (std::uint32_t part = blockIdx.x; part < job.part_count(); part += gridDim.x) {
    if (job.plan_of(part).quantise == 0 || job.chosen[part] != order_index) continue;
    load_grid(order, part, grid);
    TrainedModel& out = job.trained[part];
    const float* const activities = job.activity + std::size_t{part} * job.most_tiles;
    SymbolCounts& counts = space.trials[0].counts;
    const CountedTiles counted(grid.tiles());
    clear(team, counts);
    if (threadIdx.x == 0) {
      space.logs = {job.logs};
      space.total_activity = out.total_activity;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x / 32; i < counted.count; i += kTrainWarps) {
      const auto tile = static_cast<std::uint32_t>(counted.number(i));
      count_records(job.records_of(order, part, tile), job.head_of(part, tile), counted.every(), counts);
    }
    __syncthreads();
    double activity = 0;
    for (std::uint32_t i = 0; i < counted.count; ++i) activity += static_cast<double>(activities[counted.number(i)]);
    const double bits = join_tables(team, counts, counted.share(), part_of(space, activity), space, taps, out.model);
    make_tables(team, counts, space.joined, out.model);
    each(team, kMostModelBytes / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(out.text)[i] = 0; });
    each(team, kContextLevels,
         [&](std::uint32_t level) { out.first_of_level[level] = out.model.table_of_level[level] * kSymbols; });
    for (std::uint32_t t = threadIdx.x / 32; t < out.model.tables; t += kTrainWarps)
      make_coded_entries(out.model.table[t], out.entries + t * kSymbols);
    __syncthreads();
    if (threadIdx.x == 0) {
      out.bits = bits;
      out.unit_log2 = unit_log2_of(bits, grid.tiles());
      out.text_bytes =
          static_cast<std::uint32_t>(write_model_integers(out.model, taps.causal, taps.refining, out.text));
    }
    __syncthreads();
  }
}

}  // namespace pyfilter::cuda
