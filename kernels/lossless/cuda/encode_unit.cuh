// SPDX-License-Identifier: BSD-3-Clause
// Units of effort "ratio" (docs/format.md, sections 15.3 and 15.4), encoded with a thread for each lane;
// cpu/bin_streams.hpp is the same lane by lane. Forwards a warp finds symbols of a part of a unit, and writes offsets;
// backwards one warp writes the words of the unit, which replace the symbols.
#pragma once

#include <cstdint>

#include "core/wire.hpp"
#include "lossless/cuda/encode_params.cuh"
#include "lossless/cuda/find_bins.cuh"
#include "lossless/cuda/offset_writer.cuh"
#include "lossless/cuda/unit_space.cuh"
#include "lossless/cuda/word_writer.cuh"
#include "lossless/train/number_values.hpp"
#include "lossless/train/runs.hpp"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

template <class T>
struct UnitEncoder {
  using U = NumberOf<T>;

  const BinnedEncode& job;
  const TrainedChunk<U>& trained;
  std::uint64_t unit_number, first;  // among all units and values that have memory
  const std::uint8_t* values;
  std::uint32_t count, stored, lane, warp;
  std::uint32_t part, parts;    // this warp's of the unit
  std::uint64_t offset_number;  // of the unit's first part
  OffsetWriter<U> offsets;
  U* numbers;
  U* remainders;

  __device__ __forceinline__ UnitEncoder(const BinnedEncode& of, const TrainedChunk<U>& chunk, std::uint32_t number,
                                         const PartOfUnit& own)
      : job(of),
        trained(chunk),
        unit_number(std::uint64_t{number} * of.most_units + own.unit),
        lane(threadIdx.x % 32),
        warp(threadIdx.x / 32),
        part(own.part),
        parts(own.parts),
        offset_number(std::uint64_t{number} * of.most_parts + own.number) {
    const BinnedParts& model = trained.model;
    const std::uint64_t start = std::uint64_t{own.unit} * model.unit_values, left = job.values - start;
    first = number * job.values + start;
    values = job.base.values + (job.first_chunk + number) * job.base.value_stride + start * sizeof(T);
    count = left < model.unit_values ? static_cast<std::uint32_t>(left) : model.unit_values;
    stored = min(model.stored_first(), count);
    numbers = static_cast<U*>(job.numbers) + first;
    remainders = static_cast<U*>(job.remainders) + first;
  }

  __device__ __forceinline__ static EncodedBins<U>& bins() { return unit_space<U>().bins; }
  __device__ __forceinline__ std::uint32_t* staged() const { return unit_space<U>().staged[warp]; }
  __device__ __forceinline__ U bits_at(std::uint32_t i) const {
    return static_cast<U>(reinterpret_cast<const T*>(values)[i]);
  }
  // The first of `all` values that part `i` has: a multiple of 32.
  __device__ __forceinline__ std::uint32_t begin_of(std::uint32_t i, std::uint32_t all) const {
    return min(((all + parts - 1) / parts + 31) / 32 * 32 * i, all);
  }
  // The number of the last value before value `end`, a multiple of 32, that a grid reaches; 0 if there is none.
  __device__ __forceinline__ U reached_before(const NumberMap& map, std::uint32_t end) const {
#pragma unroll 1
    while (end != 0) {
      end -= 32;
      U own = 0;
      const bool reached = nearest_grid_number(map, bits_at(end + lane), own);
      const std::uint32_t all = __ballot_sync(kAllLanes, reached ? 1 : 0);
      if (all != 0) return __shfl_sync(kAllLanes, own, 31 - __clz(static_cast<int>(all)));
    }
    return 0;
  }
  // Numbers of the part's values, unless they are patterns.
  __device__ __forceinline__ void find_numbers() {
    const NumberMap map = trained.model.map;
    if (map.kind == NumberKind::pattern) return;
    const FindPlace<U> place{trained.dictionary, trained.places, map.width};
    const std::uint32_t begin = begin_of(part, count), end = begin_of(part + 1, count);
    with_number_kind(map.kind, [&]<NumberKind kKind>() {
      // the last number so far of a value that the grid reaches
      U before = kKind == NumberKind::grid ? reached_before(map, begin) : 0;
#pragma unroll 1
      for (std::uint32_t from = begin; from < end; from += 32 * kStepsTogether<U>) {
        U bits[kStepsTogether<U>];
#pragma unroll
        for (std::uint32_t k = 0; k < kStepsTogether<U>; ++k)
          bits[k] = from + 32 * k + lane < count ? bits_at(from + 32 * k + lane) : 0;
#pragma unroll
        for (std::uint32_t k = 0; k < kStepsTogether<U>; ++k) {
          const std::uint32_t i = from + 32 * k + lane;
          if (i - lane >= end) break;
          if constexpr (kKind == NumberKind::grid) {
            U own = 0;
            const bool reached = i < count && nearest_grid_number(map, bits[k], own);
            const std::uint32_t all = __ballot_sync(kAllLanes, reached ? 1 : 0),
                                upto = all & (0xFFFFFFFFu >> (31 - lane));
            const U near = __shfl_sync(kAllLanes, own, upto != 0 ? 31 - __clz(static_cast<int>(upto)) : 0);
            const U last = __shfl_sync(kAllLanes, own, all != 0 ? 31 - __clz(static_cast<int>(all)) : 0);
            const U here = upto != 0 ? near : before;
            if (all != 0) before = last;
            store(i, on_grid(map, bits[k], here), map.remainders);
          } else if (i < count) {
            store(i, number_of_value<kKind>(map, place, bits[k], U{0}), map.remainders);
          }
        }
      }
    });
    __syncwarp();
  }
  __device__ __forceinline__ void store(std::uint32_t i, const NumberOfValue<U>& own, bool with_remainder) {
    if (i >= count) return;
    numbers[i] = own.number;
    if (with_remainder) remainders[i] = own.remainder;
  }

  __device__ __forceinline__ std::uint32_t* offsets_of(std::uint32_t stream, std::uint32_t i,
                                                       std::uint32_t coded) const {
    return job.offsets[stream] + offset_words<U>(first + begin_of(i, coded), offset_number + i);
  }
  // What find_bins_of() leaves of a stream's values. Memory that is not used otherwise until the stream is written: the
  // unit's for the second stream's offsets, or for numbers, which the first stream was made of.
  __device__ __forceinline__ U* rest_of(std::uint32_t stream) const {
    if (stream != 0) return numbers;
    const auto words = (offset_words<U>(first, offset_number) * 4 + sizeof(U) - 1) / sizeof(U);
    return reinterpret_cast<U*>(job.offsets[1]) + words;
  }
  // Finds symbols and levels of the part's values, so that other parts know them before any table is chosen.
  __device__ __forceinline__ void find_bins(std::uint32_t stream) {
    const std::uint32_t coded = coded_of(stream);
    const FoundBins<U> to{begin_of(part, coded), begin_of(part + 1, coded), rest_of(stream),
                          job.symbols[stream] + first, trained.model.contexts ? job.levels + first : nullptr};
    if (to.begin >= to.end) return;
    const NumberMap& map = trained.model.map;
    const auto find = [&]<Source kSource, std::uint32_t kSets, bool kZigzags, class X>(
                          const X* from, std::uint32_t skipped, const StrideSets& strides) {
      if (bins().search.is_quick())
        find_bins_of<kSource, kSets, true, kZigzags>(from, count, skipped, strides, map, to);
      else
        find_bins_of<kSource, kSets, false, kZigzags>(from, count, skipped, strides, map, to);
    };
    if (stream != 0) {
      find.template operator()<Source::numbers, 1, true>(remainders, 0, StrideSets(map.changes));
      return;
    }
    const StrideSets strides(trained.model);
    const auto find_from = [&]<Source kSource, class X>(const X* from) {
      if (trained.model.strides == 0)  // numbers themselves are in the order of signed numbers
        find.template operator()<kSource, 1, false>(from, stored, strides);
      else
        with_sets(strides.sets, [&]<std::uint32_t kSets>() {
          find.template operator()<kSource, kSets, true>(from, stored, strides);
        });
    };
    if (map.kind != NumberKind::pattern)
      find_from.template operator()<Source::numbers>(numbers);
    else if (map.is_float)
      find_from.template operator()<Source::floats>(reinterpret_cast<const T*>(values));
    else
      find_from.template operator()<Source::integers>(reinterpret_cast<const T*>(values));
  }
  // Chooses the tables of the part's symbols by levels of neighbours, and writes the offsets.
  __device__ __forceinline__ void code_part(std::uint32_t stream) {
    constexpr std::uint32_t kSteps = kStepsTogether<U>;
    const BinnedParts& model = trained.model;
    const std::uint32_t coded = coded_of(stream), begin = begin_of(part, coded), end = begin_of(part + 1, coded);
    if (coded == 0) return;
    const bool contexts = model.contexts;
    std::uint32_t distance[kDistances], furthest = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      distance[k] = model.distance[k];
      furthest = max(furthest, contexts ? distance[k] : 0);
    }
    const std::uint8_t* const levels = job.levels + first;
    const U* const rest_in_bin = rest_of(stream);
    std::uint16_t* const symbols = job.symbols[stream] + first;
    offsets.start(offsets_of(stream, part, coded), staged());
    std::uint32_t lowest = kSymbols, highest = 0;  // symbols of this lane
    const auto some_steps = [&]<bool kInside>(std::uint32_t at) {
      std::uint32_t symbol[kSteps], around[kSteps];
      U rest[kSteps];
#pragma unroll
      for (std::uint32_t k = 0; k < kSteps; ++k) {
        const std::uint32_t i = at + 32 * k + lane;
        const bool active = kInside || i < end;
        symbol[k] = active ? symbols[i] : 0;
        rest[k] = active ? rest_in_bin[i] : 0;
        around[k] = 2;
      }
      if (contexts) {
        std::uint32_t level[kSteps][kDistances];
#pragma unroll
        for (std::uint32_t n = 0; n < kDistances; ++n) {
          const std::uint32_t from = at + lane - distance[n];  // wraps before the first value
          const std::uint8_t* const own = levels + from;
#pragma unroll
          for (std::uint32_t k = 0; k < kSteps; ++k)
            if constexpr (kInside)
              level[k][n] = own[32 * k];
            else
              level[k][n] = from + 32 * k < coded ? levels[from + 32 * k] : 0;
        }
#pragma unroll
        for (std::uint32_t k = 0; k < kSteps; ++k) around[k] += level[k][0] + level[k][1] + level[k][2] + level[k][3];
      }
#pragma unroll
      for (std::uint32_t k = 0; k < kSteps; ++k) {
        const std::uint32_t i = at + 32 * k + lane;
        if (!kInside && i - lane >= end) break;
        const bool active = kInside || i < end;
        const std::uint32_t table = bins().table_of_level[around[k] / 4] * kSymbols,
                            frequency = bins().entries[table + symbol[k]].frequency();
        std::uint32_t bits = active ? bins().of_symbol[symbol[k]].bits : 0, own = symbol[k];
        const bool escapes = active && (own == kEscape || frequency == 0);
        std::uint64_t out = rest[k];
        std::uint32_t more = 0;
        const bool any = __any_sync(kAllLanes, escapes ? 1 : 0) != 0;
        if (any && escapes) {
          more = static_cast<std::uint32_t>(out >> (64 - kEscapeBits));
          out = out << kEscapeBits | own;
          bits += kEscapeBits;
          own = kEscape;
        }
        if (__any_sync(kAllLanes, static_cast<int>(bits))) offsets.put(out, more, bits, any, staged());
        if (active) symbols[i] = static_cast<std::uint16_t>(table + own);
        lowest = min(lowest, active ? own : kSymbols);
        highest = max(highest, active ? own : 0);
      }
      offsets.flush_many(staged());
    };
#pragma unroll 1
    for (std::uint32_t at = begin; at < end; at += 32 * kSteps) {
      if (at >= furthest && at + 32 * kSteps <= end)
        some_steps.template operator()<true>(at);
      else
        some_steps.template operator()<false>(at);
    }
    const std::uint32_t first_lane = __shfl_sync(kAllLanes, lowest, 0);
    const bool differ = lowest != kSymbols && (lowest != first_lane || highest != first_lane);
    const bool uniform = begin < end && __any_sync(kAllLanes, differ ? 1 : 0) == 0;
    if (lane == 0)
      unit_space<U>().parts[warp] = {32 * offsets.at + offsets.before, uniform ? first_lane : CodedPart::kNoSymbol};
    if (part != 0) offsets.finish(staged());
    __syncwarp();
  }

  // Joins the parts of a stream. Returns the bytes behind its head. Called by the warp of the first part.
  __device__ __forceinline__ std::uint32_t join_parts(std::uint32_t stream, StreamHead& head) {
    const std::uint32_t coded = coded_of(stream);
    head = {kUniformStream, 0};
    if (coded == 0) return 0;
    const std::uint32_t same = unit_space<U>().parts[warp].same;
    bool uniform = same < kEscape;
    for (std::uint32_t i = 1; i < parts; ++i) {
      const CodedPart other = unit_space<U>().parts[warp + i];
      uniform = uniform && other.same == same;
      offsets.append(offsets_of(stream, i, coded), other.bits, staged());
    }
    const std::uint32_t offset_bytes = (offsets.finish(staged()) + 7) / 8;
    __syncwarp();
    if (uniform && offset_bytes == 0) {
      head.words = kUniformStream | same;
      return 0;
    }
    head = {write_words<U>(job.symbols[stream] + first, coded, job.states + 64 * unit_number + 32 * stream),
            offset_bytes};
    return 4 * kLaneCount + 2 * head.words + offset_bytes;
  }
  // How many numbers a stream codes.
  __device__ __forceinline__ std::uint32_t coded_of(std::uint32_t stream) const {
    return stream == 0 ? count - stored : count;
  }
  // Keeps the first differences. Returns their bytes.
  __device__ __forceinline__ std::uint32_t keep_first() {
    const BinnedParts& model = trained.model;
    auto* const kept = static_cast<T*>(job.first_differences) + kMostStored * unit_number;
    U difference = 0;
    for (std::uint32_t set = 0; set < 1u << model.strides; ++set) {
      std::uint32_t from = lane;  // wraps before the first value
      for (std::uint32_t k = 0; k < model.strides; ++k) from -= (set >> k & 1) != 0 ? model.stride[k] : 0;
      if (lane >= stored || from >= stored) continue;
      const U number = model.map.kind == NumberKind::pattern ? ordered(model.map, bits_at(from)) : numbers[from];
      difference = is_subtracted(set) ? difference - number : difference + number;
    }
    if (lane < stored) kept[lane] = static_cast<T>(wrapped(model.map.width, difference));
    return stored * static_cast<std::uint32_t>(sizeof(T));
  }
};

}  // namespace pyfilter::cuda
