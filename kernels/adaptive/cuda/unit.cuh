// SPDX-License-Identifier: BSD-3-Clause
// Decodes units with a warp each, a row of the tile in each lane (cpu/unit_decode.hpp). A second warp helps with
// refining passes (foresee.cuh).
#pragma once

#include <cstdint>

#include "adaptive/cuda/output.cuh"
#include "adaptive/cuda/pass.cuh"
#include "adaptive/cuda/planes.cuh"
#include "adaptive/cuda/stream.cuh"
#include "adaptive/scale.hpp"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {

// State of the unit that a warp decodes.
template <class T, UnitMode kMode, bool kRefines>
struct Unit {
  static constexpr bool kFlat = kMode == UnitMode::flat, kDeep = kMode == UnitMode::volume;

  UnitMemory<kMode>& memory;
  const AdaptiveDecode& job;
  const DecodeFrame& frame;
  const OpenPart& open;
  ChunkScale<T> scale;
  T* out;
  FrameSlots slots;
  UnitScratch scratch;  // refining or flat
  float* planes;        // memory of PlaneWindows
  HelpMemory* help;     // refining
  UnitStream stream;
  const std::uint32_t *stored, *stored_end;
  bool failed;  // of this lane

  // ---- values

  __device__ __forceinline__ const AdaptiveTaps& taps() const { return job.taps[tile_kind_index(job.kind)]; }
  __device__ __forceinline__ StepMasks<kFlat> masks() const { return masks_of(memory, scratch); }
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
      const float t = scale.normalised(value);
      if (t < kFarthest && t > -kFarthest) r = t;
    } else {
      r = std::bit_cast<float>(from[0]);
      value = scale.reconstructed(r);
    }
  }

  // ---- steps

  struct Decoded {
    T value;
    float r, size;
    std::uint32_t sentinel;
  };
  // Decodes and stores the values of a step, but not the sizes of codes.
  template <bool kMasks, class Step>
  __device__ __forceinline__ Decoded decode_step(const Step& step, std::uint32_t bits, const Ints& active) {
    const Expected e = step.expect();
    const Ints level = step.level(e);
    std::uint32_t sentinel = 0;
    Ints coded = active;
    if constexpr (kMasks) {
      const MaskNeighbours near = step.near_masks();
      sentinel = stream.read_flags(open.model, near.of_lane(this_lane()), bits);
      __syncwarp();
      if (this_lane() == 0) step.mask() = sentinel;
      coded = coded & ~condition_of_bits(sentinel);
    }
    const StepCodes codes = stream.read(memory.first_of_level, slots, level, bits & ~sentinel, coded);
    Floats code = float_of(codes.codes), value = fused(code, Floats::all(memory.pass.unit), e.value);
    const std::uint32_t special = sentinel | codes.exact | codes.origin;
    T decoded = scale.reconstructed(value.v);
    if (special != 0) {
      special_values(sentinel, codes.exact, codes.origin, step.stand_in().v, decoded, value.v);
      code = as_floats(bits_of(code) & ~condition_of_bits(special));
    }
    __syncwarp();  // all lanes have read
    step.store(bits, active, value);
    failed = failed || (active.v != 0 && !(value.v < 0x1p64f && value.v > -0x1p64f));
    return {decoded, value.v, least(absolute(code), Floats::all(kLargestSize)).v, sentinel};
  }
  // Keeps a value for later passes.
  __device__ __forceinline__ void keep(std::size_t at, const Decoded& decoded) {
    memory.dense.values[at] = decoded.r;
    memory.dense.sizes[at] = decoded.size;
    memory.dense.kinds[at] = (decoded.sentinel >> this_lane() & 1) != 0 ? kSentinel : kCoded;
  }

  // Returns the size of the lane's code.
  template <bool kMasks>
  __device__ __forceinline__ float decode_wave_step(const Place& place, std::uint32_t number, std::uint32_t bits,
                                                    const Ints& active, Output<T>& output) {
    auto& wave = memory.wave;
    const WaveStep<std::remove_reference_t<decltype(wave)>, StepMasks<kFlat>> step{wave, place, number, masks()};
    const Decoded decoded = decode_step<kMasks>(step, bits, active);
    const auto x = static_cast<std::uint32_t>(place.x.v);
    if (active.v != 0) output.put(x, static_cast<std::uint32_t>(place.lengths.v), decoded.value);
    if constexpr (kFlat) {
      store_cells(wave.sizes, place.cell, active, {decoded.size});
    } else {  // overwrite the step that left the ring
      store_cells(wave.sizes, place.cell, Ints::all(-1), select(active, Floats{decoded.size}, Floats::all(0)));
    }
    if constexpr (kRefines) {
      if (active.v != 0 && memory.lattice.shift_x != 0)  // a later pass reads them
        keep(memory.lattice.index(memory.dense, static_cast<std::uint32_t>(place.z.v), this_lane(), x), decoded);
    }
    __syncwarp();
    return active.v != 0 ? decoded.size : 0;
  }

  template <bool kMasks>
  __device__ __forceinline__ void decode_first_pass() {
    auto& wave = memory.wave;
    Place place(wave.layout, memory.lattice.lengths);
    if constexpr (!kFlat) place.cell = RingShape<static_cast<TileKind>(kMode)>::kFirstLane;
    const std::uint32_t steps = wave.layout.steps();
    auto output = Output<T>::begin(job, open.grid, out, memory.tile, memory.lattice, wave.layout, place, !kFlat);
    auto windows = PlaneWindows::begin(planes, kDeep ? wave.layout.period() : 0);
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      if (!kFlat && kMasks) {
        if (this_lane() == 0) masks()[step] = 0;
        __syncwarp();
      }
      const Ints active = place.active();
      const std::uint32_t bits = bits_of_condition(active);
      float size = 0;
      if (bits != 0) {
        size = decode_wave_step<kMasks>(place, step, bits, active, output);
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
    if constexpr (kDeep) windows.end();
  }

  // Decodes a turn of a refining pass, with a helper.
  template <bool kMasks>
  __device__ __forceinline__ void decode_turn(const PassModel& model, std::uint32_t turn) {
    begin_turn(memory.refining, model, taps(), turn);
    HelpedTurn<kFlat> refining({memory.refining, memory.pass, taps(), scratch}, help->cells);
    const Refinement& shape = refining.shape;
    RefinedPlace place(shape, refining.parity, memory.lattice.lengths);
    auto cursor = cursor_of_turn(memory.tile, memory.lattice, refining, place);
    cursor.index -= job.start;
    const std::uint32_t steps = shape.steps();
    const bool last = memory.lattice.shift_x == 0;
    help->cells.clear();
    call_helper(help->ring, HelperTask::turn);
#pragma unroll 1
    for (std::uint32_t number = 0; number < steps; ++number) {
      const Ints active = place.active();
      const std::uint32_t bits = bits_of_condition(active);
      const Ahead ahead = help->ring.take(number);
      refining.step = number;
      Decoded decoded = {};
      if (bits != 0) {
        const ForeseenStep<kFlat> step(refining, number, ahead);
        decoded = decode_step<kMasks>(step, bits, active);
        step.store_sizes(active, {decoded.size});
        if (active.v != 0) {
          if (cursor.index < job.stop - job.start) out[cursor.index] = decoded.value;
          if (!last) keep(dense_index(memory.dense, memory.lattice, refining, place), decoded);
        }
      }
      help->cells.put(help->ring, number, active, decoded.r, decoded.size);
      __syncwarp();
      const std::int32_t z = place.z.v;
      place.next();
      cursor.next(place, z);
    }
  }

  // ---- tiles

  __device__ __forceinline__ void decode_tile(std::uint64_t number, bool has_masks) {
    begin_tile(memory, scratch, [&] { return open.grid.tile(number); });
    begin_pass(memory, job.kind, taps(), open.model.passes[0], scratch);
    if (has_masks)
      decode_first_pass<true>();
    else
      decode_first_pass<false>();
    if constexpr (kRefines) {
#pragma unroll 1
      for (std::uint32_t p = 1; p <= open.model.levels; ++p) {
        begin_refining(memory, job.kind, open.model.passes[p], scratch, help);
#pragma unroll 1
        for (std::uint32_t turn = 1; turn <= refining_turns(job.kind); ++turn) {
          if (has_masks)
            decode_turn<true>(open.model.passes[p], turn);
          else
            decode_turn<false>(open.model.passes[p], turn);
        }
      }
    }
    __syncwarp();
  }
};

template <class T, UnitMode kMode, bool kRefines>
__device__ __forceinline__ Fault decode_unit(UnitMemory<kMode>& memory, const AdaptiveDecode& job,
                                             std::uint32_t part_number, std::uint32_t number,
                                             const UnitScratch& scratch, float* planes, HelpMemory* help) {
  const DecodeFrame& frame = job.frame(part_number / job.parts);
  const OpenPart& open = job.opened[part_number];
  const DecodeFrame& part = open.directory;
  const std::uint32_t unit_log2 = open.unit_log2, units = open.units;
  const TileLocation location = find_tile(part, units, number);
  if (location.uniform || location.count == 0) return Fault::head;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(part.payload) + units + 1 + location.first;
  const std::uint32_t count = words[0], lanes = states_of_unit(open.grid, open.model.levels);
  const UnitTiles tiles(static_cast<std::uint32_t>(open.grid.tiles()), unit_log2, number);
  StateReader reader{{reinterpret_cast<const std::uint8_t*>(words + 1), 32 * std::size_t{location.count - 1}},
                     count != 0};
  const std::uint32_t masks = open.model.masks ? reader.in.take(tiles.count) : 0;
  std::uint32_t state = kLowestState;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {  // each thread reads all
    const std::uint32_t x = reader.next();
    if (lane == this_lane()) state = x;
  }
  const std::uint32_t bit_words = reader.end(), head_words = 1 + bit_words;
  if (bit_words == 0) return Fault::head;
  const std::uint32_t stream_words = count / 2 + count % 2;
  if (stream_words > location.count - head_words) return Fault::size;
  if (count % 2 != 0 && words[head_words + stream_words - 1] >> 16 != 0) return Fault::padding;
  __syncwarp();
  for (std::uint32_t i = this_lane(); i < kContextLevels; i += kRows)
    memory.first_of_level[i] = open.model.table_of_level[i] * kSlotsOfTable;
  memory.frequent.load(open.model);
  const auto stream = UnitStream::open(state, words + head_words, count);
  Unit<T, kMode, kRefines> unit{memory,
                                job,
                                frame,
                                open,
                                {open.offset, frame.step, frame.bound, frame.sentinel, frame.has_sentinel != 0},
                                reinterpret_cast<T*>(frame.out),
                                {memory.frequent, job.slots_of(part_number)},
                                scratch,
                                planes,
                                help,
                                stream,
                                words + head_words + stream_words,
                                words + location.count,
                                false};
#pragma unroll 1
  for (std::uint32_t i = 0; i < tiles.count; ++i) {
    if (__any_sync(kAllRows, unit.failed || unit.stream.failed)) break;
    unit.decode_tile(tiles.first + i, (masks >> i & 1) != 0);
  }
  if (__any_sync(kAllRows, unit.failed || unit.stream.failed || !unit.stream.ended())) return Fault::stream;
  return unit.stored == unit.stored_end ? Fault::none : Fault::size;
}

template <class T, UnitMode kMode, bool kRefines>
static __global__ void __launch_bounds__((UnitKernel<kMode, kRefines>::threads),
                                         (UnitKernel<kMode, kRefines>::resident))
    decode_units_kernel(const __grid_constant__ AdaptiveDecode job) {
  constexpr auto kPlace = kPlaceOf<kMode, kRefines>;
  __shared__ __align__(16) unsigned char shared_memory[sizeof(UnitMemory<kMode>)];
  auto& memory = *reinterpret_cast<UnitMemory<kMode>*>(shared_memory);
  const std::uint32_t all = job.part_count() * job.most_units;
  UnitScratch scratch = {};
  if constexpr (kRefines)
    scratch = UnitScratch::in(job.scratch + blockIdx.x * job.scratch_shape.bytes(), job.scratch_shape);
  float* const planes = kMode == UnitMode::volume ? job.planes + blockIdx.x * job.plane_floats : nullptr;
  HelpMemory* shared_help = nullptr;
  if constexpr (kRefines) {
    __shared__ __align__(16) unsigned char help_memory[sizeof(HelpMemory)];
    shared_help = reinterpret_cast<HelpMemory*>(help_memory);
    // the same for all lanes, and the compiler sees it
    const std::uint32_t warp = __shfl_sync(kAllRows, threadIdx.x / kRows, 0);
    if (warp != 0) return help(shared_help->ring, memory, job.taps[tile_kind_index(job.kind)], scratch);
  }
  for (;;) {
    std::uint32_t next = 0;
    if (this_lane() == 0) next = atomicAdd(job.counter(kPlace), 1u);
    next = __shfl_sync(kAllRows, next, 0);
    if (next >= all) break;
    // the first unit of each part first: parts with the fewest units have the longest ones
    const std::uint32_t part = next % job.part_count(), unit = next / job.part_count();
    const OpenPart& open = job.opened[part];
    if (open.good == 0 || open.grid.kind != job.kind || place_of(open.grid, open.model.levels) != kPlace) continue;
    if (unit >= open.units) continue;
    const Fault fault = decode_unit<T, kMode, kRefines>(memory, job, part, unit, scratch, planes, shared_help);
    if (fault != Fault::none && this_lane() == 0) report(job.frame(part / job.parts), fault);
  }
  if constexpr (kRefines) call_helper(shared_help->ring, HelperTask::end);
}

}  // namespace pyfilter::cuda
