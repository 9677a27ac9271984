// SPDX-License-Identifier: BSD-3-Clause
// Reading and sorting the frames of a batch (core/cuda/frames.cuh), by several threads where there are many: a header takes
// 80 ns, as long as the device takes for the values of a small chunk.
#include "core/cuda/frames.cuh"

#include <algorithm>
#include <atomic>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

namespace pyfilter::cuda {
namespace {

constexpr std::size_t kPiece = 128;  // frames that a thread reads at a time
constexpr std::size_t kGroups = std::tuple_size_v<decltype(SortedFrames::groups)>;
// of frames that no group has
constexpr std::uint8_t kRaw = kGroups, kProgressive = kGroups + 1;

bool same_array(const FrameInfo& a, const FrameInfo& b) {
  return a.dtype == b.dtype && a.shape.rank == b.shape.rank &&
         std::equal(a.shape.dims.begin(), a.shape.dims.begin() + a.shape.rank, b.shape.dims.begin());
}

// Which frames go together.
std::size_t group_of(const FrameInfo& info, const Grid& grid) {
  const auto dims = static_cast<std::size_t>(grid.block_dims);
  if (info.codec == registry::kCodecLorenzo)
    return 17 + dims + (info.pointwise ? 4 : 0) + (info.parameters[1] == kRans ? 0 : 8);
  if (info.codec == registry::kCodecParticles) return 32 + dims;
  if (grid.packed) return 5 + dims + (info.step == 0 ? 4 : info.pointwise ? 8 : 0);
  return dims - 1 + (info.codec == registry::kCodecCuszp2 ? 3 : 0);
}

// The batch, and what its headers say.
struct Reading {
  const CudaFrame* given;
  std::size_t count;
  std::uint64_t start, stop;
  std::size_t value_bytes;
  std::uint32_t* faults;
  const FrameInfo* first;
  DecodeFrame* frames;
  std::uint8_t* kinds;  // numbers of groups, and the two above
  std::atomic<std::size_t> failed;

  Status read(std::size_t i) {
    const CudaFrame& one = given[i];
    FrameInfo info;
    PYF_TRY(frame_info(one.header, one.header_bytes, &info));
    if (!same_array(info, *first))
      return fail(Code::invalid_argument, "frame %zu of a batch has another shape or dtype than frame 0", i);
    PYF_TRY(check_decode(info, one.frame_bytes, start, stop, value_bytes));
    const std::size_t width = dtype_bytes(info.dtype);
    if (reinterpret_cast<std::uintptr_t>(one.values) % width != 0)
      return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", width);
    if (reinterpret_cast<std::uintptr_t>(one.frame) % 4 != 0)
      return fail(Code::invalid_argument, "device frames must be at a multiple of 4 bytes");
    if (!on_devices(info.codec, info.dtype) && !info.stored_raw)
      return fail(Code::unsupported, "%s of %s has no CUDA kernels: decode to host memory",
                  find_codec(info.codec)->name, dtype_name(info.dtype));
    DecodeFrame& frame = frames[i];
    frame.payload = static_cast<const std::uint8_t*>(one.frame) + info.header_bytes;
    frame.payload_bytes = info.frame_bytes - info.header_bytes;
    frame.out = static_cast<std::uint8_t*>(one.values);
    frame.fault = faults + i;
    frame.bound = info.bound;
    frame.step = info.step;
    frame.sentinel = info.sentinel;
    frame.has_sentinel = info.has_sentinel ? 1 : 0;
    frame.mode = 0;
    if (info.stored_raw) {
      kinds[i] = kRaw;
    } else if (info.codec == registry::kCodecProgressive) {
      kinds[i] = kProgressive;
    } else {
      const Grid grid = grid_of(info);
      kinds[i] = static_cast<std::uint8_t>(group_of(info, grid));
      frame.mode = info.codec == registry::kCodecLorenzo
                       ? DecodeFrame::stream_mode(info.parameters[2], info.parameters[1], info.parameters[3])
                       : info.parameters[grid.packed ? 2 : 0];
    }
    return kOk;
  }

  static void read_piece(void* context, std::uint64_t piece) noexcept {
    auto& all = *static_cast<Reading*>(context);
    const std::size_t begin = static_cast<std::size_t>(piece) * kPiece;
    for (std::size_t i = begin; i < std::min(begin + kPiece, all.count); ++i) {
      if (all.read(i).ok()) continue;
      std::size_t before = all.failed;
      while (i < before && !all.failed.compare_exchange_weak(before, i)) continue;
      return;
    }
  }
};

// The kernels of a group; `info` is one of its frames.
Status find_coders(const FrameInfo& info, FrameGroup& group) {
  group.grid = grid_of(info);
  const Grid& grid = group.grid;
  const int dims = grid.block_dims;
  if (info.codec == registry::kCodecLorenzo) {
    group.streams = lorenzo_coder(info.dtype, dims, info.pointwise);
    group.stream_coder = info.parameters[1];
    for (std::size_t i = 0; i < group.count; ++i)
      group.most_units =
          std::max(group.most_units, grid.tiles / (std::uint64_t{1} << group.frames[i].group_log2()) + 1);
  } else {
    group.coder = grid.packed ? hierarchical_delta_coder(info.dtype, dims, info.step == 0, info.pointwise)
                  : info.codec == registry::kCodecParticles ? particles_coder(info.dtype, dims)
                  : info.codec == registry::kCodecCuszp2    ? cuszp2_coder(info.dtype, dims)
                                                            : lossless_coder(info.dtype, dims);
  }
  if (group.coder == nullptr && group.streams == nullptr)
    return fail(Code::internal, "codec %d has no CUDA kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
  return kOk;
}

}  // namespace

Status sort_frames(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted) {
  PYF_TRY(frame_info(frames[0].header, frames[0].header_bytes, &sorted.first));
  std::unique_ptr<DecodeFrame[]> found(new DecodeFrame[count]);
  const std::unique_ptr<std::uint8_t[]> kinds(new std::uint8_t[count]);
  Reading all{frames, count, start, stop, value_bytes, faults, &sorted.first, found.get(), kinds.get(), {count}};
  const std::size_t pieces = (count + kPiece - 1) / kPiece;
  parallel_for(pieces > 2 ? resolved_threads() : 1, pieces, Reading::read_piece, &all);
  if (all.failed < count) return all.read(all.failed);  // the text of an error is of the thread that made it

  std::size_t places[kGroups + 2] = {}, numbers[kGroups + 2];  // frames of each kind, and one of them
  for (std::size_t i = 0; i < count; ++i) {
    ++places[kinds[i]];
    numbers[kinds[i]] = i;
  }
  if (places[kinds[0]] == count) {
    sorted.all = std::move(found);
  } else {
    sorted.all.reset(new DecodeFrame[count]);
    std::size_t next[kGroups + 2], begin = 0;
    for (std::size_t kind = 0; kind < kGroups + 2; ++kind) {
      next[kind] = begin;
      begin += places[kind];
    }
    for (std::size_t i = 0; i < count; ++i) sorted.all[next[kinds[i]]++] = found[i];
  }
  const DecodeFrame* frame = sorted.all.get();
  for (std::size_t kind = 0; kind < kGroups; ++kind) {
    if (places[kind] == 0) continue;
    FrameGroup& group = sorted.groups[kind];
    group.frames = frame;
    group.count = places[kind];
    frame += group.count;
    FrameInfo info;
    PYF_TRY(frame_info(frames[numbers[kind]].header, frames[numbers[kind]].header_bytes, &info));
    PYF_TRY(find_coders(info, group));
  }
  sorted.copies.reserve(places[kRaw]);
  const std::size_t skipped = start * dtype_bytes(sorted.first.dtype);
  for (std::size_t i = 0; i < places[kRaw]; ++i, ++frame)
    sorted.copies.push_back({frame->payload + skipped, frame->out, value_bytes});
  sorted.progressive.reserve(places[kProgressive]);
  for (std::size_t i = 0; i < places[kProgressive]; ++i, ++frame)
    sorted.progressive.push_back({frame->payload, frame->payload_bytes, frame->out, frame->fault, frame->step,
                                  frame->sentinel, frame->has_sentinel, kAllSegments});
  return kOk;
}

}  // namespace pyfilter::cuda
