// SPDX-License-Identifier: BSD-3-Clause
// The memory of a warp for a tile, and the start of a pass over it (cpu/work.hpp has the CPU's). The first pass may be
// in rings of steps in shared memory; other memory is global.
#pragma once

#include <cstdint>
#include <type_traits>

#include "adaptive/cuda/foresee.cuh"
#include "adaptive/cuda/params.cuh"
#include "adaptive/cuda/slots.cuh"
#include "adaptive/tile.hpp"

namespace pyfilter::cuda {

// How units are decoded: in rings for one kind of tile, or in flat memory.
enum class UnitMode : std::uint32_t { flat = 0, line = 1, plane = 2, volume = 3 };

template <TileKind K>
struct KindOf<RingCells<K, false>> {
  using Sizes = RingCells<K, true>;

  static constexpr TileKind kind = K;
  static constexpr std::uint32_t range_taps = 2 * static_cast<std::uint32_t>(K) + 1;
};

inline constexpr std::uint32_t kMaskRing = 128;
// A kernel's memory of tiles, and whether it has refining passes. Then a second warp helps to decode. Decoding blocks
// of a multiprocessor: shared memory has room for no more, or registers.
template <UnitMode kMode, bool kRefines>
struct UnitKernel {
  static constexpr UnitMode mode = kMode;
  static constexpr bool refines = kRefines;
  static constexpr int threads = kRefines ? 64 : 32, resident = kRefines ? 6 : 12;
};
// Calls work(kernel) with the kernel for tiles of a kind at a place.
template <class Work>
auto with_unit_kernel(TileKind kind, TilePlace place, const Work& work) {
  const auto in_rings = [&](auto mode) {
    if (place == TilePlace::rings) return work(UnitKernel<mode.value, false>{});
    return work(UnitKernel<mode.value, true>{});
  };
  if (place == TilePlace::flat) return work(UnitKernel<UnitMode::flat, true>{});
  if (kind == TileKind::line) return in_rings(std::integral_constant<UnitMode, UnitMode::line>{});
  if (kind == TileKind::plane) return in_rings(std::integral_constant<UnitMode, UnitMode::plane>{});
  return in_rings(std::integral_constant<UnitMode, UnitMode::volume>{});
}
template <UnitMode kMode, bool kRefines>
inline constexpr TilePlace kPlaceOf = kMode == UnitMode::flat ? TilePlace::flat
                                      : kRefines              ? TilePlace::refined
                                                              : TilePlace::rings;
// Dynamic shared memory of a warp.
template <UnitMode kMode>
constexpr std::size_t ring_bytes() {
  if constexpr (kMode == UnitMode::flat) return 0;
  return sizeof(float) * RingShape<static_cast<TileKind>(kMode)>::kCells;
}

// Masks of steps: a ring of the last ones, or all (flat).
template <bool kFlat>
struct StepMasks {
  std::uint32_t* words;

  __device__ __forceinline__ std::uint32_t& operator[](std::ptrdiff_t step) const {
    return kFlat ? words[step] : words[static_cast<std::uint32_t>(step) % kMaskRing];
  }
};

// Shared memory of a warp.
template <UnitMode kMode>
struct UnitMemory {
  static constexpr bool kFlat = kMode == UnitMode::flat;
  using Cells = std::conditional_t<kFlat, FlatCells, RingCells<static_cast<TileKind>(kMode), false>>;

  WavePass pass;
  union {
    WaveOf<Cells> wave;       // of the first pass
    RefiningMemory refining;  // of others
  };
  Dense dense;
  Lattice lattice;
  AdaptiveTile tile;
  std::uint32_t first_of_level[kContextLevels];
  FrequentSlots frequent;
  std::uint32_t masks[kFlat ? 1 : kMaskRing];
};

// Begins a tile; make_tile() is called by one lane.
template <UnitMode kMode, class MakeTile>
PYF_LANES void begin_tile(UnitMemory<kMode>& memory, const UnitScratch& scratch, const MakeTile& make_tile) {
  __syncwarp();
  if (this_lane() == 0) {
    const AdaptiveTile tile = make_tile();
    memory.tile = tile;
    Dense& dense = memory.dense;
    dense.planes = tile.planes;
    dense.rows = tile.rows;
    dense.columns = tile.columns;
    for (std::uint32_t y = 0; y < kRows; ++y) dense.lengths[y] = y < tile.rows ? tile.length(y) : 0;
    dense.values = scratch.dense_values;
    dense.sizes = scratch.dense_sizes;
    dense.kinds = scratch.kinds;
  }
  __syncwarp();
}

// Loads the weights and the scales of the first pass.
template <UnitMode kMode>
PYF_LANES void load_weights(UnitMemory<kMode>& memory, const PassModel& model) {
  WavePass& pass = memory.pass;
  const auto& wave = memory.wave;
  const std::uint32_t fours = (model.taps + 3) / 4, feature_fours = (wave.features + 3) / 4;
  for (std::uint32_t i = this_lane(); i < kSets * 4 * fours; i += kRows) {
    const std::uint32_t set = i / (4 * fours), k = i % (4 * fours);
    pass.weights[set][k] = k < model.taps ? model.weights[k][set] : 0;
  }
  for (std::uint32_t k = this_lane(); k < 4 * feature_fours; k += kRows)
    pass.scales[k] = k < wave.features ? model.scales[wave.feature[k]][0] : 0;
  for (std::uint32_t k = this_lane(); k < 4 * fours; k += kRows) pass.taps_at[k] = k < model.taps ? wave.tap[k] : 0;
  for (std::uint32_t k = this_lane(); k < 4 * feature_fours; k += kRows)
    pass.features_at[k] = k < wave.features ? wave.code_tap[wave.feature[k]] : 0;
  if (this_lane() == 0) {
    pass.tap_fours = fours;
    pass.feature_fours = feature_fours;
    pass.constant = model.scales[kConstantFeature][0];
    pass.of_range = model.scales[kRangeFeature][0];
    pass.of_distance = model.scales[kDistanceFeature][0];
  }
}
// Loads what all passes have.
PYF_LANES void load_pass(WavePass& pass, const PassModel& model) {
  if (this_lane() < kSets) pass.factors[this_lane()] = model.factors[this_lane()];
  if (this_lane() < kMostClasses - 1) pass.thresholds[this_lane()] = model.thresholds[this_lane()];
  if (this_lane() == 0) {
    const float units[4] = {kUnits[0], kUnits[1], kUnits[2], kUnits[3]};
    pass.unit = units[model.unit];
    pass.classes = model.classes;
  }
}

// Masks of the steps of a tile in global memory; there are some before step 0.
PYF_LANES std::uint32_t* flat_masks(const UnitScratch& scratch) { return scratch.masks + UnitScratch::kMaskMargin; }

template <UnitMode kMode>
PYF_LANES StepMasks<kMode == UnitMode::flat> masks_of(UnitMemory<kMode>& memory, const UnitScratch& scratch) {
  if constexpr (kMode == UnitMode::flat) return {flat_masks(scratch)};
  return {memory.masks};
}

// Begins the first pass.
template <UnitMode kMode>
PYF_LANES void begin_pass(UnitMemory<kMode>& memory, TileKind kind, const AdaptiveTaps& taps, const PassModel& model,
                          const UnitScratch& scratch) {
  constexpr bool kFlat = kMode == UnitMode::flat;
  auto& wave = memory.wave;
  if (this_lane() == 0) {
    memory.lattice = Lattice(memory.dense, kind, model.log2);
    if constexpr (kFlat) {
      wave.kind = kind;
      wave.range_taps = taps.ranges.count;
    }
    wave.layout = make_layout(kind, memory.lattice.planes, memory.lattice.rows, memory.lattice.columns);
    if constexpr (kFlat) {
      wave.values.first = scratch.values + wave.layout.before();
      wave.sizes.first = scratch.sizes + wave.layout.before();
    } else {
      using Shape = RingShape<static_cast<TileKind>(kMode)>;
      wave.layout.step_cells = Shape::kStep;
      wave.layout.plane_cells = -Shape::kPlane;
    }
    wave.pass = &memory.pass;
    wave.set_neighbours(model, taps.causal, taps.causal_codes, taps.ranges);
  }
  __syncwarp();
  load_weights(memory, model);
  load_pass(memory.pass, model);
  if constexpr (kFlat) {
    const auto floats = static_cast<std::uint32_t>(wave.layout.floats());
    for (std::uint32_t i = this_lane(); i < floats; i += kRows) scratch.values[i] = scratch.sizes[i] = 0;
    const std::uint32_t masks = UnitScratch::kMaskMargin + wave.layout.steps();
    for (std::uint32_t i = this_lane(); i < masks; i += kRows) scratch.masks[i] = 0;
  } else {
    for (std::uint32_t i = this_lane(); i < RingShape<static_cast<TileKind>(kMode)>::kCells; i += kRows)
      ring_memory()[i] = 0;
    for (std::uint32_t i = this_lane(); i < kMaskRing; i += kRows) memory.masks[i] = 0;
  }
  __syncwarp();
}

// Begins a refining pass; its known values are in the dense array. `help`: nullptr for a warp alone.
template <UnitMode kMode>
PYF_LANES void begin_refining(UnitMemory<kMode>& memory, TileKind kind, const PassModel& model,
                              const UnitScratch& scratch, HelpMemory* help) {
  __syncwarp();
  if (this_lane() == 0) {
    const Lattice lattice(memory.dense, kind, model.log2);
    memory.lattice = lattice;
    memory.refining.shape = Refinement(kind, lattice.planes, lattice.rows, lattice.columns);
  }
  load_pass(memory.pass, model);
  __syncwarp();
  if (help != nullptr) {
    call_helper(help->ring, HelperTask::classes);
    begin_classes_together(memory.refining.shape, memory.dense, memory.lattice, scratch);
  } else {
    begin_classes(memory.refining.shape, memory.dense, memory.lattice, scratch, 0, 1, [] { __syncwarp(); });
  }
}

}  // namespace pyfilter::cuda
