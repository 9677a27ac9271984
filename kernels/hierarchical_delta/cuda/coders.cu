// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the GPU: the choice of predictors. The kernels for tiles are compiled in cuda_f32.cu,
// cuda_f64.cu and, for bounds relative to each value, cuda_pointwise_*.cu, side by side.
#include "hierarchical_delta/codec.hpp"

#include <algorithm>

#include "core/cuda/sizes.cuh"
#include "stages/cuda/coder.cuh"
#include "stages/cuda/packed/choose.cuh"

namespace pyfilter::cuda {

const Coder* packed_coder_f32(int tile_shape, bool exact);
const Coder* packed_coder_f64(int tile_shape, bool exact);
const Coder* pointwise_coder_f32(int tile_shape);
const Coder* pointwise_coder_f64(int tile_shape);

// A thread a chunk: the predictor, and what the passes will find to do.
inline constexpr int kPickThreads = 128;
__global__ void __launch_bounds__(kPickThreads) pick_kernel(const __grid_constant__ ChooseParams job) {
  const std::uint32_t chunk = blockIdx.x * kPickThreads + threadIdx.x;
  if (chunk >= job.chunks) return;
  const unsigned long long* const bits = job.bits + std::size_t{chunk} * kCandidates;
  const Predictor chosen = predictor_at(best_candidate(job.open, bits, job.asked));
  ChunkPlan& plan = job.plans[chunk];
  if (plan.predictor == kNoPredictor) return;  // a chunk that is another codec's
  plan.predictor = chosen.tile_shape | std::uint32_t{chosen.order} << 16;
  atomicAdd(&job.counters->packed_chunks[packed_pass(chosen.tile_shape, plan.quantise == 0)], 1);
}

const Coder* hierarchical_delta_coder(Dtype dtype, int tile_shape, bool exact, bool pointwise) {
  if (pointwise && !exact) {
    if (dtype == Dtype::f32) return pointwise_coder_f32(tile_shape);
    if (dtype == Dtype::f64) return pointwise_coder_f64(tile_shape);
  }
  if (dtype == Dtype::f32) return packed_coder_f32(tile_shape, exact);
  if (dtype == Dtype::f64) return packed_coder_f64(tile_shape, exact);
  return nullptr;
}

cudaError_t sample_predictors(Dtype dtype, const ChooseParams& params, cudaStream_t stream) {
  ChooseParams job = params;
  const auto open = static_cast<int>(std::count(job.open, job.open + kCandidates, true));
  for (std::uint32_t done = 0; open > 1 && done < params.chunks; done += kMostOfLaunch) {
    job.first_chunk = done;
    const dim3 grid(static_cast<unsigned>(sample_count(job.count, job.entropy)), kCandidates,
                    std::min(params.chunks - done, kMostOfLaunch));
    if (dtype == Dtype::f64)
      sample_kernel<double><<<grid, kThreads, 0, stream>>>(job);
    else
      sample_kernel<float><<<grid, kThreads, 0, stream>>>(job);
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
