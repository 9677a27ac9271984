// SPDX-License-Identifier: BSD-3-Clause
// Encodes complex numbers, bool and bit-exact 16-bit floats on the GPU, and the headers of all derived types
// (derived.cuh).
#include <algorithm>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/cuda/codec.cuh"
#include "core/cuda/derived.cuh"
#include "core/cuda/sizes.cuh"
#include "core/error_text.hpp"
#include "core/fp_environment.hpp"
#include "core/half_values.hpp"
#include "core/header.hpp"
#include "core/request.hpp"

namespace pyfilter::cuda {
namespace {

// Copies of values and frames take at most this part of the device's memory. With what the codec needs it is less than
// the pool keeps (memory.cu): encoders wait in the middle of their work, and then the pool returns what is more.
constexpr std::uint64_t kMemoryPart = 80;
constexpr std::size_t kMostTogether = usual_size(8192, 5);
constexpr int kTestThreads = 256;

// Sets failing[chunk] to 1 if a value of the chunk fails the test.
template <class Part>
__global__ void __launch_bounds__(kTestThreads)
    sentinel_kernel(const SentinelTest test, const std::uint8_t* values, std::uint64_t value_stride,
                    std::uint64_t count, std::uint32_t* failing) {
  const auto* const parts = reinterpret_cast<const Part*>(values + blockIdx.y * value_stride);
  bool found = false;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kTestThreads + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * kTestThreads)
    found = found || test.fails(parts[2 * i], parts[2 * i + 1]);
  if (found) atomicOr(&failing[blockIdx.y], 1u);
}

// Encodes chunks that fail the test once more, bit for bit.
Status encode_failing(const Request& request, const Request& base, const CudaEncodeBatch& values,
                      const CudaEncodeBatch& of_base, std::uint64_t count, std::uint32_t* failing) {
  const SentinelTest test = sentinel_test(request);
  if (test.never) return kOk;
  const auto stream = static_cast<cudaStream_t>(values.stream);
  PYF_TRY(check(cudaMemsetAsync(failing, 0, values.count * sizeof *failing, stream), "cudaMemsetAsync"));
  const auto* const from = static_cast<const std::uint8_t*>(values.values);
  const dim3 blocks(static_cast<unsigned>(std::clamp<std::uint64_t>(count / (16 * kTestThreads), 1, 2112)),
                    static_cast<unsigned>(values.count));
  auto* const kernel = request.dtype == Dtype::c64 ? &sentinel_kernel<std::uint32_t> : &sentinel_kernel<std::uint64_t>;
  kernel<<<blocks, kTestThreads, 0, stream>>>(test, from, values.value_stride, count, failing);
  PYF_TRY(check(cudaGetLastError(), "launch of the test of fill values"));
  std::vector<std::uint32_t> found;
  PYF_TRY(fetch(failing, values.count, found, stream));
  const Request exact = exact_request(base);
  for (std::size_t i = 0; i < values.count; ++i)
    if (found[i] != 0) PYF_TRY(device_codec_of(exact.codec)->encode(exact, slice(of_base, i, 1), 2 * count));
  return kOk;
}

}  // namespace

Status chunks_together(std::size_t count, std::size_t bytes, std::size_t* together) noexcept {
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const auto most = std::clamp<std::size_t>(memory / kMemoryPart / (bytes + 1), 1, kMostTogether);
  const std::size_t groups = std::max<std::size_t>(1, (count + most - 1) / most);
  *together = std::max<std::size_t>(1, (count + groups - 1) / groups);
  return kOk;
}

Status DerivedHeaders::read(const std::vector<DerivedFrame>& frames, std::size_t header_bytes) {
  std::vector<ArrayCopy> list;
  list.reserve(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i)
    list.push_back({frames[i].base, on_device_ + i * stride_, header_bytes});
  PYF_TRY(copy_arrays(list, copies_, stream_));
  return fetch(on_device_, frames.size() * stride_, headers_, stream_);
}

Status DerivedHeaders::write(const std::vector<DerivedFrame>& frames) {
  std::vector<ArrayCopy> list;
  list.reserve(2 * frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const DerivedFrame& one = frames[i];
    if (one.bytes == 0) continue;
    list.push_back({on_device_ + i * stride_, one.to, one.header});
    if (one.to + one.header != one.base + one.base_header)
      list.push_back({one.base + one.base_header, one.to + one.header, one.bytes - one.header});
  }
  PYF_TRY(check(cudaMemcpyAsync(on_device_, headers_.data(), headers_.size(), cudaMemcpyHostToDevice, stream_),
                "copy of headers"));
  return copy_arrays(list, copies_, stream_);
}

Status encode_as_base(const Request& request, const Request& base, const CudaEncodeBatch& batch, std::uint64_t count) {
  const auto stream = static_cast<cudaStream_t>(batch.stream);
  const std::size_t value_bytes = count * dtype_bytes(request.dtype), stride = Arrays::padded(value_bytes),
                    base_header = header_bytes(base.shape.rank), header = header_bytes(request.shape.rank);
  const bool converts = request.dtype != Dtype::b8;
  // a shorter header moves what follows it: such frames are made elsewhere
  const std::size_t slot = header == base_header ? 0 : Arrays::padded(max_frame_bytes(base));
  std::uint8_t *values = nullptr, *slots = nullptr;
  ArrayConversion* conversions = nullptr;
  std::uint32_t* failing = nullptr;
  DerivedHeaders headers(batch.count, std::max(base_header, header), stream);
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(values, converts ? batch.count * stride : 0);
    arrays.add(slots, batch.count * slot);
    arrays.add(conversions, batch.count);
    arrays.add(failing, batch.count);
    headers.lay_out(arrays);
  }));
  CudaEncodeBatch of_base = batch;
  if (converts) {
    std::vector<ArrayConversion> list(batch.count);
    for (std::size_t i = 0; i < batch.count; ++i)
      list[i] = {static_cast<const std::uint8_t*>(batch.values) + i * batch.value_stride, values + i * stride,
                 conversion_to_base(request.dtype)};
    PYF_TRY(convert_arrays(list, count, conversions, stream));
    of_base.values = values;
    of_base.value_stride = stride;
  }
  if (slot != 0) {
    of_base.frames = slots;
    of_base.frame_stride = slot;
  }
  const std::uint64_t base_count = is_complex(request.dtype) ? 2 * count : count;
  PYF_TRY(device_codec_of(base.codec)->encode(base, of_base, base_count));
  PYF_TRY(encode_failing(request, base, batch, of_base, count, failing));
  std::vector<std::uint64_t> sizes;
  PYF_TRY(fetch(batch.frame_bytes, batch.count, sizes, stream));
  std::vector<DerivedFrame> frames(batch.count);
  for (std::size_t i = 0; i < batch.count; ++i)
    frames[i] = {static_cast<const std::uint8_t*>(of_base.frames) + i * of_base.frame_stride,
                 static_cast<std::uint8_t*>(batch.frames) + i * batch.frame_stride};
  PYF_TRY(headers.read(frames, base_header));
  for (std::size_t i = 0; i < batch.count; ++i) {
    std::uint8_t made[header_bytes(kMaxRank)];
    std::size_t bytes = 0;
    PYF_TRY(derived_header(request, headers.of(i), sizes[i], made, &bytes));
    std::copy_n(made, header, headers.of(i));
    frames[i].bytes = sizes[i] = bytes;
    frames[i].header = header;
    frames[i].base_header = base_header;
  }
  PYF_TRY(headers.write(frames));
  if (slot == 0) return kOk;
  return check(cudaMemcpyAsync(batch.frame_bytes, sizes.data(), batch.count * sizeof(std::uint64_t),
                               cudaMemcpyHostToDevice, stream),
               "copy of sizes");
}

Status encode_derived(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  const FpEnvironment environment;  // for the bounds of 16-bit floats
  const Request base = base_request(request);
  PYF_TRY(check_request(base));  // f32 may be too large where their 16-bit floats are not
  const bool halves = has_half_bound(request);
  // values of the base array, and frames that are not made in their place
  const std::size_t bytes =
      count * dtype_bytes(base.dtype) * (is_complex(request.dtype) ? 2 : 1) + (halves ? max_frame_bytes(base) : 0);
  std::size_t together = 1;
  PYF_TRY(chunks_together(batch.count, bytes, &together));
  for (std::size_t done = 0; done < batch.count; done += together) {
    const CudaEncodeBatch part = slice(batch, done, std::min(together, batch.count - done));
    PYF_TRY(halves ? encode_halves(request, part, count) : encode_as_base(request, base, part, count));
  }
  return kOk;
}

}  // namespace pyfilter::cuda
