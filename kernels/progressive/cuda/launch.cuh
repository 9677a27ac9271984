// SPDX-License-Identifier: BSD-3-Clause
// The launchers of progressive frames: those that do not know the dtype, and a table of those that do.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/types.hpp"
#include "progressive/layout.hpp"

namespace pyfilter::cuda {

struct ProgressiveDecode;
struct InversePass;
struct SpecialDecode;
struct ProgressiveEncode;
struct MeasurePass;
struct MeasureLevel;
struct EncodeParams;
struct ChunkPlan;
struct RangeKeys;

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 blocks, int threads, cudaStream_t stream,
                   const Arguments&... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return cudaSuccess;
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
  return cudaGetLastError();
}

// Heads, the places of pieces (`most_tiles` is what no unit has more of), and the planes of the tiles of all units that
// are wanted.
cudaError_t open_frames(const ProgressiveDecode& job, cudaStream_t stream);
cudaError_t find_pieces(const ProgressiveDecode& job, std::uint32_t units, std::uint32_t most_tiles,
                        cudaStream_t stream);
cudaError_t decode_tiles(const ProgressiveDecode& job, cudaStream_t stream);
// What there is of special values; and, where frames may have missing ones, their mask.
cudaError_t make_mask(const SpecialDecode& job, bool masked, cudaStream_t stream);

// How many planes units have; the pieces of their tiles.
cudaError_t count_planes(const ProgressiveEncode& job, cudaStream_t stream);
cudaError_t encode_tiles(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         cudaStream_t stream);
// The order of segments, errors that are bounds, and which ones are to be measured.
cudaError_t order_segments(const ProgressiveEncode& job, std::uint32_t units, cudaStream_t stream);
// Frames.
cudaError_t write_frames(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         const EncodeParams& frame, ChunkPlan* plans, cudaStream_t stream);

// Launchers for a dtype.
struct ProgressiveKernels {
  // Planes of tiles from the first of the units that are wanted on to coefficients.
  cudaError_t (*decode_planes)(const ProgressiveDecode& job, std::uint32_t first_tile, cudaStream_t stream);
  // A pass along an axis; `last`: to values.
  cudaError_t (*inverse)(const InversePass& pass, int axis, bool last, cudaStream_t stream);
  cudaError_t (*roots)(const InversePass& pass, cudaStream_t stream);
  cudaError_t (*put_specials)(const SpecialDecode& job, cudaStream_t stream);
  // Values to integers; `ranges`, which are 0, have room for that of each chunk.
  cudaError_t (*quantise)(const ProgressiveEncode& job, RangeKeys* ranges, cudaStream_t stream);
  // Integers to coefficients; `layout` is the host's copy.
  cudaError_t (*forward)(const ProgressiveEncode& job, const ProgressiveLayout& layout, cudaStream_t stream);
  cudaError_t (*encode_planes)(const ProgressiveEncode& job, cudaStream_t stream);
  // A pass along an axis for a reader; `last`: against what was encoded.
  cudaError_t (*measure_pass)(const MeasurePass& pass, int axis, bool last, cudaStream_t stream);
  // The passes of a level for some readers, and their errors.
  cudaError_t (*measure)(const MeasureLevel& level, const ProgressiveLayout& layout, cudaStream_t stream);
  // Those of three levels of a line.
  cudaError_t (*measure_line)(const MeasureLine& line, const ProgressiveLayout& layout, cudaStream_t stream);
};

// nullptr where there are none.
const ProgressiveKernels* progressive_kernels(Dtype dtype);

}  // namespace pyfilter::cuda
