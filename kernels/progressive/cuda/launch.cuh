// SPDX-License-Identifier: BSD-3-Clause
// The launchers of progressive frames: functions that do not depend on the dtype, and a table of functions by dtype.
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

// Reads heads, locates pieces (`most_tiles`: the most tiles of any unit), and decodes the planes of all tiles of the
// requested units.
cudaError_t open_frames(const ProgressiveDecode& job, cudaStream_t stream);
cudaError_t find_pieces(const ProgressiveDecode& job, std::uint32_t units, std::uint32_t most_tiles,
                        cudaStream_t stream);
cudaError_t decode_tiles(const ProgressiveDecode& job, cudaStream_t stream);
// Reads the section of special values and, if frames may have missing values, their mask.
cudaError_t make_mask(const SpecialDecode& job, bool masked, cudaStream_t stream);

// Counts the planes of units; encodes the pieces of their tiles.
cudaError_t count_planes(const ProgressiveEncode& job, cudaStream_t stream);
cudaError_t encode_tiles(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         cudaStream_t stream);
// Encodes the section of special values, and finds its size.
cudaError_t encode_specials(const ProgressiveEncode& job, cudaStream_t stream);
// Orders segments, bounds their errors, and selects the errors to measure.
cudaError_t order_segments(const ProgressiveEncode& job, std::uint32_t units, cudaStream_t stream);
// Writes the frames.
cudaError_t write_frames(const ProgressiveEncode& job, std::uint32_t units, std::uint32_t most_tiles,
                         const EncodeParams& frame, ChunkPlan* plans, cudaStream_t stream);

// Launchers for a dtype.
struct ProgressiveKernels {
  // Planes of tiles to coefficients, from the first requested unit on.
  cudaError_t (*decode_planes)(const ProgressiveDecode& job, std::uint32_t first_tile, cudaStream_t stream);
  // A pass along an axis; `last`: writes values.
  cudaError_t (*inverse)(const InversePass& pass, int axis, bool last, cudaStream_t stream);
  cudaError_t (*roots)(const InversePass& pass, cudaStream_t stream);
  cudaError_t (*put_specials)(const SpecialDecode& job, cudaStream_t stream);
  // Values to integers; `ranges`: memory for each chunk's range, zeroed.
  cudaError_t (*quantise)(const ProgressiveEncode& job, RangeKeys* ranges, cudaStream_t stream);
  // Integers to coefficients; `layout`: the host's copy.
  cudaError_t (*forward)(const ProgressiveEncode& job, const ProgressiveLayout& layout, cudaStream_t stream);
  // The same for chunks with special values.
  cudaError_t (*quantise_specials)(const ProgressiveEncode& job, cudaStream_t stream);
  cudaError_t (*forward_specials)(const ProgressiveEncode& job, const ProgressiveLayout& layout, cudaStream_t stream);
  cudaError_t (*encode_planes)(const ProgressiveEncode& job, cudaStream_t stream);
  // A pass along an axis for a reader; `last`: compares with the encoded integers.
  cudaError_t (*measure_pass)(const MeasurePass& pass, int axis, bool last, cudaStream_t stream);
  // The passes of a level for several readers, and their errors.
  cudaError_t (*measure)(const MeasureLevel& level, const ProgressiveLayout& layout, cudaStream_t stream);
  // The same for three levels of a line.
  cudaError_t (*measure_line)(const MeasureLine& line, const ProgressiveLayout& layout, cudaStream_t stream);
};

// nullptr: the dtype is not supported.
const ProgressiveKernels* progressive_kernels(Dtype dtype);

}  // namespace pyfilter::cuda
