// SPDX-License-Identifier: BSD-3-Clause
// The first kernel reads the frames' models and directories, and makes their tables (docs/format.md, sections 15 and
// 15.1), with a thread block for each frame.
#pragma once

#include <cstdint>

#include "lossless/binned_read.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kOpenBinsThreads = 256;
inline constexpr std::uint32_t kStagedBins = 16384;  // bytes of a payload that are copied to shared memory

// Makes the slots and ranges of a table with one warp: each lane has eight symbols, all lanes fill the slots of one.
__device__ __forceinline__ void make_symbol_table(const Frequencies& f, std::uint32_t* ranges, std::uint8_t* symbols) {
  constexpr std::uint32_t kOfLane = kSymbols / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t frequency[kOfLane], own = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < kOfLane; ++k) own += frequency[k] = f.of[lane * kOfLane + k];
  std::uint32_t slot = sum_upto(own) - own;
#pragma unroll
  for (std::uint32_t k = 0; k < kOfLane; ++k) {
    ranges[lane * kOfLane + k] = frequency[k] | slot << 16;
    for (std::uint32_t left = __ballot_sync(kAllOfWarp, frequency[k] != 0 ? 1 : 0); left != 0; left &= left - 1) {
      const int from = __ffs(static_cast<int>(left)) - 1;
      const std::uint32_t count = __shfl_sync(kAllOfWarp, frequency[k], from),
                          first = __shfl_sync(kAllOfWarp, slot, from);
      for (std::uint32_t i = lane; i < count; i += 32)
        symbols[first + i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(from) * kOfLane + k);
    }
    slot += frequency[k];
  }
}

// Reads the model with one thread. Returns where the directory begins, or 0 for a damaged frame.
__device__ __forceinline__ std::uint32_t read_bins_head(const BinnedDecode& job, const DecodeFrame& frame,
                                                        const std::uint8_t* staged, OpenBins& open) {
  open.model.map = job.map;
  const auto room = [&](std::uint32_t) { return open.dictionary; };
  std::size_t bytes = 0;
  // a model that is not completely staged is read again, from the frame
  const std::size_t available = frame.payload_bytes < kStagedBins ? frame.payload_bytes : kStagedBins;
  bool good = read_model_parts(staged, available, room, open.model, &bytes);
  if (!good && frame.payload_bytes > kStagedBins) {
    open.model = BinnedParts{};
    open.model.map = job.map;
    good = read_model_parts(frame.payload, frame.payload_bytes, room, open.model, &bytes);
  }
  if (!good) return 0;
  const std::uint64_t unit_values = open.model.unit_values, units = (job.values + unit_values - 1) / unit_values;
  open.units = units < 0x7FFFFFFFu ? static_cast<std::uint32_t>(units) : 0x7FFFFFFFu;
  open.first_unit = static_cast<std::uint32_t>(job.start / unit_values);
  open.wanted =
      job.start < job.stop ? static_cast<std::uint32_t>((job.stop - 1) / unit_values) + 1 - open.first_unit : 0;
  open.stored = open.model.stored_first();
  return static_cast<std::uint32_t>(bytes);
}

static __global__ void __launch_bounds__(kOpenBinsThreads) open_bins_kernel(const __grid_constant__ BinnedDecode job) {
  __shared__ __align__(16) std::uint32_t staged[kStagedBins / 4];
  __shared__ std::uint32_t shared_at[1];
  const DecodeFrame& frame = job.frame(blockIdx.x);
  OpenBins& open = job.opened[blockIdx.x];
  const auto staged_words =
      static_cast<std::uint32_t>(frame.payload_bytes < kStagedBins ? frame.payload_bytes / 4 : kStagedBins / 4);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(frame.payload);
  for (std::uint32_t i = threadIdx.x; i < staged_words; i += kOpenBinsThreads) staged[i] = words[i];
  constexpr std::uint32_t kCleared = offsetof(OpenBins, dictionary) / 4;
  for (std::uint32_t i = threadIdx.x; i < kCleared; i += kOpenBinsThreads)
    reinterpret_cast<std::uint32_t*>(&open)[i] = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    shared_at[0] = read_bins_head(job, frame, reinterpret_cast<const std::uint8_t*>(staged), open);
    if (shared_at[0] == 0) report(frame, Fault::tables);
  }
  __syncthreads();
  const std::uint32_t directory_at = shared_at[0], units = open.units;
  if (directory_at == 0) return;
  for (std::uint32_t stream = 0; stream < (open.model.map.remainders ? 2u : 1u); ++stream) {
    const BinModel& bins = open.model.streams[stream];
    SymbolTables& tables = job.tables[2 * blockIdx.x + stream];
    for (std::uint32_t t = threadIdx.x / 32; t < bins.tables; t += kOpenBinsThreads / 32)
      make_symbol_table(bins.table[t], tables.ranges + t * kSymbols, tables.symbols + t * kBinSlots);
  }
  const DecodeFrame part = behind_model(frame, directory_at);
  bool damaged = part.payload_bytes / 4 <= units;  // too short for a directory
  if (!damaged && units == 0)
    damaged = part.payload_bytes != 4 || *reinterpret_cast<const std::uint32_t*>(part.payload) != 0;
  if (!damaged)
    for (std::uint32_t unit = threadIdx.x; unit < units; unit += kOpenBinsThreads)
      damaged = damaged || find_tile(part, units, unit).fault != Fault::none;
  damaged = __syncthreads_or(damaged ? 1 : 0) != 0;
  if (threadIdx.x != 0) return;
  if (damaged) return report(frame, Fault::directory);
  open.directory_at = directory_at;
  open.good = 1;
}

}  // namespace pyfilter::cuda
