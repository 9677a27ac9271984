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
    : batch_(batch), count_(count), stream_(static_cast<cudaStream_t>(batch.stream)), workspace_(stream_) {
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
  const auto add = [&](std::size_t part) { return append_array(bytes_, part, 16); };
  counters_ = add(sizeof(Counters));
  ranges_ = add(batch.count * sizeof(RangeKeys));
  for (int i = 0; i < kMostPasses; ++i) sums_[i] = add(tiles[i] * (sizeof(std::uint32_t) + sizeof(uint2)));
  costs_ = add(batch.count * candidates * sizeof(unsigned long long));
  zeroed_ = bytes_;
  plans_ = add(batch.count * sizeof(ChunkPlan));
  raw_ = add(batch.count * sizeof(std::uint32_t));
}

Status TileBatch::start(const Request& request, bool quantise) {
  PYF_TRY(workspace_.allocate(bytes_));
  std::uint8_t* const memory = workspace_.data();
  PYF_TRY(check(cudaMemsetAsync(memory, 0, zeroed_, stream_), "cudaMemsetAsync"));
  job.counters = reinterpret_cast<Counters*>(memory + counters_);
  job.plans = plans();
  job.raw = reinterpret_cast<std::uint32_t*>(memory + raw_);
  PlanParams plan = plan_params(request, count_, quantise, job);
  plan.bounds = batch_.bounds;
  plan.ranges = reinterpret_cast<RangeKeys*>(memory + ranges_);
  plan.plans = plans();
  return make_plans(request.dtype, plan, job.chunks, stream_);
}

Status TileBatch::finish(bool all_raw) {
  return check(launch_behind(store_raw_kernel, kCopyBlocks, kCopyThreads, 0, stream_, job, all_raw),
               "launch of the copy kernel");
}

TileSums TileBatch::sums(int pass) const {
  std::uint8_t* const at = workspace_.data() + sums_[pass];
  return {reinterpret_cast<std::uint32_t*>(at + tiles_[pass] * sizeof(uint2)), reinterpret_cast<uint2*>(at)};
}

unsigned long long* TileBatch::costs() const {
  return reinterpret_cast<unsigned long long*>(workspace_.data() + costs_);
}

ChunkPlan* TileBatch::plans() const { return reinterpret_cast<ChunkPlan*>(workspace_.data() + plans_); }

}  // namespace pyfilter::cuda
