// SPDX-License-Identifier: BSD-3-Clause
// Reads and sorts the frames of a batch (frames.cuh), with several threads if there are many. Reading a header takes 80
// ns, as long as decoding a small chunk on the device.
#include "core/cuda/frames.cuh"

#include <algorithm>
#include <atomic>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

namespace pyfilter::cuda {
namespace {

constexpr std::size_t kPiece = 128;  // frames that a thread reads at a time
// Kinds of frames: a group of a codec, by the codec's id; the last kind is frames stored raw.
constexpr std::size_t kCodecIds = [] {
  std::size_t most = 0;
  for (const auto& row : registry::kCodecs) most = std::max<std::size_t>(most, row.id);
  return most + 1;
}();
constexpr std::size_t kRaw = kCodecIds * kGroupsOfCodec, kKinds = kRaw + 1;

bool same_array(const FrameInfo& a, const FrameInfo& b) {
  return a.dtype == b.dtype && a.shape.rank == b.shape.rank &&
         std::equal(a.shape.dims.begin(), a.shape.dims.begin() + a.shape.rank, b.shape.dims.begin());
}

// The batch, and the fields of its headers.
struct Reading {
  const CudaFrame* given;
  std::size_t count;
  AskedValues asked;
  std::size_t value_bytes;
  std::uint32_t* faults;
  const FrameInfo* first;
  DecodeFrame* frames;
  std::uint16_t* kinds;  // kind of each frame
  std::atomic<std::size_t> failed;

  Status read(std::size_t i) {
    const CudaFrame& one = given[i];
    FrameInfo info;
    PYF_TRY(frame_info(one.header, one.header_bytes, &info));
    if (!same_array(info, *first))
      return fail(Code::invalid_argument, "frame %zu of a batch has another shape or dtype than frame 0", i);
    if (asked.of_base) info = base_info(info);
    const std::size_t width = dtype_bytes(info.dtype);
    PYF_TRY(check_decode(info, one.frame_bytes, asked.start, asked.stop,
                         asked.of_base ? (asked.stop - asked.start) * width : value_bytes));
    if (reinterpret_cast<std::uintptr_t>(one.values) % width != 0)
      return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", width);
    if (reinterpret_cast<std::uintptr_t>(one.frame) % 4 != 0)
      return fail(Code::invalid_argument, "device frames must be at a multiple of 4 bytes");
    if (!on_devices(info) && !info.stored_raw)
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
    if (info.stored_raw) {
      frame.mode = 0;
      kinds[i] = static_cast<std::uint16_t>(kRaw);
    } else {
      const DeviceCodec& codec = *device_codec_of(info.codec);
      frame.mode = codec.mode(info);
      kinds[i] = static_cast<std::uint16_t>(info.codec * kGroupsOfCodec + codec.group(info));
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

}  // namespace

Status sort_frames(const CudaFrame* frames, std::size_t count, const FrameInfo& first, const AskedValues& asked,
                   std::size_t value_bytes, std::uint32_t* faults, SortedFrames& sorted) {
  std::unique_ptr<DecodeFrame[]> found(new DecodeFrame[count]);
  const std::unique_ptr<std::uint16_t[]> kinds(new std::uint16_t[count]);
  Reading all{frames, count, asked, value_bytes, faults, &first, found.get(), kinds.get(), {count}};
  const std::size_t pieces = (count + kPiece - 1) / kPiece;
  parallel_for(pieces > 2 ? resolved_threads() : 1, pieces, Reading::read_piece, &all);
  if (all.failed < count)
    return all.read(all.failed);  // fails again: the text of an error belongs to the thread that fails

  std::size_t counts[kKinds] = {}, numbers[kKinds];  // frames of each kind, and the number of one of them
  for (std::size_t i = 0; i < count; ++i) {
    ++counts[kinds[i]];
    numbers[kinds[i]] = i;
  }
  if (counts[kinds[0]] == count) {
    sorted.all = std::move(found);
  } else {
    sorted.all.reset(new DecodeFrame[count]);
    std::size_t next[kKinds], begin = 0;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      next[kind] = begin;
      begin += counts[kind];
    }
    for (std::size_t i = 0; i < count; ++i) sorted.all[next[kinds[i]]++] = found[i];
  }
  const DecodeFrame* frame = sorted.all.get();
  sorted.grouped = count - counts[kRaw];
  for (std::size_t kind = 0; kind < kRaw; ++kind) {
    if (counts[kind] == 0) continue;
    CodecGroup group;
    PYF_TRY(frame_info(frames[numbers[kind]].header, frames[numbers[kind]].header_bytes, &group.info));
    if (asked.of_base) group.info = base_info(group.info);
    group.codec = device_codec_of(group.info.codec);
    group.frames = frame;
    group.count = counts[kind];
    frame += group.count;
    sorted.groups.push_back(group);
  }
  sorted.copies.reserve(counts[kRaw]);
  const std::size_t width = dtype_bytes(asked.of_base ? base_dtype(first.dtype) : first.dtype);
  for (std::size_t i = 0; i < counts[kRaw]; ++i, ++frame)
    sorted.copies.push_back({frame->payload + asked.start * width, frame->out, (asked.stop - asked.start) * width});
  return kOk;
}

}  // namespace pyfilter::cuda
