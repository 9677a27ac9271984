// SPDX-License-Identifier: BSD-3-Clause
// Lorenzo's entry in core's table of device codecs: batches of chunks, and batches of frames.
#include <algorithm>

#include "core/error_text.hpp"
#include "core/request.hpp"
#include "lorenzo/cuda/driver.cuh"
#include "lorenzo/plan.hpp"
#include "stages/cuda/decode_frames.cuh"
#include "stages/cuda/packed/batch.cuh"

namespace pyfilter::cuda {
namespace {

// Bit-exact and small chunks become frames of hierarchical_delta. Streams replace a small chunk's frame if they are
// shorter; all other chunks have streams only. The batch has the headers of both codecs.
Status encode_chunks(const Request& request, const TileGrids& tiles, const TileBatch& batch) {
  const EncodeParams& job = batch.job;
  const cudaStream_t stream = batch.stream();
  StreamParams streams = {};
  unsigned long long* bits = nullptr;
  std::size_t zeroed = 0;
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(streams.shape_chunks, kColumns + 1);
    arrays.add(bits, job.chunks * kCandidates);
    zeroed = arrays.bytes();
    arrays.add(streams.plans, job.chunks);
  }));
  PYF_TRY(check(cudaMemsetAsync(workspace.data(), 0, zeroed, stream), "cudaMemsetAsync"));
  streams.base = job;
  std::copy(std::begin(tiles.all), std::end(tiles.all), streams.grids);
  streams.coder = frame_template(request, request.codec, batch.count()).parameters[1];
  streams.compare_tiles = kCompareTiles;
  streams.value_size = streams.code_size = dtype_bytes(request.dtype);
  streams.base.plans = streams.plans;

  const ChooseParams choose = choose_params(request, tiles, batch, bits, true);
  PYF_TRY(check(sample_predictors(request.dtype, choose, stream), "launch of the choice of predictors"));
  PYF_TRY(check(pick_predictors(streams, choose.open, choose.bits, choose.asked, batch.plans(), stream),
                "launch of the choice of predictors"));
  EncodeParams other = job;
  other.headers[0] = job.headers[1];
  PYF_TRY(encode_packed(request, tiles, batch, other, *device_codec_of(registry::kCodecHierarchicalDelta)->packed_coder,
                        tiles.fewest > kCompareTiles));
  bool open[kColumns + 1];
  for (int shape = 0; shape <= kColumns; ++shape) open[shape] = tiles.all[shape].packed;
  return encode_streams(streams, request.dtype, job.pointwise, open, batch.address_bits(), stream);
}

Status encode(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const TileGrids tiles(request, count, count * dtype_bytes(request.dtype));
  BatchHeaders headers{frame_template(request, request.codec, count), {}};
  headers.exact = headers.quantised;
  headers.exact.codec = registry::kCodecHierarchicalDelta;
  headers.exact.parameters = {headers.quantised.parameters[0], 1, 1};
  return encode_in_parts(batch, tiles.most_tiles, [&](const CudaEncodeBatch& part) {
    TileBatch job = packed_batch(request, part, count, tiles, headers);
    job.job.exceptions = true;
    PYF_TRY(job.start(request, true));
    if (count != 0) PYF_TRY(encode_chunks(request, tiles, job));
    return job.finish(count == 0);
  });
}

std::uint32_t group(const FrameInfo& info) {
  return info.parameters[0] - 1u + (info.pointwise ? 4 : 0) + (is_rans(info.parameters[1]) ? 0 : 8);
}
std::uint32_t mode(const FrameInfo& info) {
  return stream_mode(info.parameters[2], info.parameters[1], info.parameters[3]);
}

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  const StreamCoder* const coder = lorenzo_coder(info.dtype, info.parameters[0], info.pointwise);
  if (coder == nullptr) return no_kernel(info);
  DecodeParams params = {};
  PYF_TRY(
      decode_params(frames, make_packed_grid(info.shape, info.value_count, info.parameters[0]), start, stop, params));
  if (params.tile_count == 0) return kOk;
  std::uint64_t most_units = 0;
  for (std::size_t i = 0; i < frames.count; ++i)
    most_units = std::max(most_units, params.grid.tiles / (std::uint64_t{1} << group_log2_of(frames.frames[i])) + 1);
  const std::size_t most = std::min<std::size_t>(kMostStreamChunks, (std::size_t{1} << 26) / params.tile_count + 1);
  return decode_in_parts(frames, params, most, [&](const DecodeParams& job, std::uint32_t here) {
    return decode_streams(*coder, job, info.parameters[1], static_cast<std::uint32_t>(most_units), here, stream);
  });
}

}  // namespace

extern const DeviceCodec kLorenzoDevice;
const DeviceCodec kLorenzoDevice{encode, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
