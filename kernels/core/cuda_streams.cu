// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device (cuda_streams.cuh): the order of its kernels, and the memory that they share.
#include "core/cuda_streams.cuh"

#include <algorithm>

#include "core/cuda_side_stream.cuh"
#include "core/error_text.hpp"
#include "stages/packed/choose.hpp"

namespace pyfilter::cuda {

StreamLayout::StreamLayout(std::size_t chunks, std::size_t slots, std::size_t value_size) {
  const auto place = [&](std::size_t part) { return place_behind(bytes, part); };
  const std::size_t tiles = chunks * slots;
  shape_chunks = place((kColumns + 1) * sizeof(std::uint32_t));
  more_units = place(chunks * sizeof(std::uint32_t));
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
  std::uint64_t tiles = 0;
  const auto pass = [&](cudaError_t (*StreamCoder::*step)(const StreamParams&, cudaStream_t), cudaStream_t on,
                        const char* what) {
    for (int shape = 1; shape <= kColumns; ++shape) {
      if (!open_shapes[shape]) continue;
      const StreamCoder* coder = lorenzo_coder(dtype, shape, pointwise);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for lorenzo with this dtype");
      job.base.grid = job.grids[shape];
      job.base.tiles = static_cast<std::uint32_t>(job.base.grid.tiles);
      job.base.blocks = job.base.tiles * kPackedBlocks;
      job.base.aligned = places % 16 == 0 && (shape == kChain || job.base.grid.nx * job.value_size % 16 == 0);
      PYF_TRY(check((coder->*step)(job, on), what));
    }
    return kOk;
  };
  const auto make_residuals = [&](TilesTaken taken) {
    job.taken = taken;
    return pass(&StreamCoder::residuals, stream, "launch of the residual kernel");
  };
  const auto make_models_on = [&](cudaStream_t on) {
    PYF_TRY(pass(&StreamCoder::count, on, "launch of the counting kernel"));
    return check(make_models(job, on), "launch of the model kernel");
  };
  for (int shape = 1; shape <= kColumns; ++shape)
    if (open_shapes[shape]) tiles = std::max(tiles, job.grids[shape].tiles * job.base.chunks);
  if (tiles < kManyTiles) {
    PYF_TRY(make_residuals(TilesTaken::all));
    PYF_TRY(make_models_on(stream));
  } else {  // models are made of a sample while the memory is busy with the other tiles
    SideStream side;
    PYF_TRY(make_residuals(TilesTaken::sampled));
    PYF_TRY(side.fork(stream));
    PYF_TRY(make_models_on(side.get()));
    PYF_TRY(make_residuals(TilesTaken::others));
    PYF_TRY(side.join(stream));
  }
  PYF_TRY(pass(&StreamCoder::encode, stream, "launch of the stream encoder"));
  return check(place_groups(job, stream), "launch of the placing kernels");
}

Status decode_streams(const StreamCoder& coder, const DecodeParams& params, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream) {
  const std::size_t listed = std::size_t{params.tile_count} * frames;
  std::size_t bytes = 0;
  const auto place = [&](std::size_t part) { return place_behind(bytes, part); };
  const std::size_t count = place(sizeof(std::uint32_t)), zeroed = bytes, tables = place(frames * sizeof(FrameTables)),
                    specials = place(listed * sizeof(SpecialTile)),
                    repeats = place(stream_coder == kRans ? 0 : std::size_t{params.tiles} * frames);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(bytes));
  std::uint8_t* const room = workspace.data();
  PYF_TRY(check(cudaMemsetAsync(room + count, 0, zeroed, stream), "cudaMemsetAsync"));
  StreamDecodeParams job = {};
  job.base = params;
  job.special_count = reinterpret_cast<std::uint32_t*>(room + count);
  job.tables = reinterpret_cast<FrameTables*>(room + tables);
  job.specials = reinterpret_cast<SpecialTile*>(room + specials);
  job.repeats = room + repeats;
  PYF_TRY(check(read_tables(job, frames, stream), "launch of the table kernel"));
  return check(coder.decode(job, stream_coder, most_units, frames, stream), "launch of the stream decoder");
}

}  // namespace pyfilter::cuda
