// SPDX-License-Identifier: BSD-3-Clause
// Decoding batches of frames on a stream (core/cuda/driver.hpp): one launch for frames that are alike; raw ones are copied.
#include <algorithm>
#include <new>

#include "core/cuda/driver.hpp"
#include "core/cuda/frames.cuh"
#include "core/cuda/memory.cuh"
#include "progressive/cuda/driver.cuh"
#include "core/cuda/sizes.cuh"
#include "lorenzo/cuda/driver.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/plan.hpp"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/raw_chunks.cuh"

namespace pyfilter {
namespace {

using namespace cuda;

constexpr std::size_t kBytesPerBlock = std::size_t{64} << 10;  // of a copy
constexpr std::size_t kMaxCopyBlocks = 2112;

// All entries, for launches that decode only some of the tiles: every pair of neighbours is looked at.
inline constexpr int kDirectoryThreads = 256;
__global__ void __launch_bounds__(kDirectoryThreads) check_directory_kernel(const __grid_constant__ DecodeParams job) {
  const DecodeFrame& frame = job.frames != nullptr ? job.frames[blockIdx.y] : job.only_frame;
  if (job.tiles == 0) {  // one word of zero
    const bool empty = frame.payload_bytes == 4 && *reinterpret_cast<const std::uint32_t*>(frame.payload) == 0;
    if (!empty && threadIdx.x == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(Fault::directory));
  }
  for (std::uint32_t tile = blockIdx.x * kDirectoryThreads + threadIdx.x; tile < job.tiles;
       tile += gridDim.x * kDirectoryThreads) {
    const Fault fault = find_tile(frame, job.tiles, tile).fault;
    if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  }
}

__global__ void __launch_bounds__(kCopyThreads) load_raw_kernel(const RawCopy* copies) {
  const RawCopy copy = copies[blockIdx.y];
  copy_bytes(copy.to, copy.from, copy.bytes);
}

Status launch_group(const FrameGroup& group, const FrameInfo& info, std::uint64_t start, std::uint64_t stop,
                    const DecodeFrame* on_device, cudaStream_t stream) {
  DecodeParams job = {};
  job.grid = group.grid;
  if (job.grid.blocks >> 32 != 0)
    return fail(Code::unsupported, "a frame of %llu blocks, at most 2^32 are decoded on a device",
                static_cast<unsigned long long>(job.grid.blocks));
  job.tiles = static_cast<std::uint32_t>(job.grid.tiles);
  job.blocks = static_cast<std::uint32_t>(job.grid.blocks);
  std::uint64_t first = 0, last = job.grid.tiles;
  if (start < stop) tiles_of_range(job.grid, start, stop, &first, &last);
  job.first_tile = static_cast<std::uint32_t>(first);
  job.tile_count = start < stop ? static_cast<std::uint32_t>(last - first) : 0;
  job.start = start;
  job.stop = stop;
  const std::size_t width = dtype_bytes(info.dtype);
  const std::uint64_t row = (job.grid.block_dims == 2 ? 8 : 4) * width;
  const std::uint64_t unit = job.grid.packed ? 16 : std::min<std::uint64_t>(row, 16);
  const bool flat = job.grid.packed && job.grid.block_dims == kChain;
  job.aligned = start == 0 && stop == info.value_count && (flat || job.grid.nx * width % unit == 0);
  for (std::size_t i = 0; i < group.count; ++i)
    job.aligned = job.aligned && reinterpret_cast<std::uintptr_t>(group.frames[i].out) % 16 == 0;
  std::size_t done = 0;
  const std::size_t most = job.tile_count == 0 ? std::size_t{kMostOfLaunch}
                           : group.streams != nullptr
                               ? std::min<std::size_t>(kMostStreamChunks, (std::size_t{1} << 26) / job.tile_count + 1)
                               : (std::size_t{1} << 30) / job.tile_count + 1;
  while (done < group.count) {
    const std::size_t here = std::min({group.count - done, most, std::size_t{kMostOfLaunch}});
    job.frames = group.count == 1 ? nullptr : on_device + done;
    job.only_frame = group.frames[0];
    if (group.streams != nullptr) {
      if (job.tile_count != 0)
        PYF_TRY(cuda::decode_streams(*group.streams, job, group.stream_coder,
                                     static_cast<std::uint32_t>(group.most_units), static_cast<std::uint32_t>(here),
                                     stream));
      done += here;
      continue;
    }
    if (job.tile_count != job.tiles || job.tiles == 0) {
      const unsigned blocks = std::min(64u, job.tiles / kDirectoryThreads + 1);
      check_directory_kernel<<<dim3(blocks, static_cast<unsigned>(here)), kDirectoryThreads, 0, stream>>>(job);
      PYF_TRY(check(cudaGetLastError(), "launch of the directory kernel"));
    }
    if (job.tile_count != 0)
      PYF_TRY(check(group.coder->decode(job, static_cast<std::uint32_t>(here), stream), "launch of the decoder"));
    done += here;
  }
  return kOk;
}

Status launch_all(const SortedFrames& sorted, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  std::size_t frames = 0;  // of the groups; alone, a frame goes with its launch
  bool several = false;
  for (const FrameGroup& group : sorted.groups) {
    frames += group.count;
    several = several || group.count > 1;
  }
  const std::size_t frame_bytes = several ? frames * sizeof(DecodeFrame) : 0,
                    copy_bytes = sorted.copies.size() * sizeof(RawCopy);
  Workspace workspace(stream);
  if (frame_bytes + copy_bytes != 0) PYF_TRY(workspace.allocate(frame_bytes + copy_bytes));
  const auto* const on_device = reinterpret_cast<const DecodeFrame*>(workspace.data());
  if (several)
    PYF_TRY(check(cudaMemcpyAsync(workspace.data(), sorted.all.get(), frame_bytes, cudaMemcpyHostToDevice, stream),
                  "cudaMemcpyAsync"));
  for (const FrameGroup& group : sorted.groups)
    if (group.count != 0)
      PYF_TRY(launch_group(group, sorted.first, start, stop, on_device + (group.frames - sorted.all.get()), stream));
  if (!sorted.progressive.empty())
    PYF_TRY(decode_progressive_frames(sorted.first, sorted.progressive, 0, start, stop, stream));
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
      return fail(Code::corrupt, "corrupt frame: its tables of frequencies or code lengths");
    case Fault::head:
      return fail(Code::corrupt, "corrupt frame: the head of a group of tiles");
    case Fault::state:
      return fail(Code::corrupt, "corrupt frame: a state of a stream is out of range");
    case Fault::stream:
      return fail(Code::corrupt, "corrupt frame: a stream does not end where its group does");
    case Fault::particles:
      return fail(Code::corrupt, "corrupt frame: a tile of particles contradicts itself");
    case Fault::wide:  // never left in a fault word: another decoder takes the tile
      break;
    case Fault::progressive:
      return fail(Code::corrupt, "corrupt frame: its head, a segment or special values contradict themselves");
  }
  return fail(Code::internal, "unknown fault %u", fault);
}

}  // namespace pyfilter
