// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device (cuda_streams.cuh): the order of its kernels, and the memory that they share.
#include "core/cuda_streams.cuh"

#include <algorithm>

#include "core/error_text.hpp"
#include "stages/packed/choose.hpp"

namespace pyfilter::cuda {

StreamLayout::StreamLayout(std::size_t chunks, std::size_t slots, std::size_t value_size) {
  const auto place = [&](std::size_t part) { return place_behind(bytes, part); };
  const std::size_t tiles = chunks * slots;
  shape_chunks = place((kColumns + 1) * sizeof(std::uint32_t));
  bits = place(chunks * kCandidates * sizeof(unsigned long long));
  counts = place(chunks * sizeof(SymbolCounts));
  zeroed = bytes;
  plans = place(chunks * sizeof(ChunkPlan));
  models = place(chunks * sizeof(StreamModel));
  groups = place(tiles * sizeof(GroupNote));
  notes = place(tiles * sizeof(TileNote));
  residuals = place(tiles * residual_slot(value_size));
  specials = place(tiles * special_slot(value_size));
  streams = place(tiles * stream_slot(value_size));
}

Status encode_streams(const StreamParams& params, Dtype dtype, bool pointwise, const bool* open_shapes,
                      std::uint64_t places, cudaStream_t stream) {
  StreamParams job = params;
  const auto pass = [&](cudaError_t (*StreamCoder::*step)(const StreamParams&, cudaStream_t), const char* what) {
    for (int shape = 1; shape <= kColumns; ++shape) {
      if (!open_shapes[shape]) continue;
      const StreamCoder* coder = lorenzo_coder(dtype, shape, pointwise);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for lorenzo with this dtype");
      job.base.grid = job.grids[shape];
      job.base.tiles = static_cast<std::uint32_t>(job.base.grid.tiles);
      job.base.blocks = job.base.tiles * kPackedBlocks;
      job.base.aligned = places % 16 == 0 && (shape == kChain || job.base.grid.nx * job.value_size % 16 == 0);
      PYF_TRY(check((coder->*step)(job, stream), what));
    }
    return kOk;
  };
  PYF_TRY(pass(&StreamCoder::residuals, "launch of the residual kernel"));
  PYF_TRY(pass(&StreamCoder::count, "launch of the counting kernel"));
  PYF_TRY(check(make_models(job, stream), "launch of the model kernel"));
  PYF_TRY(pass(&StreamCoder::encode, "launch of the stream encoder"));
  return check(place_groups(job, stream), "launch of the placing kernels");
}

Status decode_streams(const StreamCoder& coder, const DecodeParams& params, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream) {
  const std::size_t table_bytes = (frames * sizeof(FrameTables) + 255) / 256 * 256;
  const std::size_t specials = std::size_t{params.tile_count} * frames;
  constexpr std::size_t kCountBytes = 256;
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(kCountBytes + table_bytes + specials * sizeof(SpecialTile)));
  PYF_TRY(check(cudaMemsetAsync(workspace.data(), 0, kCountBytes, stream), "cudaMemsetAsync"));
  StreamDecodeParams job = {};
  job.base = params;
  job.special_count = reinterpret_cast<std::uint32_t*>(workspace.data());
  job.tables = reinterpret_cast<FrameTables*>(workspace.data() + kCountBytes);
  job.specials = reinterpret_cast<SpecialTile*>(workspace.data() + kCountBytes + table_bytes);
  PYF_TRY(check(read_tables(job, frames, stream), "launch of the table kernel"));
  return check(coder.decode(job, stream_coder, most_units, frames, stream), "launch of the stream decoder");
}

}  // namespace pyfilter::cuda
