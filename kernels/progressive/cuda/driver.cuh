// SPDX-License-Identifier: BSD-3-Clause
// Progressive on a device, from the host's side.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "core/cuda/sizes.cuh"
#include "core/status.hpp"
#include "core/types.hpp"
#include "progressive/cuda/params.cuh"

namespace pyfilter::cuda {

// The most frames processed together, and the fraction of the device's memory that they may use; a frame that needs
// more is processed alone.
inline constexpr std::size_t kMostFrames = kMostOfLaunch;
inline constexpr std::uint64_t kFramesPart = 8;

// The most pieces of a tile: planes of 29 or 58 bits, and the last piece.
inline int most_pieces(std::size_t width) { return width == 4 ? 30 : 59; }

// Arrays of a batch, some of them with a slice for each frame.
class FrameArrays : public Arrays {
 public:
  explicit FrameArrays(std::size_t frames, std::uint8_t* memory = nullptr) noexcept : Arrays(memory), frames_(frames) {}
  // `bytes`: of a slice.
  template <class T>
  void add_each(PerFrame<T>& array, std::size_t bytes) {
    array.stride = padded(bytes);
    add(array.data, array.stride * frames_);
  }

 private:
  std::size_t frames_;
};

// A pass over a grid.
struct PassPlan {
  int unit = 0, axis = 0;
  Extents from, to;
};

// The layout as the host needs it: the units of a level and above.
struct ProgressivePlan {
  ProgressiveShared shared;
  std::vector<TileGroup> groups;
  std::vector<PassPlan> passes;
  std::uint64_t buffers[2] = {1, 1};  // integers of the two buffers that passes write in turn
  std::uint32_t tiles = 0, first_tile = 0;

  ProgressivePlan(const Shape& shape, int level) {
    ProgressiveLayout& layout = shared.layout;
    layout = {};
    make_layout(extents_of(shape), layout);
    Extents known = layout.grids[layout.levels];
    for (int u = 0; u < layout.units; ++u) {
      const ProgressiveUnit& unit = layout.unit[u];
      shared.first_tile[u] = tiles;
      tiles += unit.tiles;
      if (unit.level < level) continue;
      for (std::uint32_t t = 0; t < unit.tiles; t += kGroupTiles) groups.push_back({static_cast<std::uint32_t>(u), t});
      const Extents g = layout.grids[unit.level];
      const PassPlan pass{u, unit.axis, known, {g.z, unit.axis == 0 ? known.y : g.y, unit.axis == 2 ? g.x : known.x}};
      known = pass.to;
      passes.push_back(pass);
    }
    shared.first_tile[layout.units] = tiles;
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) buffers[i % 2] = std::max(buffers[i % 2], passes[i].to.count());
    std::reverse(groups.begin(), groups.end());  // large units first
  }
};

// Runs all passes of a plan, from grid to grid between two buffers: launch(pass, axis, last) for each.
template <class Pass, class Launch>
Status run_passes(const ProgressivePlan& plan, const PerFrame<std::uint8_t> (&buffers)[2], Pass& pass,
                  const Launch& launch) {
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const PassPlan& step = plan.passes[i];
    pass.unit = step.unit;
    pass.from = step.from;
    pass.to = step.to;
    pass.out = buffers[i % 2];
    PYF_TRY(check(launch(pass, step.axis, i + 1 == plan.passes.size()), "launch of a pass"));
    pass.in = pass.out;
  }
  return kOk;
}

// Encodes a checked batch of chunks of `count` values. Waits for the device to learn which chunks have special values,
// which are encoded behind the others, and which have a bound finer than the integers: the CPU encodes those.
Status encode_progressive_chunks(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

// Decodes values [start, stop) of the grid of `level` from frames of one shape and dtype, those of `info`. A fault of a
// frame is written to its fault word, which must be 0.
Status decode_progressive_frames(const FrameInfo& info, const std::vector<ProgressiveFrame>& frames, int level,
                                 std::uint64_t start, std::uint64_t stop, cudaStream_t stream);

// Checks that `available` bytes of a frame in host memory hold its first `segments` segments. Also checks that
// `value_bytes` is the size of the grid of `level`. *end: the end of the last needed byte.
Status check_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                              std::size_t value_bytes, FrameInfo* info, std::uint64_t* end);
// The decoding job of a frame whose first `bytes` bytes are in device memory.
ProgressiveFrame progressive_part(const FrameInfo& info, const std::uint8_t* frame, std::uint64_t bytes,
                                  std::uint8_t* values, std::uint32_t* fault, std::uint32_t segments);

}  // namespace pyfilter::cuda
