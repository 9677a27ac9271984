// SPDX-License-Identifier: BSD-3-Clause
// The second kernel of encoding with effort "ratio": thread blocks encode the units of chunks, and write their models.
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_unit.cuh"

namespace pyfilter::cuda {

// Copies the tables of a stream to shared memory.
template <class U>
__device__ __forceinline__ void load_bins(const EncodedBins<U>& from) {
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < sizeof from / 4; i += 32 * kUnitWarps)
    reinterpret_cast<std::uint32_t*>(&unit_space<U>().bins)[i] = reinterpret_cast<const std::uint32_t*>(&from)[i];
  __syncthreads();
}

template <class T>
static __global__ void __launch_bounds__(32 * kUnitWarps, 4)
    encode_units_kernel(const __grid_constant__ BinnedEncode job) {
  using U = NumberOf<T>;
  auto* const all_trained = static_cast<TrainedChunk<U>*>(job.trained) + job.first_chunk;
  if (blockIdx.x < job.chunk_count) {  // it writes a model, which takes as long as a unit
    TrainedChunk<U>& own = all_trained[blockIdx.x];
    if (threadIdx.x == 0) own.text_bytes = static_cast<std::uint32_t>(write_binned_model(own.model, own.text));
    return;
  }
  const std::uint32_t groups = (job.most_parts + kUnitWarps - 1) / kUnitWarps, block = blockIdx.x - job.chunk_count,
                      number = block / groups, group = block % groups;
  const TrainedChunk<U>& trained = all_trained[number];
  const PartsOfUnits parts(job, trained.model.unit_values);
  if (!parts.part(group * kUnitWarps).exists) return;
  const PartOfUnit own = parts.part(group * kUnitWarps + threadIdx.x / 32);
  UnitEncoder<T> encoder(job, trained, number, own);
  const auto wait = [&] {  // for the other parts of the unit: all in this block
    if (parts.of_unit != 1) __syncthreads();
  };
  load_bins(trained.streams[0]);
  if (own.exists) encoder.find_numbers();
  wait();
  EncodedUnit done = {};
  const std::uint32_t streams = trained.model.map.remainders ? 2 : 1;
  done.bytes = streams * static_cast<std::uint32_t>(kStreamHead);
  if (own.exists && own.part == 0) done.bytes += encoder.keep_first();
#pragma unroll 1
  for (std::uint32_t stream = 0; stream < streams; ++stream) {
    if (stream != 0) load_bins(trained.streams[1]);
    if (own.exists) encoder.find_bins(stream);
    wait();
    if (own.exists) encoder.code_part(stream);
    wait();
    if (own.exists && own.part == 0) done.bytes += encoder.join_parts(stream, done.heads[stream]);
  }
  if (!own.exists || own.part != 0 || encoder.lane != 0) return;
  done.bytes = (done.bytes + 3) / 4 * 4;
  job.units[encoder.unit_number] = done;
}

}  // namespace pyfilter::cuda
