// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo on a device (lorenzo/cuda/driver.cuh): the sequence of its kernels, and the memory that they share.
#include "lorenzo/cuda/driver.cuh"

#include <algorithm>
#include <memory>
#include <new>

#include "core/cuda/side_stream.cuh"
#include "core/cuda/sizes.cuh"
#include "core/error_text.hpp"
#include "stages/cuda/packed/batch.cuh"
#include "stages/packed/choose.hpp"

namespace pyfilter::cuda {

namespace {

// The most tiles encoded together: their residuals and streams take four times the memory of their values.
constexpr std::uint64_t kMostStreamTiles = usual_size(std::uint64_t{1} << 17, 24);
// The most tiles decoded together where residuals wait in memory: these take 1.25 times the memory of their values, and
// at most this part of the device's. A multiple of the tiles of a group.
constexpr std::uint64_t kMemoryPart = 16;
constexpr std::uint64_t kMostResidualTiles = usual_size(std::uint64_t{1} << 17, kMostGroupTiles);
static_assert(kMostResidualTiles % kMostGroupTiles == 0);

// Adds the arrays of chunks encoded together, `tiles` in all; returns the bytes from the start on that must be 0.
std::size_t lay_out(Arrays& arrays, StreamParams& job, std::size_t chunks, std::size_t tiles) {
  arrays.add(job.more_units, chunks);
  arrays.add(job.counts, chunks);
  const std::size_t zeroed = arrays.bytes();
  arrays.add(job.models, chunks);
  arrays.add(job.groups, tiles);
  arrays.add(job.notes, tiles);
  arrays.add(job.residuals, tiles * residual_slot(job.value_size));
  arrays.add(job.specials, tiles * special_slot(job.value_size));
  arrays.add(job.streams, tiles * stream_slot(job.value_size));
  return zeroed;
}

// Chunks encoded together, and the slots of each.
struct StreamRun {
  std::uint32_t first = 0, count = 0;
  std::uint64_t slots = 0;  // of tiles; 0: no chunk of the run has a stream
  bool shapes[kColumns + 1] = {};
};

// Divides a batch into runs. For an array with three columns, say, a tile of columns holds many times as many values as
// a plane. Then the memory of a chunk depends on its predictor.
class StreamRuns {
 public:
  StreamRuns(const StreamParams& job, const bool* open_shapes) : job_(job) {
    std::uint64_t fewest = ~std::uint64_t{0};
    for (int shape = 1; shape <= kColumns; ++shape) {
      if (!open_shapes[shape]) continue;
      any_.shapes[shape] = true;
      any_.slots = std::max(any_.slots, job.grids[shape].tiles);
      fewest = std::min(fewest, job.grids[shape].tiles);
    }
    differ_ = any_.slots > 2 * fewest && any_.slots * job.base.chunks > kMostStreamTiles;
  }
  Status wait_for_predictors(cudaStream_t stream) {
    if (!differ_) return kOk;
    plans_.reset(new (std::nothrow) ChunkPlan[job_.base.chunks]);
    if (!plans_) return fail(Code::no_memory, "no memory for the plans of %u chunks", job_.base.chunks);
    return check(
        cudaMemcpyAsync(plans_.get(), job_.plans, job_.base.chunks * sizeof(ChunkPlan), cudaMemcpyDeviceToHost, stream),
        "copy of the plans");  // the copy to pageable memory waits for the stream
  }
  // The run that begins with chunk `first`.
  StreamRun run(std::uint32_t first) const {
    StreamRun run;
    if (!plans_) run = any_;
    run.first = first;
    for (std::uint32_t chunk = first; chunk < job_.base.chunks && run.count < kMostStreamChunks; ++chunk) {
      const bool coded = !plans_ || plans_[chunk].quantise != 0;
      const std::uint32_t shape = plans_ ? plans_[chunk].predictor & 0xFF : 0;
      const std::uint64_t slots = std::max(run.slots, plans_ && coded ? job_.grids[shape].tiles : 0);
      if (run.count != 0 && slots * (run.count + 1) > kMostStreamTiles) break;
      run.slots = slots;
      if (plans_ && coded) run.shapes[shape] = true;
      ++run.count;
    }
    return run;
  }
  std::size_t most_bytes() const {
    std::size_t most = 0;
    for (std::uint32_t chunk = 0; chunk < job_.base.chunks;) {
      const StreamRun next = run(chunk);
      Arrays sizes;
      StreamParams job = job_;
      lay_out(sizes, job, next.count, next.count * next.slots);
      most = std::max(most, sizes.bytes());
      chunk += next.count;
    }
    return most;
  }

 private:
  const StreamParams& job_;
  StreamRun any_;
  bool differ_ = false;
  std::unique_ptr<ChunkPlan[]> plans_;  // only if chunks can differ
};

StreamParams job_of(const StreamParams& batch, const StreamRun& run) {
  StreamParams job = batch;
  job.base.chunks = run.count;
  job.base.values += run.first * job.base.value_stride;
  job.base.frames += run.first * job.base.frame_stride;
  job.base.frame_bytes += run.first;
  job.base.raw += run.first;
  job.plans += run.first;
  job.base.plans = job.plans;
  job.slots = static_cast<std::uint32_t>(run.slots);
  return job;
}

Status encode_run(const StreamParams& params, Dtype dtype, bool pointwise, const bool* open_shapes,
                  std::uint64_t address_bits, cudaStream_t stream) {
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
      job.base.aligned = rows_aligned(job.base.grid, address_bits, job.value_size);
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
  } else {  // models are made of a sample while other tiles keep the memory busy
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

}  // namespace

Status encode_streams(const StreamParams& batch, Dtype dtype, bool pointwise, const bool* open_shapes,
                      std::uint64_t address_bits, cudaStream_t stream) {
  StreamRuns runs(batch, open_shapes);
  PYF_TRY(runs.wait_for_predictors(stream));
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(runs.most_bytes()));
  for (std::uint32_t chunk = 0; chunk < batch.base.chunks;) {
    const StreamRun run = runs.run(chunk);
    chunk += run.count;
    if (run.slots == 0) continue;
    StreamParams job = job_of(batch, run);
    Arrays arrays(workspace.data());
    const std::size_t zeroed = lay_out(arrays, job, run.count, run.count * run.slots);
    PYF_TRY(check(cudaMemsetAsync(workspace.data(), 0, zeroed, stream), "cudaMemsetAsync"));
    PYF_TRY(encode_run(job, dtype, pointwise, run.shapes, address_bits, stream));
  }
  return kOk;
}

Status decode_streams(const StreamCoder& coder, const DecodeParams& params, std::uint8_t stream_coder,
                      std::uint32_t most_units, std::uint32_t frames, cudaStream_t stream) {
  StreamDecodeParams job = {};
  if (is_rans(stream_coder) && coder.residual_bytes != 0) {
    const std::uint64_t wanted = std::uint64_t{residual_slots(params)} * frames;
    std::uint64_t memory = 0;
    PYF_TRY(device_memory(&memory));
    const std::uint64_t groups = memory / kMemoryPart / (kMostGroupTiles * coder.residual_bytes);
    job.slots = std::min({wanted, kMostResidualTiles, std::max<std::uint64_t>(1, groups) * kMostGroupTiles});
  }
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.special_count, 1);
    arrays.add(job.residual_tiles, job.slots);
    arrays.add(job.residuals, job.slots * coder.residual_bytes);
    arrays.add(job.tables, frames);
    arrays.add(job.specials, std::size_t{params.tile_count} * frames);
    arrays.add(job.repeats, is_rans(stream_coder) ? 0 : std::size_t{params.tiles} * frames);
  }));
  PYF_TRY(check(cudaMemsetAsync(job.special_count, 0, sizeof *job.special_count, stream), "cudaMemsetAsync"));
  job.base = params;
  job.frames = frames;
  PYF_TRY(check(read_tables(job, frames, stream), "launch of the table kernel"));
  return check(coder.decode(job, stream_coder, most_units, frames, stream), "launch of the stream decoder");
}

}  // namespace pyfilter::cuda
