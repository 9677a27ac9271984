// SPDX-License-Identifier: BSD-3-Clause
// Encodes 16-bit floats with a bound on the GPU, as encode_halves() of core/half_values.cpp does on the CPU: as f32, or
// bit for bit where that is shorter.
#include <algorithm>
#include <bit>
#include <limits>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/cuda/codec.cuh"
#include "core/cuda/convert_each.cuh"
#include "core/cuda/derived.cuh"
#include "core/error_text.hpp"
#include "core/half_values.hpp"
#include "core/header.hpp"
#include "core/request.hpp"

namespace pyfilter::cuda {
namespace {

constexpr std::uint32_t kInfinity = 0x7F800000u;

// HalfExtremes as keys that grow, 0 for none: `low`, `least` and `from_fill` are inverted.
struct ExtremeKeys {
  std::uint32_t low, high, least, unused;
  unsigned long long from_fill;
};

// A finite f32 as an integer in the order of the values, above 0; and back.
__host__ __device__ constexpr std::uint32_t order_key(std::uint32_t bits) {
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
constexpr float value_of_key(std::uint32_t key) {
  return std::bit_cast<float>(key >> 31 != 0 ? key & 0x7FFFFFFFu : ~key);
}

struct WidenParams {
  Dtype dtype;
  std::uint32_t fill;  // bit pattern of the f32
  bool has_fill, without_zeros;
  const std::uint8_t* values;
  std::uint64_t value_stride, count;
  std::uint8_t* wide;
  std::uint64_t wide_stride;
  ExtremeKeys* keys;
};

// The extremes of a thread's values.
struct ThreadExtremes {
  std::uint32_t low = 0, high = 0, least = 0;
  unsigned long long from_fill = 0;

  __device__ __forceinline__ void take(const WidenParams& job, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude >= kInfinity) return;
    const auto fill = std::bit_cast<float>(job.fill);
    if (magnitude != 0) least = max(least, ~magnitude);
    if (job.has_fill && bits != job.fill) {
      const double distance = fabs(static_cast<double>(value) - static_cast<double>(fill));
      from_fill = max(from_fill, ~static_cast<unsigned long long>(__double_as_longlong(distance)));
    }
    if ((job.has_fill && value == fill) || (job.without_zeros && magnitude == 0)) return;
    low = max(low, ~order_key(bits));
    high = max(high, order_key(bits));
  }
};

// Converts values to f32, and finds the extremes of each chunk.
__global__ void __launch_bounds__(kConvertThreads) widen_kernel(const __grid_constant__ WidenParams job) {
  ThreadExtremes found;
  convert_each<std::uint16_t, float>(job.values + blockIdx.y * job.value_stride,
                                     job.wide + blockIdx.y * job.wide_stride, job.count, [&](std::uint16_t half) {
                                       const float value = widened(job.dtype, half);
                                       found.take(job, value);
                                       return value;
                                     });
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
    found.low = max(found.low, __shfl_xor_sync(0xFFFFFFFFu, found.low, d));
    found.high = max(found.high, __shfl_xor_sync(0xFFFFFFFFu, found.high, d));
    found.least = max(found.least, __shfl_xor_sync(0xFFFFFFFFu, found.least, d));
    found.from_fill = max(found.from_fill, __shfl_xor_sync(0xFFFFFFFFu, found.from_fill, d));
  }
  if (threadIdx.x % 32 != 0) return;
  ExtremeKeys& keys = job.keys[blockIdx.y];
  atomicMax(&keys.low, found.low);
  atomicMax(&keys.high, found.high);
  atomicMax(&keys.least, found.least);
  if (found.from_fill != 0) atomicMax(&keys.from_fill, found.from_fill);
}

HalfExtremes extremes_of(const ExtremeKeys& keys) {
  HalfExtremes found;
  found.found = keys.high != 0;
  if (found.found) {
    found.low = value_of_key(~keys.low) + 0.0;  // -0 becomes +0
    found.high = value_of_key(keys.high) + 0.0;
  }
  if (keys.least != 0) found.least = std::bit_cast<float>(~keys.least);
  if (keys.from_fill != 0) found.from_fill = std::bit_cast<double>(static_cast<std::uint64_t>(~keys.from_fill));
  return found;
}

// A part of a batch that is encoded as f32.
class HalfBatch {
 public:
  HalfBatch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count)
      : request_(request),
        base_(base_request(request)),
        batch_(batch),
        count_(count),
        header_(header_bytes(request.shape.rank)),
        wide_stride_(Arrays::padded(count * sizeof(float))),
        slot_(Arrays::padded(max_frame_bytes(base_))),
        stream_(static_cast<cudaStream_t>(batch.stream)),
        workspace_(stream_),
        headers_(batch.count, header_, stream_),
        bounds_(batch.count),
        frames_(batch.count) {}

  Status run() {
    PYF_TRY(allocate_arrays(workspace_, [&](Arrays& arrays) {
      arrays.add(wide_, batch_.count * wide_stride_);
      arrays.add(slots_, batch_.count * slot_);
      arrays.add(keys_, batch_.count);
      arrays.add(bounds_of_f32_, batch_.count);
      arrays.add(sizes_, batch_.count);
      headers_.lay_out(arrays);
    }));
    PYF_TRY(find_bounds());
    PYF_TRY(encode_wide());
    return choose();
  }

 private:
  // Converts the values to f32, and finds their bounds.
  Status find_bounds() {
    PYF_TRY(check(cudaMemsetAsync(keys_, 0, batch_.count * sizeof *keys_, stream_), "cudaMemsetAsync"));
    const WidenParams job{request_.dtype,
                          static_cast<std::uint32_t>(base_.fill),
                          base_.has_fill,
                          base_.without_zeros,
                          static_cast<const std::uint8_t*>(batch_.values),
                          batch_.value_stride,
                          count_,
                          wide_,
                          wide_stride_,
                          keys_};
    const auto blocks =
        static_cast<unsigned>(std::clamp<std::uint64_t>(count_ / (kConvertThreads * std::uint64_t{32}), 1, 1056));
    widen_kernel<<<dim3(blocks, static_cast<unsigned>(batch_.count)), kConvertThreads, 0, stream_>>>(job);
    PYF_TRY(check(cudaGetLastError(), "launch of the conversion kernel"));
    std::vector<ExtremeKeys> keys;
    PYF_TRY(fetch(keys_, batch_.count, keys, stream_));
    for (std::size_t i = 0; i < batch_.count; ++i) {
      const HalfExtremes extremes = extremes_of(keys[i]);
      bounds_[i] = half_bound(base_, request_.dtype, extremes);
      if (may_become_fill(base_, extremes, bounds_[i].of_halves)) bounds_[i].of_f32 = 0;
    }
    return kOk;
  }

  // Encodes all chunks as f32 if one of them has a bound; frames of the others are not used.
  Status encode_wide() {
    std::vector<double> of_f32(batch_.count);
    bool any = false;
    for (std::size_t i = 0; i < batch_.count; ++i) {
      const bool usable = bounds_[i].of_f32 > 0;
      any = any || usable;
      of_f32[i] = usable ? bounds_[i].of_f32 : 0.5;
    }
    if (!any) return kOk;
    PYF_TRY(check(
        cudaMemcpyAsync(bounds_of_f32_, of_f32.data(), batch_.count * sizeof(double), cudaMemcpyHostToDevice, stream_),
        "copy of bounds"));
    Request base = base_;
    if (base.bound_mode != Bound::pointwise_relative) base.bound_mode = Bound::absolute;
    base.bound = of_f32[0];
    CudaEncodeBatch wide = batch_;
    wide.values = wide_;
    wide.value_stride = wide_stride_;
    wide.frames = slots_;
    wide.frame_stride = slot_;
    wide.frame_bytes = sizes_;
    wide.bounds = bounds_of_f32_;
    PYF_TRY(device_codec_of(base.codec)->encode(base, wide, count_));
    std::vector<std::uint64_t> sizes;
    PYF_TRY(fetch(sizes_, batch_.count, sizes, stream_));
    for (std::size_t i = 0; i < batch_.count; ++i)
      frames_[i] = {slots_ + i * slot_, static_cast<std::uint8_t*>(batch_.frames) + i * batch_.frame_stride};
    PYF_TRY(headers_.read(frames_, header_));
    for (std::size_t i = 0; i < batch_.count; ++i) {
      if (!(bounds_[i].of_f32 > 0)) continue;
      FrameInfo info;
      std::size_t bytes = sizes[i];
      PYF_TRY(name_half_frame(request_, bounds_[i].of_halves, headers_.of(i), &bytes, &info));
      if (!has_half_bound(info)) continue;
      frames_[i].bytes = bytes;
      frames_[i].header = frames_[i].base_header = header_;
    }
    return kOk;
  }

  // Encodes bit for bit what may be shorter so, and writes the shorter frames.
  Status choose() {
    const std::size_t enough = surely_shorter(count_ * dtype_bytes(request_.dtype));
    const auto tries_exact = [&](std::size_t i) { return frames_[i].bytes == 0 || frames_[i].bytes > enough; };
    const Request exact = exact_request(request_), of_integers = base_request(exact);
    for (std::size_t i = 0; i < batch_.count;) {
      std::size_t end = i;
      while (end < batch_.count && tries_exact(end)) ++end;
      if (end != i) PYF_TRY(encode_as_base(exact, of_integers, slice(batch_, i, end - i), count_));
      i = std::max(end, i + 1);
    }
    std::vector<std::uint64_t> sizes;
    PYF_TRY(fetch(batch_.frame_bytes, batch_.count, sizes, stream_));
    for (std::size_t i = 0; i < batch_.count; ++i) {
      DerivedFrame& wide = frames_[i];
      if (tries_exact(i) && (wide.bytes == 0 || sizes[i] <= wide.bytes))
        wide.bytes = 0;
      else
        sizes[i] = wide.bytes;
    }
    PYF_TRY(headers_.write(frames_));
    return check(cudaMemcpyAsync(batch_.frame_bytes, sizes.data(), batch_.count * sizeof(std::uint64_t),
                                 cudaMemcpyHostToDevice, stream_),
                 "copy of sizes");
  }

  const Request& request_;
  const Request base_;
  const CudaEncodeBatch& batch_;
  std::uint64_t count_;
  std::size_t header_, wide_stride_, slot_;
  cudaStream_t stream_;
  Workspace workspace_;
  DerivedHeaders headers_;
  std::vector<HalfBound> bounds_;
  std::vector<DerivedFrame> frames_;  // of f32

  std::uint8_t *wide_ = nullptr, *slots_ = nullptr;
  ExtremeKeys* keys_ = nullptr;
  double* bounds_of_f32_ = nullptr;
  std::uint64_t* sizes_ = nullptr;
};

}  // namespace

Status encode_halves(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count) {
  return HalfBatch(request, batch, count).run();
}

}  // namespace pyfilter::cuda
