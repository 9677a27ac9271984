// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks in block tiles (block_batch.cuh): a pass over quantised chunks, and a pass over bit-exact
// chunks.
#include "stages/cuda/block_batch.cuh"

#include <algorithm>

#include "core/error_text.hpp"

namespace pyfilter::cuda {
namespace {

std::uint64_t row_bytes(const Grid& grid, std::size_t value_bytes) {
  return grid.block_dims == 1 ? 16 : (grid.block_dims == 2 ? 8 : 4) * value_bytes;
}

Status encode_part(const Request& request, const CudaEncodeBatch& part, std::uint64_t count,
                   const BatchHeaders& headers, const Grid& grid, FindCoder* quantised, FindCoder& exact) {
  const std::size_t width = dtype_bytes(request.dtype);
  const bool all_raw = count == 0 || lacks_space(grid.tiles, count * width);
  const std::size_t tiles = all_raw ? 0 : static_cast<std::size_t>(grid.tiles) * part.count;
  TileBatch batch(request, part, count, headers, {tiles, quantised != nullptr ? tiles : 0}, 0);
  PYF_TRY(batch.start(request, quantised != nullptr));
  if (all_raw) return batch.finish(true);
  EncodeParams& job = batch.job;
  job.grid = grid;
  job.tiles = static_cast<std::uint32_t>(grid.tiles);
  job.blocks = static_cast<std::uint32_t>(grid.blocks);
  const int dims = grid.block_dims;
  job.aligned = batch.address_bits() % 16 == 0 &&
                (dims == 1 || grid.nx * width % std::min<std::uint64_t>(row_bytes(grid, width), 16) == 0);
  job.sums = batch.sums(0);
  if (quantised != nullptr) {
    const Coder* const coder = quantised(request.dtype, dims);
    if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for quantised blocks of this dtype");
    PYF_TRY(check(coder->encode(job, batch.stream()), "launch of the encoder"));
    job.exact_pass = true;
    job.sums = batch.sums(1);
  }
  const Coder* const coder = exact(request.dtype, dims);
  if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for blocks of this dtype");
  PYF_TRY(check(coder->encode(job, batch.stream()), "launch of the bit-exact encoder"));
  return batch.finish(false);
}

}  // namespace

Status encode_block_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count,
                          const BatchHeaders& headers, FindCoder* quantised, FindCoder& exact) {
  const Grid grid = make_grid(request.shape, count, request.parameters[1] == 0 ? 1 : request.parameters[1]);
  const std::uint64_t tiles = lacks_space(grid.tiles, count * dtype_bytes(request.dtype)) ? 0 : grid.tiles;
  return encode_in_parts(batch, std::max<std::uint64_t>(1, tiles), [&](const CudaEncodeBatch& part) {
    return encode_part(request, part, count, headers, grid, quantised, exact);
  });
}

}  // namespace pyfilter::cuda
