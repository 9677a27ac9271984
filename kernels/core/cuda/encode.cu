// SPDX-License-Identifier: BSD-3-Clause
// Encodes batches of chunks on a stream (driver.hpp): checks the batch, then calls the codec's encoder.
#include <new>

#include "core/api.hpp"
#include "core/cuda/codec.cuh"
#include "core/cuda/derived.cuh"
#include "core/cuda/memory.cuh"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/request.hpp"

namespace pyfilter {
namespace {

Status check_batch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t* count) {
  PYF_TRY(check_request(request));
  if (!encodes_on_devices(request))
    return fail(Code::unsupported, "%s of %s has no CUDA kernels: encode values in host memory",
                find_codec(request.codec)->name, dtype_name(request.dtype));
  if (!value_count(request.shape, count)) return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  const std::size_t width = dtype_bytes(base_dtype(request.dtype)), most = max_frame_bytes(request);
  if (most == 0)
    return fail(Code::unsupported, "a frame of this shape may be too large for memory: use smaller chunks");
  if (reinterpret_cast<std::uintptr_t>(batch.values) % width != 0 || batch.value_stride % width != 0)
    return fail(Code::invalid_argument, "device values and their stride must be multiples of %zu bytes", width);
  if (reinterpret_cast<std::uintptr_t>(batch.frames) % 8 != 0 || batch.frame_stride % 8 != 0)
    return fail(Code::invalid_argument, "device frames and their stride must be multiples of 8 bytes");
  if (batch.count > 1 && batch.frame_stride < most)
    return fail(Code::no_space, "%zu bytes from frame to frame, %zu may be needed", batch.frame_stride, most);
  return kOk;
}

}  // namespace

CudaEncodeBatch slice(const CudaEncodeBatch& batch, std::size_t first, std::size_t count) noexcept {
  CudaEncodeBatch part = batch;
  part.count = count;
  part.values = static_cast<const std::uint8_t*>(batch.values) + first * batch.value_stride;
  part.frames = static_cast<std::uint8_t*>(batch.frames) + first * batch.frame_stride;
  part.frame_bytes = batch.frame_bytes + first;
  part.bounds = batch.bounds != nullptr ? batch.bounds + first : nullptr;
  return part;
}

Status cuda_encode(const Request& request, const CudaEncodeBatch& batch) noexcept {
  PYF_TRY(cuda::usable());
  std::uint64_t count = 0;
  PYF_TRY(check_batch(request, batch, &count));
  if (!is_derived(request.dtype)) return cuda::device_codec_of(request.codec)->encode(request, batch, count);
  try {
    return cuda::encode_derived(request, batch, count);
  } catch (const std::bad_alloc&) {
    return fail(Code::no_memory, "no memory for a batch of %zu chunks", batch.count);
  }
}

}  // namespace pyfilter
