// SPDX-License-Identifier: BSD-3-Clause
// The choice of predictors on the GPU (choose.cuh).
#include "stages/cuda/packed/choose.cuh"

#include <algorithm>

#include "core/cuda/sizes.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

// One thread a chunk: chooses the predictor, and counts the chunks of each pass.
constexpr int kPickThreads = 128;
static __global__ void __launch_bounds__(kPickThreads) pick_kernel(const __grid_constant__ ChooseParams job) {
  const std::uint32_t chunk = blockIdx.x * kPickThreads + threadIdx.x;
  if (chunk >= job.chunks) return;
  const unsigned long long* const bits = job.bits + std::size_t{chunk} * kCandidates;
  const Predictor chosen = predictor_at(best_candidate(job.open, bits, job.entropy, job.asked));
  ChunkPlan& plan = job.plans[chunk];
  if (plan.predictor == kNoPredictor) return;  // the chunk belongs to another codec
  plan.predictor = chosen.tile_shape | std::uint32_t{chosen.order} << 16;
  const std::uint32_t pass = packed_pass(chosen.tile_shape, plan.quantise == 0);
  job.listed[std::size_t{pass} * job.chunks + atomicAdd(&job.counters->packed_chunks[pass], 1)] = chunk;
}

cudaError_t sample_predictors(Dtype dtype, const ChooseParams& params, cudaStream_t stream) {
  ChooseParams job = params;
  const auto open = static_cast<int>(std::count(job.open, job.open + kCandidates, true));
  for (std::uint32_t done = 0; open > 1 && done < params.chunks; done += kMostOfLaunch) {
    job.first_chunk = done;
    const dim3 grid(static_cast<unsigned>(sample_count(job.count, job.entropy)), job.shape_count,
                    std::min(params.chunks - done, kMostOfLaunch));
    const auto kernel = dtype == Dtype::f64 ? (job.entropy ? sample_kernel<double, true> : sample_kernel<double, false>)
                                            : (job.entropy ? sample_kernel<float, true> : sample_kernel<float, false>);
    kernel<<<grid, kThreads, 0, stream>>>(job);
    PYF_CUDA_TRY(cudaGetLastError());
  }
  return cudaSuccess;
}

cudaError_t choose_predictors(Dtype dtype, const ChooseParams& params, cudaStream_t stream) {
  PYF_CUDA_TRY(sample_predictors(dtype, params, stream));
  pick_kernel<<<(params.chunks + kPickThreads - 1) / kPickThreads, kPickThreads, 0, stream>>>(params);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
