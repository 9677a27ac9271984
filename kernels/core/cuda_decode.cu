// SPDX-License-Identifier: BSD-3-Clause
// Decoding batches of frames on a stream (cuda_driver.hpp): frames are sorted by codec and block dimensions, one launch
// each; raw ones are copied.
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "core/api.hpp"
#include "core/cuda_driver.hpp"
#include "core/cuda_memory.cuh"
#include "core/cuda_progressive.cuh"
#include "core/cuda_streams.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/plan.hpp"
#include "core/request.hpp"
#include "stages/cuda/directory.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/raw_chunks.cuh"

namespace pyfilter {
namespace {

using namespace cuda;

constexpr std::size_t kMaxCopies = 32768;                      // of a launch: the y dimension of a grid has 16 bits
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

struct RawCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};
__global__ void __launch_bounds__(kCopyThreads) load_raw_kernel(const RawCopy* copies) {
  const RawCopy copy = copies[blockIdx.y];
  copy_bytes(copy.to, copy.from, copy.bytes);
}

// Frames of one codec and block dimensions, or tile shape; of lorenzo, of one coder too.
struct Group {
  const Coder* coder = nullptr;
  const StreamCoder* streams = nullptr;
  std::uint8_t stream_coder = 0;
  std::uint64_t most_units = 0;
  Grid grid;
  std::vector<DecodeFrame> frames;
};

struct Sorted {
  FrameInfo first;  // of the batch: all others have its shape and dtype
  std::array<Group, 36> groups;
  std::vector<RawCopy> copies;
  std::vector<ProgressiveFrame> progressive;
};

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

// The kernels of a group; `info` is one of its frames.
Status find_coders(const FrameInfo& info, const Grid& grid, Group& group) {
  const int dims = grid.block_dims;
  group.grid = grid;
  if (info.codec == registry::kCodecLorenzo) {
    group.streams = cuda::lorenzo_coder(info.dtype, dims, info.pointwise);
    group.stream_coder = info.parameters[1];
    const std::uint64_t unit = std::uint64_t{1} << info.parameters[3];
    group.most_units = std::max(group.most_units, grid.tiles / unit + 1);
  } else {
    group.coder = grid.packed ? cuda::hierarchical_delta_coder(info.dtype, dims, info.step == 0, info.pointwise)
                  : info.codec == registry::kCodecParticles ? cuda::particles_coder(info.dtype, dims)
                  : info.codec == registry::kCodecCuszp2    ? cuda::cuszp2_coder(info.dtype, dims)
                                                            : cuda::lossless_coder(info.dtype, dims);
  }
  if (group.coder == nullptr && group.streams == nullptr)
    return fail(Code::internal, "codec %d has no CUDA kernel for dtype %d", info.codec, static_cast<int>(info.dtype));
  return kOk;
}

Status sort_frames(const CudaFrame* frames, std::size_t count, std::uint64_t start, std::uint64_t stop,
                   std::size_t value_bytes, std::uint32_t* faults, Sorted& sorted) {
  for (std::size_t i = 0; i < count; ++i) {
    FrameInfo info;
    PYF_TRY(frame_info(frames[i].header, frames[i].header_bytes, &info));
    if (i == 0) sorted.first = info;
    if (!same_array(info, sorted.first))
      return fail(Code::invalid_argument, "frame %zu of a batch has another shape or dtype than frame 0", i);
    PYF_TRY(check_decode(info, frames[i].frame_bytes, start, stop, value_bytes));
    const std::size_t width = dtype_bytes(info.dtype);
    if (reinterpret_cast<std::uintptr_t>(frames[i].values) % width != 0)
      return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", width);
    if (reinterpret_cast<std::uintptr_t>(frames[i].frame) % 4 != 0)
      return fail(Code::invalid_argument, "device frames must be at a multiple of 4 bytes");
    const auto* payload = static_cast<const std::uint8_t*>(frames[i].frame) + info.header_bytes;
    auto* const out = static_cast<std::uint8_t*>(frames[i].values);
    if (!on_devices(info.codec, info.dtype) && !info.stored_raw)
      return fail(Code::unsupported, "%s of %s has no CUDA kernels: decode to host memory",
                  find_codec(info.codec)->name, dtype_name(info.dtype));
    if (info.stored_raw) {
      sorted.copies.push_back({payload + start * width, out, value_bytes});
      continue;
    }
    if (info.codec == registry::kCodecProgressive) {
      sorted.progressive.push_back({payload, info.frame_bytes - info.header_bytes, out, faults + i, info.step,
                                    info.sentinel, info.has_sentinel ? 1u : 0u, kAllSegments});
      continue;
    }
    const Grid grid = grid_of(info);
    Group& group = sorted.groups[group_of(info, grid)];
    PYF_TRY(find_coders(info, grid, group));
    DecodeFrame frame = {};
    frame.payload = payload;
    frame.payload_bytes = info.frame_bytes - info.header_bytes;
    frame.out = out;
    frame.fault = faults + i;
    frame.bound = info.bound;
    frame.step = info.step;
    frame.sentinel = info.sentinel;
    frame.has_sentinel = info.has_sentinel ? 1 : 0;
    frame.mode = info.parameters[grid.packed ? 2 : 0];
    if (group.streams != nullptr)
      frame.mode = DecodeFrame::stream_mode(info.parameters[2], info.parameters[1], info.parameters[3]);
    group.frames.push_back(frame);
  }
  return kOk;
}

Status launch_group(const Group& group, const FrameInfo& info, std::uint64_t start, std::uint64_t stop,
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
  for (const DecodeFrame& frame : group.frames)
    job.aligned = job.aligned && reinterpret_cast<std::uintptr_t>(frame.out) % 16 == 0;
  std::size_t done = 0;
  const std::size_t most = job.tile_count == 0 ? kMaxCopies
                           : group.streams != nullptr
                               ? std::min<std::size_t>(kMostStreamChunks, (std::size_t{1} << 26) / job.tile_count + 1)
                               : (std::size_t{1} << 30) / job.tile_count + 1;
  while (done < group.frames.size()) {
    const std::size_t here = std::min({group.frames.size() - done, most, kMaxCopies});
    job.frames = group.frames.size() == 1 ? nullptr : on_device + done;
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

Status launch_all(const Sorted& sorted, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  std::size_t frames = 0;
  for (const Group& group : sorted.groups)
    if (group.frames.size() > 1) frames += group.frames.size();
  const std::size_t frame_bytes = frames * sizeof(DecodeFrame), copy_bytes = sorted.copies.size() * sizeof(RawCopy);
  Workspace workspace(stream);
  if (frame_bytes + copy_bytes != 0) PYF_TRY(workspace.allocate(frame_bytes + copy_bytes));
  auto* on_device = reinterpret_cast<DecodeFrame*>(workspace.data());
  for (const Group& group : sorted.groups) {
    if (group.frames.empty()) continue;
    if (group.frames.size() > 1)
      PYF_TRY(check(cudaMemcpyAsync(on_device, group.frames.data(), group.frames.size() * sizeof(DecodeFrame),
                                    cudaMemcpyHostToDevice, stream),
                    "cudaMemcpyAsync"));
    PYF_TRY(launch_group(group, sorted.first, start, stop, on_device, stream));
    if (group.frames.size() > 1) on_device += group.frames.size();
  }
  if (!sorted.progressive.empty())
    PYF_TRY(decode_progressive_frames(sorted.first, sorted.progressive, 0, start, stop, stream));
  if (copy_bytes == 0 || start == stop) return kOk;
  auto* const copies = reinterpret_cast<RawCopy*>(workspace.data() + frame_bytes);
  PYF_TRY(check(cudaMemcpyAsync(copies, sorted.copies.data(), copy_bytes, cudaMemcpyHostToDevice, stream),
                "cudaMemcpyAsync"));
  for (std::size_t done = 0; done < sorted.copies.size(); done += kMaxCopies) {
    const auto here = static_cast<unsigned>(std::min(sorted.copies.size() - done, kMaxCopies));
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
    Sorted sorted;
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
