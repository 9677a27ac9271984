// SPDX-License-Identifier: BSD-3-Clause
// Lossless's effort "ratio" on the GPU: the host's side of encoding. The models of all chunks are made first, then
// units are encoded of as many chunks as have memory.
#include <algorithm>
#include <optional>

#include "core/cuda/memory.cuh"
#include "core/request.hpp"
#include "lossless/codec.hpp"
#include "lossless/cuda/encode_params.cuh"
#include "lossless/train/runs.hpp"
#include "stages/cuda/batch.cuh"
#include "stages/entropy/level_tables.hpp"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

extern const BinnedEncoders kBinnedEncoders8, kBinnedEncoders16, kBinnedEncoders32, kBinnedEncoders64;

namespace {

// Parts of the device's memory, at most: for blocks that train, for models, and for units.
constexpr std::uint64_t kTrainingPart = 64, kModelPart = 32, kUnitPart = 10;
constexpr std::uint64_t kFewUnits = 1024;                      // of a batch
constexpr std::uint32_t kShortPart = 16384;                    // values, where units are few
constexpr std::uint32_t kMostTogether = usual_size(32768, 3);  // chunks whose units are encoded together

const BinnedEncoders* encoders_of(Dtype dtype) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return &kBinnedEncoders8;
    case 2:
      return &kBinnedEncoders16;
    case 4:
      return &kBinnedEncoders32;
    case 8:
      return &kBinnedEncoders64;
    default:
      return nullptr;
  }
}

void lay_out_units(const BinnedEncoders& encoders, BinnedEncode& job, Arrays& arrays) {
  const std::size_t chunks = job.chunk_count, units = chunks * job.most_units,
                    values = chunks * static_cast<std::size_t>(job.values), number = encoders.number_bytes;
  const auto add_bytes = [&](void*& array, std::size_t bytes) {
    std::uint8_t* as_bytes = static_cast<std::uint8_t*>(array);
    arrays.add(as_bytes, bytes);
    array = as_bytes;
  };
  arrays.add(job.units, units);
  arrays.add(job.states, 2 * kLaneCount * units);
  add_bytes(job.first_differences, kMostStored * number * units);
  add_bytes(job.numbers, number * values);
  add_bytes(job.remainders, number * values);
  arrays.add(job.levels, values);
  for (int s = 0; s < 2; ++s) {
    arrays.add(job.symbols[s], values);
    arrays.add(job.offsets[s], (values * (number + 1) + 3) / 4 + 4 * chunks * job.most_parts + 4);
  }
}

Status encode_units(const BinnedEncoders& encoders, BinnedEncode job, std::uint64_t memory, cudaStream_t stream) {
  job.chunk_count = 1;
  Arrays of_chunk;
  lay_out_units(encoders, job, of_chunk);
  const std::uint32_t chunks = job.base.chunks;
  const auto most = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(memory / kUnitPart / of_chunk.bytes(), 1, std::min(chunks, kMostTogether)));
  // less memory may be free
  std::optional<Workspace> workspace;
  std::uint32_t together = 0;
  for (std::uint32_t parts = (chunks + most - 1) / most;; parts *= 2) {
    together = (chunks + parts - 1) / parts;
    job.chunk_count = together;
    workspace.emplace(stream);
    const Status got = allocate_arrays(*workspace, [&](Arrays& arrays) { lay_out_units(encoders, job, arrays); });
    if (got.ok()) break;
    if (got.code != Code::no_memory || together == 1) return got;
  }
  for (job.first_chunk = 0; job.first_chunk < chunks; job.first_chunk += together) {
    job.chunk_count = std::min(together, chunks - job.first_chunk);
    PYF_TRY(check(encoders.encode(job, stream), "launch of the encoder of units"));
  }
  return kOk;
}

Status encode_part(const Request& request, const CudaEncodeBatch& part, std::uint64_t count,
                   const BinnedEncoders& encoders, std::uint64_t memory) {
  const FrameInfo header = frame_template(request, request.codec, count);
  TileBatch batch(request, part, count, {header, header}, {}, 0);
  PYF_TRY(batch.start(request, false));
  if (count == 0) return batch.finish(true);
  BinnedEncode job = {};
  job.base = batch.job;
  job.shape = request.shape;
  job.map = plain_map(request.dtype);
  job.values = count;
  // Axes::unit_of() gives no smaller units, but for a chunk's only one
  job.most_units = static_cast<std::uint32_t>((count + kUsualUnitValues - 1) / kUsualUnitValues);
  // few units leave the device idle
  job.part_values = std::uint64_t{job.most_units} * job.base.chunks < kFewUnits ? kShortPart : kUsualUnitValues;
  job.most_parts = static_cast<std::uint32_t>((count + job.part_values - 1) / job.part_values);
  std::uint32_t resident = 0;
  PYF_TRY(check(encoders.resident(&resident), "occupancy of the kernel that makes models"));
  const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      {resident, job.base.chunks, std::max<std::uint64_t>(1, memory / kTrainingPart / encoders.space_bytes)}));
  std::uint8_t *spaces = nullptr, *trained = nullptr;
  Workspace workspace(batch.stream());
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(spaces, blocks * encoders.space_bytes);
    arrays.add(trained, job.base.chunks * encoders.trained_bytes);
    arrays.add(job.logs, kTabledLogs);
  }));
  job.spaces = spaces;
  job.trained = trained;
  PYF_TRY(check(encoders.train(job, blocks, batch.stream()), "launch of the kernel that makes models"));
  PYF_TRY(encode_units(encoders, job, memory, batch.stream()));
  return batch.finish(false);
}

}  // namespace

Status encode_binned_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const BinnedEncoders* const encoders = encoders_of(request.dtype);
  if (encoders == nullptr) return no_kernel(frame_template(request, request.codec, count));
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const std::size_t together = std::max<std::size_t>(1, memory / kModelPart / encoders->trained_bytes);
  return encode_in_parts(
      batch, (std::uint64_t{1} << 31) / std::min<std::uint64_t>(together, std::uint64_t{1} << 30),
      [&](const CudaEncodeBatch& part) { return encode_part(request, part, count, *encoders, memory); });
}

}  // namespace pyfilter::cuda
