// SPDX-License-Identifier: BSD-3-Clause
// Decoding frames of effort "ratio" on a GPU: the job from the host, and what the first kernel makes of each frame.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/codec.cuh"
#include "core/cuda/sizes.cuh"
#include "lossless/binned_model.hpp"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kAllOfWarp = 0xFFFFFFFFu, kBinSlots = 1u << kBinTableBits;
inline constexpr std::uint32_t kBinnedFrames = usual_size(512, 3);  // the most frames of a launch
inline constexpr std::uint32_t kMostBinnedWarps = 16;               // of a thread block; each decodes a unit

__device__ __forceinline__ std::uint32_t lane_of_warp() { return threadIdx.x % 32; }

// A stream's tables. A slot has its symbol; a symbol of a table its frequency and, from bit 16 on, its first slot.
struct SymbolTables {
  alignas(16) std::uint32_t ranges[kMostBinTables * kSymbols];
  alignas(16) std::uint8_t symbols[kMostBinTables * kBinSlots];
};

// A frame whose model has been read. `good` is 0 if the frame is damaged.
struct OpenBins {
  std::uint32_t good;
  std::uint32_t directory_at;               // offset in the payload
  std::uint32_t units, first_unit, wanted;  // of the frame; the first requested one, and their number
  std::uint32_t stored;                     // first differences of a unit
  BinnedParts model;
  std::uint64_t dictionary[kMostEntries];
};

struct BinnedDecode {
  NumberMap map;              // the dtype's fields
  std::uint64_t values;       // of a frame
  std::uint64_t start, stop;  // requested values
  const DecodeFrame* frames;  // nullptr: use only_frame
  DecodeFrame only_frame;
  std::uint32_t frame_count, warps;  // warps: of a thread block
  OpenBins* opened;
  SymbolTables* tables;      // two of each frame: of differences and of remainders
  std::uint32_t* next_work;  // counts the groups of units that are taken
  // Memory of each warp: levels, and numbers of units that are not requested as a whole.
  std::uint8_t* scratch;
  std::size_t level_bytes, scratch_bytes;

  __device__ __forceinline__ const DecodeFrame& frame(std::uint32_t i) const {
    return frames != nullptr ? frames[i] : only_frame;
  }
};

// Launchers of the kernel that decodes units, for a type of values.
struct BinnedKernels {
  // Returns the number of thread blocks that are resident on the device, and of how many warps: as many as are given,
  // or fewer.
  cudaError_t (*resident)(std::uint32_t* warps, std::uint32_t* blocks);
  cudaError_t (*decode)(const BinnedDecode& job, std::uint32_t blocks, cudaStream_t stream);
};

// Decodes a group of frames of effort "ratio".
Status decode_binned_frames(const FrameGroup& frames, std::uint64_t start, std::uint64_t stop, cudaStream_t stream);

}  // namespace pyfilter::cuda
