// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks on a stream (cuda_driver.hpp): value ranges where the bound is relative, one plan a chunk,
// then a pass over all tiles for the chunks that are quantised and one for those that are not, then copies of the
// chunks that did not get smaller. What the passes find nothing to do for costs a launch.
#include <algorithm>
#include <cstring>

#include "core/api.hpp"
#include "core/cuda_driver.hpp"
#include "core/cuda_memory.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/raw_chunks.cuh"

namespace pyfilter {
namespace {

using namespace cuda;

constexpr std::size_t kMaxChunks = 32768;  // of a launch: the y dimension of a grid has 16 bits
constexpr unsigned kCopyBlocks = 2112;     // sixteen to each multiprocessor of the largest devices
constexpr unsigned kRangeBlocks = 1056;    // eight to each multiprocessor of the largest devices

// Behind the encoders: chunks that turned out not to get smaller. `all`: every chunk is raw and has no header yet.
__global__ void __launch_bounds__(kCopyThreads) store_raw_kernel(const __grid_constant__ EncodeParams job, bool all) {
  follow();
  if (!all && job.counters->raw_chunks == 0) return;
  for (std::uint32_t chunk = 0; chunk < job.chunks; ++chunk) {
    if (!all && job.raw[chunk] == 0) continue;
    if (all && blockIdx.x == 0 && threadIdx.x < 32) write_header(job, chunk, true, job.value_bytes);
    copy_bytes(job.frames + chunk * job.frame_stride + 4 * job.header_words, job.values + chunk * job.value_stride,
               job.value_bytes);
  }
}

// Offsets of a launch's parts in its workspace.
struct Layout {
  std::size_t bytes = 0;
  std::size_t counters, ranges, sums[2], zeroed, plans, raw;

  // `passes` of the encoders, over `tiles` tiles in all
  Layout(std::size_t chunks, std::size_t tiles, int passes) {
    const auto place = [&](std::size_t part) {
      const std::size_t at = bytes;
      bytes += (part + 15) / 16 * 16;
      return at;
    };
    counters = place(sizeof(Counters));
    ranges = place(chunks * sizeof(RangeKeys));
    for (int i = 0; i < 2; ++i) sums[i] = place(i < passes ? tiles * (sizeof(std::uint32_t) + sizeof(uint2)) : 0);
    zeroed = bytes;
    plans = place(chunks * sizeof(ChunkPlan));
    raw = place(chunks * sizeof(std::uint32_t));
  }
};

HeaderTemplate header_template(const Request& request, std::uint8_t codec, std::uint64_t count) {
  HeaderTemplate header = {};
  std::uint8_t bytes[4 * kMaxHeaderWords];
  const FrameInfo info = frame_template(request, codec, count);
  finish_header(info, bytes);
  std::memcpy(header.words, bytes, static_cast<std::size_t>(info.header_bytes));
  header.words[3] = 0;  // the checksum
  return header;
}

std::uint64_t row_bytes(const Grid& grid, std::size_t value_bytes) {
  return grid.block_dims == 1 ? 16 : (grid.block_dims == 2 ? 8 : 4) * value_bytes;
}

template <class T>
Status launch_plans(const PlanParams& job, std::uint32_t chunks, cudaStream_t stream) {
  if (job.quantise && job.bound_mode == Bound::relative) {
    const std::uint64_t wanted = job.count / (kPlanThreads * 16) + 1;
    const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(wanted, kRangeBlocks / chunks + 1));
    range_kernel<T><<<dim3(blocks, chunks), kPlanThreads, 0, stream>>>(job);
    PYF_TRY(check(cudaGetLastError(), "launch of the range kernel"));
  }
  return check(launch_behind(prepare_kernel<T>, chunks, kSampleThreads, 0, stream, job), "launch of the plan kernel");
}

// A batch whose chunks and tiles fit the counters of one launch.
Status encode_part(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const auto chunks = static_cast<std::uint32_t>(batch.count);
  const std::size_t width = dtype_bytes(request.dtype);
  const bool quantise = request.codec == registry::kCodecCuszp2;
  const int dims = request.parameters[1] == 0 ? 1 : request.parameters[1];
  EncodeParams job = {};
  job.grid = make_grid(request.shape, count, dims);
  job.value_bytes = count * width;
  // as cpu_driver.cpp: no room for the directory, or for anything
  const bool all_raw = job.grid.tiles >= job.value_bytes / 4 || 4 * (job.grid.tiles + 1) >= job.value_bytes;
  job.tiles = all_raw ? 0 : static_cast<std::uint32_t>(job.grid.tiles);
  job.blocks = all_raw ? 0 : static_cast<std::uint32_t>(job.grid.blocks);
  job.chunks = chunks;
  job.mode = request.parameters[0];
  job.values = static_cast<const std::uint8_t*>(batch.values);
  job.value_stride = batch.value_stride;
  job.frames = static_cast<std::uint8_t*>(batch.frames);
  job.frame_stride = batch.frame_stride;
  job.frame_bytes = batch.frame_bytes;
  const std::uint64_t row = row_bytes(job.grid, width);
  const std::uint64_t places = reinterpret_cast<std::uintptr_t>(batch.values) | (chunks > 1 ? batch.value_stride : 0);
  job.aligned = places % 16 == 0 && (dims == 1 || job.grid.nx * width % std::min<std::uint64_t>(row, 16) == 0);
  job.header_words = static_cast<std::uint32_t>(header_bytes(request.shape.rank) / 4);
  job.headers[0] = header_template(request, request.codec, count);
  job.headers[1] = quantise ? header_template(request, registry::kCodecLossless, count) : job.headers[0];
  fill_crc_powers(job.crc_powers);

  const std::size_t all_tiles = std::size_t{job.tiles} * chunks;
  const Layout layout(chunks, all_tiles, quantise ? 2 : 1);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(layout.bytes));
  std::uint8_t* const memory = workspace.data();
  PYF_TRY(check(cudaMemsetAsync(memory, 0, layout.zeroed, stream), "cudaMemsetAsync"));
  job.counters = reinterpret_cast<Counters*>(memory + layout.counters);
  auto* const plans = reinterpret_cast<ChunkPlan*>(memory + layout.plans);
  job.plans = plans;
  job.raw = reinterpret_cast<std::uint32_t*>(memory + layout.raw);
  const auto sums = [&](int pass) {
    std::uint8_t* const at = memory + layout.sums[pass];
    return TileSums{reinterpret_cast<std::uint32_t*>(at + all_tiles * sizeof(uint2)), reinterpret_cast<uint2*>(at)};
  };
  job.sums = sums(0);

  PlanParams plan = {};
  plan.bound_mode = request.bound_mode;
  plan.bound = request.bound;
  plan.has_fill = request.has_fill;
  plan.quantise = quantise;
  plan.fill = request.fill;
  plan.count = count;
  plan.values = job.values;
  plan.value_stride = job.value_stride;
  plan.ranges = reinterpret_cast<RangeKeys*>(memory + layout.ranges);
  plan.plans = plans;
  plan.raw = job.raw;
  plan.counters = job.counters;
  if (request.dtype == Dtype::f64)
    PYF_TRY(launch_plans<double>(plan, chunks, stream));
  else
    PYF_TRY(launch_plans<float>(plan, chunks, stream));

  if (!all_raw) {
    if (quantise) {
      const Coder* coder = cuda::cuszp2_coder(request.dtype, dims);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for cuszp2 with this dtype");
      PYF_TRY(check(coder->encode(job, stream), "launch of the encoder"));
      job.exact_pass = true;
      job.sums = sums(1);
    }
    const Coder* coder = cuda::lossless_coder(request.dtype, dims);
    if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for lossless with this dtype");
    PYF_TRY(check(coder->encode(job, stream), "launch of the bit-exact encoder"));
  }
  return check(launch_behind(store_raw_kernel, kCopyBlocks, kCopyThreads, 0, stream, job, all_raw),
               "launch of the copy kernel");
}

Status check_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t* count) {
  PYF_TRY(check_request(request));
  if (!value_count(request.shape, count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  const std::size_t width = dtype_bytes(request.dtype), most = max_frame_bytes(request);
  if (most == 0) return fail(Code::unsupported, "the frame would be too large");
  if (reinterpret_cast<std::uintptr_t>(batch.values) % width != 0 || batch.value_stride % width != 0)
    return fail(Code::invalid_argument, "device values and their stride must be multiples of %zu bytes", width);
  if (reinterpret_cast<std::uintptr_t>(batch.frames) % 8 != 0 || batch.frame_stride % 8 != 0)
    return fail(Code::invalid_argument, "device frames and their stride must be multiples of 8 bytes");
  if (batch.count > 1 && batch.frame_stride < most)
    return fail(Code::no_space, "%zu bytes from frame to frame, %zu may be needed", batch.frame_stride, most);
  return kOk;
}

}  // namespace

Status cuda_encode(const Request& request, const CudaEncodeBatch& batch) noexcept {
  PYF_TRY(cuda::usable());
  std::uint64_t count = 0;
  PYF_TRY(check_batch(request, batch, &count));
  const int dims = request.parameters[1] == 0 ? 1 : request.parameters[1];
  const std::uint64_t tiles = std::max<std::uint64_t>(1, make_grid(request.shape, count, dims).tiles);
  const std::size_t fitting = static_cast<std::size_t>(std::max<std::uint64_t>(1, (std::uint64_t{1} << 31) / tiles));
  for (std::size_t first = 0; first < batch.count;) {
    CudaEncodeBatch part = batch;
    part.count = std::min({batch.count - first, kMaxChunks, fitting});
    part.values = static_cast<const std::uint8_t*>(batch.values) + first * batch.value_stride;
    part.frames = static_cast<std::uint8_t*>(batch.frames) + first * batch.frame_stride;
    part.frame_bytes = batch.frame_bytes + first;
    PYF_TRY(encode_part(request, part, count));
    first += part.count;
  }
  return kOk;
}

}  // namespace pyfilter
