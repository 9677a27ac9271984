// SPDX-License-Identifier: BSD-3-Clause
// Kernels that copy and convert the arrays of a list (lists.cuh).
#include "core/cuda/lists.cuh"

#include <algorithm>

#include "core/base_values.hpp"
#include "core/cuda/convert_each.cuh"
#include "core/cuda/memory.cuh"
#include "core/cuda/raw_chunks.cuh"
#include "core/cuda/sizes.cuh"
#include "core/half_values.hpp"

namespace pyfilter::cuda {
namespace {

constexpr std::size_t kBytesPerBlock = std::size_t{64} << 10;  // that a thread block copies, about
constexpr std::size_t kMostBlocks = 2112;
constexpr std::uint64_t kOfThread = 16;  // values that a thread converts, about

__global__ void __launch_bounds__(kCopyThreads) copy_arrays_kernel(const ArrayCopy* list) {
  const ArrayCopy copy = list[blockIdx.y];
  copy_bytes(copy.to, copy.from, copy.bytes);
}

// Moves parts of complex values from pairs to two planes, or back: each thread moves single parts, which are neighbours
// in the pairs.
template <class Part, bool kToPlanes>
__device__ __forceinline__ void move_parts(const ArrayConversion& job, std::uint64_t count) {
  const auto* const from = reinterpret_cast<const Part*>(job.from);
  auto* const to = reinterpret_cast<Part*>(job.to);
  const ThreadRange own = threads_of_array();
#pragma unroll 4
  for (std::uint64_t i = own.first; i < 2 * count; i += own.step) {
    const std::uint64_t in_planes = i / 2 + (i % 2 != 0 ? count : 0);
    to[kToPlanes ? in_planes : i] = from[kToPlanes ? i : in_planes];
  }
}

template <Dtype kDtype>
__device__ __forceinline__ void narrow_all(const ArrayConversion& job, std::uint64_t count) {
  convert_each<float, std::uint16_t>(job.from, job.to, count, [](float value) { return narrowed(kDtype, value); });
}

__global__ void __launch_bounds__(kConvertThreads)
    convert_arrays_kernel(const ArrayConversion* list, std::uint64_t count) {
  const ArrayConversion job = list[blockIdx.y];
  switch (job.kind) {
    case Conversion::split_c64:
      return move_parts<std::uint32_t, true>(job, count);
    case Conversion::split_c128:
      return move_parts<std::uint64_t, true>(job, count);
    case Conversion::join_c64:
      return move_parts<std::uint32_t, false>(job, count);
    case Conversion::join_c128:
      return move_parts<std::uint64_t, false>(job, count);
    case Conversion::order:
      return convert_each<std::uint16_t, std::uint16_t>(job.from, job.to, count,
                                                        [](std::uint16_t bits) { return ordered_half(bits); });
    case Conversion::narrow_f16:
      return narrow_all<Dtype::f16>(job, count);
    case Conversion::narrow_bf16:
      return narrow_all<Dtype::bf16>(job, count);
  }
}

// Copies a list to the device, then launches for at most kMostOfLaunch of its items at a time.
template <class Item, class Launch>
Status launch_list(const std::vector<Item>& list, Item* on_device, cudaStream_t stream, const char* what,
                   const Launch& launch) {
  if (list.empty()) return kOk;
  PYF_TRY(
      check(cudaMemcpyAsync(on_device, list.data(), list.size() * sizeof(Item), cudaMemcpyHostToDevice, stream), what));
  for (std::size_t done = 0; done < list.size(); done += kMostOfLaunch) {
    launch(on_device + done, static_cast<unsigned>(std::min(list.size() - done, std::size_t{kMostOfLaunch})));
    PYF_TRY(check(cudaGetLastError(), what));
  }
  return kOk;
}

}  // namespace

Conversion conversion_to_base(Dtype dtype) noexcept {
  if (is_complex(dtype)) return dtype == Dtype::c64 ? Conversion::split_c64 : Conversion::split_c128;
  return Conversion::order;
}

Conversion conversion_from_base(Dtype dtype, bool wide) noexcept {
  if (is_complex(dtype)) return dtype == Dtype::c64 ? Conversion::join_c64 : Conversion::join_c128;
  if (!wide) return Conversion::order;
  return dtype == Dtype::f16 ? Conversion::narrow_f16 : Conversion::narrow_bf16;
}

Status copy_arrays(const std::vector<ArrayCopy>& list, ArrayCopy* on_device, cudaStream_t stream) noexcept {
  std::uint64_t longest = 0;
  for (const ArrayCopy& copy : list) longest = std::max(longest, copy.bytes);
  const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(longest / kBytesPerBlock, 1, kMostBlocks));
  return launch_list(list, on_device, stream, "launch of the copy kernel", [&](const ArrayCopy* from, unsigned count) {
    copy_arrays_kernel<<<dim3(blocks, count), kCopyThreads, 0, stream>>>(from);
  });
}

Status convert_arrays(const std::vector<ArrayConversion>& list, std::uint64_t count, ArrayConversion* on_device,
                      cudaStream_t stream) noexcept {
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::uint64_t>(count / (kConvertThreads * kOfThread), 1, kMostBlocks));
  return launch_list(list, on_device, stream, "launch of the conversion kernel",
                     [&](const ArrayConversion* from, unsigned items) {
                       convert_arrays_kernel<<<dim3(blocks, items), kConvertThreads, 0, stream>>>(from, count);
                     });
}

}  // namespace pyfilter::cuda
