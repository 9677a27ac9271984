// SPDX-License-Identifier: BSD-3-Clause
// Progressive on the GPU: kernels that do not depend on the dtype, and the table of kernels by dtype.
#include <algorithm>

#include "progressive/cuda/decode_tiles.cuh"
#include "progressive/cuda/encode_tiles.cuh"
#include "progressive/cuda/launch.cuh"
#include "progressive/cuda/mask.cuh"
#include "progressive/cuda/open.cuh"
#include "progressive/cuda/order.cuh"
#include "progressive/cuda/special_pieces.cuh"
#include "progressive/cuda/write.cuh"
#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

extern const ProgressiveKernels kProgressiveKernels32, kProgressiveKernels64;

const ProgressiveKernels* progressive_kernels(Dtype dtype) {
  return dtype == Dtype::f32 ? &kProgressiveKernels32 : dtype == Dtype::f64 ? &kProgressiveKernels64 : nullptr;
}

cudaError_t open_frames(const ProgressiveDecode& job, cudaStream_t stream) {
  return launch(open_frames_kernel, dim3(1, job.frame_count), kOpenThreads, stream, job);
}

namespace {

// A block a segment. A thread loops over tiles of a unit; `tiles`: the most tiles of any unit.
template <class Job>
cudaError_t launch_segments(void (*few)(Job), void (*some)(Job), void (*many)(Job), const Job& job, std::uint32_t units,
                            std::uint32_t tiles, cudaStream_t stream) {
  const dim3 segments(units * static_cast<std::uint32_t>(job.pieces), job.frame_count);
  if (tiles > 8192) return launch(many, segments, 1024, stream, job);
  return tiles > 512 ? launch(some, segments, 256, stream, job) : launch(few, segments, 64, stream, job);
}

}  // namespace

cudaError_t find_pieces(const ProgressiveDecode& job, std::uint32_t units, std::uint32_t most_tiles,
                        cudaStream_t stream) {
  return launch_segments<const ProgressiveDecode>(find_pieces_kernel<64>, find_pieces_kernel<256>,
                                                  find_pieces_kernel<1024>, job, units, most_tiles, stream);
}

cudaError_t decode_tiles(const ProgressiveDecode& job, cudaStream_t stream) {
  return launch(decode_tiles_kernel, dim3(job.group_count * kBlocksOfGroup, job.frame_count), kDecodeTileThreads,
                stream, job);
}

cudaError_t make_mask(const SpecialDecode& job, bool masked, cudaStream_t stream) {
  const auto blocks = [](std::uint64_t threads) {
    return static_cast<unsigned>((threads + kMaskThreads - 1) / kMaskThreads);
  };
  const auto next = [&](void (*kernel)(const SpecialDecode), unsigned count) {
    return launch(kernel, dim3(count, job.job.frame_count), kMaskThreads, stream, job);
  };
  const unsigned parts = blocks(std::uint64_t{job.words} * job.segments);
  if (const cudaError_t e = next(open_specials_kernel, 1); e != cudaSuccess || !masked) return e;
  if (const cudaError_t e = next(read_mask_kernel, blocks(32 * std::uint64_t{job.pieces})); e != cudaSuccess) return e;
  if (const cudaError_t e = next(first_mask_row_kernel, 1); e != cudaSuccess) return e;
  if (const cudaError_t e = next(sum_mask_rows_kernel, parts); e != cudaSuccess) return e;
  if (const cudaError_t e = next(sum_segments_kernel, blocks(job.words)); e != cudaSuccess) return e;
  return next(make_mask_kernel, parts);
}

cudaError_t count_planes(const ProgressiveEncode& job, cudaStream_t stream) {
  return launch(count_planes_kernel, dim3(1, job.frame_count), 32, stream, job);
}

cudaError_t encode_tiles(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         cudaStream_t stream) {
  constexpr std::uint32_t kTilesOfBlock = kEncodeTileThreads / 32;
  PYF_CUDA_TRY(launch(encode_tiles_kernel, dim3((job.tiles + kTilesOfBlock - 1) / kTilesOfBlock, job.frame_count),
                      kEncodeTileThreads, stream, job));
  return launch_segments<const ProgressiveEncode>(segment_sizes_kernel<64>, segment_sizes_kernel<256>,
                                                  segment_sizes_kernel<1024>, job, units, most_tiles, stream);
}

cudaError_t encode_specials(const ProgressiveEncode& job, cudaStream_t stream) {
  const dim3 pieces(static_cast<unsigned>(mask_pieces(job.count)), job.frame_count);
  PYF_CUDA_TRY(launch(encode_specials_kernel, pieces, kSpecialThreads, stream, job));
  return launch(place_specials_kernel, dim3(1, job.frame_count), kSpecialThreads, stream, job);
}

cudaError_t order_segments(const ProgressiveEncode& job, std::uint32_t units, cudaStream_t stream) {
  constexpr std::size_t kMostShared = 96 << 10;
  std::size_t segments = units * static_cast<std::size_t>(job.pieces),
              shared_bytes = segments * (sizeof(ProgressiveSegment) + sizeof(std::uint64_t));
  if (shared_bytes > kMostShared) segments = shared_bytes = 0;
  if (job.frame_count == 0) return cudaSuccess;
  PYF_CUDA_TRY(cudaFuncSetAttribute(order_segments_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kMostShared)));
  order_segments_kernel<<<dim3(1, job.frame_count), kOrderThreads, shared_bytes, stream>>>(job,
                                                                                           static_cast<int>(segments));
  return cudaGetLastError();
}

cudaError_t write_frames(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         const EncodeParams& frame, ChunkPlan* plans, cudaStream_t stream) {
  constexpr std::uint32_t kTilesOfBlock = kWriteThreads / 32;
  constexpr std::uint64_t kMostBlocks = 2112;
  PYF_CUDA_TRY(launch(write_head_kernel, dim3(1, job.frame_count), kOrderThreads, stream, job));
  PYF_CUDA_TRY(launch_segments<const ProgressiveEncode>(locate_pieces_kernel<64>, locate_pieces_kernel<256>,
                                                        locate_pieces_kernel<1024>, job, units, most_tiles, stream));
  PYF_CUDA_TRY(launch(write_pieces_kernel, dim3((job.tiles + kTilesOfBlock - 1) / kTilesOfBlock, job.frame_count),
                      kWriteThreads, stream, job));
  if (job.special.data != nullptr)
    PYF_CUDA_TRY(launch(write_specials_kernel, dim3(static_cast<unsigned>(mask_pieces(job.count)), job.frame_count),
                        kSpecialThreads, stream, job));
  PYF_CUDA_TRY(launch(write_headers_kernel, dim3(1, job.frame_count), 32, stream, job, frame, plans));
  const auto blocks = static_cast<unsigned>(std::min(job.value_bytes >> 16, kMostBlocks) + 1);
  return launch(store_values_kernel, dim3(blocks, job.frame_count), kCopyThreads, stream, job);
}

}  // namespace pyfilter::cuda
