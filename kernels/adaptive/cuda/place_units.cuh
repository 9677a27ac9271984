// SPDX-License-Identifier: BSD-3-Clause
// The last kernel of encoding: a thread block writes a unit to its place in the frame. The block of a chunk's first
// unit also writes offset, model, directory and header.
#pragma once

#include <cstdint>

#include "adaptive/cuda/write_units.cuh"
#include "stages/cuda/header.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kPlaceThreads = 128;

// Sums of the words of a chunk's units: before a unit, and of all. Called by a block.
struct UnitPlace {
  std::uint32_t before, all;

  __device__ __forceinline__ UnitPlace(const EncodedUnit* units, std::uint32_t count, std::uint32_t unit) {
    __shared__ std::uint32_t shared[2][kPlaceThreads / 32];
    before = all = 0;
    for (std::uint32_t u = threadIdx.x; u < count; u += kPlaceThreads) {
      all += units[u].bytes / 4;
      before += u < unit ? units[u].bytes / 4 : 0;
    }
    before = warp_sum(before);
    all = warp_sum(all);
    if (threadIdx.x % 32 == 0) {
      shared[0][threadIdx.x / 32] = before;
      shared[1][threadIdx.x / 32] = all;
    }
    __syncthreads();
    before = all = 0;
    for (std::uint32_t w = 0; w < kPlaceThreads / 32; ++w) {
      before += shared[0][w];
      all += shared[1][w];
    }
  }
};

// Copies words, shared among the threads of a block.
__device__ __forceinline__ void place_words(std::uint32_t* to, const std::uint32_t* from, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += kPlaceThreads) to[i] = from[i];
}

static __global__ void __launch_bounds__(kPlaceThreads) place_units_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint32_t local = blockIdx.x / job.most_units, chunk = local, unit = blockIdx.x % job.most_units;
  if (job.base.plans[chunk].quantise == 0) return;
  const std::uint32_t chosen = order_of(job, local);
  const EncodeOrder& order = job.order[chosen];
  const TrainedModel& trained = order.trained[local];
  const std::uint32_t units = unit_count(order.tiles, trained.unit_log2);
  if (unit >= units) return;
  const EncodedUnit* const done = job.units + std::uint64_t{local} * job.most_units;
  const UnitPlace place(done, units, unit);
  const std::uint64_t start = kPayloadHead + trained.text_bytes + 4 * (std::uint64_t{units} + 1),
                      bytes = start + 4 * std::uint64_t{place.all};
  const bool raw = bytes >= job.base.value_bytes;
  std::uint8_t* const payload = job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words;
  if (unit == 0) {
    if (threadIdx.x == 0) {
      job.base.raw[chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.base.counters->raw_chunks, 1u);
      job.plans[chunk].predictor = 1 | chosen << 8 | trained.unit_log2 << 16;  // the frame's parameters
    }
    __syncthreads();
    if (threadIdx.x < 32) write_header(job.base, chunk, raw, raw ? job.base.value_bytes : bytes);
  }
  if (raw) return;
  auto* const out = reinterpret_cast<std::uint32_t*>(payload);
  auto* const directory = out + (kPayloadHead + trained.text_bytes) / 4;
  if (unit == 0) {
    if (threadIdx.x == 0) std::memcpy(out, job.offsets + chunk, kPayloadHead);
    place_words(out + kPayloadHead / 4, reinterpret_cast<const std::uint32_t*>(trained.text), trained.text_bytes / 4);
  }
  if (threadIdx.x == 0) {
    directory[unit] = place.before;
    if (unit + 1 == units) directory[units] = place.all;
  }
  const EncodedUnit own = done[unit];
  const UnitTiles tiles(order.tiles, trained.unit_log2, unit);
  const std::uint64_t first = std::uint64_t{local} * order.tiles + tiles.first;
  std::uint32_t* to = out + start / 4 + place.before;
  if (threadIdx.x == 0) to[0] = own.words;
  to += kUnitHead / 4;
  place_words(to, job.unit_bits + (std::uint64_t{local} * job.most_units + unit) * kMostUnitBitWords, own.bit_words);
  to += own.bit_words;
  const std::uint16_t* const words = job.words + (first + tiles.count) * order.tile_words - own.words;
  for (std::uint32_t i = threadIdx.x; i < (own.words + 1) / 2; i += kPlaceThreads)
    to[i] = words[2 * i] | (2 * i + 1 < own.words ? std::uint32_t{words[2 * i + 1]} << 16 : 0);
  to += (own.words + 1) / 2;
  for (std::uint32_t i = 0; i < tiles.count; ++i) {
    const std::uint32_t count = order.heads[first + i].stored;
    if (count == 0) continue;
    place_words(to, order.records.in(order.record_memory + (first + i) * order.records.bytes()).stored, count);
    to += count;
  }
}

}  // namespace pyfilter::cuda
