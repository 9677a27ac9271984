// SPDX-License-Identifier: BSD-3-Clause
// Encoding batches of chunks on a stream (core/cuda/driver.hpp): value ranges where the bound is relative, one plan a chunk,
// then a pass over all tiles for the chunks that are quantised and one for those that are not, then copies of the
// chunks that did not get smaller. What the passes find nothing to do for costs a launch.
#include <algorithm>
#include <cstring>

#include "core/api.hpp"
#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "particles/cuda/driver.cuh"
#include "core/cuda/plans.cuh"
#include "progressive/cuda/driver.cuh"
#include "core/cuda/sizes.cuh"
#include "lorenzo/cuda/driver.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/launch.cuh"
#include "stages/cuda/packed/choose.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/raw_chunks.cuh"

namespace pyfilter {
namespace {

using namespace cuda;

constexpr unsigned kCopyBlocks = 2112;  // sixteen to each multiprocessor of the largest devices

// Behind the encoders: chunks that turned out not to get smaller. `all`: every chunk is raw and has no header yet.
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

// Behind the choice of predictors: chunks whose tiles would leave no room for anything but the directory.
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

constexpr int kMostPasses = 8;

// Offsets of a launch's parts in its workspace.
struct Layout {
  std::size_t bytes = 0;
  std::size_t counters, ranges, sums[kMostPasses], bits, zeroed, plans, raw;

  // Passes of the encoders over so many tiles in all; `candidates` among predictors
  Layout(std::size_t chunks, const std::size_t (&tiles)[kMostPasses], std::size_t candidates) {
    const auto place = [&](std::size_t part) { return place_behind(bytes, part, 16); };
    counters = place(sizeof(Counters));
    ranges = place(chunks * sizeof(RangeKeys));
    for (int i = 0; i < kMostPasses; ++i) sums[i] = place(tiles[i] * (sizeof(std::uint32_t) + sizeof(uint2)));
    bits = place(chunks * candidates * sizeof(unsigned long long));
    zeroed = bytes;
    plans = place(chunks * sizeof(ChunkPlan));
    raw = place(chunks * sizeof(std::uint32_t));
  }
};

HeaderTemplate header_template(const Request& request, std::uint8_t codec, std::uint64_t count) {
  return cuda::header_template(frame_template(request, codec, count));
}

std::uint64_t row_bytes(const Grid& grid, std::size_t value_bytes) {
  return grid.block_dims == 1 ? 16 : (grid.block_dims == 2 ? 8 : 4) * value_bytes;
}

// Whether a frame with so many tiles has no room for its directory, or for anything else (as cpu_driver.cpp).
bool has_no_room(std::uint64_t tiles, std::uint64_t value_bytes) {
  return tiles >= value_bytes / 4 || 4 * (tiles + 1) >= value_bytes;
}

// What tiles a request may need: by block dimensions one grid, of packed tiles one for each shape that is open.
struct TileGrids {
  bool packed = false;
  bool open[kCandidates] = {};
  Grid grids[kColumns + 1];  // without tiles where a frame has no room for them
  Grid all[kColumns + 1];
  std::uint64_t most_tiles = 1, fewest = ~std::uint64_t{0};

  TileGrids(const Request& request, std::uint64_t count, std::uint64_t value_bytes) {
    packed = request.codec == registry::kCodecHierarchicalDelta || request.codec == registry::kCodecLorenzo;
    const auto add = [&](int at, const Grid& grid) {
      grids[at] = all[at] = grid;
      fewest = std::min(fewest, grid.tiles);
      if (has_no_room(grid.tiles, value_bytes)) grids[at].tiles = 0;
      most_tiles = std::max(most_tiles, grids[at].tiles);
    };
    if (!packed) {
      const int dims = request.parameters[1] == 0 ? 1 : request.parameters[1];
      add(1, make_grid(request.shape, count, dims));
      return;
    }
    find_candidates(request, open);
    for (int c = 0; c < kCandidates; ++c) {
      const int shape = predictor_at(c).tile_shape;
      if (open[c]) add(shape, make_packed_grid(request.shape, count, shape));
    }
  }
};

// What the choice of predictors is made by.
ChooseParams choose_params(const Request& request, const TileGrids& tiles, const EncodeParams& job, ChunkPlan* plans,
                           unsigned long long* bits, std::uint64_t count, bool entropy) {
  ChooseParams choose = {};
  std::copy(std::begin(tiles.all), std::end(tiles.all), choose.grids);  // those without room are counted, too
  std::copy(std::begin(tiles.open), std::end(tiles.open), choose.open);
  choose.exceptions = job.exceptions;
  choose.pointwise = job.pointwise;
  choose.entropy = entropy;
  choose.asked = request.parameters[0];
  choose.count = count;
  choose.chunks = job.chunks;
  choose.values = job.values;
  choose.value_stride = job.value_stride;
  choose.plans = plans;
  choose.bits = bits;
  choose.counters = job.counters;
  return choose;
}

// The passes over packed tiles, behind the choice of predictors.
Status encode_packed(const Request& request, const TileGrids& tiles, EncodeParams job, std::uint8_t* memory,
                     const Layout& layout, ChunkPlan* plans, std::uint64_t count, std::uint64_t places, bool only_exact,
                     cudaStream_t stream) {
  const ChooseParams choose = choose_params(request, tiles, job, plans,
                                            reinterpret_cast<unsigned long long*>(memory + layout.bits), count, false);
  PYF_TRY(check(choose_predictors(request.dtype, choose, stream), "launch of the choice of predictors"));
  const std::size_t width = dtype_bytes(request.dtype);
  for (int shape = 1; shape <= kColumns; ++shape) {
    if (!tiles.grids[shape].packed) continue;
    job.grid = tiles.grids[shape];
    job.tiles = static_cast<std::uint32_t>(job.grid.tiles);
    job.blocks = job.tiles * kPackedBlocks;
    job.aligned = places % 16 == 0 && (shape == kChain || job.grid.nx * width % 16 == 0);
    if (job.tiles == 0) {
      mark_raw_kernel<<<job.chunks, kMarkThreads, 0, stream>>>(job, static_cast<std::uint32_t>(shape));
      PYF_TRY(check(cudaGetLastError(), "launch of the marking kernel"));
      continue;
    }
    for (const bool exact : {false, true}) {
      if (only_exact && !exact) continue;
      const Coder* coder = cuda::hierarchical_delta_coder(request.dtype, shape, exact, job.pointwise);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for hierarchical_delta with this dtype");
      job.pass = packed_pass(static_cast<std::uint32_t>(shape), exact);
      std::uint8_t* const at = memory + layout.sums[job.pass];
      job.sums = {reinterpret_cast<std::uint32_t*>(at + std::size_t{job.tiles} * job.chunks * sizeof(uint2)),
                  reinterpret_cast<uint2*>(at)};
      PYF_TRY(check(coder->encode(job, stream), "launch of the encoder"));
    }
  }
  return kOk;
}

// Chunks of lorenzo: those that are not quantised, and the small ones, become frames of hierarchical_delta; streams
// take the place of these where they are shorter, and are the frames of all others. `job` has the headers of both.
Status encode_lorenzo(const Request& request, const TileGrids& tiles, const EncodeParams& job, std::uint8_t* memory,
                      const Layout& layout, ChunkPlan* plans, std::uint64_t count, std::uint64_t places,
                      cudaStream_t stream) {
  const ChoiceLayout parts(job.chunks);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(parts.bytes));
  std::uint8_t* const room = workspace.data();
  PYF_TRY(check(cudaMemsetAsync(room, 0, parts.zeroed, stream), "cudaMemsetAsync"));
  StreamParams streams = {};
  streams.base = job;
  std::copy(std::begin(tiles.all), std::end(tiles.all), streams.grids);
  streams.coder = frame_template(request, request.codec, count).parameters[1];
  streams.compare_tiles = kCompareTiles;
  streams.shape_chunks = reinterpret_cast<std::uint32_t*>(room + parts.shape_chunks);
  streams.value_size = streams.code_size = dtype_bytes(request.dtype);
  streams.plans = reinterpret_cast<ChunkPlan*>(room + parts.plans);
  streams.base.plans = streams.plans;

  const ChooseParams choose =
      choose_params(request, tiles, job, plans, reinterpret_cast<unsigned long long*>(room + parts.bits), count, true);
  PYF_TRY(check(sample_predictors(request.dtype, choose, stream), "launch of the choice of predictors"));
  PYF_TRY(check(pick_predictors(streams, choose.open, choose.bits, choose.asked, plans, stream),
                "launch of the choice of predictors"));
  EncodeParams other = job;
  other.headers[0] = job.headers[1];
  PYF_TRY(
      encode_packed(request, tiles, other, memory, layout, plans, count, places, tiles.fewest > kCompareTiles, stream));
  bool open[kColumns + 1];
  for (int shape = 0; shape <= kColumns; ++shape) open[shape] = tiles.all[shape].packed;
  return encode_streams(streams, request.dtype, job.pointwise, open, places, stream);
}

// A batch whose chunks and tiles fit the counters of one launch.
Status encode_part(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const auto chunks = static_cast<std::uint32_t>(batch.count);
  const std::size_t width = dtype_bytes(request.dtype);
  const bool quantise = request.codec != registry::kCodecLossless;
  const TileGrids tiles(request, count, count * width);
  EncodeParams job = {};
  job.value_bytes = count * width;
  job.chunks = chunks;
  job.mode = request.parameters[0];
  job.values = static_cast<const std::uint8_t*>(batch.values);
  job.value_stride = batch.value_stride;
  job.frames = static_cast<std::uint8_t*>(batch.frames);
  job.frame_stride = batch.frame_stride;
  job.frame_bytes = batch.frame_bytes;
  const std::uint64_t places = reinterpret_cast<std::uintptr_t>(batch.values) | (chunks > 1 ? batch.value_stride : 0);
  job.header_words = static_cast<std::uint32_t>(header_bytes(request.shape.rank) / 4);
  job.headers[0] = job.headers[1] = header_template(request, request.codec, count);
  if (request.codec == registry::kCodecCuszp2)
    job.headers[1] = header_template(request, registry::kCodecLossless, count);
  const bool streams = request.codec == registry::kCodecLorenzo;
  if (streams) job.headers[1] = cuda::header_template(stand_in(frame_template(request, request.codec, count)));
  job.exceptions = tiles.packed && (streams || frame_template(request, request.codec, count).parameters[1] == 1);
  job.pointwise = request.bound_mode == Bound::pointwise_relative;
  fill_crc_powers(job.crc_powers);

  std::size_t pass_tiles[kMostPasses] = {};
  if (tiles.packed) {
    for (std::uint32_t shape = 1; shape <= kColumns; ++shape)
      for (const bool exact : {false, true})
        pass_tiles[packed_pass(shape, exact)] = static_cast<std::size_t>(tiles.grids[shape].tiles) * chunks;
  } else {
    pass_tiles[0] = static_cast<std::size_t>(tiles.grids[1].tiles) * chunks;
    pass_tiles[1] = quantise ? pass_tiles[0] : 0;
  }
  const Layout layout(chunks, pass_tiles, tiles.packed ? kCandidates : 0);
  Workspace workspace(stream);
  PYF_TRY(workspace.allocate(layout.bytes));
  std::uint8_t* const memory = workspace.data();
  PYF_TRY(check(cudaMemsetAsync(memory, 0, layout.zeroed, stream), "cudaMemsetAsync"));
  job.counters = reinterpret_cast<Counters*>(memory + layout.counters);
  auto* const plans = reinterpret_cast<ChunkPlan*>(memory + layout.plans);
  job.plans = plans;
  job.raw = reinterpret_cast<std::uint32_t*>(memory + layout.raw);

  PlanParams plan = plan_params(request, count, quantise, job);
  plan.bounds = batch.bounds;
  plan.ranges = reinterpret_cast<RangeKeys*>(memory + layout.ranges);
  plan.plans = plans;
  PYF_TRY(make_plans(request.dtype, plan, chunks, stream));

  bool all_raw = count == 0;
  if (tiles.packed) {
    if (!all_raw && streams)
      PYF_TRY(encode_lorenzo(request, tiles, job, memory, layout, plans, count, places, stream));
    else if (!all_raw)
      PYF_TRY(encode_packed(request, tiles, job, memory, layout, plans, count, places, false, stream));
  } else {
    job.grid = tiles.grids[1];
    all_raw = all_raw || job.grid.tiles == 0;
    job.tiles = static_cast<std::uint32_t>(job.grid.tiles);
    job.blocks = all_raw ? 0 : static_cast<std::uint32_t>(job.grid.blocks);
    const int dims = job.grid.block_dims;
    const std::uint64_t row = row_bytes(job.grid, width);
    job.aligned = places % 16 == 0 && (dims == 1 || job.grid.nx * width % std::min<std::uint64_t>(row, 16) == 0);
    const auto sums = [&](int pass) {
      std::uint8_t* const at = memory + layout.sums[pass];
      return TileSums{reinterpret_cast<std::uint32_t*>(at + pass_tiles[0] * sizeof(uint2)),
                      reinterpret_cast<uint2*>(at)};
    };
    job.sums = sums(0);
    if (!all_raw && quantise) {
      const Coder* coder = cuda::cuszp2_coder(request.dtype, dims);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for cuszp2 with this dtype");
      PYF_TRY(check(coder->encode(job, stream), "launch of the encoder"));
      job.exact_pass = true;
      job.sums = sums(1);
    }
    if (!all_raw) {
      const Coder* coder = cuda::lossless_coder(request.dtype, dims);
      if (coder == nullptr) return fail(Code::internal, "no CUDA kernel for lossless with this dtype");
      PYF_TRY(check(coder->encode(job, stream), "launch of the bit-exact encoder"));
    }
  }
  return check(launch_behind(store_raw_kernel, kCopyBlocks, kCopyThreads, 0, stream, job, all_raw),
               "launch of the copy kernel");
}

Status check_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t* count) {
  PYF_TRY(check_request(request));
  if (!on_devices(request.codec, request.dtype))
    return fail(Code::unsupported, "%s of %s has no CUDA kernels: encode values in host memory",
                find_codec(request.codec)->name, dtype_name(request.dtype));
  if (!value_count(request.shape, count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  const std::size_t width = dtype_bytes(request.dtype), most = max_frame_bytes(request);
  if (most == 0) return fail(Code::unsupported, "the frame would be too large");
  if (reinterpret_cast<std::uintptr_t>(batch.values) % width != 0 || batch.value_stride % width != 0)
    return fail(Code::invalid_argument, "device values and their stride must be multiples of %zu bytes", width);
  if (reinterpret_cast<std::uintptr_t>(batch.frames) % 8 != 0 || batch.frame_stride % 8 != 0)
    return fail(Code::invalid_argument, "device frames and their stride must be multiples of 8 bytes");
  if (batch.count > 1 && batch.frame_stride < most)
    return fail(Code::no_space, "%zu bytes from frame to frame, %zu may be needed", batch.frame_stride, most);
  return kOk;
}

}  // namespace

Status cuda_encode(const Request& request, const CudaEncodeBatch& batch) noexcept {
  PYF_TRY(cuda::usable());
  std::uint64_t count = 0;
  PYF_TRY(check_batch(request, batch, &count));
  if (request.codec == registry::kCodecParticles) return encode_particles(request, batch, count);
  if (request.codec == registry::kCodecProgressive) return encode_progressive_chunks(request, batch, count);
  const TileGrids tiles(request, count, count * dtype_bytes(request.dtype));
  const auto fitting =
      static_cast<std::size_t>(std::max<std::uint64_t>(1, (std::uint64_t{1} << 31) / tiles.most_tiles));
  for (std::size_t first = 0; first < batch.count;) {
    CudaEncodeBatch part = batch;
    part.count = std::min({batch.count - first, std::size_t{kMostOfLaunch}, fitting});
    part.values = static_cast<const std::uint8_t*>(batch.values) + first * batch.value_stride;
    part.frames = static_cast<std::uint8_t*>(batch.frames) + first * batch.frame_stride;
    part.frame_bytes = batch.frame_bytes + first;
    part.bounds = batch.bounds != nullptr ? batch.bounds + first : nullptr;
    PYF_TRY(encode_part(request, part, count));
    first += part.count;
  }
  return kOk;
}

Status cuda_particle_order(const Request& request, const void* values, std::size_t value_bytes,
                           std::uint32_t* particles, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  std::uint64_t count = 0;
  int coordinates = 0;
  PYF_TRY(check_order_request(request, value_bytes, &count, &coordinates));
  if (reinterpret_cast<std::uintptr_t>(values) % dtype_bytes(request.dtype) != 0)
    return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", dtype_bytes(request.dtype));
  if (count == 0) return kOk;
  return order_particles(request, values, count, coordinates, particles, static_cast<cudaStream_t>(stream));
}

}  // namespace pyfilter
