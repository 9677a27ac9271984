// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on the GPU: kernels that do not depend on the type of values. The tile kernels are in f32.cu, f64.cu and, for
// bounds relative to each value, pointwise_*.cu; the residual kernels in codes_*.cu. All compile in parallel.
#include <algorithm>

#include "lorenzo/cuda/model.cuh"
#include "lorenzo/cuda/place.cuh"
#include "lorenzo/cuda/tables.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/packed/choose.cuh"

namespace pyfilter::cuda {

const StreamCoder* stream_coder_f32(int tile_shape);
const StreamCoder* stream_coder_f64(int tile_shape);
const StreamCoder* stream_coder_pointwise_f32(int tile_shape);
const StreamCoder* stream_coder_pointwise_f64(int tile_shape);

const StreamCoder* lorenzo_coder(Dtype dtype, int tile_shape, bool pointwise) {
  if (dtype == Dtype::f32) return pointwise ? stream_coder_pointwise_f32(tile_shape) : stream_coder_f32(tile_shape);
  if (dtype == Dtype::f64) return pointwise ? stream_coder_pointwise_f64(tile_shape) : stream_coder_f64(tile_shape);
  return nullptr;
}

struct PickParams {
  bool open[kCandidates];
  const unsigned long long* bits;
  int asked;
  ChunkPlan* others;
};

// One thread a chunk. Bit-exact chunks become frames of hierarchical_delta, small ones have such a frame to compete
// with; for all other chunks that codec does nothing.
inline constexpr int kPickThreads = 128;
static __global__ void __launch_bounds__(kPickThreads)
    pick_kernel(const __grid_constant__ StreamParams job, const __grid_constant__ PickParams pick) {
  const std::uint32_t chunk = blockIdx.x * kPickThreads + threadIdx.x;
  if (chunk >= job.base.chunks) return;
  const Predictor chosen =
      predictor_at(best_candidate(pick.open, pick.bits + std::size_t{chunk} * kCandidates, true, pick.asked));
  ChunkPlan& plan = job.plans[chunk];
  plan = pick.others[chunk];
  plan.predictor = chosen.tile_shape | std::uint32_t{chosen.order} << 16;
  if (plan.quantise == 0) return;
  atomicAdd(&job.shape_chunks[chosen.tile_shape], 1);
  if (job.grids[chosen.tile_shape].tiles > job.compare_tiles) pick.others[chunk].predictor = kNoPredictor;
}

cudaError_t pick_predictors(const StreamParams& job, const bool* open, const unsigned long long* bits, int asked,
                            ChunkPlan* others, cudaStream_t stream) {
  PickParams pick = {};
  std::copy(open, open + kCandidates, pick.open);
  pick.bits = bits;
  pick.asked = asked;
  pick.others = others;
  pick_kernel<<<(job.base.chunks + kPickThreads - 1) / kPickThreads, kPickThreads, 0, stream>>>(job, pick);
  return cudaGetLastError();
}

cudaError_t make_models(const StreamParams& job, cudaStream_t stream) {
  PYF_CUDA_TRY(cudaFuncSetAttribute(model_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(ModelSpace)));
  model_kernel<<<job.base.chunks, kModelThreads, sizeof(ModelSpace), stream>>>(job);
  return cudaGetLastError();
}

cudaError_t place_groups(const StreamParams& job, cudaStream_t stream) {
  place_kernel<<<job.base.chunks, kPlaceThreads, 0, stream>>>(job);
  PYF_CUDA_TRY(cudaGetLastError());
  const unsigned wanted = (job.slots + kStreamWarps - 1) / kStreamWarps;
  const unsigned blocks = std::clamp(wanted, 1u, std::max(1u, 2112u / job.base.chunks));
  copy_groups_kernel<<<dim3(blocks, job.base.chunks), kStreamThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

cudaError_t read_tables(const StreamDecodeParams& job, std::uint32_t frames, cudaStream_t stream) {
  PYF_CUDA_TRY(cudaFuncSetAttribute(table_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(TableSpace)));
  table_kernel<<<frames, kTableThreads, sizeof(TableSpace), stream>>>(job);
  return cudaGetLastError();
}

}  // namespace pyfilter::cuda
