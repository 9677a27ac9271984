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

// Frames that are worked on together at most, and the part of the device's memory that they may take; one that needs
// more is worked on by itself.
inline constexpr std::size_t kMostFrames = kMostOfLaunch;
inline constexpr std::uint64_t kFramesPart = 8;

// Pieces of a tile at most: planes of 29 or 58 bits, and the last.
inline int most_pieces(std::size_t width) { return width == 4 ? 30 : 59; }

// One for each frame.
struct FramePart {
  std::size_t at = 0, stride = 0;

  template <class T>
  [[nodiscard]] PerFrame<T> in(std::uint8_t* memory) const {
    return {memory + at, stride};
  }
};

// One allocation in parts.
class MemoryParts {
 public:
  // For the whole batch.
  std::size_t place(std::size_t part) { return place_behind(bytes_, part); }
  // For each frame.
  FramePart place_each(std::size_t part, std::size_t frames) {
    FramePart p;
    p.stride = padded(part);
    p.at = place(p.stride * frames);
    return p;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  static std::size_t padded(std::size_t part) { return (part + 255) / 256 * 256; }

 private:
  std::size_t bytes_ = 0;
};

// A pass over a grid.
struct PassPlan {
  int unit = 0, axis = 0;
  Extents from, to;
};

// What the layout says, for the host: of the units of a level and above.
struct ProgressivePlan {
  ProgressiveShared shared;
  std::vector<TileGroup> groups;
  std::vector<PassPlan> passes;
  std::uint64_t room[2] = {1, 1};  // integers that passes make, by turns
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
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) room[i % 2] = std::max(room[i % 2], passes[i].to.count());
    std::reverse(groups.begin(), groups.end());  // the large units first
  }
};

// All passes of a plan, from grid to grid by turns through two rooms: launch(pass, axis, last) for each.
template <class Pass, class Launch>
Status run_passes(const ProgressivePlan& plan, const FramePart (&room)[2], std::uint8_t* memory, Pass& pass,
                  const Launch& launch) {
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const PassPlan& step = plan.passes[i];
    pass.unit = step.unit;
    pass.from = step.from;
    pass.to = step.to;
    pass.out = room[i % 2].template in<std::uint8_t>(memory);
    PYF_TRY(check(launch(pass, step.axis, i + 1 == plan.passes.size()), "launch of a pass"));
    pass.in = pass.out;
  }
  return kOk;
}

// A batch that has been checked, of chunks of `count` values. Waits for the device once, to know which chunks the CPU
// has to encode: those with special values, and those whose bound is finer than integers are.
Status encode_progressive_chunks(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count);

// Values [start, stop) of the grid of `level` of frames of one shape and dtype, those of `info`. What is wrong with a
// frame is noted in its fault word, which must be 0.
Status decode_progressive_frames(const FrameInfo& info, const std::vector<ProgressiveFrame>& frames, int level,
                                 std::uint64_t start, std::uint64_t stop, cudaStream_t stream);

// Whether `available` bytes of a frame in host memory hold its first `segments` segments, and `value_bytes` is the size
// of the grid of `level`. *end: behind the last byte that is needed.
Status check_progressive_part(const void* frame, std::size_t available, std::uint32_t segments, std::uint32_t level,
                              std::size_t value_bytes, FrameInfo* info, std::uint64_t* end);
// What is to be decoded of a frame of which the first `bytes` bytes are in device memory.
ProgressiveFrame progressive_part(const FrameInfo& info, const std::uint8_t* frame, std::uint64_t bytes,
                                  std::uint8_t* values, std::uint32_t* fault, std::uint32_t segments);

}  // namespace pyfilter::cuda
