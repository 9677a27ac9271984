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

ScratchShape scratch_shape_of(const AdaptiveGrid& grid) {
  const LargestTile tile(grid, 0);
  ScratchShape shape;
  const Layout l = make_layout(grid.kind, tile.planes, tile.rows, tile.columns);
  const Refinement r(grid.kind, tile.planes, tile.rows, tile.columns);
  shape.wave_floats = static_cast<std::uint32_t>((std::max(l.floats(), r.floats()) + 3) / 4 * 4);
  shape.masks = std::max(UnitScratch::kMaskMargin + l.steps(), r.classes() * r.steps());
  shape.cells = tile.cells();
  return shape;
}

namespace {

constexpr std::uint64_t kScratchPart = 32;  // scratch memory of thread blocks is at most 1 / 32 of the device's memory
constexpr std::size_t kFramesTogether = usual_size(512, 3);  // limits the memory of the frames' tables

std::uint32_t group(const FrameInfo& info) { return info.parameters[1]; }  // the order of axes
std::uint32_t mode(const FrameInfo& info) { return decode_mode(info.parameters[1], info.parameters[2]); }

// Decodes a batch of frames of a group.
Status decode_some(const AdaptiveKernels& kernels, AdaptiveDecode job, cudaStream_t stream) {
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const std::uint32_t units = job.frame_count * job.most_units;
  const std::uint64_t most = std::max<std::uint64_t>(1, memory / kScratchPart / job.scratch_shape.bytes());
  std::uint32_t blocks[std::size(kPlaces)] = {}, in_rings = 0, with_scratch = 0;
  for (const TilePlace place : kPlaces) {
    std::uint32_t& own = blocks[static_cast<std::uint32_t>(place)];
    if (!is_place_of(job.grid, place)) continue;
    PYF_TRY(check(kernels.resident(job.grid.kind, place, &own), "occupancy of the decoder"));
    own = std::min(own, units);
    if (place != TilePlace::rings) {
      own = static_cast<std::uint32_t>(std::min<std::uint64_t>(own, most));
      with_scratch = std::max(with_scratch, own);
    }
    in_rings = std::max(in_rings, own);
  }
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.next_unit, std::size(kPlaces));
    arrays.add(job.opened, job.frame_count);
    arrays.add(job.slots, std::size_t{job.frame_count} * kMostTablesOfModel * kSlotsOfTable);
    arrays.add(job.scratch, with_scratch * job.scratch_shape.bytes());
    arrays.add(job.planes, in_rings * job.plane_floats);
  }));
  PYF_TRY(
      check(cudaMemsetAsync(job.next_unit, 0, std::size(kPlaces) * sizeof *job.next_unit, stream), "cudaMemsetAsync"));
  open_adaptive_kernel<<<job.frame_count, kOpenThreads, 0, stream>>>(job);
  PYF_TRY(check(cudaGetLastError(), "launch of the kernel that reads models"));
  if (job.most_units == 0) return kOk;
  for (const TilePlace place : kPlaces)
    if (const std::uint32_t own = blocks[static_cast<std::uint32_t>(place)]; own != 0)
      PYF_TRY(check(kernels.decode(job, place, own, stream), "launch of the decoder"));
  return kOk;
}

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  AdaptiveDecode job = {};
  job.grid = make_adaptive_grid(info.shape, info.value_count, group(info) != 0);
  job.taps = adaptive_taps(job.grid.kind);
  if (job.grid.tiles() >> 31 != 0)
    return fail(Code::unsupported, "the frame has %llu tiles, a device decodes fewer than 2^31: decode it on the CPU",
                static_cast<unsigned long long>(job.grid.tiles()));
  for (std::size_t i = 0; i < frames.count; ++i)
    job.most_units = std::max(job.most_units, job.units_of(frames.frames[i]));
  job.scratch_shape = scratch_shape_of(job.grid);
  if (job.grid.kind == TileKind::volume) {
    const auto columns = static_cast<std::uint32_t>(tile_parts(job.grid.nx, job.grid.gx));
    job.plane_floats = PlaneWindows::floats(make_layout(TileKind::volume, 1, 1, columns).period());
  }
  job.start = start;
  job.stop = stop;
  const AdaptiveKernels& kernels = info.dtype == Dtype::f32 ? kAdaptiveKernels32 : kAdaptiveKernels64;
  const std::size_t most =
      std::min<std::size_t>(kFramesTogether, (std::size_t{1} << 31) / std::max(1u, job.most_units));
  for (std::size_t done = 0; done < frames.count;) {
    const std::size_t here = std::min(frames.count - done, std::max<std::size_t>(most, 1));
    job.frames = frames.count == 1 ? nullptr : frames.on_device + done;
    job.only_frame = frames.frames[0];
    job.frame_count = static_cast<std::uint32_t>(here);
    PYF_TRY(decode_some(kernels, job, stream));
    done += here;
  }
  return kOk;
}

}  // namespace

extern const DeviceCodec kAdaptiveDevice;
const DeviceCodec kAdaptiveDevice{encode_adaptive, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
