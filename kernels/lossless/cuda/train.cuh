// SPDX-License-Identifier: BSD-3-Clause
// The first kernel of encoding with effort "ratio": a thread block makes the model of a chunk (lossless/train/), and
// the tables that encode its units.
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_params.cuh"
#include "lossless/train/train.hpp"
#include "stages/cuda/block_team.cuh"
#include "stages/cuda/train_tables.cuh"

namespace pyfilter::cuda {

using TrainTeam = BlockTeam<kTrainThreads>;

template <class T>
__device__ void copy_list(const TrainTeam& team, const TrainSpace<NumberOf<T>>& space, TrainedChunk<NumberOf<T>>& out) {
  each(team, out.model.map.entries, [&](std::uint32_t i) { out.dictionary[i] = space.dictionary[i]; });
  each(team, kPatternSlots, [&](std::uint32_t i) { out.places[i] = space.places[i]; });
  __syncthreads();
  if (threadIdx.x == 0) out.model.map.dictionary = out.dictionary;
}

template <class U>
__device__ void make_encoded_bins(const TrainTeam& team, const BinModel& bins, EncodedBins<U>& out) {
  out.search.make(team, bins);
  each(team, kSymbols, [&](std::uint32_t s) { out.of_symbol[s] = {bins.bits[s], bins.level[s]}; });
  each(team, kBinLevels, [&](std::uint32_t l) { out.table_of_level[l] = bins.table_of_level[l]; });
  if (threadIdx.x == 0) out.bins = bins.bins;
  for (std::uint32_t t = threadIdx.x / 32; t < bins.tables; t += kTrainThreads / 32)
    make_coded_entries(bins.table[t], out.entries + t * kSymbols);
}

template <class T>
static __global__ void __launch_bounds__(kTrainThreads, 2) train_bins_kernel(const __grid_constant__ BinnedEncode job) {
  using U = NumberOf<T>;
  const TrainTeam team;
  auto& space = static_cast<TrainSpace<U>*>(job.spaces)[blockIdx.x];
  if (threadIdx.x == 0) space.logs = {job.logs};
  for (std::uint32_t chunk = blockIdx.x; chunk < job.base.chunks; chunk += gridDim.x) {
    auto& out = static_cast<TrainedChunk<U>*>(job.trained)[chunk];
    each(team, sizeof out.model / 4, [&](std::uint32_t i) { reinterpret_cast<std::uint32_t*>(&out.model)[i] = 0; });
    __syncthreads();
    if (threadIdx.x == 0) out.model.map = job.map;
    __syncthreads();
    const std::uint8_t* const values = job.base.values + chunk * job.base.value_stride;
    train_model(Trained<T, TrainTeam>(team, job.shape, values, job.values, job.map, space), out.model);
    if (out.model.map.kind == NumberKind::dictionary) copy_list<T>(team, space, out);
    __syncthreads();
    make_encoded_bins(team, out.model.streams[0], out.streams[0]);
    if (out.model.map.remainders) make_encoded_bins(team, out.model.streams[1], out.streams[1]);
    __syncthreads();
  }
}

}  // namespace pyfilter::cuda
