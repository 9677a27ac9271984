// SPDX-License-Identifier: BSD-3-Clause
// Adaptive on the GPU: decoding, from the host's side. There is no encoder.
#include <algorithm>

#include "adaptive/cuda/open.cuh"
#include "adaptive/cuda/params.cuh"
#include "adaptive/plan.hpp"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "stages/cuda/decode_frames.cuh"

namespace pyfilter::cuda {

extern const AdaptiveKernels kAdaptiveKernels32, kAdaptiveKernels64;

namespace {

constexpr std::uint32_t kRefinedBlocks = 528;                // each has a scratch memory
constexpr std::size_t kFramesTogether = usual_size(512, 3);  // each has tables

std::uint32_t across_of(std::uint32_t mode) { return mode & 1; }
std::uint32_t log2_of(std::uint32_t mode) { return mode >> 1; }

std::uint32_t mode(const FrameInfo& info) { return info.parameters[1] | std::uint32_t{info.parameters[2]} << 1; }
std::uint32_t group(const FrameInfo& info) { return mode(info); }
static_assert((kMostTilesLog2 << 1 | 1) < kGroupsOfCodec);

// Steps that neighbours and copies reach back, and ahead (cells.cuh).
std::uint32_t ring_steps_of(const AdaptiveGrid& grid) {
  const std::uint64_t columns = grid.kind == TileKind::volume ? tile_parts(grid.nx, grid.gx) : 0;
  const Layout l = make_layout(grid.kind, false, 1, 1, static_cast<std::uint32_t>(columns));
  const std::uint32_t back = grid.kind == TileKind::volume  ? 2 * l.period() + 4
                             : grid.kind == TileKind::plane ? 24
                                                            : 25;
  return back + l.trail + 6;
}

// Decodes some frames of a group.
Status decode_some(const AdaptiveKernels& kernels, AdaptiveDecode job, cudaStream_t stream) {
  std::uint32_t blocks[2] = {};
  for (const bool refined : {false, true}) {
    PYF_TRY(check(kernels.resident(job, refined, &blocks[refined ? 1 : 0]), "occupancy of the decoder"));
    const std::uint32_t most = refined ? kRefinedBlocks : ~0u;
    blocks[refined ? 1 : 0] = std::min({blocks[refined ? 1 : 0], most, job.frame_count * job.units});
  }
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.next_unit, 2);
    arrays.add(job.opened, job.frame_count);
    arrays.add(job.slots, std::size_t{job.frame_count} * kMostTablesOfModel * kSlotsOfTable);
    arrays.add(job.scratch, blocks[1]);
  }));
  PYF_TRY(check(cudaMemsetAsync(job.next_unit, 0, 2 * sizeof(std::uint32_t), stream), "cudaMemsetAsync"));
  open_adaptive_kernel<<<job.frame_count, kOpenThreads, 0, stream>>>(job);
  PYF_TRY(check(cudaGetLastError(), "launch of the kernel that reads models"));
  if (job.units == 0) return kOk;
  for (const bool refined : {false, true})
    PYF_TRY(check(kernels.decode(job, refined, blocks[refined ? 1 : 0], stream), "launch of the decoder"));
  return kOk;
}

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  const std::uint32_t of_group = mode(info);
  AdaptiveDecode job = {};
  job.grid = make_adaptive_grid(info.shape, info.value_count, across_of(of_group) != 0);
  job.taps = adaptive_taps(job.grid.kind);
  job.unit_tiles = 1u << log2_of(of_group);
  const std::uint64_t units = tile_parts(job.grid.tiles(), job.unit_tiles);
  if (job.grid.tiles() >> 31 != 0)
    return fail(Code::unsupported, "a frame of %llu tiles, fewer than 2^31 are decoded on a device",
                static_cast<unsigned long long>(job.grid.tiles()));
  job.units = static_cast<std::uint32_t>(units);
  job.rows = info.value_count != 0 ? job.grid.most_rows() : 1;
  job.ring_steps = ring_steps_of(job.grid);
  job.start = start;
  job.stop = stop;
  const AdaptiveKernels& kernels = info.dtype == Dtype::f32 ? kAdaptiveKernels32 : kAdaptiveKernels64;
  const std::size_t most = std::min<std::size_t>(kFramesTogether, (std::size_t{1} << 31) / std::max(1u, job.units));
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
const DeviceCodec kAdaptiveDevice{nullptr, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
