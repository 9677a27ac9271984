// SPDX-License-Identifier: BSD-3-Clause
// Cuszp2 on the GPU.
#include "core/request.hpp"
#include "stages/cuda/block_batch.cuh"
#include "stages/cuda/coder.cuh"
#include "stages/cuda/decode_frames.cuh"
#include "stages/cuda/exact_blocks.cuh"
#include "stages/quantizing_map.hpp"

namespace pyfilter::cuda {
namespace {

const Coder* find_coder(Dtype dtype, int block_dims) {
  if (dtype == Dtype::f32) return coder<QuantizingMap<float>>(block_dims);
  if (dtype == Dtype::f64) return coder<QuantizingMap<double>>(block_dims);
  return nullptr;
}

// Bit-exact chunks become frames of lossless.
Status encode(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  Request exact = request;
  exact.parameters[0] = 0;  // the mode
  const BatchHeaders headers{frame_template(request, request.codec, count),
                             frame_template(exact, registry::kCodecLossless, count)};
  return encode_block_batch(request, batch, count, headers, &find_coder, exact_block_coder);
}

std::uint32_t group(const FrameInfo& info) { return info.parameters[1]; }
std::uint32_t mode(const FrameInfo& info) { return info.parameters[0]; }

Status decode(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  return decode_tile_frames(frames, make_grid(info.shape, info.value_count, info.parameters[1]),
                            find_coder(info.dtype, info.parameters[1]), start, stop, stream);
}

}  // namespace

extern const DeviceCodec kCuszp2Device;
const DeviceCodec kCuszp2Device{encode, group, mode, decode, nullptr, nullptr};

}  // namespace pyfilter::cuda
