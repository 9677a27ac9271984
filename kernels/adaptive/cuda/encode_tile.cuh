// SPDX-License-Identifier: BSD-3-Clause
// Codes a tile with a warp, a row in each lane: the encoder's closed loop (cpu/work.hpp and cpu/unit.hpp are the
// CPU's). A sink takes what each step finds: records, or samples for training.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_params.cuh"
#include "adaptive/cuda/pass.cuh"
#include "adaptive/cuda/planes.cuh"
#include "adaptive/cuda/stream.cuh"
#include "adaptive/cuda/value_cursor.cuh"
#include "adaptive/scale.hpp"

namespace pyfilter::cuda {

using TileMemory = UnitMemory<UnitMode::flat>;

// What a step finds; each lane has its own value, set, and so on.
struct TileStep {
  std::uint32_t bits, sentinel, exact, absent;  // lanes with a place, and those with special values or none
  Expected expected;
  Ints level, code;
  float size;
};

// kRefines: models may have refining passes.
template <class T, UnitMode kMode, bool kRefines>
struct TileEncoder {
  static constexpr bool kFlat = kMode == UnitMode::flat, kDeep = kMode == UnitMode::volume;

  UnitMemory<kMode>& memory;
  const AdaptiveGrid& grid;
  const AdaptiveTaps& taps;
  EncodeScratch scratch;
  float* planes;  // memory of PlaneWindows
  const T* values;
  ChunkScale<T> scale;
  TileCrop crop = {};    // of the tiles that are coded
  bool again = false;    // values that did not fit are stored
  bool plain = false;    // refining: no value of the tile is special
  bool misfits = false;  // whether this lane found a value that must be stored

  __device__ __forceinline__ StepMasks<kFlat> masks() const { return masks_of(memory, scratch.unit); }
  // The kind of a value at a place of the tile, and the number to code.
  __device__ __forceinline__ ValueKind kind_of(T value, std::size_t at, float* t) const {
    const ValueKind kind = scale.kind_of(value, t);
    return again && kind == kCoded && scratch.marks[at] != 0 ? kExact : kind;
  }
  // Begins a tile; with refining passes it is loaded. Returns whether a value is the sentinel.
  __device__ __forceinline__ bool begin(std::uint64_t number, bool repeats) {
    again = repeats;
    misfits = false;
    begin_tile(memory, scratch.unit, [&] { return crop.of(grid, number); });
    const Dense& d = memory.dense;
    const AdaptiveTile& tile = memory.tile;
    if (!again)
      for (std::uint32_t i = this_lane(); 16 * i < d.planes * d.rows * d.columns; i += kRows)
        reinterpret_cast<uint4*>(scratch.marks)[i] = {0, 0, 0, 0};
    bool any = false, others = false;
    if (kRefines || scale.has_sentinel) {
      constexpr std::uint32_t kTogether = 4;  // rows whose values are loaded together
#pragma unroll 1
      for (std::uint32_t z = 0; z < d.planes; ++z)
#pragma unroll 1
        for (std::uint32_t y = 0; y < d.rows; y += kTogether)
#pragma unroll 1
          for (std::uint32_t x = this_lane(); x < d.columns; x += kRows) {
            T own[kTogether];
#pragma unroll
            for (std::uint32_t k = 0; k < kTogether; ++k) {
              const std::uint64_t index = tile.row(z, y + k) + x * tile.value_stride;
              const bool exists = y + k < d.rows && x < d.lengths[y + k] && index < grid.values;
              own[k] = exists ? values[index] : T{0};
            }
#pragma unroll
            for (std::uint32_t k = 0; k < kTogether; ++k) {
              if (y + k >= d.rows || x >= d.lengths[y + k]) continue;
              float t = 0;
              const std::size_t to = d.index(z, y + k, x);
              const bool exists = tile.row(z, y + k) + x * tile.value_stride < grid.values;
              const ValueKind kind = exists ? kind_of(own[k], to, &t) : kAbsent;
              any = any || kind == kSentinel;
              if constexpr (kRefines) {
                d.values[to] = t;
                d.kinds[to] = kind;
                others = others || kind != kCoded;
              }
            }
          }
    }
    __syncwarp();
    plain = !__any_sync(kAllRows, others);
    return __any_sync(kAllRows, any);
  }
  __device__ __forceinline__ void mark_all() const {
    const Dense& d = memory.dense;
    for (std::uint32_t i = this_lane(); i < d.planes * d.rows * d.columns; i += kRows) scratch.marks[i] = 1;
    __syncwarp();
  }

  // A lane's value at a step: the value itself, the number to code, and its place in the tile.
  struct Target {
    T value;
    float t;
    std::uint32_t at;
    std::uint64_t index;  // in the array
  };
  __device__ __forceinline__ Target load(const Place& place, const Ints& active, std::uint64_t index) const {
    Target target = {T{0}, 0, 0, index};
    if (active.v == 0) return target;
    if (index < grid.values) target.value = values[index];
    target.at = static_cast<std::uint32_t>(memory.lattice.index(memory.dense, static_cast<std::uint32_t>(place.z.v),
                                                                this_lane(), static_cast<std::uint32_t>(place.x.v)));
    if constexpr (kRefines) target.t = memory.dense.values[target.at];
    return target;
  }

  // Codes a step and stores its values; returns the lane's value and the size of its code.
  struct Coded {
    float value, size;
  };
  template <class Step, class Sink>
  __device__ __forceinline__ Coded code_lanes(const Step& step, std::uint32_t bits, const Ints& active,
                                              const Target& target, bool masked, Sink& sink) {
    const Dense& d = memory.dense;
    float t = target.t;
    ValueKind kind = kCoded;
    if (active.v != 0) {
      if constexpr (!kRefines)
        kind = target.index < grid.values ? kind_of(target.value, target.at, &t) : kAbsent;
      else if (!plain)
        kind = static_cast<ValueKind>(d.kinds[target.at]);
    }
    TileStep s;
    s.bits = bits;
    s.sentinel = masked ? __ballot_sync(kAllRows, kind == kSentinel ? 1 : 0) : 0;
    const std::uint32_t wanted = __ballot_sync(kAllRows, kind == kExact ? 1 : 0);
    s.absent = __ballot_sync(kAllRows, kind == kAbsent ? 1 : 0);
    s.expected = step.expect();
    s.level = step.level(s.expected);
    const Floats unit = Floats::all(memory.pass.unit);
    const CodedStep coded =
        code_step(step, s.expected, Floats{t}, unit, Floats::all(1 / unit.v), bits, s.sentinel, wanted, 0, s.absent);
    s.exact = coded.exact;
    s.code = integer_of(coded.code);
    const Floats size = least(absolute(coded.code), Floats::all(kLargestSize));
    s.size = size.v;
    sink.take(*this, step, target.index, s);
    if (active.v != 0 && kind == kCoded && !scale.fits(target.value, coded.value.v)) {
      scratch.marks[target.at] = 1;
      misfits = true;
    }
    if (masked && this_lane() == 0) step.mask() = s.sentinel;
    __syncwarp();  // all lanes have read
    step.store(bits, active, coded.value);
    return {coded.value.v, s.size};
  }
  __device__ __forceinline__ void keep(std::uint32_t at, const Coded& coded) const {
    memory.dense.values[at] = coded.value;
    memory.dense.sizes[at] = coded.size;
  }
  // Returns the size of this lane's code.
  template <class Sink>
  __device__ __forceinline__ float code_wave_step(const Place& place, std::uint32_t number, std::uint32_t bits,
                                                  const Ints& active, const Target& target, bool masked, Sink& sink) {
    auto& wave = memory.wave;
    const WaveStep<std::remove_reference_t<decltype(wave)>, StepMasks<kFlat>> step{wave, place, number, masks()};
    const Coded coded = code_lanes(step, bits, active, target, masked, sink);
    if constexpr (kFlat) {
      store_cells(wave.sizes, place.cell, active, {coded.size});
    } else {  // overwrite the step that left the ring
      store_cells(wave.sizes, place.cell, Ints::all(-1), select(active, Floats{coded.size}, Floats::all(0)));
    }
    if constexpr (kRefines) {
      if (active.v != 0 && memory.lattice.shift_x != 0) keep(target.at, coded);  // a later pass reads them
    }
    __syncwarp();
    return active.v != 0 ? coded.size : 0;
  }
  // Codes the values of the first pass, which has begun.
  template <class Sink>
  __device__ __forceinline__ void code_first_pass(bool masked, Sink& sink) {
    auto& wave = memory.wave;
    Place place(wave.layout, memory.lattice.lengths);
    if constexpr (!kFlat) place.cell = RingShape<static_cast<TileKind>(kMode)>::kFirstLane;
    auto cursor = ValueCursor::begin(memory.tile, memory.lattice, wave.layout, place);
    auto windows = PlaneWindows::begin(planes, kDeep ? wave.layout.period() : 0);
    const std::uint32_t steps = wave.layout.steps();
    Ints active = place.active();
    Target target = load(place, active, cursor.index);
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Place here = place;
      const Target own = target;
      const Ints coded = active;
      const std::int32_t z = place.z.v;
      place.next();
      cursor.next(place, z);
      place.cell += wave.layout.step_cells;
      active = place.active();
      target = load(place, active, cursor.index);  // it comes while this step is coded
      if (!kFlat && masked) {
        if (this_lane() == 0) masks()[step] = 0;
        __syncwarp();
      }
      const std::uint32_t bits = bits_of_condition(coded);
      float size = 0;
      if (bits != 0) {
        size = code_wave_step(here, step, bits, coded, own, masked, sink);
      } else if (!kFlat) {
        store_cells(wave.sizes, here.cell, Ints::all(-1), Floats::all(0));
        __syncwarp();
      }
      if constexpr (kDeep) {
        windows.next(size);
        __syncwarp();
      }
    }
    if constexpr (kDeep) windows.end();
  }
  __device__ __forceinline__ Target load(const Refining& refining, const RefinedPlace& place, const Ints& active,
                                         std::uint64_t index) const {
    Target target = {T{0}, 0, 0, index};
    if (active.v == 0) return target;
    if (index < grid.values) target.value = values[index];
    target.at = static_cast<std::uint32_t>(dense_index(memory.dense, memory.lattice, refining, place));
    target.t = memory.dense.values[target.at];
    return target;
  }
  // Codes the values of a turn of the refining pass that has begun.
  template <class Sink>
  __device__ __forceinline__ void code_turn(const PassModel& model, std::uint32_t turn, bool masked, Sink& sink) {
    begin_turn(memory.refining, model, taps, turn);
    Refining refining(memory.refining, memory.pass, taps, scratch.unit);
    RefinedPlace place(refining.shape, refining.parity, memory.lattice.lengths);
    auto cursor = cursor_of_turn(memory.tile, memory.lattice, refining, place);
    const std::uint32_t steps = refining.shape.steps();
    const bool last = memory.lattice.shift_x == 0;
    Ints active = place.active();
    Target target = load(refining, place, active, cursor.index);
#pragma unroll 1
    for (std::uint32_t number = 0; number < steps; ++number) {
      const Target own = target;
      const Ints coded = active;
      const std::int32_t z = place.z.v;
      place.next();
      cursor.next(place, z);
      active = place.active();
      target = load(refining, place, active, cursor.index);  // it comes while this step is coded
      const std::uint32_t bits = bits_of_condition(coded);
      if (bits == 0) continue;
      const RefinedStep<Refining> step(refining, number);
      const Coded done = code_lanes(step, bits, coded, own, masked, sink);
      step.store_sizes(coded, {done.size});
      if (!last && coded.v != 0) keep(own.at, done);
      __syncwarp();
    }
  }
  // Codes the tile that has begun, pass by pass.
  template <class Sink>
  __device__ __forceinline__ void code(const AdaptiveModel& model, bool masked, Sink& sink) {
    begin_pass(memory, grid.kind, taps, model.passes[0], scratch.unit);
    sink.begin_turn(0);
    code_first_pass(masked, sink);
    __syncwarp();
    if constexpr (kRefines) {
#pragma unroll 1
      for (std::uint32_t p = 1; p <= model.levels; ++p) {
        begin_refining(memory, grid.kind, model.passes[p], scratch.unit, nullptr);
#pragma unroll 1
        for (std::uint32_t turn = 1; turn <= refining_turns(grid.kind); ++turn) {
          sink.begin_turn(p);
          code_turn(model.passes[p], turn, masked, sink);
        }
      }
    }
  }
};

// Keeps what the tile's stream is made of.
template <class T>
struct RecordSink {
  static constexpr std::uint32_t kWords = sizeof(T) / 4;

  TileRecords to;
  TileHead head;

  __device__ __forceinline__ void begin(bool masks) { head = {0, 0, 0, 0, masks ? 1u : 0u}; }
  __device__ __forceinline__ void begin_turn(std::uint32_t) {}
  template <class Tile, class Step>
  __device__ __forceinline__ void take(const Tile& tile, const Step& step, std::uint64_t index, const TileStep& s) {
    const std::uint32_t own = 1u << this_lane(), special = s.sentinel & s.bits, normal = s.bits & ~special,
                        exact = s.exact & normal;
    if (this_lane() == 0) to.steps[head.steps] = s.bits;
    ++head.steps;
    if (head.masks != 0) {
      const MaskNeighbours near = step.near_masks();
      if ((s.bits & own) != 0)
        to.flags[head.flags + popcount(s.bits & lanes_below())] =
            static_cast<std::uint8_t>(near.of_lane(this_lane()) | ((special & own) != 0 ? 128 : 0));
      head.flags += popcount(s.bits);
    }
    if ((normal & own) != 0) {
      const auto code = static_cast<std::uint32_t>(s.code.v), zigzag = (code + code) ^ (s.code.v < 0 ? ~0u : 0u);
      const auto level = static_cast<std::uint32_t>(s.level.v);
      to.values[head.values + popcount(normal & lanes_below())] =
          (exact & own) != 0 ? make_record(0, level, kByValue) : make_record(zigzag, level, kByCode);
    }
    head.values += popcount(normal);
    if (exact == 0) return;
    if ((exact & own) != 0) {
      const T value = index < tile.grid.values ? tile.values[index] : static_cast<T>(tile.scale.offset);
      std::uint32_t words[kWords];
      std::memcpy(words, &value, sizeof value);
      for (std::uint32_t k = 0; k < kWords; ++k)
        to.stored[head.stored + kWords * popcount(exact & lanes_below()) + k] = words[k];
    }
    head.stored += kWords * popcount(exact);
  }
};

// Codes a tile, and repeats until every value keeps the bound or is stored verbatim.
template <class T, UnitMode kMode, bool kRefines>
__device__ __forceinline__ TileHead record_tile(TileEncoder<T, kMode, kRefines>& tile, const AdaptiveModel& model,
                                                std::uint64_t number, const TileRecords& to) {
  RecordSink<T> sink{to, {}};
#pragma unroll 1
  for (int attempt = 0;; ++attempt) {
    const bool masks = tile.begin(number, attempt != 0) && model.masks;
    sink.begin(masks);
    tile.code(model, masks, sink);
    if (!__any_sync(kAllRows, tile.misfits)) return sink.head;
    __syncwarp();
    if (attempt > 6) tile.mark_all();
  }
}

}  // namespace pyfilter::cuda
