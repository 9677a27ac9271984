// SPDX-License-Identifier: BSD-3-Clause
// Particles on a device (particles/cuda/driver.cuh): the sequence of kernels, their memory, and lorenzo for other
// chunks.
#include "particles/cuda/driver.cuh"

#include <algorithm>
#include <new>
#include <vector>

#include "core/api.hpp"
#include "core/cuda/memory.cuh"
#include "core/cuda/side_stream.cuh"
#include "core/cuda/sizes.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"
#include "particles/cuda/params.cuh"
#include "particles/device.hpp"
#include "particles/driver.hpp"
#include "particles/estimate.hpp"
#include "particles/key.hpp"
#include "stages/cuda/chunk_plan.cuh"
#include "stages/cuda/header.cuh"
#include "stages/cuda/plans.cuh"

namespace pyfilter::cuda {
namespace {

// The most particles encoded together, and the fraction of the device's memory that they may use; a chunk with more
// particles is encoded alone.
constexpr std::uint64_t kMostParticles = usual_size(std::uint64_t{1} << 27, 1 << 20), kMemoryPart = 16;
// From this many tiles on, the encoder takes longer than the estimate that runs beside it.
constexpr std::uint64_t kEncoderFirstTiles = usual_size(4096, 8);
// The fewest tiles of a group of chunks launched together.
constexpr std::uint64_t kGroupTiles = usual_size(1536, 12);
// Groups with slots: group n is encoded once the tiles of group n - 4 are copied, which group n - 2 does.
constexpr std::uint32_t kGroupsWithSlots = 4;

// Arrays of a part of a batch that not all kernels use.
struct ParticleArrays {
  RangeKeys* ranges;
  ChunkPlan* plans;
  double* bounds;
  std::uint32_t *keys[2], *entries[2];  // order chunk
  std::uint8_t* tried_frames;
};

// Memory of a chunk of `particles` particles whose tiles have `capacity` slots: its own, and lorenzo's if both are
// tried.
std::uint64_t chunk_memory(const Request& request, int coordinates, std::uint64_t particles, std::uint64_t capacity) {
  const std::uint64_t values = static_cast<std::uint64_t>(coordinates) * dtype_bytes(request.dtype),
                      own = values + 4 * sizeof(std::uint32_t);
  return capacity * own + (particles <= kTriedParticles ? particles * 6 * values : 0);
}

// Order chunk: keys in the extents of the chunks, then one sort for all.
Status sort_chunks(const ParticleEncoder& encoder, ParticleParams& job, const ParticleArrays& own, Workspace& scratch,
                   cudaStream_t stream) {
  std::uint32_t* const keys[2] = {own.keys[0], own.keys[1]};
  std::uint32_t* const entries[2] = {own.entries[0], own.entries[1]};
  const std::uint64_t count = std::uint64_t{job.particles} * job.base.chunks;
  // above any code of either sign
  PYF_TRY(check(cudaMemsetAsync(job.extents, 0x7F, job.base.chunks * sizeof(ChunkExtent), stream), "cudaMemsetAsync"));
  job.sort_keys = keys[0];
  job.sort_entries = entries[0];
  PYF_TRY(check(encoder.make_keys(job, stream), "launch of the keys of particles"));
  std::size_t bytes = 0;
  int which = 0;
  PYF_TRY(check(sort_particles(keys, entries, count, job.base.chunks, nullptr, &bytes, &which, stream),
                "size of a radix sort"));
  PYF_TRY(scratch.allocate(std::max<std::size_t>(bytes, 16)));
  PYF_TRY(check(sort_particles(keys, entries, count, job.base.chunks, scratch.data(), &bytes, &which, stream),
                "launch of a radix sort"));
  job.entries = entries[which];
  return kOk;
}

// Reads one word for each chunk of a batch. A copy to pageable memory waits for the stream. Unlike a synchronisation it
// keeps the pool's memory, which the next call would have to request again.
Status read_words(const std::uint32_t* words, std::uint32_t chunks, std::vector<std::uint32_t>& read,
                  cudaStream_t stream) {
  read.resize(chunks);
  return check(cudaMemcpyAsync(read.data(), words, chunks * sizeof *words, cudaMemcpyDeviceToHost, stream),
               "copy of the chunks' summaries");
}

// Whether any chunk is already in sorted order; waits for the device.
Status any_ordered(const ParticleParams& job, bool* any, cudaStream_t stream) {
  std::vector<std::uint32_t> found;
  PYF_TRY(read_words(job.ordered, job.base.chunks, found, stream));
  *any = std::any_of(found.begin(), found.end(), [&](std::uint32_t tiles) { return job.is_order(tiles); });
  return kOk;
}

// Encodes the chunks chosen for lorenzo.
Status encode_others(const Request& other, const CudaEncodeBatch& batch, const std::vector<std::uint32_t>& chosen) {
  for (std::size_t first = 0; first < batch.count;) {
    std::size_t last = first;
    while (last < batch.count && chosen[last] != 0) ++last;
    if (last == first) {
      ++first;
      continue;
    }
    PYF_TRY(cuda_encode(other, slice(batch, first, last - first)));
    first = last;
  }
  return kOk;
}

// Copies tiles from slots to frames.
Status place_chunks(const ParticleParams& job, cudaStream_t stream) {
  PYF_TRY(check(place_particles(job, stream), "launch of the computation of tile offsets"));
  return check(move_particles(job, stream), "launch of the copy of tiles");
}

// Bytes of the slots of the largest of `groups` groups.
std::size_t group_bytes(const ParticleParams& job, std::uint32_t groups) {
  const std::uint64_t most_chunks = (job.base.chunks - 1) / groups + 1;
  return most_chunks * job.base.tiles * job.slot_bytes;
}

// Encodes tiles to slots and copies slots to frames, by groups of chunks. Once the offsets of a group are known, group
// + 2 is encoded by thread blocks that also copy the group's tiles. Two streams alternate, so that one group fills the
// multiprocessors that the end of the other leaves idle. The choices of all chunks are read before the last tiles are
// copied, so the host can launch the next batch early.
Status encode_groups(const ParticleEncoder& encoder, const ParticleParams& job, std::uint32_t groups,
                     std::vector<std::uint32_t>& chosen, cudaStream_t stream) {
  const auto slots_of = [&, bytes = group_bytes(job, groups)](std::uint32_t group) {
    return job.slots + group % kGroupsWithSlots * bytes;
  };
  SideStream odd(Turn::as_others, Life::kept), placing(Turn::first, Life::kept);
  PYF_TRY(placing.mark(stream));
  const auto chunk_of = [&](std::uint32_t group) {
    return static_cast<std::uint32_t>(std::uint64_t{job.base.chunks} * group / groups);
  };
  for (std::uint32_t g = 0; g < groups; ++g) {
    ParticleParams group = job;
    group.first_chunk = chunk_of(g);
    group.base.chunks = chunk_of(g + 1) - group.first_chunk;
    group.slots = slots_of(g);
    if (g >= 2) {
      group.moved_slots = slots_of(g - 2);
      group.moved_chunk = chunk_of(g - 2);
      group.moved_chunks = chunk_of(g - 1) - group.moved_chunk;
    }
    const cudaStream_t own = g % 2 != 0 ? odd.get() : stream;
    PYF_TRY(check(encoder.encode(group, own), "launch of the encoder of particles"));
    if (g == 0) {
      PYF_TRY(odd.fork(placing));
      PYF_TRY(placing.fork());
      PYF_TRY(check(encoder.estimate_lorenzo(job, placing.get()), "launch of the estimate of lorenzo's size"));
    }
    const char* const what = "launch of the computation of tile offsets";
    if (g + 1 < groups) {
      PYF_TRY(placing.follow(own));
      PYF_TRY(check(place_particles(group, placing.get()), what));
      PYF_TRY(placing.lead(own));
    } else {                                  // the last group: its offsets are found on the same stream
      if (g < 2) PYF_TRY(placing.lead(own));  // the estimate must be done; later groups have waited already
      PYF_TRY(check(place_particles(group, own), what));
      PYF_TRY(placing.follow(own));
    }
    if (g + 2 >= groups) PYF_TRY(check(move_particles(group, own), "launch of the copy of tiles"));
  }
  PYF_TRY(placing.fetch(job.choices, job.base.chunks));
  PYF_TRY(odd.join(stream));
  PYF_TRY(placing.wait());
  chosen.assign(placing.words(), placing.words() + job.base.chunks);
  return kOk;
}

// Sets the parameters of all kernels of a batch: its plans, and which particles are movable.
Status start_job(const ParticleEncoder& encoder, const Request& request, const void* values, std::size_t value_stride,
                 std::uint32_t chunks, std::uint64_t count, int coordinates, std::size_t tried_stride,
                 Workspace& workspace, ParticleParams& job, ParticleArrays& own, cudaStream_t stream) {
  job.base.grid = particle_grid(count, coordinates);
  job.base.tiles = static_cast<std::uint32_t>(job.base.grid.tiles);
  job.base.chunks = chunks;
  job.base.values = static_cast<const std::uint8_t*>(values);
  job.base.value_stride = value_stride;
  job.base.value_bytes = count * dtype_bytes(request.dtype);
  job.particles = static_cast<std::uint32_t>(count / static_cast<std::uint64_t>(coordinates));
  job.order = request.parameters[0];
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    const std::size_t sorted = job.order == kOrderChunk ? std::size_t{chunks} * job.particles : 0;
    arrays.add(own.ranges, chunks);
    arrays.add(job.ordered, chunks);
    arrays.add(own.plans, chunks);
    arrays.add(job.movable, chunks);
    arrays.add(job.choices, chunks);
    arrays.add(own.bounds, chunks);
    arrays.add(job.lorenzo_bytes, chunks);
    arrays.add(job.extents, chunks);
    arrays.add(job.sizes, std::size_t{chunks} * job.base.tiles);
    for (std::uint32_t*& keys : own.keys) arrays.add(keys, sorted);
    for (std::uint32_t*& entries : own.entries) arrays.add(entries, sorted);
    arrays.add(own.tried_frames, chunks * tried_stride);
  }));
  job.base.plans = own.plans;
  PlanParams plan = plan_params(request, count, true, job.base);
  plan.ranges = own.ranges;
  plan.plans = own.plans;
  if (request.bound_mode == Bound::relative)
    PYF_TRY(check(cudaMemsetAsync(plan.ranges, 0, chunks * sizeof(RangeKeys), stream), "cudaMemsetAsync"));
  PYF_TRY(find_ranges(request.dtype, plan, chunks, stream));
  return check(encoder.start(job, plan, stream), "launch of the plans of particles");
}

// Encodes a batch whose chunks fit the counters of one launch.
Status encode_part(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count, int coordinates) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const auto chunks = static_cast<std::uint32_t>(batch.count);
  const std::size_t width = dtype_bytes(request.dtype);
  const std::uint64_t particles = count / static_cast<std::uint64_t>(coordinates);
  const ParticleEncoder* const encoder = particle_encoder(request.dtype, coordinates);
  const FrameInfo info = frame_template(request, request.codec, count);
  const Request other = lorenzo_request(request);
  const Request part = tried_request(other, 1.0, particles, coordinates);  // the bounds are on the device
  const bool tried = particles <= kTriedParticles;
  const std::size_t tried_stride = tried ? Arrays::padded(max_frame_bytes(part)) : 0;

  ParticleParams job = {};
  job.base.frames = static_cast<std::uint8_t*>(batch.frames);
  job.base.frame_stride = batch.frame_stride;
  job.base.frame_bytes = batch.frame_bytes;
  job.base.header_words = static_cast<std::uint32_t>(info.header_bytes / 4);
  job.base.headers[0] = job.base.headers[1] = header_template(info);
  fill_crc_powers(job.base.crc_powers);
  job.slot_bytes = (most_tile_bytes(coordinates, width) + 15) / 16 * 16;
  ParticleArrays own = {};
  Workspace workspace(stream), sort_memory(stream);
  PYF_TRY(start_job(*encoder, request, batch.values, batch.value_stride, chunks, count, coordinates, tried_stride,
                    workspace, job, own, stream));
  if (job.order == kOrderKept) {
    bool any = false;
    PYF_TRY(check(encoder->check_order(job, stream), "launch of the search for order"));
    PYF_TRY(any_ordered(job, &any, stream));
    if (!any) return cuda_encode(other, batch);
  }

  SideStream side(Turn::first, Life::kept);
  if (tried) PYF_TRY(side.mark(stream));
  const auto try_lorenzo = [&] {
    PYF_TRY(side.fork());
    PYF_TRY(check(note_bounds(job, own.bounds, side.get()), "launch of the copy of bounds"));
    CudaEncodeBatch all = batch;
    all.frames = own.tried_frames;
    all.frame_stride = tried_stride;
    all.frame_bytes = job.lorenzo_bytes;
    all.stream = side.get();
    all.bounds = own.bounds;
    return cuda_encode(part, all);
  };
  if (job.order == kOrderChunk) PYF_TRY(sort_chunks(*encoder, job, own, sort_memory, stream));
  std::vector<std::uint32_t> chosen;
  {
    const auto groups =
        static_cast<std::uint32_t>(tried ? 1 : std::clamp<std::uint64_t>(job.all_tiles() / kGroupTiles, 1, chunks));
    Workspace slots(stream);  // freed early: lorenzo may use the memory
    PYF_TRY(slots.allocate(std::min(groups, kGroupsWithSlots) * group_bytes(job, groups)));
    job.slots = slots.data();
    if (tried) {
      const bool encoder_first = job.all_tiles() >= kEncoderFirstTiles;  // the longer of the two starts first
      if (!encoder_first) PYF_TRY(try_lorenzo());
      PYF_TRY(check(encoder->encode(job, stream), "launch of the encoder of particles"));
      if (encoder_first) PYF_TRY(try_lorenzo());
      PYF_TRY(side.join(stream));
      PYF_TRY(place_chunks(job, stream));
    } else if (groups > 1) {
      PYF_TRY(encode_groups(*encoder, job, groups, chosen, stream));
    } else {
      PYF_TRY(check(encoder->estimate_lorenzo(job, stream), "launch of the estimate of lorenzo's size"));
      PYF_TRY(check(encoder->encode(job, stream), "launch of the encoder of particles"));
      PYF_TRY(place_chunks(job, stream));
    }
  }
  if (chosen.empty()) PYF_TRY(read_words(job.choices, chunks, chosen, stream));
  return encode_others(other, batch, chosen);
}

}  // namespace

Status order_particles(const Request& request, const void* values, std::uint64_t count, int coordinates,
                       std::uint32_t* particles, cudaStream_t stream) noexcept {
  const ParticleEncoder* const encoder = particle_encoder(request.dtype, coordinates);
  ParticleParams job = {};
  ParticleArrays own = {};
  Workspace workspace(stream), sort_memory(stream);
  PYF_TRY(start_job(*encoder, request, values, count * dtype_bytes(request.dtype), 1, count, coordinates, 0, workspace,
                    job, own, stream));
  if (job.order == kOrderChunk) PYF_TRY(sort_chunks(*encoder, job, own, sort_memory, stream));
  return check(encoder->find_order(job, particles, stream), "launch of the order of particles");
}

Status encode_particles(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const int coordinates = coordinates_of(request.shape.rank, request.shape.dims);
  if (count == 0 || coordinates == 0) return cuda_encode(lorenzo_request(request), batch);
  try {
    std::uint64_t memory = 0;
    PYF_TRY(device_memory(&memory));
    const std::uint64_t particles = count / static_cast<std::uint64_t>(coordinates),
                        capacity = particle_grid(count, coordinates).tiles * kTileParticles;
    const std::uint64_t most_chunks = std::min(
        kMostParticles / capacity, memory / kMemoryPart / chunk_memory(request, coordinates, particles, capacity));
    const std::size_t fitting = static_cast<std::size_t>(std::max<std::uint64_t>(1, most_chunks)),
                      most = request.parameters[0] == kOrderChunk ? kSortedChunks : kMostOfLaunch;
    for (std::size_t first = 0; first < batch.count;) {
      const std::size_t here = std::min({batch.count - first, fitting, most});
      PYF_TRY(encode_part(request, slice(batch, first, here), count, coordinates));
      first += here;
    }
    return kOk;
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu chunks", batch.count);
  }
}

}  // namespace pyfilter::cuda

namespace pyfilter {

Status cuda_particle_order(const Request& request, const void* values, std::size_t value_bytes,
                           std::uint32_t* particles, void* stream) noexcept {
  PYF_TRY(cuda::usable());
  std::uint64_t count = 0;
  int coordinates = 0;
  PYF_TRY(check_order_request(request, value_bytes, &count, &coordinates));
  if (reinterpret_cast<std::uintptr_t>(values) % dtype_bytes(request.dtype) != 0)
    return fail(Code::invalid_argument, "device values must be at a multiple of %zu bytes", dtype_bytes(request.dtype));
  if (count == 0) return kOk;
  return cuda::order_particles(request, values, count, coordinates, particles, static_cast<cudaStream_t>(stream));
}

}  // namespace pyfilter
