// SPDX-License-Identifier: BSD-3-Clause
// Units of effort "ratio" (docs/format.md, sections 15.3 and 15.4), encoded with a thread for each lane;
// cpu/bin_streams.hpp is the same lane by lane. Forwards a warp finds symbols of a part of a unit, and writes offsets;
// backwards one warp writes the words of the unit, which replace the symbols.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/wire.hpp"
#include "lossless/cuda/encode_params.cuh"
#include "lossless/cuda/offset_writer.cuh"
#include "lossless/cuda/unit_space.cuh"
#include "lossless/cuda/word_writer.cuh"
#include "lossless/train/number_values.hpp"
#include "lossless/train/runs.hpp"
#include "stages/cuda/loaded.cuh"
#include "stages/cuda/warp_sum.cuh"

namespace pyfilter::cuda {

template <class T>
struct UnitEncoder {
  using U = NumberOf<T>;

  const BinnedEncode& job;
  const TrainedChunk<U>& trained;
  std::uint64_t unit_number, first;  // among all units and values that have memory
  const std::uint8_t* values;
  std::uint32_t count, stored, lane, warp, sums;
  std::uint32_t part, parts;    // this warp's of the unit
  std::uint64_t offset_number;  // of the unit's first part
  OffsetWriter<U> offsets;
  std::uint32_t sum[kMostSets];  // of the strides in a set
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
    sums = 1u << model.strides;
    for (std::uint32_t set = 0; set < sums; ++set) {
      sum[set] = 0;
      for (std::uint32_t k = 0; k < model.strides; ++k) sum[set] += (set >> k & 1) != 0 ? model.stride[k] : 0;
    }
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
      for (std::uint32_t from = begin; from < end; from += 32) {
        const std::uint32_t i = from + lane;
        const U bits = i < count ? bits_at(i) : 0;
        if constexpr (kKind == NumberKind::grid) {
          U own = 0;
          const bool reached = i < count && nearest_grid_number(map, bits, own);
          const std::uint32_t all = __ballot_sync(kAllLanes, reached ? 1 : 0),
                              upto = all & (0xFFFFFFFFu >> (31 - lane));
          const U near = __shfl_sync(kAllLanes, own, upto != 0 ? 31 - __clz(static_cast<int>(upto)) : 0);
          const U last = __shfl_sync(kAllLanes, own, all != 0 ? 31 - __clz(static_cast<int>(all)) : 0);
          const U here = upto != 0 ? near : before;
          if (all != 0) before = last;
          store(i, number_of_value<kKind>(map, place, bits, here), map.remainders);
        } else if (i < count) {
          store(i, number_of_value<kKind>(map, place, bits, U{0}), map.remainders);
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

  // Numbers that a difference is made of, on their way from memory: one for each of kSets sets of strides.
  template <bool kPattern, std::uint32_t kSets>
  struct Parts {
    std::conditional_t<kPattern, T, U> of[kSets];
    bool has[kSets];

    __device__ __forceinline__ void arrive() { use_from_here(of); }
  };
  template <bool kPattern, std::uint32_t kSets>
  __device__ __forceinline__ Parts<kPattern, kSets> load_parts(std::uint32_t i) const {
    Parts<kPattern, kSets> parts = {};
#pragma unroll
    for (std::uint32_t set = 0; set < kSets; ++set) {
      parts.has[set] = i < count && i >= sum[set];
      if (!parts.has[set]) continue;
      if constexpr (kPattern)
        parts.of[set] = reinterpret_cast<const T*>(values)[i - sum[set]];
      else
        parts.of[set] = numbers[i - sum[set]];
    }
    return parts;
  }
  template <bool kPattern, std::uint32_t kSets>
  __device__ __forceinline__ U difference(const NumberMap& map, const Parts<kPattern, kSets>& parts) const {
    U x = 0;
#pragma unroll
    for (std::uint32_t set = 0; set < kSets; ++set) {
      const auto held = static_cast<U>(parts.of[set]);
      const U number = !parts.has[set] ? U{0} : kPattern ? ordered(map, held) : held;
      x = is_subtracted(set) ? x - number : x + number;
    }
    return wrapped(map.width, x);
  }

  __device__ __forceinline__ std::uint32_t* offsets_of(std::uint32_t stream, std::uint32_t i,
                                                       std::uint32_t coded) const {
    return job.offsets[stream] + offset_words<U>(first + begin_of(i, coded), offset_number + i);
  }
  // Sets the levels of the part's values, so that other parts know them before any symbol is coded.
  template <bool Quick, class Source>
  __device__ __forceinline__ void find_levels(std::uint32_t coded, const Source& source) {
    if (!trained.model.contexts) return;
    const std::uint32_t width = trained.model.map.width, end = begin_of(part + 1, coded);
    std::uint32_t i = begin_of(part, coded) + lane;
    auto loaded = source.load(i);
#pragma unroll 1
    for (; i < end; i += 32) {
      loaded.arrive();
      const U number = to_bin_order<U>(Source::kZigzags, width, source.value(loaded));
      loaded = source.load(i + 32 + job.after(static_cast<std::uint32_t>(number)));
      const auto found = bins().search.template find<Quick, Source::kZigzags>(number);
      job.levels[first + i] = bins().of_symbol[found.symbol].level;
    }
  }
  // Finds the symbols of the part's values, and writes their offsets.
  template <bool Quick, class Source>
  __device__ __forceinline__ void code_symbols(std::uint32_t stream, std::uint32_t coded, const Source& source) {
    const BinnedParts& model = trained.model;
    const std::uint32_t width = model.map.width, begin = begin_of(part, coded), end = begin_of(part + 1, coded);
    const bool known = parts != 1;  // levels are
    std::uint8_t* const levels = job.levels + first;
    std::uint16_t* const symbols = job.symbols[stream] + first;
    offsets.start(offsets_of(stream, part, coded), staged());
    std::uint32_t distance[kDistances];
    bool ahead = model.contexts;  // levels of neighbours are loaded a step ahead
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      distance[k] = model.contexts ? model.distance[k] : ~0u;
      ahead = ahead && (known || distance[k] >= 64);
    }
    std::uint32_t around[kDistances] = {};
    const auto load_levels = [&](std::uint32_t i) {
#pragma unroll
      for (std::uint32_t k = 0; k < kDistances; ++k)
        around[k] = i < coded && i >= distance[k] ? levels[i - distance[k]] : 0;
    };
    std::uint32_t same = CodedPart::kNoSymbol;
    auto loaded = source.load(begin + lane);
    if (ahead) load_levels(begin + lane);
    // kFull: all lanes have a value
    const auto code = [&]<bool kFull>(std::uint32_t from) {
      const std::uint32_t i = from + lane;
      const bool active = kFull || i < coded;
      loaded.arrive();
      use_from_here(around);
      const U number = to_bin_order<U>(Source::kZigzags, width, source.value(loaded));
      if (!ahead) load_levels(i);
      const std::uint32_t level = (around[0] + around[1] + around[2] + around[3] + 2) / 4;
      // what arrives while this step is coded
      const std::uint32_t next = i + 32 + job.after(level ^ static_cast<std::uint32_t>(number));
      loaded = source.load(next);
      if (ahead) load_levels(next);
      const std::uint32_t table = bins().table_of_level[level] * kSymbols;
      std::uint32_t bits = 0, more = 0, symbol = 0;
      std::uint64_t out = 0;
      if (active) {
        const auto found = bins().search.template find<Quick, Source::kZigzags>(number);
        symbol = found.symbol;
        const BinOfSymbol bin = bins().of_symbol[symbol];
        bits = bin.bits;
        out = found.offset;
        if (!known) levels[i] = bin.level;
        if (symbol >= bins().bins || bins().entries[table + symbol].frequency() == 0) {
          more = static_cast<std::uint32_t>(out >> (64 - kEscapeBits));
          out = out << kEscapeBits | symbol;
          bits += kEscapeBits;
          symbol = kEscape;
        }
        symbols[i] = static_cast<std::uint16_t>(table + symbol);
      }
      if (from == begin) same = __shfl_sync(kAllLanes, symbol, 0);
      if (same != CodedPart::kNoSymbol && __any_sync(kAllLanes, active && symbol != same ? 1 : 0))
        same = CodedPart::kNoSymbol;
      offsets.put(out, more, bits, staged());
      __syncwarp();  // orders levels
    };
#pragma unroll 1
    for (std::uint32_t from = begin; from < end; from += 32)
      if (from + 32 <= coded)
        code.template operator()<true>(from);
      else
        code.template operator()<false>(from);
    if (lane == 0) unit_space<U>().parts[warp] = {32 * offsets.at + offsets.before, same};
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
  template <bool kPattern, std::uint32_t kSets>
  struct Differences {
    static constexpr bool kZigzags = kSets != 1;  // numbers themselves are in the order of signed numbers

    const UnitEncoder& unit;
    NumberMap map;

    __device__ __forceinline__ auto load(std::uint32_t i) const {
      return unit.load_parts<kPattern, kSets>(unit.stored + i);
    }
    __device__ __forceinline__ U value(const Parts<kPattern, kSets>& parts) const {
      return unit.difference<kPattern, kSets>(map, parts);
    }
    __device__ __forceinline__ U first(std::uint32_t i) const { return value(unit.load_parts<kPattern, kSets>(i)); }
  };
  struct Remainders {
    static constexpr bool kZigzags = true;

    const UnitEncoder& unit;
    bool changes;

    struct Held {
      U own, before;

      __device__ __forceinline__ void arrive() {
        use_from_here(own);
        use_from_here(before);
      }
    };
    __device__ __forceinline__ Held load(std::uint32_t i) const {
      return {i < unit.count ? unit.remainders[i] : U{0},
              changes && i < unit.count && i != 0 ? unit.remainders[i - 1] : U{0}};
    }
    __device__ __forceinline__ U value(Held held) const { return held.own - held.before; }
  };

  // How many numbers a stream codes.
  __device__ __forceinline__ std::uint32_t coded_of(std::uint32_t stream) const {
    return stream == 0 ? count - stored : count;
  }
  // Calls work(differences).
  template <class Work>
  __device__ __forceinline__ void with_differences(const Work& work) {
    const NumberMap map = trained.model.map;
    const auto with = [&]<bool kPattern>() {
      if (sums == 1)
        work(Differences<kPattern, 1>{*this, map});
      else if (sums == 2)
        work(Differences<kPattern, 2>{*this, map});
      else if (sums == 4)
        work(Differences<kPattern, 4>{*this, map});
      else
        work(Differences<kPattern, kMostSets>{*this, map});
    };
    if (map.kind == NumberKind::pattern)
      with.template operator()<true>();
    else
      with.template operator()<false>();
  }
  // Calls work.operator()<Quick>(coded, source) with what a stream codes, if anything.
  template <class Work>
  __device__ __forceinline__ void with_source(std::uint32_t stream, const Work& work) {
    const std::uint32_t coded = coded_of(stream);
    const auto with = [&](const auto& source) {
      if (bins().search.is_quick())
        work.template operator()<true>(coded, source);
      else
        work.template operator()<false>(coded, source);
    };
    if (coded == 0) return;
    if (stream == 0)
      with_differences(with);
    else
      with(Remainders{*this, trained.model.map.changes});
  }
  // The steps that all warps of a unit take, one after the other.
  __device__ __forceinline__ void find_levels(std::uint32_t stream) {
    with_source(stream,
                [&]<bool Quick>(std::uint32_t coded, const auto& source) { find_levels<Quick>(coded, source); });
  }
  __device__ __forceinline__ void code_part(std::uint32_t stream) {
    with_source(stream, [&]<bool Quick>(std::uint32_t coded, const auto& source) {
      code_symbols<Quick>(stream, coded, source);
    });
  }
  // Keeps the first differences. Returns their bytes.
  __device__ __forceinline__ std::uint32_t keep_first() {
    auto* const kept = static_cast<T*>(job.first_differences) + kMostStored * unit_number;
    with_differences([&](const auto& differences) {
      if (lane < stored) kept[lane] = static_cast<T>(differences.first(lane));
    });
    return stored * static_cast<std::uint32_t>(sizeof(T));
  }
};

}  // namespace pyfilter::cuda
