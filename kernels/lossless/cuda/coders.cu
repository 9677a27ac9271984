// SPDX-License-Identifier: BSD-3-Clause
// Lossless on the GPU: effort "fast", and which effort a frame has; binned.cu and binned_encode.cu have "ratio".
#include "core/request.hpp"
#include "lossless/cuda/binned_params.cuh"
#include "lossless/cuda/encode_params.cuh"
#include "stages/bit_map.hpp"
#include "stages/cuda/block_batch.cuh"
#include "stages/cuda/coder.cuh"
#include "stages/cuda/decode_frames.cuh"
#include "stages/cuda/exact_blocks.cuh"

namespace pyfilter::cuda {

const Coder* exact_block_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return coder<ExactMap<float>>(block_dims);
  if (dtype == Dtype::f64) return coder<ExactMap<double>>(block_dims);
  switch (dtype_bytes(dtype)) {
    case 1:
      return coder<BitMap<std::uint8_t, false>>(block_dims);
    case 2:
      return coder<BitMap<std::uint16_t, false>>(block_dims);
    case 4:
      return coder<BitMap<std::uint32_t, false>>(block_dims);
    case 8:
      return coder<BitMap<std::uint64_t, false>>(block_dims);
    default:
      return nullptr;
  }
}

namespace {

Status encode(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  if (request.parameters[0] != 0) return encode_binned_batch(request, batch, count);
  const FrameInfo header = frame_template(request, request.codec, count);
  return encode_block_batch(request, batch, count, {header, header}, nullptr, exact_block_coder);
}

// Effort "ratio" has a group of its own; those of "fast" have the block dimensions as their number.
constexpr std::uint32_t kRatioGroup = kGroupsOfCodec - 1;
std::uint32_t group(const FrameInfo& info) { return info.parameters[0] != 0 ? kRatioGroup : info.parameters[1]; }
std::uint32_t mode(const FrameInfo& info) { return info.parameters[0]; }

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  if (group(info) == kRatioGroup) return decode_binned_frames(frames, start, stop, stream);
  return decode_tile_frames(frames, make_grid(info.shape, info.value_count, info.parameters[1]),
                            exact_block_coder(info.dtype, info.parameters[1]), start, stop, stream);
}

}  // namespace

extern const DeviceCodec kLosslessDevice;
const DeviceCodec kLosslessDevice{encode, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
