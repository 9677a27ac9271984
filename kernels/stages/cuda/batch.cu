// SPDX-License-Identifier: BSD-3-Clause
// Batches of chunks in tiles (batch.cuh).
#include "stages/cuda/batch.cuh"

#include "core/cuda/raw_chunks.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/plans.cuh"

namespace pyfilter::cuda {
namespace {

constexpr unsigned kCopyBlocks = 2112;  // sixteen to each multiprocessor of the largest devices

// Runs after the encoders: copies chunks that did not get smaller. `all`: every chunk is raw and has no header yet.
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

}  // namespace

TileBatch::TileBatch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                     const BatchHeaders& headers, const std::size_t (&tiles)[kMostPasses], std::size_t candidates)
    : batch_(batch),
      count_(count),
      stream_(static_cast<cudaStream_t>(batch.stream)),
      candidates_(candidates),
      workspace_(stream_) {
  job.value_bytes = count * dtype_bytes(request.dtype);
  job.chunks = static_cast<std::uint32_t>(batch.count);
  job.mode = request.parameters[0];
  job.values = static_cast<const std::uint8_t*>(batch.values);
  job.value_stride = batch.value_stride;
  job.frames = static_cast<std::uint8_t*>(batch.frames);
  job.frame_stride = batch.frame_stride;
  job.frame_bytes = batch.frame_bytes;
  job.header_words = static_cast<std::uint32_t>(header_bytes(request.shape.rank) / 4);
  job.headers[0] = header_template(headers.quantised);
  job.headers[1] = header_template(headers.exact);
  job.pointwise = request.bound_mode == Bound::pointwise_relative;
  fill_crc_powers(job.crc_powers);
  address_bits_ = reinterpret_cast<std::uintptr_t>(batch.values) | (batch.count > 1 ? batch.value_stride : 0);
  std::copy_n(tiles, kMostPasses, tiles_);
}

Status TileBatch::start(const Request& request, bool quantise) {
  RangeKeys* ranges = nullptr;
  std::size_t zeroed = 0;
  PYF_TRY(allocate_arrays(workspace_, [&](Arrays& arrays) {
    arrays.add(job.counters, 1);
    arrays.add(ranges, batch_.count);
    for (int i = 0; i < kMostPasses; ++i) {
      arrays.add(sums_[i].ends, tiles_[i]);
      arrays.add(sums_[i].sizes, tiles_[i]);
    }
    arrays.add(costs_, batch_.count * candidates_);
    zeroed = arrays.bytes();
    arrays.add(plans_, batch_.count);
    arrays.add(listed_, candidates_ != 0 ? std::size_t{kMostPasses} * batch_.count : 0);
    arrays.add(job.raw, batch_.count);
  }));
  PYF_TRY(check(cudaMemsetAsync(workspace_.data(), 0, zeroed, stream_), "cudaMemsetAsync"));
  job.plans = plans_;
  PlanParams plan = plan_params(request, count_, quantise, job);
  plan.bounds = batch_.bounds;
  plan.ranges = ranges;
  plan.plans = plans_;
  return make_plans(request.dtype, plan, job.chunks, stream_);
}

Status TileBatch::finish(bool all_raw) {
  const std::uint64_t wanted = job.value_bytes / (32 * kCopyThreads) + 1;
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(wanted, kCopyBlocks));
  return check(launch_behind(store_raw_kernel, blocks, kCopyThreads, 0, stream_, job, all_raw),
               "launch of the copy kernel");
}

}  // namespace pyfilter::cuda
