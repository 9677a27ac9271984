// SPDX-License-Identifier: BSD-3-Clause
// The last kernel of encoding: a thread block writes a unit to its place in the frame. The block of a part's first
// unit also writes its offset and model, that of a chunk's first one the header.
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

// The sizes of parts, a block each.
static __global__ void __launch_bounds__(kPlaceThreads)
    measure_parts_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint32_t part = blockIdx.x;
  if (job.plan_of(part).quantise == 0) return;
  const TrainedModel& trained = job.trained[part];
  const auto tiles = static_cast<std::uint32_t>(job.order[job.chosen[part]].grids[part].tiles());
  const std::uint32_t units = unit_count(tiles, trained.unit_log2);
  const UnitPlace place(job.units + std::uint64_t{part} * job.most_tiles, units, 0);
  if (threadIdx.x == 0) job.sizes[part] = (kPayloadHead + trained.text_bytes) / 4 + units + 1 + place.all;
}

static __global__ void __launch_bounds__(kPlaceThreads) place_units_kernel(const __grid_constant__ AdaptiveEncode job) {
  const std::uint32_t part = blockIdx.x / job.most_tiles, unit = blockIdx.x % job.most_tiles, chunk = part / job.parts,
                      first_part = chunk * job.parts;
  if (job.base.plans[chunk].quantise == 0) return;
  const EncodeOrder& order = job.order[job.chosen[part]];
  const AdaptiveGrid& grid = order.grids[part];
  const TrainedModel& trained = job.trained[part];
  const auto tile_count = static_cast<std::uint32_t>(grid.tiles());
  const std::uint32_t units = unit_count(tile_count, trained.unit_log2);
  if (unit >= units) return;
  const EncodedUnit* const done = job.units + std::uint64_t{part} * job.most_tiles;
  const UnitPlace place(done, units, unit);
  const bool folded = job.chosen[part] != 0 && job.order[0].kind == TileKind::line, heads = job.parts > 1 || folded;
  std::uint64_t words = heads ? kPartHead / 4 * job.parts : 0, start = words;
  for (std::uint32_t i = 0; i < job.parts; ++i) {
    if (first_part + i == part) start = words;
    words += job.sizes[first_part + i];
  }
  const bool raw = 4 * words >= job.base.value_bytes;
  auto* const payload =
      reinterpret_cast<std::uint32_t*>(job.base.frames + chunk * job.base.frame_stride) + job.base.header_words;
  if (part == first_part && unit == 0) {
    if (threadIdx.x == 0) {
      job.base.raw[chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.base.counters->raw_chunks, 1u);
      ChunkPlan& plan = job.plans[chunk];  // the frame's parameters, and its version
      plan.predictor = heads ? 1u | (raw ? 0 : kPartAxes << 8) : 1u | job.chosen[part] << 8 | trained.unit_log2 << 16;
      plan.version = heads && !raw ? kPartsVersion : 0;
    }
    __syncthreads();
    if (threadIdx.x < 32) write_header(job.base, chunk, raw, raw ? job.base.value_bytes : 4 * words);
  }
  if (raw) return;
  auto* const out = payload + start;
  auto* const directory = out + (kPayloadHead + trained.text_bytes) / 4;
  if (unit == 0) {
    if (threadIdx.x == 0) {
      std::memcpy(out, job.offsets + part, kPayloadHead);
      if (heads) {
        const TileAxes axes = folded ? TileAxes{static_cast<std::uint32_t>(grid.nx),
                                                grid.kind == TileKind::volume ? static_cast<std::uint32_t>(grid.ny) : 0}
                                     : TileAxes{0, job.chosen[part]};
        const PartHead head(axes, trained.unit_log2, job.sizes[part]);
        payload[kPartHead / 4 * (part - first_part)] = head.bits;
        payload[kPartHead / 4 * (part - first_part) + 1] = head.words;
      }
    }
    place_words(out + kPayloadHead / 4, reinterpret_cast<const std::uint32_t*>(trained.text), trained.text_bytes / 4);
  }
  if (threadIdx.x == 0) {
    directory[unit] = place.before;
    if (unit + 1 == units) directory[units] = place.all;
  }
  const EncodedUnit own = done[unit];
  const UnitTiles tiles(tile_count, trained.unit_log2, unit);
  std::uint32_t* to = directory + units + 1 + place.before;
  if (threadIdx.x == 0) to[0] = own.words;
  to += kUnitHead / 4;
  place_words(to, job.unit_bits + (std::uint64_t{part} * job.most_tiles + unit) * kMostUnitBitWords, own.bit_words);
  to += own.bit_words;
  const std::uint16_t* const stream = job.words_of(order, part, tiles.first + tiles.count) - own.words;
  for (std::uint32_t i = threadIdx.x; i < (own.words + 1) / 2; i += kPlaceThreads)
    to[i] = stream[2 * i] | (2 * i + 1 < own.words ? std::uint32_t{stream[2 * i + 1]} << 16 : 0);
  to += (own.words + 1) / 2;
  for (std::uint32_t i = 0; i < tiles.count; ++i) {
    const std::uint32_t count = job.head_of(part, tiles.first + i).stored;
    if (count == 0) continue;
    place_words(to, job.records_of(order, part, tiles.first + i).stored, count);
    to += count;
  }
}

}  // namespace pyfilter::cuda
