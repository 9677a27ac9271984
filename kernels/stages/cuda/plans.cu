// SPDX-License-Identifier: BSD-3-Clause
// Headers and plans of a batch to encode (plans.cuh).
#include "stages/cuda/plans.cuh"

#include <algorithm>
#include <cstring>

#include "core/cuda/memory.cuh"
#include "core/header.hpp"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {
namespace {

constexpr unsigned kRangeBlocks = 1056;  // eight to each multiprocessor of the largest devices

template <class T>
cudaError_t launch_ranges(const PlanParams& job, std::uint32_t chunks, cudaStream_t stream) {
  const std::uint64_t wanted = job.count / (kPlanThreads * 16) + 1;
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(wanted, kRangeBlocks / chunks + 1));
  range_kernel<T><<<dim3(blocks, chunks), kPlanThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_plans(const PlanParams& job, std::uint32_t chunks, cudaStream_t stream) {
  return launch_behind(prepare_kernel<T>, chunks, kSampleThreads, 0, stream, job);
}

}  // namespace

HeaderTemplate header_template(const FrameInfo& info) {
  HeaderTemplate header = {};
  std::uint8_t bytes[4 * kMaxHeaderWords];
  finish_header(info, bytes);
  std::memcpy(header.words, bytes, static_cast<std::size_t>(info.header_bytes));
  header.words[3] = 0;  // the checksum
  return header;
}

PlanParams plan_params(const Request& request, std::uint64_t count, bool quantise, const EncodeParams& job) {
  PlanParams plan = {};
  plan.bound_mode = request.bound_mode;
  plan.bound = request.bound;
  plan.has_fill = request.has_fill;
  plan.quantise = quantise;
  plan.fill = request.fill;
  plan.without_zeros = request.without_zeros;
  plan.count = count;
  plan.values = job.values;
  plan.value_stride = job.value_stride;
  plan.raw = job.raw;
  plan.counters = job.counters;
  return plan;
}

Status find_ranges(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream) {
  if (!job.quantise || job.bound_mode != Bound::relative) return kOk;
  return check(
      dtype == Dtype::f64 ? launch_ranges<double>(job, chunks, stream) : launch_ranges<float>(job, chunks, stream),
      "launch of the range kernel");
}

Status make_plans(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream) {
  PYF_TRY(find_ranges(dtype, job, chunks, stream));
  return check(
      dtype == Dtype::f64 ? launch_plans<double>(job, chunks, stream) : launch_plans<float>(job, chunks, stream),
      "launch of the plan kernel");
}

}  // namespace pyfilter::cuda
