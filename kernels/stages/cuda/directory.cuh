// SPDX-License-Identifier: BSD-3-Clause
// A frame's directory (docs/format.md, section 4.2): the location of a tile, and its check. Faults of frames.
#pragma once

#include <cstdint>

#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

__device__ __forceinline__ void report(const DecodeFrame& frame, Fault fault) {
  atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(fault));
}

// Returns the frame's part behind its model, which begins with the directory, as find_tile() expects it.
__device__ __forceinline__ DecodeFrame behind_model(const DecodeFrame& frame, std::uint32_t directory_at) {
  DecodeFrame part = frame;
  part.payload += directory_at;
  part.payload_bytes -= directory_at;
  return part;
}

// The location of a tile, in words behind the directory; a fault if the directory is invalid.
struct TileLocation {
  std::uint32_t first, count;
  bool uniform;
  Fault fault;
};
__device__ __forceinline__ TileLocation find_tile(const DecodeFrame& frame, std::uint32_t tiles, std::uint32_t tile) {
  constexpr std::uint32_t kUniform = 0x80000000u;
  const auto* directory = reinterpret_cast<const std::uint32_t*>(frame.payload);
  const std::uint32_t entry = directory[tile], next = directory[tile + 1];
  const std::uint32_t first = entry & ~kUniform, last = next & ~kUniform;
  const std::uint64_t available = frame.payload_bytes / 4 - tiles - 1;
  const bool ends = tile + 1 == tiles;
  const bool bad = first > last || last > available || (tile == 0 && first != 0) || (ends && next != last) ||
                   (ends && 4 * (std::uint64_t{last} + tiles + 1) != frame.payload_bytes);
  return {first, last - first, (entry & kUniform) != 0, bad ? Fault::directory : Fault::none};
}

}  // namespace pyfilter::cuda
