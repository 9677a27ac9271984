// SPDX-License-Identifier: BSD-3-Clause
// Decoding groups of frames in tiles (decode_frames.cuh).
#include "stages/cuda/decode_frames.cuh"

#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/tile_shape.hpp"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {
namespace {

// Checks all directory entries, for launches that decode only some of the tiles: every pair of neighbours.
inline constexpr int kDirectoryThreads = 256;
__global__ void __launch_bounds__(kDirectoryThreads) check_directory_kernel(const __grid_constant__ DecodeParams job) {
  const DecodeFrame& frame = job.frame(blockIdx.y);
  if (job.tiles == 0) {  // the directory is one word, zero
    const bool empty = frame.payload_bytes == 4 && *reinterpret_cast<const std::uint32_t*>(frame.payload) == 0;
    if (!empty && threadIdx.x == 0) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(Fault::directory));
  }
  for (std::uint32_t tile = blockIdx.x * kDirectoryThreads + threadIdx.x; tile < job.tiles;
       tile += gridDim.x * kDirectoryThreads) {
    const Fault fault = find_tile(frame, job.tiles, tile).fault;
    if (fault != Fault::none) atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
  }
}

}  // namespace

Status decode_params(const FrameGroup& group, const Grid& grid, std::uint64_t start, std::uint64_t stop,
                     DecodeParams& job) {
  job.grid = grid;
  if (job.grid.blocks >> 32 != 0)
    return fail(Code::unsupported, "the frame has %llu blocks, a device decodes at most 2^32: decode it on the CPU",
                static_cast<unsigned long long>(job.grid.blocks));
  job.tiles = static_cast<std::uint32_t>(job.grid.tiles);
  job.blocks = static_cast<std::uint32_t>(job.grid.blocks);
  std::uint64_t first = 0, last = job.grid.tiles;
  if (start < stop) tiles_of_range(job.grid, start, stop, &first, &last);
  job.first_tile = static_cast<std::uint32_t>(first);
  job.tile_count = start < stop ? static_cast<std::uint32_t>(last - first) : 0;
  job.start = start;
  job.stop = stop;
  const std::size_t width = dtype_bytes(group.info.dtype);
  const std::uint64_t row = (job.grid.block_dims == 2 ? 8 : 4) * width;
  const std::uint64_t unit = job.grid.packed ? 16 : std::min<std::uint64_t>(row, 16);
  const bool flat = job.grid.packed && job.grid.block_dims == kChain;
  job.aligned = start == 0 && stop == group.info.value_count && (flat || job.grid.nx * width % unit == 0);
  for (std::size_t i = 0; i < group.count; ++i)
    job.aligned = job.aligned && reinterpret_cast<std::uintptr_t>(group.frames[i].out) % 16 == 0;
  return kOk;
}

Status decode_tile_frames(const FrameGroup& group, const Grid& grid, const Coder* coder, std::uint64_t start,
                          std::uint64_t stop, cudaStream_t stream) {
  if (coder == nullptr) return no_kernel(group.info);
  DecodeParams params = {};
  PYF_TRY(decode_params(group, grid, start, stop, params));
  const std::size_t most =
      params.tile_count == 0 ? std::size_t{kMostOfLaunch} : (std::size_t{1} << 30) / params.tile_count + 1;
  return decode_in_parts(group, params, most, [&](const DecodeParams& job, std::uint32_t frames) {
    if (job.tile_count != job.tiles || job.tiles == 0) {
      const unsigned blocks = std::min(64u, job.tiles / kDirectoryThreads + 1);
      check_directory_kernel<<<dim3(blocks, frames), kDirectoryThreads, 0, stream>>>(job);
      PYF_TRY(check(cudaGetLastError(), "launch of the directory kernel"));
    }
    return job.tile_count != 0 ? check(coder->decode(job, frames, stream), "launch of the decoder") : kOk;
  });
}

}  // namespace pyfilter::cuda
