// SPDX-License-Identifier: BSD-3-Clause
// Lossless's effort "ratio" on the GPU: the host's side of decoding.
#include <algorithm>
#include <bit>

#include "core/cuda/memory.cuh"
#include "core/request.hpp"
#include "lossless/codec.hpp"
#include "lossless/cuda/binned_open.cuh"
#include "lossless/cuda/binned_params.cuh"
#include "lossless/cuda/neighbour_levels.cuh"

namespace pyfilter::cuda {

extern const BinnedKernels kBinnedKernels8, kBinnedKernels16, kBinnedKernels32, kBinnedKernels64, kBinnedKernelsF32,
    kBinnedKernelsF64;

namespace {

constexpr std::uint64_t kScratchPart = 64;               // scratch memory is at most 1 / 64 of the device's memory
constexpr std::uint64_t kUsualUnit = 1u << 16;           // values
constexpr std::uint64_t kLaunchedUnit = kUsualUnit / 4;  // a launch has blocks for units of so few values

const BinnedKernels* kernels_of(Dtype dtype) {
  if (dtype == Dtype::f32) return &kBinnedKernelsF32;
  if (dtype == Dtype::f64) return &kBinnedKernelsF64;
  switch (dtype_bytes(dtype)) {
    case 1:
      return &kBinnedKernels8;
    case 2:
      return &kBinnedKernels16;
    case 4:
      return &kBinnedKernels32;
    case 8:
      return &kBinnedKernels64;
    default:
      return nullptr;
  }
}

Status decode_some(const BinnedKernels& kernels, BinnedDecode job, cudaStream_t stream) {
  std::uint32_t resident = 0;
  PYF_TRY(check(kernels.resident(&job.warps, &resident), "occupancy of the decoder"));
  std::uint64_t memory = 0;
  PYF_TRY(device_memory(&memory));
  const std::uint64_t block_bytes = job.warps * job.scratch_bytes,
                      useful = job.frame_count * (job.values / kLaunchedUnit / job.warps + 1);
  const auto blocks = static_cast<std::uint32_t>(
      std::min<std::uint64_t>({resident, useful, std::max<std::uint64_t>(1, memory / kScratchPart / block_bytes)}));
  Workspace workspace(stream);
  PYF_TRY(allocate_arrays(workspace, [&](Arrays& arrays) {
    arrays.add(job.next_work, 1);
    arrays.add(job.opened, job.frame_count);
    arrays.add(job.tables, 2 * std::size_t{job.frame_count});
    arrays.add(job.scratch, blocks * block_bytes);
  }));
  PYF_TRY(check(cudaMemsetAsync(job.next_work, 0, sizeof(std::uint32_t), stream), "cudaMemsetAsync"));
  open_bins_kernel<<<job.frame_count, kOpenBinsThreads, 0, stream>>>(job);
  PYF_TRY(check(cudaGetLastError(), "launch of the kernel that reads models"));
  return check(kernels.decode(job, blocks, stream), "launch of the decoder");
}

}  // namespace

Status decode_binned_frames(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream) {
  const FrameInfo& info = frames.info;
  const BinnedKernels* const kernels = kernels_of(info.dtype);
  if (kernels == nullptr) return no_kernel(info);
  BinnedDecode job = {};
  job.map = plain_map(info.dtype);
  job.values = info.value_count;
  job.start = start;
  job.stop = stop;
  const std::uint64_t most = std::min<std::uint64_t>(kMostUnitValues, info.value_count);
  job.level_bytes = Arrays::padded(kLevelZeros + most + kLevelWindow);
  job.scratch_bytes = job.level_bytes;
  if (start != 0 || stop != info.value_count) job.scratch_bytes += Arrays::padded(most * dtype_bytes(info.dtype));
  const std::uint64_t units = (stop - start + kUsualUnit - 1) / kUsualUnit;
  job.warps = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_ceil(units), 1, kMostBinnedWarps));
  for (std::size_t done = 0; done < frames.count; done += job.frame_count) {
    job.frames = frames.count == 1 ? nullptr : frames.on_device + done;
    job.only_frame = frames.frames[0];
    job.frame_count = static_cast<std::uint32_t>(std::min<std::size_t>(frames.count - done, kBinnedFrames));
    PYF_TRY(decode_some(*kernels, job, stream));
  }
  return kOk;
}

}  // namespace pyfilter::cuda
