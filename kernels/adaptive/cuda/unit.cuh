// SPDX-License-Identifier: BSD-3-Clause
// Decodes units with a warp each, a row of the tile in each lane (cpu/unit_decode.hpp). Frames without refining passes
// use rings of steps in shared memory, others use global memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "adaptive/cuda/output.cuh"
#include "adaptive/cuda/planes.cuh"
#include "adaptive/cuda/stream.cuh"
#include "adaptive/known.hpp"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {

// How units are decoded: in rings for one kind of tile, or in flat memory.
enum class UnitMode : std::uint32_t { flat = 0, line = 1, plane = 2, volume = 3 };

template <TileKind K>
struct KindOf<RingCells<K, false>> {
  using Sizes = RingCells<K, true>;

  static constexpr TileKind kind = K;
  static constexpr std::uint32_t range_taps = 2 * static_cast<std::uint32_t>(K) + 1;
  PYF_ON_LANES static constexpr bool refines(const WavePass&) { return false; }
};

inline constexpr std::uint32_t kMaskRing = 128;
inline constexpr int kResidentWarps = 12;  // on a multiprocessor: its shared memory has room for no more

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
  WaveOf<Cells> wave;
  Dense dense;
  Lattice lattice;
  AdaptiveTile tile;
  std::uint32_t first_of_level[kContextLevels];
  std::uint32_t masks[kFlat ? 1 : kMaskRing];
};

// State of the unit that a warp decodes.
template <class T, UnitMode kMode>
struct Unit {
  static constexpr bool kFlat = kMode == UnitMode::flat, kDeep = kMode == UnitMode::volume;

  UnitMemory<kMode>& memory;
  const AdaptiveDecode& job;
  const DecodeFrame& frame;
  const OpenFrame& open;
  double offset, step_size;
  T* out;
  const std::uint32_t* slots;
  UnitScratch scratch;  // flat
  float* planes;        // memory of PlaneWindows
  UnitStream stream;
  const std::uint32_t *stored, *stored_end;
  bool failed;  // of this lane

  // ---- values

  __device__ __forceinline__ StepMasks<kFlat> masks() const {
    if constexpr (kFlat) return {scratch.masks + UnitScratch::kMaskMargin};
    return {memory.masks};
  }
  __device__ __forceinline__ float normalised(T x) const {
    return static_cast<float>((static_cast<double>(x) - offset) * (1 / step_size));
  }
  __device__ __forceinline__ T reconstructed(float r) const {
    return static_cast<T>(offset + step_size * static_cast<double>(r));
  }
  // Returns the lane's next verbatim value (`exact`) or stored r (`origin`). Lanes take them in order.
  __device__ __forceinline__ const std::uint32_t* take_stored(std::uint32_t exact, std::uint32_t origin) {
    constexpr std::uint32_t kWords = sizeof(T) / 4;
    const std::uint32_t words = kWords * popcount(exact & lanes_below()) + popcount(origin & lanes_below());
    const std::uint32_t own = (exact >> this_lane() & 1) != 0 ? kWords : (origin >> this_lane() & 1) != 0 ? 1 : 0;
    const std::uint32_t* const mine = stored + words;
    const bool there = own == 0 || (stored_end - stored >= static_cast<std::ptrdiff_t>(words + own));
    failed = failed || !there;
    const auto left = static_cast<std::uint32_t>(stored_end - stored);
    stored += min(left, kWords * popcount(exact) + popcount(origin));
    return there ? mine : nullptr;
  }
  // Sets the value and the r of a lane with a special value.
  __device__ __forceinline__ void special_values(std::uint32_t sentinel, std::uint32_t exact, std::uint32_t origin,
                                                 float other, T& value, float& r) {
    const std::uint32_t* const from = take_stored(exact, origin);
    const std::uint32_t own = 1u << this_lane();
    if (((sentinel | exact | origin) & own) == 0 || from == nullptr) return;
    r = other;
    if ((sentinel & own) != 0) {
      std::memcpy(&value, &frame.sentinel, sizeof(T));
    } else if ((exact & own) != 0) {
      std::memcpy(&value, from, sizeof(T));
      const float t = normalised(value);
      if (t < kFarthest && t > -kFarthest) r = t;
    } else {
      r = std::bit_cast<float>(from[0]);
      value = reconstructed(r);
    }
  }

  // ---- steps

  // Returns the size of the lane's code.
  template <bool kMasks>
  __device__ __forceinline__ float decode_step(const Place& place, std::uint32_t step, std::uint32_t bits,
                                               const Ints& active, Output<T>& output) {
    auto& wave = memory.wave;
    const Expected e = expect(wave, place, step);
    const Ints level = context_level_at(wave, e, place.cell);
    std::uint32_t sentinel = 0;
    Ints coded = active;
    if constexpr (kMasks) {
      const MaskNeighbours near(wave, masks(), step);
      sentinel = stream.read_flags(open.model, near.of_lane(this_lane()), bits);
      __syncwarp();
      if (this_lane() == 0) masks()[step] |= sentinel;
      coded = coded & ~condition_of_bits(sentinel);
    }
    const StepCodes codes = stream.read(memory.first_of_level, slots, level, bits & ~sentinel, coded);
    Floats code = float_of(codes.codes), value = fused(code, Floats::all(wave.pass->unit), e.value);
    const std::uint32_t special = sentinel | codes.exact | codes.origin;
    T decoded = reconstructed(value.v);
    if (special != 0) {
      special_values(sentinel, codes.exact, codes.origin, stand_in(wave, place, step).v, decoded, value.v);
      code = as_floats(bits_of(code) & ~condition_of_bits(special));
    }
    __syncwarp();  // all lanes have read
    store_values(wave, place, step, bits, active, value);
    const Floats size = least(absolute(code), Floats::all(kLargestSize));
    const auto x = static_cast<std::uint32_t>(place.x.v);
    if (active.v != 0) {
      failed = failed || !(value.v < 0x1p64f && value.v > -0x1p64f);
      output.put(x, static_cast<std::uint32_t>(place.lengths.v), decoded);
    }
    if constexpr (kFlat) {
      store_cells(wave.sizes, place.cell, active, size);
      if (active.v != 0) {
        const std::size_t at =
            memory.lattice.index(memory.dense, static_cast<std::uint32_t>(place.z.v), this_lane(), x);
        memory.dense.values[at] = value.v;
        memory.dense.sizes[at] = size.v;
        memory.dense.kinds[at] = (sentinel >> this_lane() & 1) != 0 ? kSentinel : kCoded;
      }
    } else {  // overwrite the step that left the ring
      store_cells(wave.sizes, place.cell, Ints::all(-1), select(active, size, Floats::all(0)));
    }
    __syncwarp();
    return active.v != 0 ? size.v : 0;
  }

  template <bool kMasks>
  __device__ __forceinline__ void decode_turn(std::uint32_t turn) {
    auto& wave = memory.wave;
    Place place(wave.layout, memory.lattice.lengths);
    if constexpr (!kFlat) place.cell = RingShape<static_cast<TileKind>(kMode)>::kFirstLane;
    const std::uint32_t steps = wave.layout.steps();
    auto output = Output<T>::begin(job, out, memory.tile, memory.lattice, wave.layout, place, !kFlat);
    auto windows = PlaneWindows::begin(planes, kDeep ? wave.layout.period() : 0);
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      if (!kFlat && kMasks) {
        if (this_lane() == 0) masks()[step] = 0;
        __syncwarp();
      }
      const Ints active = place.coded(wave, turn);
      const std::uint32_t bits = bits_of_condition(active);
      float size = 0;
      if (bits != 0) {
        size = decode_step<kMasks>(place, step, bits, active, output);
      } else if (!kFlat) {
        store_cells(wave.sizes, place.cell, Ints::all(-1), Floats::all(0));
        __syncwarp();
      }
      if constexpr (kDeep) {
        windows.next(size);
        __syncwarp();
      }
      const std::int32_t z = place.z.v;
      place.next();
      output.next(place, z);
      place.cell += wave.layout.step_cells;
    }
  }

  // ---- passes

  // Loads the weights of a pass; each of 16 lanes loads a set.
  __device__ __forceinline__ void load_pass(const PassModel& model) const {
    WavePass& pass = memory.pass;
    const auto& wave = memory.wave;
    const std::uint32_t fours = (model.taps + 3) / 4, feature_fours = (wave.features + 3) / 4;
    for (std::uint32_t i = this_lane(); i < kSets * 4 * fours; i += kRows) {
      const std::uint32_t set = i / (4 * fours), k = i % (4 * fours);
      pass.weights[set][k] = k < model.taps ? model.weights[k][set] : 0;
    }
    for (std::uint32_t i = this_lane(); i < kSets * 4 * feature_fours; i += kRows) {
      const std::uint32_t set = i / (4 * feature_fours), k = i % (4 * feature_fours);
      pass.scales[set][k] = k < wave.features ? model.scales[wave.feature[k]][set] : 0;
    }
    if (this_lane() < kSets) {
      const std::uint32_t set = this_lane();
      pass.constant[set] = model.scales[kConstantFeature][set];
      pass.of_range[set] = model.scales[kRangeFeature][set];
      pass.of_distance[set] = model.scales[kDistanceFeature][set];
      pass.factors[set] = model.factors[set];
    }
    for (std::uint32_t k = this_lane(); k < 4 * fours; k += kRows) pass.taps_at[k] = k < model.taps ? wave.tap[k] : 0;
    for (std::uint32_t k = this_lane(); k < 4 * feature_fours; k += kRows)
      pass.features_at[k] = k < wave.features ? wave.code_tap[wave.feature[k]] : 0;
    if (this_lane() < kMostClasses - 1) pass.thresholds[this_lane()] = model.thresholds[this_lane()];
    if (this_lane() == 0) {
      pass.tap_fours = fours;
      pass.feature_fours = feature_fours;
      const float units[4] = {kUnits[0], kUnits[1], kUnits[2], kUnits[3]};
      pass.unit = units[model.unit];
      pass.classes = model.classes;
      pass.refining = model.refining;
    }
  }
  // Spreads the masks of the points that are known before a refining pass.
  __device__ __forceinline__ void spread_masks() const {
    const auto& wave = memory.wave;
    const Lattice& lattice = memory.lattice;
    for (std::uint32_t i = this_lane(); i < UnitScratch::kMaskMargin + wave.layout.steps(); i += kRows)
      scratch.masks[i] = 0;
    __syncwarp();
    if (!memory.pass.refining) return;
    const std::uint32_t y = this_lane(), by_z = wave.kind == TileKind::volume ? 2 : 1;
    if (y >= lattice.rows || (wave.kind != TileKind::line && y % 2 != 0)) return;
    for (std::uint32_t z = 0; z < lattice.planes; z += by_z)
      for (std::uint32_t x = 0; x < lattice.lengths[y]; x += 2)
        if (memory.dense.kinds[lattice.index(memory.dense, z, y, x)] == kSentinel)
          atomicOr(&masks()[wave.layout.step(static_cast<int>(z), static_cast<int>(y), static_cast<int>(x))], 1u << y);
  }
  __device__ __forceinline__ void begin_pass(const PassModel& model) const {
    auto& wave = memory.wave;
    if (this_lane() == 0) {
      memory.lattice = Lattice(memory.dense, job.grid.kind, model.log2);
      if constexpr (kFlat) {
        wave.kind = job.grid.kind;
        wave.range_taps = job.taps.ranges.count;
      }
      wave.layout = make_layout(job.grid.kind, model.refining, memory.lattice.planes, memory.lattice.rows,
                                memory.lattice.columns);
      if constexpr (kFlat) {
        wave.values.first = scratch.values + wave.layout.before();
        wave.sizes.first = scratch.sizes + wave.layout.before();
      } else {
        using Shape = RingShape<static_cast<TileKind>(kMode)>;
        wave.layout.step_cells = Shape::kStep;
        wave.layout.plane_cells = -Shape::kPlane;
      }
      wave.pass = &memory.pass;
      wave.set_neighbours(model, model.refining ? job.taps.refining : job.taps.causal,
                          model.refining ? job.taps.refining_codes : job.taps.causal_codes, job.taps.ranges);
    }
    __syncwarp();
    load_pass(model);
    if constexpr (kFlat) {
      const auto floats = static_cast<std::uint32_t>(wave.layout.floats());
      for (std::uint32_t i = this_lane(); i < floats; i += kRows) scratch.values[i] = scratch.sizes[i] = 0;
    } else {
      for (std::uint32_t i = this_lane(); i < RingShape<static_cast<TileKind>(kMode)>::kCells; i += kRows)
        ring_memory()[i] = 0;
      for (std::uint32_t i = this_lane(); i < kMaskRing; i += kRows) memory.masks[i] = 0;
    }
    __syncwarp();
    if constexpr (kFlat) {
      spread_masks();
      if (memory.pass.refining)
        for (std::uint32_t row = this_lane(); row < known_rows(wave); row += kRows)
          fill_known_row(wave, memory.dense, memory.lattice, row);
      __syncwarp();
    }
  }
  __device__ __forceinline__ void decode_tile(std::uint64_t number, bool has_masks) {
    __syncwarp();
    if (this_lane() == 0) {
      const AdaptiveTile tile = job.grid.tile(number);
      memory.tile = tile;
      Dense& dense = memory.dense;
      dense.planes = tile.planes;
      dense.rows = tile.rows;
      dense.columns = tile.columns;
      for (std::uint32_t y = 0; y < kRows; ++y) dense.lengths[y] = y < tile.rows ? tile.length(y) : 0;
      if constexpr (kFlat) {
        dense.values = scratch.dense_values;
        dense.sizes = scratch.dense_sizes;
        dense.kinds = scratch.kinds;
      }
    }
    __syncwarp();
    const std::uint32_t levels = kFlat ? open.model.levels : 0;
#pragma unroll 1
    for (std::uint32_t p = 0; p <= levels; ++p) {
      begin_pass(open.model.passes[p]);
      const std::uint32_t turns = turns_of(memory.pass.refining, job.grid.kind);
#pragma unroll 1
      for (std::uint32_t turn = 1; turn <= turns; ++turn) {
        if (has_masks)
          decode_turn<true>(turn);
        else
          decode_turn<false>(turn);
        __syncwarp();
      }
    }
  }
};

template <class T, UnitMode kMode>
__device__ __forceinline__ Fault decode_unit(UnitMemory<kMode>& memory, const AdaptiveDecode& job,
                                             std::uint32_t frame_number, std::uint32_t number,
                                             const UnitScratch& scratch, float* planes) {
  const DecodeFrame& frame = job.frame(frame_number);
  const OpenFrame& open = job.opened[frame_number];
  const DecodeFrame part = behind_model(frame, open.directory_at);
  const TileLocation location = find_tile(part, job.units, number);
  const std::uint32_t head_words = kUnitHead / 4 + job.rows;
  if (location.uniform || location.count < head_words) return Fault::head;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(part.payload) + job.units + 1 + location.first;
  const std::uint32_t count = words[0], masks = words[1];
  if (count / 2 + count % 2 > location.count - head_words) return Fault::size;
  const std::uint32_t stream_words = count / 2 + count % 2;
  if (count % 2 != 0 && words[head_words + stream_words - 1] >> 16 != 0) return Fault::padding;
  const std::uint64_t first = std::uint64_t{number} * job.unit_tiles, left = job.grid.tiles() - first;
  const auto tiles = static_cast<std::uint32_t>(left < job.unit_tiles ? left : job.unit_tiles);
  if (masks >> tiles != 0 || (masks != 0 && !open.model.masks)) return Fault::head;
  __syncwarp();
  for (std::uint32_t i = this_lane(); i < kContextLevels; i += kRows)
    memory.first_of_level[i] = open.model.table_of_level[i] * kSlotsOfTable;
  const auto stream = UnitStream::open(words + 2, job.rows, words + head_words, count);
  Unit<T, kMode> unit{memory,
                      job,
                      frame,
                      open,
                      open.offset,
                      frame.step,
                      reinterpret_cast<T*>(frame.out),
                      job.slots_of(frame_number),
                      scratch,
                      planes,
                      stream,
                      words + head_words + stream_words,
                      words + location.count,
                      false};
#pragma unroll 1
  for (std::uint32_t i = 0; i < tiles; ++i) {
    if (__any_sync(kAllRows, unit.failed || unit.stream.failed)) break;
    unit.decode_tile(first + i, (masks >> i & 1) != 0);
  }
  if (__any_sync(kAllRows, unit.failed || unit.stream.failed || !unit.stream.ended())) return Fault::stream;
  return unit.stored == unit.stored_end ? Fault::none : Fault::size;
}

template <class T, UnitMode kMode>
static __global__ void __launch_bounds__(32, kResidentWarps)
    decode_units_kernel(const __grid_constant__ AdaptiveDecode job) {
  constexpr bool kFlat = kMode == UnitMode::flat;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const std::uint32_t all = job.frame_count * job.units;
  UnitScratch scratch = {};
  if constexpr (kFlat)
    scratch = UnitScratch::in(job.scratch + blockIdx.x * job.scratch_shape.bytes(), job.scratch_shape);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * job.plane_floats : nullptr;
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(job.next_unit + (kFlat ? 1 : 0), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= all) return;
    const std::uint32_t frame_number = next / job.units;
    const OpenFrame& open = job.opened[frame_number];
    if (open.good == 0 || (open.refined != 0 || job.only_flat) != kFlat) continue;
    const Fault fault = decode_unit<T, kMode>(memory, job, frame_number, next % job.units, scratch, planes);
    if (fault != Fault::none && this_lane() == 0) report(job.frame(frame_number), fault);
  }
}

}  // namespace pyfilter::cuda
