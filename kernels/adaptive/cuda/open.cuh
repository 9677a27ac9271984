// SPDX-License-Identifier: BSD-3-Clause
// The first kernel reads the heads, offsets, models, tables and directories (docs/format.md, sections 14.1 and 14.2),
// with a thread block for each part of a frame.
#pragma once

#include <cstdint>

#include "adaptive/cuda/params.cuh"
#include "adaptive/model_read.hpp"
#include "core/wire.hpp"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kOpenThreads = 128;
inline constexpr std::uint32_t kStagedModel = 16384;  // bytes of a payload that are copied to shared memory

// Builds the slots of a table with one warp: each lane takes eight symbols.
PYF_LANES void make_slots_together(const Frequencies& f, std::uint32_t* entries) {
  constexpr std::uint32_t kOfLane = kSymbols / 32;
  const std::uint32_t first_symbol = this_lane() * kOfLane;
  std::uint32_t own = 0;
  for (std::uint32_t i = 0; i < kOfLane; ++i) own += f.of[first_symbol + i];
  std::uint32_t end = own;
#pragma unroll
  for (std::uint32_t by = 1; by < 32; by *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAllRows, end, by);
    if (this_lane() >= by) end += before;
  }
  std::uint32_t slot = end - own;
  for (std::uint32_t s = first_symbol; s < first_symbol + kOfLane; ++s)
    for (std::uint32_t i = 0; i < f.of[s]; ++i) entries[slot++] = slot_entry(s, f.of[s], i);
}

// Finds a part of a frame: its axes, its units and its bytes. Returns false for damaged heads.
PYF_LANES bool find_part(const AdaptiveDecode& job, const DecodeFrame& frame, std::uint32_t number, OpenPart& open) {
  open.directory = frame;
  TileAxes axes{0, job.axes == 1 ? 1u : 0};
  open.unit_log2 = frame.mode;
  if (job.axes == kPartAxes) {
    std::uint64_t at = kPartHead * std::uint64_t{job.parts};
    if (frame.payload_bytes < at) return false;
    for (std::uint32_t i = 0; i < job.parts; ++i) {
      const PartHead head(load_le<std::uint32_t>(frame.payload + kPartHead * i),
                          load_le<std::uint32_t>(frame.payload + kPartHead * i + 4));
      const std::uint64_t size = 4 * std::uint64_t{head.words};
      if (size > frame.payload_bytes - at || head.unit_log2() > kMostTilesLog2 || !job.grids.allows(head.axes()))
        return false;
      if (i == number) {
        axes = head.axes();
        open.unit_log2 = head.unit_log2();
        open.directory.payload = frame.payload + at;
        open.directory.payload_bytes = size;
      }
      at += size;
    }
    if (at != frame.payload_bytes) return false;
    open.grid = job.grids.of_part(axes, number);
  } else {
    open.grid = job.axes == 1 ? job.grids.across : job.grids.own;
  }
  open.units = static_cast<std::uint32_t>(tile_parts(open.grid.tiles(), std::uint64_t{1} << open.unit_log2));
  return true;
}

// Reads the offset and the model with one thread. Returns where the directory begins, or 0 for a damaged part.
PYF_LANES std::uint32_t read_head(const AdaptiveDecode& job, const DecodeFrame& frame, const std::uint8_t* staged,
                                  std::uint32_t staged_bytes, OpenPart& open) {
  const DecodeFrame& part = open.directory;
  if (part.payload_bytes < kPayloadHead + 8) return 0;
  open.offset = load_le<double>(staged);
  // a model that is not completely staged is read from the frame
  const std::size_t words = load_le<std::uint32_t>(staged + kPayloadHead);
  const std::uint8_t* const from = kPayloadHead + 4 * words <= staged_bytes ? staged : part.payload;
  AdaptiveModel& model = open.model;
  model.kind = open.grid.kind;
  const AdaptiveTaps& taps = job.taps[tile_kind_index(model.kind)];
  std::size_t bytes = 0;
  if (!(open.offset - open.offset == 0)) return 0;  // not finite
  if (!read_model_integers(from + kPayloadHead, static_cast<std::size_t>(part.payload_bytes - kPayloadHead),
                           taps.causal, taps.refining, model, &bytes))
    return 0;
  if (model.masks && frame.has_sentinel == 0) return 0;
  return static_cast<std::uint32_t>(kPayloadHead + bytes);
}

static __global__ void __launch_bounds__(kOpenThreads)
    open_adaptive_kernel(const __grid_constant__ AdaptiveDecode job) {
  __shared__ __align__(16) std::uint32_t staged[kStagedModel / 4];
  __shared__ std::uint32_t shared_at[1];
  const DecodeFrame& frame = job.frame(blockIdx.x / job.parts);
  OpenPart& open = job.opened[blockIdx.x];
  for (std::uint32_t i = threadIdx.x; i < sizeof(OpenPart) / 4; i += kOpenThreads)
    reinterpret_cast<std::uint32_t*>(&open)[i] = 0;
  __syncthreads();
  bool found = true;
  if (threadIdx.x == 0) found = find_part(job, frame, blockIdx.x % job.parts, open);
  if (__syncthreads_or(found ? 0 : 1) != 0) {
    if (threadIdx.x == 0) report(frame, Fault::head);
    return;
  }
  const std::uint64_t part_bytes = open.directory.payload_bytes;
  const auto staged_bytes = static_cast<std::uint32_t>(part_bytes < kStagedModel ? part_bytes / 4 * 4 : kStagedModel);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(open.directory.payload);
  for (std::uint32_t i = threadIdx.x; i < staged_bytes / 4; i += kOpenThreads) staged[i] = words[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    shared_at[0] = read_head(job, frame, reinterpret_cast<const std::uint8_t*>(staged), staged_bytes, open);
    if (shared_at[0] == 0) report(frame, Fault::tables);
  }
  __syncthreads();
  const std::uint32_t directory_at = shared_at[0];
  if (directory_at == 0) return;
  AdaptiveModel& model = open.model;
  for (std::uint32_t i = threadIdx.x; i < (model.levels + 1) * kSets; i += kOpenThreads)
    finish_set(model.passes[i / kSets], i % kSets);
  std::uint32_t* const slots = job.slots_of(blockIdx.x);
  for (std::uint32_t t = threadIdx.x / 32; t < model.tables; t += kOpenThreads / 32)
    make_slots_together(model.table[t], slots + t * kSlotsOfTable);
  const DecodeFrame part = behind_model(open.directory, directory_at);
  const std::uint32_t units = open.units;
  bool damaged = part.payload_bytes / 4 <= units;  // too short for a directory
  if (!damaged && units == 0)
    damaged = part.payload_bytes != 4 || *reinterpret_cast<const std::uint32_t*>(part.payload) != 0;
  if (!damaged)
    for (std::uint32_t unit = threadIdx.x; unit < units; unit += kOpenThreads)
      damaged = damaged || find_tile(part, units, unit).fault != Fault::none;
  damaged = __syncthreads_or(damaged ? 1 : 0) != 0;
  if (threadIdx.x != 0) return;
  if (damaged) return report(frame, Fault::directory);
  open.directory = part;
  open.good = 1;
}

}  // namespace pyfilter::cuda
