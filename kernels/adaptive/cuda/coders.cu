// SPDX-License-Identifier: BSD-3-Clause
// Adaptive on the GPU: the host's side of decoding, and its entry in core's table of device codecs.
#include <algorithm>
#include <iterator>

#include "adaptive/cuda/driver.cuh"
#include "adaptive/cuda/open.cuh"
#include "adaptive/cuda/params.cuh"
#include "adaptive/cuda/planes.cuh"
#include "adaptive/plan.hpp"
#include "adaptive/refine.hpp"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "stages/cuda/decode_frames.cuh"

namespace pyfilter::cuda {

extern const AdaptiveKernels kAdaptiveKernels32, kAdaptiveKernels64;

void make_room(const AdaptiveGrid& grid, ScratchShape& scratch, std::size_t& plane_floats) {
  const LargestTile tile(grid, 0);
  const Layout l = make_layout(grid.kind, tile.planes, tile.rows, tile.columns);
  const Refinement r(grid.kind, tile.planes, tile.rows, tile.columns);
  scratch.wave_floats =
      std::max(scratch.wave_floats, static_cast<std::uint32_t>((std::max(l.floats(), r.floats()) + 3) / 4 * 4));
  scratch.masks = std::max({scratch.masks, UnitScratch::kMaskMargin + l.steps(), r.classes() * r.steps()});
  scratch.cells = std::max(scratch.cells, tile.cells());
  if (grid.kind == TileKind::volume)
    plane_floats =
        std::max(plane_floats, PlaneWindows::floats(make_layout(TileKind::volume, 1, 1, tile.columns).period()));
}

namespace {

constexpr std::uint64_t kScratchPart = 32;  // scratch memory of thread blocks is at most 1 / 32 of the device's memory
constexpr std::size_t kFramesTogether = usual_size(512, 3);  // limits the memory of the frames' tables

std::uint32_t group(const FrameInfo& info) { return info.parameters[1]; }  // the axes
std::uint32_t mode(const FrameInfo& info) { return info.parameters[2]; }

// What a group of frames is decoded with: a grid for each kind of tiles that its parts may have, and the most tiles of
// a part.
struct DecodeGrids {
  std::uint32_t count = 0;
  AdaptiveGrid of[kTileKinds];
  std::uint64_t most_tiles = 0;

  explicit DecodeGrids(const AdaptiveDecode& job) {
    const auto add = [&](const AdaptiveGrid& grid, std::uint64_t tiles) {
      of[count++] = grid;
      most_tiles = std::max(most_tiles, tiles);
    };
    const AdaptiveGrid &own = job.grids.own, &across = job.grids.across;
    if (job.axes != kPartAxes) {
      add(job.axes == 1 ? across : own, (job.axes == 1 ? across : own).tiles());
      return;
    }
    add(job.grids.of_part({}, 0), std::max(own.tiles(), across.tiles()) / own.components);
    const std::uint64_t length = own.values / own.stride;
    if (own.kind != TileKind::line || length < 2 * kLeastFoldRow) return;
    for (const TileKind kind : {TileKind::plane, TileKind::volume})
      add(largest_folded(kind), most_folded_tiles(length));
  }
};

// Decodes a batch of frames of a group.
Status decode_some(const AdaptiveKernels& kernels, AdaptiveDecode job, const DecodeGrids& grids, cudaStream_t stream) {
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const std::uint32_t units = job.part_count() * job.most_units;
  const std::uint64_t most = std::max<std::uint64_t>(1, memory / kScratchPart / job.scratch_shape.bytes());
  std::uint32_t blocks[kTileKinds][kPlaceCount] = {}, in_rings = 0, with_scratch = 0;
  for (std::uint32_t k = 0; k < grids.count; ++k)
    for (const TilePlace place : kPlaces) {
      std::uint32_t& own = blocks[k][static_cast<std::uint32_t>(place)];
      if (job.axes != kPartAxes && !is_place_of(grids.of[k], place)) continue;
      PYF_TRY(check(kernels.resident(grids.of[k].kind, place, &own), "occupancy of the decoder"));
      own = std::min(own, units);
      if (place != TilePlace::rings) {
        own = static_cast<std::uint32_t>(std::min<std::uint64_t>(own, most));
        with_scratch = std::max(with_scratch, own);
      }
      in_rings = std::max(in_rings, own);
    }
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.next_unit, kTileKinds * kPlaceCount);
    arrays.add(job.opened, job.part_count());
    arrays.add(job.slots, std::size_t{job.part_count()} * kMostTablesOfModel * kSlotsOfTable);
    arrays.add(job.scratch, with_scratch * job.scratch_shape.bytes());
    arrays.add(job.planes, in_rings * job.plane_floats);
  }));
  PYF_TRY(check(cudaMemsetAsync(job.next_unit, 0, kTileKinds * kPlaceCount * sizeof *job.next_unit, stream),
                "cudaMemsetAsync"));
  open_adaptive_kernel<<<job.part_count(), kOpenThreads, 0, stream>>>(job);
  PYF_TRY(check(cudaGetLastError(), "launch of the kernel that reads models"));
  if (job.most_units == 0) return kOk;
  for (std::uint32_t k = 0; k < grids.count; ++k) {
    job.kind = grids.of[k].kind;
    for (const TilePlace place : kPlaces)
      if (const std::uint32_t own = blocks[k][static_cast<std::uint32_t>(place)]; own != 0)
        PYF_TRY(check(kernels.decode(job, place, own, stream), "launch of the decoder"));
  }
  return kOk;
}

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  AdaptiveDecode job = {};
  job.grids = make_part_grids(info.shape, info.value_count);
  job.axes = group(info);
  job.parts = job.axes == kPartAxes ? static_cast<std::uint32_t>(job.grids.own.components) : 1;
  for (const TileKind kind : {TileKind::line, TileKind::plane, TileKind::volume})
    job.taps[tile_kind_index(kind)] = adaptive_taps(kind);
  const DecodeGrids grids(job);
  if (grids.most_tiles >> 31 != 0)
    return fail(Code::unsupported,
                "the frame has up to %llu tiles, a device decodes fewer than 2^31: decode it on the CPU",
                static_cast<unsigned long long>(grids.most_tiles));
  // units of parts have the sizes of their heads
  std::uint32_t log2 = job.axes == kPartAxes ? 0 : kMostTilesLog2;
  for (std::size_t i = 0; i < frames.count; ++i) log2 = std::min(log2, frames.frames[i].mode);
  job.most_units = static_cast<std::uint32_t>(tile_parts(grids.most_tiles, std::uint64_t{1} << log2));
  for (std::uint32_t k = 0; k < grids.count; ++k) make_room(grids.of[k], job.scratch_shape, job.plane_floats);
  if (job.axes == kPartAxes && job.grids.across.across)
    make_room(job.grids.across, job.scratch_shape, job.plane_floats);
  job.start = start;
  job.stop = stop;
  const AdaptiveKernels& kernels = info.dtype == Dtype::f32 ? kAdaptiveKernels32 : kAdaptiveKernels64;
  const std::size_t most =
      std::min<std::size_t>(kFramesTogether, (std::size_t{1} << 31) / std::max(1u, job.most_units * job.parts));
  for (std::size_t done = 0; done < frames.count;) {
    const std::size_t here = std::min(frames.count - done, std::max<std::size_t>(most, 1));
    job.frames = frames.count == 1 ? nullptr : frames.on_device + done;
    job.only_frame = frames.frames[0];
    job.frame_count = static_cast<std::uint32_t>(here);
    PYF_TRY(decode_some(kernels, job, grids, stream));
    done += here;
  }
  return kOk;
}

}  // namespace

extern const DeviceCodec kAdaptiveDevice;
const DeviceCodec kAdaptiveDevice{encode_adaptive, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
