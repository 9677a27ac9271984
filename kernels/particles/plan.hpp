// SPDX-License-Identifier: BSD-3-Clause
// The plan of a chunk of particles, and the coders of its tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan.hpp"

namespace pyfilter {

// Scratch memory of a thread: values, codes, keys and sequences of a tile, and entries to sort.
inline constexpr std::size_t kParticleScratchBytes = std::size_t{416} << 10;

// grid.block_dims: number of coordinates.
struct ParticlePlan : Plan {
  // to encode: the number of leading particles that are sorted, whether only within tiles, and the indices (low halves)
  // of the chunk's particles in sorted order; nullptr: identity order
  std::uint64_t sorted_particles = 0;
  bool tiles_alone = false;
  const std::uint64_t* entries = nullptr;
};

struct ParticleCoder {
  TileCoder tiles;
  void (*order_chunk)(const ParticlePlan& plan, const void* values, std::uint32_t count, std::uint64_t* entries,
                      void* scratch);
  void (*order_tile)(const ParticlePlan& plan, const void* values, std::uint32_t* particles, std::uint32_t count,
                     void* scratch);
  // Sorts entries by their keys' lowest bits, stably; `other` has the same size.
  void (*sort_entries)(std::uint64_t* entries, std::uint64_t* other, std::size_t count, unsigned bits);
  bool (*is_ordered)(const ParticlePlan& plan, const void* values, std::uint64_t tile, void* scratch);
  // Estimates lorenzo's bytes (estimate.hpp).
  std::uint64_t (*estimate_lorenzo)(const ParticlePlan& plan, const void* values, void* scratch);
};

}  // namespace pyfilter
