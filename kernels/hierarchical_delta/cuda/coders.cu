// SPDX-License-Identifier: BSD-3-Clause
// HierarchicalDelta on the GPU. The tile kernels are in f32.cu, f64.cu and, for bounds relative to each value,
// pointwise_*.cu, which compile in parallel.
#include "core/request.hpp"
#include "stages/cuda/decode_frames.cuh"
#include "stages/cuda/packed/batch.cuh"

namespace pyfilter::cuda {

const Coder* packed_coder_f32(int tile_shape, bool exact);
const Coder* packed_coder_f64(int tile_shape, bool exact);
const Coder* pointwise_coder_f32(int tile_shape);
const Coder* pointwise_coder_f64(int tile_shape);

namespace {

const Coder* find_coder(Dtype dtype, int tile_shape, bool exact, bool pointwise) {
  if (pointwise && !exact) {
    if (dtype == Dtype::f32) return pointwise_coder_f32(tile_shape);
    if (dtype == Dtype::f64) return pointwise_coder_f64(tile_shape);
  }
  if (dtype == Dtype::f32) return packed_coder_f32(tile_shape, exact);
  if (dtype == Dtype::f64) return packed_coder_f64(tile_shape, exact);
  return nullptr;
}

Status encode(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const TileGrids tiles(request, count, count * dtype_bytes(request.dtype));
  const FrameInfo header = frame_template(request, request.codec, count);
  return encode_in_parts(batch, tiles.most_tiles, [&](const CudaEncodeBatch& part) {
    TileBatch job = packed_batch(request, part, count, tiles, {header, header});
    job.job.exceptions = header.parameters[1] == 1;
    PYF_TRY(job.start(request, true));
    if (count != 0) PYF_TRY(encode_packed(request, tiles, job, job.job, find_coder, false));
    return job.finish(count == 0);
  });
}

std::uint32_t group(const FrameInfo& info) {
  return info.parameters[0] - 1u + (info.step == 0 ? 4 : info.pointwise ? 8 : 0);
}
std::uint32_t mode(const FrameInfo& info) { return info.parameters[2]; }

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  return decode_tile_frames(frames, make_packed_grid(info.shape, info.value_count, info.parameters[0]),
                            find_coder(info.dtype, info.parameters[0], info.step == 0, info.pointwise), start, stop,
                            stream);
}

}  // namespace

extern const DeviceCodec kHierarchicalDeltaDevice;
const DeviceCodec kHierarchicalDeltaDevice{encode, group, mode, decode, nullptr, find_coder};

}  // namespace pyfilter::cuda
