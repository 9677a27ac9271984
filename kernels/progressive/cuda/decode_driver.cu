// SPDX-License-Identifier: BSD-3-Clause
// Decoding progressive frames on a device (progressive/cuda/driver.cuh): the sequence of kernels, and their memory.
#include "progressive/cuda/driver.cuh"

#include <algorithm>
#include <new>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "progressive/cuda/launch.cuh"
#include "progressive/device.hpp"
#include "progressive/driver.hpp"
#include "progressive/specials.hpp"

namespace pyfilter::cuda {
namespace {

// Arrays of a batch to decode that not all kernels use.
struct DecodeArrays {
  ProgressiveShared* shared;
  TileGroup* groups;
  ProgressiveFrame* frames;
  PerFrame<std::uint8_t> buffers[2];
};

void lay_out(FrameArrays& arrays, const ProgressivePlan& plan, std::size_t count, std::size_t width, bool masked,
             ProgressiveDecode& job, SpecialDecode& specials, DecodeArrays& own) {
  const auto units = static_cast<std::size_t>(plan.shared.layout.units), tiles = std::size_t{plan.tiles};
  arrays.add(own.shared, 1);
  arrays.add(own.groups, plan.groups.size());
  arrays.add(own.frames, count);
  arrays.add(job.heads, count);
  arrays.add_each(job.segments, units * 64 * sizeof(SegmentLocation));
  arrays.add_each(job.locations, tiles * static_cast<std::size_t>(most_pieces(width)) * sizeof(std::uint64_t));
  arrays.add_each(job.tops, tiles);
  arrays.add_each(job.slots, tiles * kSlotValues * width);
  arrays.add_each(job.roots, kMostRoots * width);
  for (int i = 0; i < 2; ++i) arrays.add_each(own.buffers[i], plan.buffers[i] * width);
  arrays.add_each(specials.notes, sizeof(SpecialNote));
  if (!masked) return;
  arrays.add_each(specials.piece_at, specials.pieces * sizeof(std::uint64_t));
  arrays.add_each(specials.changes, std::size_t{specials.pieces} * (kMaskPiece / 8));
  arrays.add_each(specials.mask, std::size_t{specials.rows} * specials.words * sizeof(std::uint32_t));
  arrays.add_each(specials.sums, std::size_t{specials.segments} * specials.words * sizeof(std::uint32_t));
}

SpecialDecode special_job(const ProgressiveLayout& layout, std::uint64_t start, std::uint64_t stop) {
  SpecialDecode job = {};
  const Extents g = layout.grids[0];
  job.count = g.count();
  job.start = start;
  job.stop = stop;
  job.rows = static_cast<std::uint32_t>(g.z * g.y);
  job.row = static_cast<std::uint32_t>(g.x);
  job.words = (job.row + 31) / 32;
  job.segments = (job.rows + kMaskRows - 1) / kMaskRows;
  job.pieces = static_cast<std::uint32_t>(mask_pieces(job.count));
  return job;
}

// Decodes frames that fit the memory together.
Status decode_part(const ProgressivePlan& host, const FrameInfo& info, const ProgressiveFrame* frames,
                   std::size_t count, int level, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const ProgressiveKernels* const kernels = progressive_kernels(info.dtype);
  if (kernels == nullptr) return fail(Code::internal, "progressive has no CUDA kernel for this dtype");
  const ProgressiveLayout& layout = host.shared.layout;
  const std::size_t width = dtype_bytes(info.dtype);
  SpecialDecode specials = special_job(layout, start, stop);
  const bool masked =
      std::any_of(frames, frames + count, [](const ProgressiveFrame& f) { return f.has_sentinel != 0; });
  ProgressiveDecode job = {};
  DecodeArrays own = {};
  FrameArrays sizes(count);
  lay_out(sizes, host, count, width, masked, job, specials, own);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(sizes.bytes()));
  FrameArrays arrays(count, workspace.data());
  lay_out(arrays, host, count, width, masked, job, specials, own);
  const auto copy = [&](void* to, const void* from, std::size_t bytes) {
    return bytes == 0 ? kOk
                      : check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  };
  PYF_TRY(copy(own.shared, &host.shared, sizeof host.shared));
  PYF_TRY(copy(own.groups, host.groups.data(), host.groups.size() * sizeof(TileGroup)));
  PYF_TRY(copy(own.frames, frames, count * sizeof(ProgressiveFrame)));

  job.shared = own.shared;
  job.frames = own.frames;
  job.groups = own.groups;
  job.frame_count = static_cast<std::uint32_t>(count);
  job.group_count = static_cast<std::uint32_t>(host.groups.size());
  job.tiles = host.tiles;
  job.width = static_cast<int>(width);
  job.level = level;
  job.pieces = most_pieces(width);
  PYF_TRY(check(open_frames(job, stream), "launch of the kernel for heads"));
  std::uint32_t most_tiles = 0;
  for (int u = 0; u < layout.units; ++u) most_tiles = std::max(most_tiles, layout.unit[u].tiles);
  PYF_TRY(check(find_pieces(job, static_cast<std::uint32_t>(layout.units), most_tiles, stream),
                "launch of the kernel for pieces"));
  PYF_TRY(check(decode_tiles(job, stream), "launch of the decoder of tiles"));
  std::uint32_t first_tile = host.tiles;
  for (const TileGroup& group : host.groups)
    first_tile = std::min(first_tile, host.shared.first_tile[group.unit] + group.first);
  job.tiles = host.groups.empty() ? first_tile : host.shared.first_tile[host.groups[0].unit + 1];
  PYF_TRY(check(kernels->decode_planes(job, first_tile, stream), "launch of the kernel for planes"));

  InversePass pass = {};
  pass.job = job;
  pass.start = start;
  pass.stop = stop;
  pass.in = job.roots;
  pass.from = layout.grids[layout.levels];
  if (host.passes.empty()) PYF_TRY(check(kernels->roots(pass, stream), "launch of the kernel for the coarsest grid"));
  PYF_TRY(run_passes(host, own.buffers, pass, [&](const InversePass& one, int axis, bool last) {
    return kernels->inverse(one, axis, last, stream);
  }));

  specials.job = job;
  PYF_TRY(check(make_mask(specials, masked, stream), "launch of the kernels for missing values"));
  return check(kernels->put_specials(specials, stream), "launch of the kernels for special values");
}

}  // namespace

Status decode_progressive_frames(const FrameInfo& info, const std::vector<ProgressiveFrame>& frames, int level,
                                 std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const ProgressivePlan host(info.shape, level);
  const std::size_t width = dtype_bytes(info.dtype);
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const auto bytes_of = [&](std::size_t count) {
    SpecialDecode specials = special_job(host.shared.layout, start, stop);
    ProgressiveDecode job = {};
    DecodeArrays own = {};
    FrameArrays sizes(count);
    lay_out(sizes, host, count, width, true, job, specials, own);
    return sizes.bytes();
  };
  const std::size_t each = bytes_of(2) - bytes_of(1);
  const std::size_t most =
      std::clamp<std::size_t>(memory / kFramesPart / std::max<std::size_t>(1, each), 1, kMostFrames);
  for (std::size_t first = 0; first < frames.size(); first += most) {
    const std::size_t here = std::min(most, frames.size() - first);
    PYF_TRY(decode_part(host, info, frames.data() + first, here, level, start, stop, stream));
  }
  return kOk;
}

Status check_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                              std::size_t value_bytes, FrameInfo* info, std::uint64_t* end) {
  ProgressiveSummary summary;
  PYF_TRY(frame_info(frame, available, info));
  PYF_TRY(progressive_summary(frame, available, &summary));
  std::vector<ProgressivePart> parts(summary.segments);
  PYF_TRY(progressive_parts(frame, available, level, parts.data(), summary.segments));
  if (segments > summary.segments)
    return fail(Code::invalid_argument, "%u segments asked for, the frame has %u", segments, summary.segments);
  *end = summary.prefix_bytes;
  for (std::uint32_t i = 0; i < segments; ++i) {
    if (parts[i].level < level) continue;
    *end = std::max(*end, parts[i].offset + parts[i].size);
    if (*end > available)
      return fail(Code::truncated, "truncated frame: segment %u ends at byte %llu, %zu are here", i,
                  static_cast<unsigned long long>(*end), available);
  }
  const Extents whole = extents_of(info->shape);
  const std::uint64_t every = std::uint64_t{1} << level,
                      count = tiles_along(whole.z, every) * tiles_along(whole.y, every) * tiles_along(whole.x, every);
  const std::uint64_t wanted = count * dtype_bytes(info->dtype);
  if (wanted == value_bytes) return kOk;
  return fail(Code::invalid_argument, "a buffer of %zu bytes for values, exactly %llu are decoded", value_bytes,
              static_cast<unsigned long long>(wanted));
}

ProgressiveFrame progressive_part(const FrameInfo& info, const std::uint8_t* frame, std::uint64_t bytes,
                                  std::uint8_t* values, std::uint32_t* fault, std::uint32_t segments) {
  return {frame + info.header_bytes,
          bytes - info.header_bytes,
          values,
          fault,
          info.step,
          info.sentinel,
          info.has_sentinel ? 1u : 0u,
          segments};
}

}  // namespace pyfilter::cuda

namespace pyfilter {

Status cuda_decode_progressive_part(const void* frame, std::size_t available, std::uint32_t segments,
                                    std::uint32_t level, void* values, std::size_t value_bytes, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  try {
    FrameInfo info;
    std::uint64_t end = 0;
    PYF_TRY(cuda::check_progressive_part(frame, available, segments, level, value_bytes, &info, &end));
    const std::size_t width = dtype_bytes(info.dtype);
    if (reinterpret_cast<std::uintptr_t>(values) % width != 0)
      return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", width);
    const auto on = static_cast<cudaStream_t>(stream);
    const std::size_t fault_offset = (end + 255) / 256 * 256;
    cuda::Workspace workspace(on);
    PYF_TRY(workspace.allocate(fault_offset + sizeof(std::uint32_t)));
    std::uint8_t* const memory = workspace.data();
    auto* const fault_at = reinterpret_cast<std::uint32_t*>(memory + fault_offset);
    PYF_TRY(cuda::check(cudaMemcpyAsync(memory, frame, end, cudaMemcpyHostToDevice, on), "copy to device"));
    PYF_TRY(cuda::check(cudaMemsetAsync(fault_at, 0, sizeof(std::uint32_t), on), "cudaMemsetAsync"));
    const auto one = cuda::progressive_part(info, memory, end, static_cast<std::uint8_t*>(values), fault_at, segments);
    PYF_TRY(cuda::decode_progressive_frames(info, {one}, static_cast<int>(level), 0, value_bytes / width, on));
    std::uint32_t fault = 0;
    PYF_TRY(cuda::check(cudaMemcpyAsync(&fault, fault_at, sizeof fault, cudaMemcpyDeviceToHost, on),
                        "copy of the fault word"));
    PYF_TRY(cuda::check(cudaStreamSynchronize(on), "decoding on the device"));
    return cuda_fault(fault);
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for the segments of a chunk");
  }
}

}  // namespace pyfilter
