// SPDX-License-Identifier: BSD-3-Clause
// The kernels that make models, with a thread block for a chunk: one chooses a predictor and trains it (train/); one
// makes the tables of the chunk's symbols, after all tiles have been coded, and writes the model.
#pragma once

#include <cstdint>

#include "adaptive/cuda/code_tiles.cuh"
#include "adaptive/cuda/tiles.cuh"
#include "adaptive/model_write.hpp"
#include "stages/cuda/train_tables.cuh"

namespace pyfilter::cuda {

// Shared memory of a block that trains.
struct TrainShared {
  TeamSpace<kTrainThreads> team;
  union {  // warps code tiles, or all threads sum equations
    TileMemory tiles[kTrainWarps];
    double staged[kStagedNumbers];
  };
};

template <class T>
static __global__ void __launch_bounds__(kTrainThreads, 2)
    train_adaptive_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  extern __shared__ uint4 shared_memory[];
  auto& shared = *reinterpret_cast<TrainShared*>(shared_memory);
  const TrainTeam team{&shared.team};
  const EncodeOrder& order = job.order[order_index];
  TrainSpace& space = job.spaces[blockIdx.x];
  if (threadIdx.x == 0) {
    space.logs = {job.logs};
    job.solving_sizes.lay_out(job.solving + blockIdx.x * job.solving_sizes.bytes(), shared.staged, space);
  }
  for (std::uint32_t local = blockIdx.x; local < job.base.chunks; local += gridDim.x) {
    const std::uint32_t chunk = local;
    if (job.base.plans[chunk].quantise == 0) continue;
    TrainedModel& out = order.trained[local];
    if (threadIdx.x == 0) space.activity = order.activity + std::size_t{local} * order.tiles;
    __syncthreads();
    WarpTiles<T> tiles{job,
                       order,
                       shared.tiles,
                       job.scratch + std::size_t{blockIdx.x} * kTrainWarps * job.scratch_bytes,
                       job.scratch_bytes,
                       job.sample_sizes.in(job.samples + blockIdx.x * job.sample_sizes.bytes()),
                       values_of<T>(job, chunk),
                       scale_of<T>(job, chunk)};
    Trainer trainer(team, tiles, order.grid, job.taps, job.choice, space);
    const std::uint32_t chosen = trainer.choose(job.base.plans[chunk].has_sentinel != 0);
    trainer.finish_contexts(chosen);
    __syncthreads();
    const auto* const from = reinterpret_cast<const std::uint32_t*>(&space.trials[chosen].model);
    each(team, sizeof(AdaptiveModel) / 4,
         [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&out.model)[i] = from[i]; });
    if (threadIdx.x == 0) out.total_activity = space.total_activity;
    __syncthreads();
  }
}

static __global__ void __launch_bounds__(kTrainThreads)
    make_tables_kernel(const __grid_constant__ AdaptiveEncode job, std::uint32_t order_index) {
  __shared__ TeamSpace<kTrainThreads> shared;
  const TrainTeam team{&shared};
  const EncodeOrder& order = job.order[order_index];
  TrainSpace& space = job.spaces[blockIdx.x];
  for (std::uint32_t local = blockIdx.x; local < job.base.chunks; local += gridDim.x) {
    if (job.base.plans[local].quantise == 0) continue;
    TrainedModel& out = order.trained[local];
    SymbolCounts& counts = space.trials[0].counts;
    const CountedTiles counted(order.tiles);
    __syncthreads();
    clear(team, counts);
    if (threadIdx.x == 0) {
      space.logs = {job.logs};
      space.total_activity = out.total_activity;
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x / 32; i < counted.count; i += kTrainWarps) {
      const std::size_t tile = std::size_t{local} * order.tiles + counted.number(i);
      count_records(order.records.in(order.record_memory + tile * order.records.bytes()), order.heads[tile],
                    counted.every(), counts);
    }
    __syncthreads();
    double activity = 0;
    for (std::uint32_t i = 0; i < counted.count; ++i)
      activity += static_cast<double>(order.activity[std::size_t{local} * order.tiles + counted.number(i)]);
    const double bits = join_tables(team, counts, counted.share(), activity, space, job.taps, out.model);
    make_tables(team, counts, space.joined, out.model);
    each(team, kMostModelBytes / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(out.text)[i] = 0; });
    each(team, kContextLevels,
         [&](std::uint32_t level) { out.first_of_level[level] = out.model.table_of_level[level] * kSymbols; });
    for (std::uint32_t t = threadIdx.x / 32; t < out.model.tables; t += kTrainWarps)
      make_coded_entries(out.model.table[t], out.entries + t * kSymbols);
    __syncthreads();
    if (threadIdx.x == 0) {
      out.bits = bits;
      out.unit_log2 = unit_log2_of(bits, order.tiles);
      out.text_bytes =
          static_cast<std::uint32_t>(write_model_integers(out.model, job.taps.causal, job.taps.refining, out.text));
    }
    __syncthreads();
  }
}

}  // namespace pyfilter::cuda
