// SPDX-License-Identifier: BSD-3-Clause
// Takes samples for weights from a tile, by a warp: fills the cells with the tile's own values, then loads the
// neighbours of some of them. cpu/sample.hpp is the CPU's.
#pragma once

#include <cstdint>

#include "adaptive/cuda/encode_tile.cuh"
#include "adaptive/train/sample.hpp"

namespace pyfilter::cuda {

template <class Encoder>
struct TileSampler {
  Encoder& tile;
  const AdaptiveTaps& taps;

  // Fills the cells with the tile's own values, then samples them. Returns the number of samples.
  __device__ std::uint32_t sample(TileKind kind, const PassModel& pass, std::uint64_t number, std::uint32_t every,
                                  Sample* to) const {
    tile.begin(number, false);
    if (!pass.refining) {
      begin_pass(tile.memory, kind, taps, pass, tile.scratch.unit);
      fill_wave();
      __syncwarp();
      return sample_wave(every, to);
    }
    begin_refining(tile.memory, kind, pass, tile.scratch.unit, nullptr);
    for (const bool samples : {false, true}) {
      std::uint32_t taken = 0, inside = every_of_pass(true, every) / 2;
#pragma unroll 1
      for (std::uint32_t turn = 1; turn <= refining_turns(kind); ++turn) {
        begin_turn(tile.memory.refining, pass, taps, turn);
        if (samples)
          sample_turn(every_of_pass(true, every), inside, taken, to);
        else
          fill_turn();
      }
      if (samples) return taken;
    }
    return 0;
  }

 private:
  static constexpr CellIndex kNoDistance = INT32_MAX;
  static constexpr std::uint32_t kLanesBeside = 8;  // that load the values beside a sample

  // A lane's own value; at: its index in the dense array.
  struct OwnValue {
    float t = 0;
    bool special = false;
  };
  __device__ __forceinline__ OwnValue own_value(const Ints& active, std::size_t at) const {
    OwnValue own;
    if (active.v == 0) return own;
    own.t = tile.memory.dense.values[at];
    own.special = !tile.plain && tile.memory.dense.kinds[at] != kCoded;
    return own;
  }
  // Stores the lanes' own values.
  template <class Step>
  __device__ __forceinline__ static void fill_step(const Step& step, std::uint32_t bits, const Ints& active,
                                                   const OwnValue& own) {
    Floats t = {own.t};
    const std::uint32_t specials = __ballot_sync(kAllRows, own.special ? 1 : 0);
    if (specials != 0) t = select(condition_of_bits(specials), step.stand_in(), t);
    __syncwarp();
    step.store(bits, active, t);
    __syncwarp();
  }
  // Stores the lanes' own values, step by step. At `place`: index() of the lane's value in the dense array; next() goes
  // on; step_of(place, number).
  template <class AnyPlace, class Index, class Next, class StepOf>
  __device__ __forceinline__ void fill_steps(AnyPlace& place, std::uint32_t steps, const Index& index, const Next& next,
                                             const StepOf& step_of) const {
    Ints active = place.active();
    OwnValue own = own_value(active, active.v != 0 ? index() : 0);
#pragma unroll 1
    for (std::uint32_t number = 0; number < steps; ++number) {
      const AnyPlace here = place;
      const Ints filled = active;
      const OwnValue value = own;
      next();
      active = place.active();
      own = own_value(active, active.v != 0 ? index() : 0);  // it comes while this step is stored
      const std::uint32_t bits = bits_of_condition(filled);
      if (bits != 0) fill_step(step_of(here, number), bits, filled, value);
    }
  }
  __device__ void fill_wave() const {
    auto& wave = tile.memory.wave;
    using Step = WaveStep<std::remove_reference_t<decltype(wave)>, StepMasks<true>>;
    Place place(wave.layout, tile.memory.lattice.lengths);
    const auto next = [&] {
      place.next();
      place.cell += wave.layout.step_cells;
    };
    fill_steps(
        place, wave.layout.steps(), [&] { return index_of(place); }, next,
        [&](const Place& here, std::uint32_t number) { return Step{wave, here, number, {nullptr}}; });
  }
  __device__ void fill_turn() const {
    Refining refining(tile.memory.refining, tile.memory.pass, taps, tile.scratch.unit);
    RefinedPlace place(refining.shape, refining.parity, tile.memory.lattice.lengths);
    fill_steps(
        place, refining.shape.steps(),
        [&] { return dense_index(tile.memory.dense, tile.memory.lattice, refining, place); }, [&] { place.next(); },
        [&](const RefinedPlace&, std::uint32_t number) { return RefinedStep<Refining>(refining, number); });
  }
  __device__ std::size_t index_of(const Place& place) const {
    return tile.memory.lattice.index(tile.memory.dense, static_cast<std::uint32_t>(place.z.v), this_lane(),
                                     static_cast<std::uint32_t>(place.x.v));
  }
  // Takes a sample of the value at `own` by all lanes: each loads terms of it. Distances of candidates are in wave.tap.
  // beside: the distance of a value beside it in the first lanes, kNoDistance in others.
  __device__ static void take_together(const WaveOf<FlatCells>& wave, const TapList& list, std::uint32_t rest,
                                       std::uint32_t set, bool is_border, const float* own, CellIndex beside,
                                       Sample& sample) {
    const float origin = own[wave.tap[rest]], other = beside != kNoDistance ? own[beside] : origin;
    constexpr std::uint32_t kEach = (kTerms + kRows - 1) / kRows;
    float terms[kEach];  // all are loaded before one is stored
#pragma unroll
    for (std::uint32_t k = 0; k < kEach; ++k) {
      const std::uint32_t i = this_lane() + k * kRows;
      terms[k] = i <= list.count ? own[i < list.count ? wave.tap[i] : 0] : origin;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kEach; ++k) {
      const std::uint32_t i = this_lane() + k * kRows;
      if (i < kTerms) sample.terms[i] = i <= list.count ? terms[k] - origin : 0;
    }
    float low = other, high = other;
    for (int apart = 1; apart < static_cast<int>(kLanesBeside); apart *= 2) {
      low = min(low, __shfl_xor_sync(kAllRows, low, apart));
      high = max(high, __shfl_xor_sync(kAllRows, high, apart));
    }
    if (this_lane() == 0) {  // of equal values the origin counts, as on the CPU: a range of 0 is not -0
      sample.range = (high > origin ? high : origin) - (low < origin ? low : origin);
      sample.weight = sample_weight(is_border, sample.range);
      sample.set = set;
    }
  }
  __device__ std::uint32_t sample_wave(std::uint32_t every, Sample* to) const {
    auto& wave = tile.memory.wave;
    const TapList& list = taps.causal;
    for (std::uint32_t i = this_lane(); i < list.count; i += kRows) wave.tap[i] = wave.layout.distance(list.of[i]);
    __syncwarp();
    static_assert(kRangeTaps <= kLanesBeside);
    const CellIndex beside = this_lane() < wave.range_taps ? wave.range_tap[this_lane()] : kNoDistance;
    Place place(wave.layout, tile.memory.lattice.lengths);
    const std::uint32_t steps = wave.layout.steps(), every_border = every < 8 ? 1 : every / 8;
    std::uint32_t inside = every / 2, border = 0, taken = 0;
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
      const Ints active = place.active();
      const bool usual = active.v != 0 && (tile.plain || tile.memory.dense.kinds[index_of(place)] == kCoded);
      const std::uint32_t set = static_cast<std::uint32_t>(place.border(wave.kind).v);
      const bool is_border = set != 0;
      const std::uint32_t borders = __ballot_sync(kAllRows, usual && is_border ? 1 : 0),
                          others = __ballot_sync(kAllRows, usual && !is_border ? 1 : 0);
      const std::uint32_t rank =
          1 + (is_border ? border + popcount(borders & lanes_below()) : inside + popcount(others & lanes_below()));
      const std::uint32_t own_set = set + (is_border ? kBorderSets : 0),
                          rest = rest_tap(list, false, wave.kind, own_set);
      const bool takes = usual && rank % (is_border ? every_border : every) == 0 && rest != kNoTap;
      const std::uint32_t all = __ballot_sync(kAllRows, takes ? 1 : 0);
      for (std::uint32_t left = all; left != 0; left &= left - 1, ++taken) {
        const std::uint32_t lane = static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1;
        const std::uint32_t of = __shfl_sync(kAllRows, own_set, static_cast<int>(lane));
        take_together(wave, list, rest_tap(list, false, wave.kind, of), of, of >= kBorderSets,
                      wave.values.first + place.cell + lane, beside, to[taken]);
      }
      border = (border + popcount(borders)) % every_border;
      inside = (inside + popcount(others)) % every;
      place.next();
      place.cell += wave.layout.step_cells;
    }
    return taken;
  }
  // Samples of the turn that has begun; `inside`: values since the last sample.
  __device__ void sample_turn(std::uint32_t every, std::uint32_t& inside, std::uint32_t& taken, Sample* to) const {
    auto& wave = tile.memory.wave;
    const TapList& list = taps.refining;
    Refining refining(tile.memory.refining, tile.memory.pass, taps, tile.scratch.unit);
    const Refinement& shape = refining.shape;
    for (std::uint32_t i = this_lane(); i < list.count; i += kRows)
      wave.tap[i] = shape.distance(refining.parity, list.of[i]);
    __syncwarp();
    RefinedPlace place(shape, refining.parity, tile.memory.lattice.lengths);
    const std::uint32_t steps = shape.steps(), rest = rest_tap(list, true, shape.kind, refining.parity);
    // both sides along each odd axis
    const std::uint32_t axis = this_lane() / 2;
    const CellIndex beside = axis >= static_cast<std::uint32_t>(shape.kind) || (refining.parity >> axis & 1) == 0
                                 ? kNoDistance
                             : this_lane() % 2 == 0 ? refining.before[axis]
                                                    : refining.behind[axis];
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step, place.next()) {
      const Ints active = place.active();
      const bool usual =
          active.v != 0 &&
          (tile.plain ||
           tile.memory.dense.kinds[dense_index(tile.memory.dense, tile.memory.lattice, refining, place)] == kCoded);
      const std::uint32_t values = __ballot_sync(kAllRows, usual ? 1 : 0),
                          rank = 1 + inside + popcount(values & lanes_below());
      const std::uint32_t all = __ballot_sync(kAllRows, usual && rank % every == 0 ? 1 : 0);
      for (std::uint32_t left = all; left != 0; left &= left - 1, ++taken) {
        const std::uint32_t lane = static_cast<std::uint32_t>(__ffs(static_cast<int>(left))) - 1;
        take_together(wave, list, rest, refining.parity, false,
                      tile.scratch.unit.values + shape.cell_of_step(refining.parity, step) + shape.cell_of_lane(lane),
                      beside, to[taken]);
      }
      inside = (inside + popcount(values)) % every;
    }
  }
};

}  // namespace pyfilter::cuda
