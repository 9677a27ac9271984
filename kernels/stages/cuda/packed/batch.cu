// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in packed tiles (batch.cuh).
#include "stages/cuda/packed/batch.cuh"

#include <algorithm>

#include "core/error_text.hpp"
#include "stages/cuda/header.cuh"

namespace pyfilter::cuda {
namespace {

// Runs after the choice of predictors: marks chunks whose frames would have space for the directory only.
constexpr int kMarkThreads = 32;
__global__ void __launch_bounds__(kMarkThreads)
    mark_raw_kernel(const __grid_constant__ EncodeParams job, std::uint32_t tile_shape) {
  const std::uint32_t chunk = blockIdx.x;
  if ((job.plans[chunk].predictor & 0xFF) != tile_shape) return;
  write_header(job, chunk, true, job.value_bytes);
  if (threadIdx.x != 0) return;
  job.raw[chunk] = 1;
  atomicAdd(&job.counters->raw_chunks, 1);
}

}  // namespace

TileGrids::TileGrids(const Request& request, std::uint64_t count, std::uint64_t value_bytes) {
  find_candidates(request, open);
  for (int c = 0; c < kCandidates; ++c) {
    if (!open[c]) continue;
    const int shape = predictor_at(c).tile_shape;
    grids[shape] = all[shape] = make_packed_grid(request.shape, count, shape);
    fewest = std::min(fewest, all[shape].tiles);
    if (lacks_space(all[shape].tiles, value_bytes)) grids[shape].tiles = 0;
    most_tiles = std::max(most_tiles, grids[shape].tiles);
  }
}

TileBatch packed_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                       const TileGrids& tiles, const BatchHeaders& headers) {
  std::size_t pass_tiles[kMostPasses] = {};
  for (std::uint32_t shape = 1; shape <= kColumns; ++shape)
    for (const bool exact : {false, true})
      pass_tiles[packed_pass(shape, exact)] = static_cast<std::size_t>(tiles.grids[shape].tiles) * batch.count;
  return {request, batch, count, headers, pass_tiles, kCandidates};
}

ChooseParams choose_params(const Request& request, const TileGrids& tiles, const TileBatch& batch,
                           unsigned long long* costs, bool entropy) {
  const EncodeParams& job = batch.job;
  ChooseParams choose = {};
  std::copy(std::begin(tiles.all), std::end(tiles.all), choose.grids);  // grids without space are counted, too
  std::copy(std::begin(tiles.open), std::end(tiles.open), choose.open);
  for (int shape = 1; shape <= kColumns; ++shape) {
    if (!tiles.all[shape].packed) continue;
    choose.shapes[choose.shape_count++] = static_cast<std::uint8_t>(shape);
    choose.aligned[shape] = rows_aligned(tiles.all[shape], batch.address_bits(), dtype_bytes(request.dtype));
  }
  choose.exceptions = job.exceptions;
  choose.pointwise = job.pointwise;
  choose.entropy = entropy;
  choose.asked = request.parameters[0];
  choose.count = batch.count();
  choose.chunks = job.chunks;
  choose.values = job.values;
  choose.value_stride = job.value_stride;
  choose.plans = batch.plans();
  choose.bits = costs;
  choose.counters = job.counters;
  choose.listed = batch.listed();
  return choose;
}

Status encode_packed(const Request& request, const TileGrids& tiles, const TileBatch& batch, const EncodeParams& params,
                     PackedCoder& find, bool only_exact) {
  EncodeParams job = params;
  const cudaStream_t stream = batch.stream();
  const ChooseParams choose = choose_params(request, tiles, batch, batch.costs(), false);
  PYF_TRY(check(choose_predictors(request.dtype, choose, stream), "launch of the choice of predictors"));
  const std::size_t width = dtype_bytes(request.dtype);
  for (int shape = 1; shape <= kColumns; ++shape) {
    if (!tiles.grids[shape].packed) continue;
    job.grid = tiles.grids[shape];
    job.tiles = static_cast<std::uint32_t>(job.grid.tiles);
    job.blocks = job.tiles * kPackedBlocks;
    job.aligned = rows_aligned(job.grid, batch.address_bits(), width);
    if (job.tiles == 0) {
      mark_raw_kernel<<<job.chunks, kMarkThreads, 0, stream>>>(job, static_cast<std::uint32_t>(shape));
      PYF_TRY(check(cudaGetLastError(), "launch of the marking kernel"));
      continue;
    }
    for (const bool exact : {false, true}) {
      if (only_exact && !exact) continue;
      const Coder* const coder = find(request.dtype, shape, exact, job.pointwise);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for packed tiles of this dtype");
      job.pass = packed_pass(static_cast<std::uint32_t>(shape), exact);
      job.sums = batch.sums(static_cast<int>(job.pass));
      job.listed = batch.listed() + std::size_t{job.pass} * job.chunks;
      PYF_TRY(check(coder->encode(job, stream), "launch of the encoder"));
    }
  }
  return kOk;
}

}  // namespace pyfilter::cuda
