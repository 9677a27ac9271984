// SPDX-License-Identifier: BSD-3-Clause
// Decodes batches of frames on a stream (driver.hpp): one launch for each group of frames; raw frames are copied.
#include <algorithm>
#include <new>

#include "core/cuda/driver.hpp"
#include "core/cuda/frames.cuh"
#include "core/cuda/memory.cuh"
#include "core/cuda/raw_chunks.cuh"
#include "core/cuda/sizes.cuh"
#include "core/error_text.hpp"

namespace pyfilter {
namespace {

using namespace cuda;

constexpr std::size_t kBytesPerBlock = std::size_t{64} << 10;  // that a thread block copies, about
constexpr std::size_t kMaxCopyBlocks = 2112;

__global__ void __launch_bounds__(kCopyThreads) load_raw_kernel(const RawCopy* copies) {
  const RawCopy copy = copies[blockIdx.y];
  copy_bytes(copy.to, copy.from, copy.bytes);
}

Status launch_all(SortedFrames& sorted, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  bool several = false;  // a single frame is passed as an argument of the launch
  for (const CodecGroup& group : sorted.groups) several = several || group.count > 1;
  const std::size_t frame_bytes = several ? sorted.grouped * sizeof(DecodeFrame) : 0,
                    copy_bytes = sorted.copies.size() * sizeof(RawCopy);
  Workspace workspace(stream);
  if (frame_bytes + copy_bytes != 0) PYF_TRY(workspace.allocate(frame_bytes + copy_bytes));
  const auto* const on_device = reinterpret_cast<const DecodeFrame*>(workspace.data());
  if (several)
    PYF_TRY(check(cudaMemcpyAsync(workspace.data(), sorted.all.get(), frame_bytes, cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync"));
  for (CodecGroup& group : sorted.groups) {
    group.on_device = on_device + (group.frames - sorted.all.get());
    PYF_TRY(group.codec->decode(group, start, stop, stream));
  }
  if (copy_bytes == 0 || start == stop) return kOk;
  auto* const copies = reinterpret_cast<RawCopy*>(workspace.data() + frame_bytes);
  PYF_TRY(check(cudaMemcpyAsync(copies, sorted.copies.data(), copy_bytes, cudaMemcpyHostToDevice, stream),
                "cudaMemcpyAsync"));
  for (std::size_t done = 0; done < sorted.copies.size(); done += kMostOfLaunch) {
    const auto here = static_cast<unsigned>(std::min(sorted.copies.size() - done, std::size_t{kMostOfLaunch}));
    const auto blocks =
        static_cast<unsigned>(std::clamp<std::size_t>(sorted.copies[0].bytes / kBytesPerBlock, 1, kMaxCopyBlocks));
    load_raw_kernel<<<dim3(blocks, here), kCopyThreads, 0, stream>>>(copies + done);
    PYF_TRY(check(cudaGetLastError(), "launch of the copy kernel"));
  }
  return kOk;
}

}  // namespace

Status cuda_decode(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  if (count == 0) return kOk;
  try {
    SortedFrames sorted;
    PYF_TRY(sort_frames(frames, count, start, stop, value_bytes, faults, sorted));
    const auto on = static_cast<cudaStream_t>(stream);
    PYF_TRY(check(cudaMemsetAsync(faults, 0, count * sizeof(std::uint32_t), on), "cudaMemsetAsync"));
    return launch_all(sorted, start, stop, on);
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
