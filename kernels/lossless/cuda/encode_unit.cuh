// SPDX-License-Identifier: BSD-3-Clause
// Units of effort "ratio" (docs/format.md, sections 15.3 and 15.4), encoded by a warp each with a thread for each lane;
// cpu/bin_streams.hpp is the same lane by lane. Forwards it finds symbols, and writes offsets; backwards it writes
// words, which replace the symbols.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/wire.hpp"
#include "lossless/cuda/encode_params.cuh"
#include "lossless/train/number_values.hpp"
#include "lossless/train/runs.hpp"
#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/rans_step.hpp"

namespace pyfilter::cuda {

// Words of offsets that wait in shared memory, at most: what steps leave, and a step of 64 bits and an escape's symbol
// in each lane.
inline constexpr std::uint32_t kWaitingWords = 32, kStepWords = kWaitingWords + (kEscapeBits + 64) + 1;

template <class U>
struct UnitSpace {
  EncodedBins<U> bins;
  std::uint32_t staged[kUnitWarps][kStepWords + 3];  // a lane may add zeros behind its bits
};

// Writes bits that the lanes of a warp have, in the order of lanes.
template <class U>
struct OffsetWriter {
  std::uint32_t* words;   // of the unit
  std::uint32_t* staged;  // bits that wait; zeros behind them
  std::uint32_t at, before;

  __device__ __forceinline__ void start(std::uint32_t* to, std::uint32_t* memory) {
    words = to;
    staged = memory;
    at = before = 0;
    for (std::uint32_t i = threadIdx.x % 32; i < kStepWords + 3; i += 32) staged[i] = 0;
    __syncwarp();
  }
  // Writes the low `count` bits of value and, from bit 64 on, `more`.
  __device__ __forceinline__ void put(std::uint64_t value, std::uint32_t more, std::uint32_t count) {
    const std::uint32_t upto = sum_upto(count), all = __shfl_sync(kAllLanes, upto, 31);
    if (count != 0) {
      const std::uint32_t bit = before + upto - count, shift = bit % 32;
      std::uint32_t* const to = staged + bit / 32;
      const auto low = static_cast<std::uint32_t>(value), high = static_cast<std::uint32_t>(value >> 32);
      atomicOr(to, low << shift);
      if (shift + count > 32) atomicOr(to + 1, __funnelshift_l(low, high, shift));
      if (shift + count > 64) atomicOr(to + 2, __funnelshift_l(high, more, shift));
      if (sizeof(U) == 8 && shift + count > 96) atomicOr(to + 3, __funnelshift_l(more, 0, shift));
    }
    before += all;
    if (before >= 32 * kWaitingWords) flush();
  }
  __device__ __forceinline__ void flush() {
    __syncwarp();
    const std::uint32_t whole = before / 32, rest = staged[whole];
    for (std::uint32_t i = threadIdx.x % 32; i < whole; i += 32) words[at + i] = staged[i];
    __syncwarp();
    for (std::uint32_t i = threadIdx.x % 32; i <= whole; i += 32) staged[i] = i == 0 ? rest : 0;
    __syncwarp();
    at += whole;
    before %= 32;
  }
  // Returns the number of bytes.
  __device__ __forceinline__ std::uint32_t finish() {
    flush();
    if (before != 0 && threadIdx.x % 32 == 0) words[at] = staged[0];
    return 4 * at + (before + 7) / 8;
  }
};

template <class T>
struct UnitEncoder {
  using U = NumberOf<T>;

  const BinnedEncode& job;
  const TrainedChunk<U>& trained;
  UnitSpace<U>& space;
  std::uint64_t unit_number, first;  // among all units and values that have memory
  const std::uint8_t* values;
  std::uint32_t count, stored, lane, warp, sums;
  std::uint32_t sum[kMostSets];  // of the strides in a set
  U* numbers;
  U* remainders;

  __device__ __forceinline__ UnitEncoder(const BinnedEncode& of, const TrainedChunk<U>& chunk, UnitSpace<U>& shared,
                                         std::uint32_t number, std::uint32_t unit)
      : job(of),
        trained(chunk),
        space(shared),
        unit_number(std::uint64_t{number} * of.most_units + unit),
        lane(threadIdx.x % 32),
        warp(threadIdx.x / 32) {
    const BinnedParts& model = trained.model;
    const std::uint64_t start = std::uint64_t{unit} * model.unit_values, left = job.values - start;
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

  __device__ __forceinline__ U bits_at(std::uint32_t i) const {
    return static_cast<U>(reinterpret_cast<const T*>(values)[i]);
  }
  // Numbers of all values, unless they are patterns.
  __device__ __forceinline__ void find_numbers() {
    const NumberMap map = trained.model.map;
    if (map.kind == NumberKind::pattern) return;
    const FindPlace<U> place{trained.dictionary, trained.places, map.width};
    with_number_kind(map.kind, [&]<NumberKind kKind>() {
      U before = 0;  // the last number so far of a value that the grid reaches
#pragma unroll 1
      for (std::uint32_t from = 0; from < count; from += 32) {
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

  // Finds the symbols of a stream, and writes offsets. Returns whether all symbols are the first one, without offsets.
  template <bool Quick, class Source>
  __device__ __forceinline__ bool code_symbols(std::uint32_t stream, std::uint32_t coded, const Source& source,
                                               std::uint32_t* offset_bytes) {
    const BinnedParts& model = trained.model;
    const std::uint32_t width = model.map.width;
    std::uint8_t* const levels = job.levels + first;
    std::uint16_t* const symbols = job.symbols[stream] + first;
    OffsetWriter<U> offsets;
    offsets.start(job.offsets[stream] + offset_words<U>(first, unit_number), space.staged[warp]);
    std::uint32_t distance[kDistances], far = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kDistances; ++k) {
      distance[k] = model.contexts ? model.distance[k] : 0;
      far = max(far, distance[k]);
    }
    std::uint32_t same = 0;
    bool uniform = true;
    auto parts = source.load(lane);
    // kUsual: all lanes have a value and neighbours
    const auto code = [&]<bool kUsual>(std::uint32_t from) {
      const std::uint32_t i = from + lane;
      const bool active = kUsual || i < coded;
      const U number = to_bin_order<U>(Source::kZigzags, width, source.value(parts));
      parts = source.load(i + 32);  // it arrives while this step is coded
      std::uint32_t level = 0;
      if (far != 0) {
#pragma unroll
        for (std::uint32_t k = 0; k < kDistances; ++k)
          if (kUsual || (active && i >= distance[k])) level += levels[i - distance[k]];
        level = (level + 2) / 4;
      }
      const std::uint32_t table = space.bins.table_of_level[level] * kSymbols;
      std::uint32_t bits = 0, more = 0, symbol = 0;
      std::uint64_t out = 0;
      if (active) {
        const auto found = space.bins.search.template find<Quick, Source::kZigzags>(number);
        symbol = found.symbol;
        const BinOfSymbol bin = space.bins.of_symbol[symbol];
        bits = bin.bits;
        out = found.offset;
        levels[i] = bin.level;
        if (symbol >= space.bins.bins || space.bins.entries[table + symbol].frequency() == 0) {
          more = static_cast<std::uint32_t>(out >> (64 - kEscapeBits));
          out = out << kEscapeBits | symbol;
          bits += kEscapeBits;
          symbol = kEscape;
        }
        symbols[i] = static_cast<std::uint16_t>(table + symbol);
      }
      if (uniform) {
        if (from == 0) same = __shfl_sync(kAllLanes, symbol, 0);
        uniform = __all_sync(kAllLanes, !active || symbol == same ? 1 : 0) != 0;
      }
      offsets.put(out, more, bits);
      __syncwarp();  // orders levels
    };
#pragma unroll 1
    for (std::uint32_t from = 0; from < coded; from += 32)
      if (from >= far && from + 32 <= coded)
        code.template operator()<true>(from);
      else
        code.template operator()<false>(from);
    *offset_bytes = offsets.finish();
    __syncwarp();
    return uniform && *offset_bytes == 0 && same != kEscape;
  }

  // Writes the words of a stream downwards from the end of its symbols. Returns their number.
  __device__ __forceinline__ std::uint32_t write_words(std::uint32_t stream, std::uint32_t coded) {
    std::uint16_t* const symbols = job.symbols[stream] + first;
    std::uint32_t x = kLowestState, end = coded, from = (coded - 1) / 32 * 32;
    std::uint32_t next = from + lane < coded ? symbols[from + lane] : 0;
#pragma unroll 1
    for (;; from -= 32) {
      const bool active = from + lane < coded;
      const CodedEntry entry = space.bins.entries[next];
      if (from != 0) next = symbols[from - 32 + lane];
      const bool full = active && x >> (kStateBits - kBinTableBits) >= entry.frequency();
      const std::uint32_t spilling = __ballot_sync(kAllLanes, full ? 1 : 0);
      end -= static_cast<std::uint32_t>(__popc(spilling));
      __syncwarp();  // the symbols that words replace have been read
      if (full) {
        symbols[end + static_cast<std::uint32_t>(__popc(spilling & ((1u << lane) - 1)))] =
            static_cast<std::uint16_t>(x);
        x >>= 16;
      }
      if (active) x = entry.coded(x);
      if (from == 0) break;
    }
    job.states[64 * unit_number + 32 * stream + lane] = x;
    return coded - end;
  }

  // Encodes a stream. Returns the bytes behind its head.
  template <class Source>
  __device__ __forceinline__ std::uint32_t encode_stream(std::uint32_t stream, std::uint32_t coded,
                                                         const Source& source, StreamHead& head) {
    head = {kUniformStream, 0};
    if (coded == 0) return 0;
    std::uint32_t offset_bytes = 0;
    const bool uniform = space.bins.search.is_quick() ? code_symbols<true>(stream, coded, source, &offset_bytes)
                                                      : code_symbols<false>(stream, coded, source, &offset_bytes);
    if (uniform) {
      head.words = kUniformStream | (job.symbols[stream][first] % kSymbols);
      return 0;
    }
    head = {write_words(stream, coded), offset_bytes};
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
  };
  struct Remainders {
    static constexpr bool kZigzags = true;

    const UnitEncoder& unit;
    bool changes;

    struct Held {
      U own, before;
    };
    __device__ __forceinline__ Held load(std::uint32_t i) const {
      return {i < unit.count ? unit.remainders[i] : U{0},
              changes && i < unit.count && i != 0 ? unit.remainders[i - 1] : U{0}};
    }
    __device__ __forceinline__ U value(Held held) const { return held.own - held.before; }
  };

  template <bool kPattern, std::uint32_t kSets>
  __device__ __forceinline__ std::uint32_t encode_differences(StreamHead& head) {
    const NumberMap map = trained.model.map;
    auto* const kept = static_cast<T*>(job.first_differences) + kMostStored * unit_number;
    if (lane < stored) kept[lane] = static_cast<T>(difference<kPattern, kSets>(map, load_parts<kPattern, kSets>(lane)));
    return stored * static_cast<std::uint32_t>(sizeof(T)) +
           encode_stream(0, count - stored, Differences<kPattern, kSets>{*this, map}, head);
  }
  template <bool kPattern>
  __device__ __forceinline__ std::uint32_t encode_differences(StreamHead& head) {
    if (sums == 1) return encode_differences<kPattern, 1>(head);
    if (sums == 2) return encode_differences<kPattern, 2>(head);
    if (sums == 4) return encode_differences<kPattern, 4>(head);
    return encode_differences<kPattern, kMostSets>(head);
  }
  __device__ __forceinline__ std::uint32_t encode_first(StreamHead& head) {
    find_numbers();
    return trained.model.map.kind == NumberKind::pattern ? encode_differences<true>(head)
                                                         : encode_differences<false>(head);
  }
  __device__ __forceinline__ std::uint32_t encode_remainders(StreamHead& head) {
    return encode_stream(1, count, Remainders{*this, trained.model.map.changes}, head);
  }
};

// Copies the tables of a stream to shared memory.
template <class U>
__device__ __forceinline__ void load_bins(const EncodedBins<U>& from, UnitSpace<U>& space) {
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < sizeof from / 4; i += 32 * kUnitWarps)
    reinterpret_cast<std::uint32_t*>(&space.bins)[i] = reinterpret_cast<const std::uint32_t*>(&from)[i];
  __syncthreads();
}

template <class T>
static __global__ void __launch_bounds__(32 * kUnitWarps, 4)
    encode_units_kernel(const __grid_constant__ BinnedEncode job) {
  using U = NumberOf<T>;
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<UnitSpace<U>*>(shared_memory);
  auto* const all_trained = static_cast<TrainedChunk<U>*>(job.trained) + job.first_chunk;
  if (blockIdx.x < job.chunk_count) {  // it writes a model, which takes as long as a unit
    TrainedChunk<U>& own = all_trained[blockIdx.x];
    if (threadIdx.x == 0) own.text_bytes = static_cast<std::uint32_t>(write_binned_model(own.model, own.text));
    return;
  }
  const std::uint32_t groups = (job.most_units + kUnitWarps - 1) / kUnitWarps, block = blockIdx.x - job.chunk_count,
                      number = block / groups, group = block % groups, unit = group * kUnitWarps + threadIdx.x / 32;
  const TrainedChunk<U>& trained = all_trained[number];
  const std::uint64_t unit_values = trained.model.unit_values, units = (job.values + unit_values - 1) / unit_values;
  if (group * kUnitWarps >= units) return;
  const bool has_remainders = trained.model.map.remainders, active = unit < units;
  load_bins(trained.streams[0], space);
  UnitEncoder<T> encoder(job, trained, space, number, active ? unit : 0);
  EncodedUnit done = {};
  if (active) done.bytes = static_cast<std::uint32_t>(kStreamHead) + encoder.encode_first(done.heads[0]);
  if (has_remainders) {
    load_bins(trained.streams[1], space);
    if (active) done.bytes += static_cast<std::uint32_t>(kStreamHead) + encoder.encode_remainders(done.heads[1]);
  }
  if (!active || encoder.lane != 0) return;
  done.bytes = (done.bytes + 3) / 4 * 4;
  job.units[encoder.unit_number] = done;
}

}  // namespace pyfilter::cuda
