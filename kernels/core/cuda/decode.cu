// SPDX-License-Identifier: BSD-3-Clause
// Decodes batches of frames on a stream (driver.hpp): one launch for each group of frames; raw frames are copied.
#include <algorithm>
#include <new>

#include "core/api.hpp"
#include "core/cuda/derived.cuh"
#include "core/cuda/driver.hpp"
#include "core/cuda/frames.cuh"
#include "core/cuda/memory.cuh"
#include "core/cuda/side_stream.cuh"
#include "core/error_text.hpp"

namespace pyfilter {
namespace {

using namespace cuda;

inline constexpr std::size_t kSideStreams = 2;

Status launch_all(SortedFrames& sorted, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  bool several = false;  // a single frame is passed as an argument of the launch
  for (const CodecGroup& group : sorted.groups) several = several || group.count > 1;
  const std::size_t frame_bytes = several ? sorted.grouped * sizeof(DecodeFrame) : 0,
                    copy_bytes = sorted.copies.size() * sizeof(ArrayCopy);
  Workspace workspace(stream);
  if (frame_bytes + copy_bytes != 0) PYF_TRY(workspace.allocate(frame_bytes + copy_bytes));
  const auto* const on_device = reinterpret_cast<const DecodeFrame*>(workspace.data());
  if (several)
    PYF_TRY(check(cudaMemcpyAsync(workspace.data(), sorted.all.get(), frame_bytes, cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync"));
  // Groups run side by side: the last thread blocks of one would leave most of the device idle.
  SideStream sides[kSideStreams] = {SideStream(Turn::as_others, Life::kept), SideStream(Turn::as_others, Life::kept)};
  const std::size_t used = std::min(kSideStreams, sorted.groups.empty() ? 0 : sorted.groups.size() - 1);
  for (std::size_t side = 0; side < used; ++side) PYF_TRY(sides[side].fork(stream));
  std::size_t number = 0;
  for (CodecGroup& group : sorted.groups) {
    group.on_device = on_device + (group.frames - sorted.all.get());
    const std::size_t on = number++ % (used + 1);
    PYF_TRY(group.codec->decode(group, start, stop, on == 0 ? stream : sides[on - 1].get()));
  }
  for (std::size_t side = 0; side < used; ++side) PYF_TRY(sides[side].join(stream));
  if (copy_bytes == 0 || start == stop) return kOk;
  return copy_arrays(sorted.copies, reinterpret_cast<ArrayCopy*>(workspace.data() + frame_bytes), stream);
}

}  // namespace

Status cuda::decode_frames(const CudaFrame* frames, std::size_t count, const FrameInfo& first, const AskedValues& asked,
                           std::size_t value_bytes, std::uint32_t* faults, cudaStream_t stream) {
  SortedFrames sorted;
  PYF_TRY(sort_frames(frames, count, first, asked, value_bytes, faults, sorted));
  return launch_all(sorted, asked.start, asked.stop, stream);
}

Status cuda_decode(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  if (count == 0) return kOk;
  try {
    const auto on = static_cast<cudaStream_t>(stream);
    FrameInfo first;
    PYF_TRY(frame_info(frames[0].header, frames[0].header_bytes, &first));
    PYF_TRY(check(cudaMemsetAsync(faults, 0, count * sizeof(std::uint32_t), on), "cudaMemsetAsync"));
    if (is_derived(first.dtype)) return decode_derived(frames, count, first, start, stop, value_bytes, faults, on);
    return decode_frames(frames, count, first, {start, stop, false}, value_bytes, faults, on);
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu frames", count);
  }
}

Status cuda_fault(std::uint32_t fault) noexcept {
  switch (static_cast<Fault>(fault)) {
    case Fault::none:
      return kOk;
    case Fault::directory:
      return fail(Code::corrupt, "corrupt frame: the directory contradicts itself or the frame's size");
    case Fault::size:
      return fail(Code::corrupt, "corrupt frame: a tile's parts do not add up to its size");
    case Fault::rate:
      return fail(Code::corrupt, "corrupt frame: a rate code that its frame does not allow");
    case Fault::padding:
      return fail(Code::corrupt, "corrupt frame: padding of a tile is not zero");
    case Fault::count:
      return fail(Code::corrupt, "corrupt frame: a block's verbatim values are not as many as its mask says");
    case Fault::tables:
      return fail(Code::corrupt, "corrupt frame: its frequencies or code lengths are invalid");
    case Fault::head:
      return fail(Code::corrupt, "corrupt frame: the head of a group of tiles is invalid");
    case Fault::state:
      return fail(Code::corrupt, "corrupt frame: a state of a stream is out of range");
    case Fault::stream:
      return fail(Code::corrupt, "corrupt frame: a stream does not end where its group does");
    case Fault::keys:
      return fail(Code::corrupt, "corrupt frame: a tile of sorted values contradicts itself");
    case Fault::wide:  // never in a fault word: another decoder takes the tile
      break;
    case Fault::segments:
      return fail(Code::corrupt, "corrupt frame: its head, a segment or special values contradict themselves");
    case Fault::list:
      return fail(Code::corrupt, "corrupt frame: an index beyond its list of values");
  }
  return fail(Code::internal, "unknown fault %u", fault);
}

}  // namespace pyfilter
