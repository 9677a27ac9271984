// SPDX-License-Identifier: BSD-3-Clause
// Codes a tile with a warp, a row in each lane: the encoder's closed loop (cpu/work.hpp and cpu/unit.hpp are the
// CPU's). The tile lies in global memory. A sink takes what each step finds: records, or samples for training.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_params.cuh"
#include "adaptive/cuda/pass.cuh"
#include "adaptive/cuda/stream.cuh"
#include "adaptive/scale.hpp"

namespace pyfilter::cuda {

using TileMemory = UnitMemory<UnitMode::flat>;

// A lane's place in the array, step by step.
struct ValueCursor {
  std::uint64_t index, along, back;  // of the lane's value; to the next one; from the end of a row to the next plane

  PYF_LANES ValueCursor begin(const AdaptiveTile& tile, const Lattice& lattice, const Layout& l, const Place& place) {
    ValueCursor c;
    c.along = tile.value_stride << lattice.shift_x;
    c.back = (tile.plane_stride << lattice.shift_z) - l.period() * c.along;
    c.index = tile.row(0, this_lane() << lattice.shift_y) +
              static_cast<std::uint64_t>(static_cast<std::int64_t>(place.x.v)) * c.along;
    return c;
  }
  __device__ __forceinline__ void next(const Place& place, std::int32_t z) {
    index += along;
    if (place.z.v != z) index += back;
  }
};

// What a step finds; each lane has its own value, set, and so on.
struct TileStep {
  std::uint32_t bits, sentinel, exact;  // lanes with a value, and those with special ones
  Expected expected;
  Ints level, code;
  float size;
};

template <class T>
struct TileEncoder {
  TileMemory& memory;
  const AdaptiveGrid& grid;
  const AdaptiveTaps& taps;
  EncodeScratch scratch;
  const T* values;
  ChunkScale<T> scale;
  bool plain;    // no value of the tile is special
  bool misfits;  // whether this lane found a value that must be stored

  // Loads a tile. `again`: values that did not fit are stored. Returns whether a value is the sentinel.
  __device__ __forceinline__ bool load(std::uint64_t number, bool again) {
    begin_tile(memory, grid, number, scratch.unit);
    const Dense& d = memory.dense;
    const AdaptiveTile& tile = memory.tile;
    bool any = false, others = again;
#pragma unroll 1
    for (std::uint32_t z = 0; z < d.planes; ++z)
#pragma unroll 1
      for (std::uint32_t y = 0; y < d.rows; ++y) {
        const T* const row = values + tile.row(z, y);
        const std::size_t to = d.index(z, y, 0);
        for (std::uint32_t x = this_lane(); x < d.lengths[y]; x += kRows) {
          float t = 0;
          ValueKind kind = scale.kind_of(row[x * tile.value_stride], &t);
          if (!again)
            scratch.marks[to + x] = 0;
          else if (scratch.marks[to + x] != 0 && kind == kCoded)
            kind = kExact;
          d.values[to + x] = t;
          d.kinds[to + x] = kind;
          any = any || kind == kSentinel;
          others = others || kind != kCoded;
        }
      }
    __syncwarp();
    plain = !__any_sync(kAllRows, others);
    misfits = false;
    return __any_sync(kAllRows, any);
  }
  __device__ __forceinline__ void mark_all() const {
    const Dense& d = memory.dense;
    for (std::uint32_t i = this_lane(); i < d.planes * d.rows * d.columns; i += kRows) scratch.marks[i] = 1;
    __syncwarp();
  }

  // Codes the values of a turn of the pass that has begun.
  template <class Sink>
  __device__ __forceinline__ void code_turn(std::uint32_t turn, bool masked, Sink& sink) {
    auto& wave = memory.wave;
    const Lattice& lattice = memory.lattice;
    const Dense& d = memory.dense;
    Place place(wave.layout, lattice.lengths);
    auto cursor = ValueCursor::begin(memory.tile, lattice, wave.layout, place);
    std::uint32_t* const masks = flat_masks(scratch.unit);
    const Floats unit = Floats::all(wave.pass->unit), per_unit = Floats::all(1 / wave.pass->unit);
    const std::uint32_t steps = wave.layout.steps();
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Ints active = place.coded(wave, turn);
      const std::uint32_t bits = bits_of_condition(active);
      if (bits != 0) {
        const std::size_t at = active.v != 0 ? lattice.index(d, static_cast<std::uint32_t>(place.z.v), this_lane(),
                                                             static_cast<std::uint32_t>(place.x.v))
                                             : 0;
        Floats t = {active.v != 0 ? d.values[at] : 0};
        std::uint32_t kind = kCoded, sentinel = 0, wanted = 0;
        if (!plain) {
          kind = active.v != 0 ? d.kinds[at] : std::uint32_t{kCoded};
          sentinel = __ballot_sync(kAllRows, kind == kSentinel ? 1 : 0);
          wanted = __ballot_sync(kAllRows, kind == kExact ? 1 : 0);
        }
        TileStep s;
        s.bits = bits;
        s.sentinel = sentinel;
        s.expected = expect(wave, place, step);
        s.level = context_level_at(wave, s.expected, place.cell);
        const CodedStep coded = code_step(wave, place, step, s.expected, t, unit, per_unit, bits, sentinel, wanted, 0);
        s.exact = coded.exact;
        s.code = integer_of(coded.code);
        const Floats size = least(absolute(coded.code), Floats::all(kLargestSize));
        s.size = size.v;
        sink.take(*this, step, place, cursor.index, s);
        if (active.v != 0 && kind == kCoded && !scale.fits(values[cursor.index], coded.value.v)) {
          scratch.marks[at] = 1;
          misfits = true;
        }
        __syncwarp();  // all lanes have read
        store_values(wave, place, step, bits, active, coded.value);
        store_cells(wave.sizes, place.cell, active, size);
        if (active.v != 0) {
          d.values[at] = coded.value.v;
          d.sizes[at] = s.size;
        }
        if (masked && this_lane() == 0) masks[step] |= sentinel;
        __syncwarp();
      }
      const std::int32_t z = place.z.v;
      place.next();
      cursor.next(place, z);
      place.cell += wave.layout.step_cells;
    }
  }
  // Codes the loaded tile pass by pass.
  template <class Sink>
  __device__ __forceinline__ void code(const AdaptiveModel& model, bool masked, Sink& sink) {
#pragma unroll 1
    for (std::uint32_t p = 0; p <= model.levels; ++p) {
      begin_pass(memory, grid.kind, taps, model.passes[p], scratch.unit);
      const std::uint32_t turns = turns_of(memory.pass.refining, grid.kind);
#pragma unroll 1
      for (std::uint32_t turn = 1; turn <= turns; ++turn) {
        sink.begin_turn(p);
        code_turn(turn, masked, sink);
        __syncwarp();
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
  __device__ __forceinline__ void take(const TileEncoder<T>& tile, std::uint32_t step, const Place&,
                                       std::uint64_t index, const TileStep& s) {
    const std::uint32_t own = 1u << this_lane(), special = s.sentinel & s.bits, normal = s.bits & ~special,
                        exact = s.exact & normal;
    if (this_lane() == 0) to.steps[head.steps] = s.bits;
    ++head.steps;
    if (head.masks != 0) {
      const MaskNeighbours near(tile.memory.wave, StepMasks<true>{flat_masks(tile.scratch.unit)}, step);
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
      const T value = tile.values[index];
      std::uint32_t words[kWords];
      std::memcpy(words, &value, sizeof value);
      for (std::uint32_t k = 0; k < kWords; ++k)
        to.stored[head.stored + kWords * popcount(exact & lanes_below()) + k] = words[k];
    }
    head.stored += kWords * popcount(exact);
  }
};

// Codes a tile, and repeats until every value keeps the bound or is stored verbatim.
template <class T>
__device__ __noinline__ TileHead record_tile(TileEncoder<T>& tile, const AdaptiveModel& model, std::uint64_t number,
                                             const TileRecords& to) {
  RecordSink<T> sink{to, {}};
#pragma unroll 1
  for (int attempt = 0;; ++attempt) {
    const bool masks = tile.load(number, attempt != 0) && model.masks;
    sink.begin(masks);
    tile.code(model, masks, sink);
    if (!__any_sync(kAllRows, tile.misfits)) return sink.head;
    if (attempt > 6) tile.mark_all();
  }
}

}  // namespace pyfilter::cuda
