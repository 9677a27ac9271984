// SPDX-License-Identifier: BSD-3-Clause
// The launchers of lorenzo that work on residuals, whatever values they are of: by the width of codes and tile shape.
#pragma once

#include <cstddef>

#include "stages/cuda/entropy/blocks.cuh"
#include "stages/cuda/entropy/count.cuh"
#include "stages/cuda/entropy/huffman_encode.cuh"
#include "stages/cuda/entropy/rans_encode.cuh"

namespace pyfilter::cuda {

template <class Code, int S>
cudaError_t launch_count(const StreamParams& job, cudaStream_t stream) {
  unsigned resident = 0;
  PYF_CUDA_TRY(resident_blocks(count_kernel<Code, S>, kThreads, sizeof(CountSpace), &resident));
  const TileSample sample(job.base.tiles);
  const unsigned blocks = blocks_each(resident, (sample.count + 3) / 4, job.base.chunks);
  count_kernel<Code, S><<<dim3(blocks, job.base.chunks), kThreads, sizeof(CountSpace), stream>>>(job);
  return cudaGetLastError();
}

template <class Code, int S>
cudaError_t launch_streams(const StreamParams& job, cudaStream_t stream) {
  unsigned resident = 0;
  const auto kernel = job.coder == kRans ? rans_encode_kernel<Code, S> : huffman_encode_kernel<Code, S>;
  const std::size_t bytes = job.coder == kRans ? kEncodeBytes : 0;
  PYF_CUDA_TRY(resident_blocks(kernel, kStreamThreads, bytes, &resident));
  const unsigned blocks = blocks_each(resident, (job.base.tiles + kStreamWarps - 1) / kStreamWarps, job.base.chunks);
  kernel<<<dim3(blocks, job.base.chunks), kStreamThreads, bytes, stream>>>(job);
  return cudaGetLastError();
}

#define PYF_INSTANTIATE_CODES(Code, S)                                           \
  template cudaError_t launch_count<Code, S>(const StreamParams&, cudaStream_t); \
  template cudaError_t launch_streams<Code, S>(const StreamParams&, cudaStream_t)

}  // namespace pyfilter::cuda
