// SPDX-License-Identifier: BSD-3-Clause
// Units (docs/format.md, section 15.3), decoded by a warp each. Differences become numbers while they are decoded: sums
// along strides commute, so those of short strides are sums over lanes. Those of longer strides need numbers before:
//   number[i] = x[i] + number[i - a] + number[i - b] - number[i - a - b]   for strides a and b
#pragma once

#include <cstddef>
#include <cstdint>

#include "lossless/cuda/binned_stream.cuh"
#include "lossless/cuda/undone_strides.cuh"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {

template <class U>
struct BinnedShared {
  BlockTables<U> tables;
  UndoneStrides undone;
  NumberMap map;
  std::uint32_t ends[kBinnedFrames];  // groups of units up to the end of each frame
  std::uint32_t work;
  UnitRings<U> rings[kMostBinnedWarps];  // the last ones are not there if a block has fewer warps

  static constexpr std::size_t bytes_of(std::uint32_t warps) {
    return sizeof(BinnedShared) - (kMostBinnedWarps - warps) * sizeof(UnitRings<U>);
  }
};
// The shared memory of a thread block; called where it is used, as team_space() is.
template <class U>
__device__ __forceinline__ BinnedShared<U>& binned_space() {
  extern __shared__ uint4 shared_memory[];
  return *reinterpret_cast<BinnedShared<U>*>(shared_memory);
}
template <class U>
__device__ __forceinline__ UnitRings<U>& RingReader<U>::rings() {
  return binned_space<U>().rings[threadIdx.x / 32];
}

template <class T, bool kFloat>
struct BinnedUnit {
  using U = NumberOf<T>;

  // Two streams of as many bytes as they may have, heads and first differences.
  static constexpr std::uint32_t kMostWords = 256 + 2 * (32 + (3 + sizeof(U)) * (kMostUnitValues / 4));

  const OpenBins& open;
  BinStream<T> stream;
  std::uint32_t at, end;          // bytes of the unit: read, and all
  std::uint32_t count, stored;    // values, first differences
  std::uint32_t asked, asked_to;  // requested values
  T *numbers, *out;               // out: of value `asked`
  bool staged;                    // numbers are stored, and become values later
  bool bad;                       // of this lane: an index beyond its list

  __device__ __forceinline__ static const BinnedShared<U>& space() { return binned_space<U>(); }
  __device__ __forceinline__ const std::uint8_t* bytes() const {
    return reinterpret_cast<const std::uint8_t*>(stream.unit.words);
  }
  __device__ __forceinline__ StreamHead head(std::uint32_t i) const {
    return {stream.unit.words[2 * i], stream.unit.words[2 * i + 1]};
  }

  __device__ __forceinline__ Fault begin(const BinnedDecode& job, const DecodeFrame& frame, std::uint32_t number,
                                         std::uint8_t* scratch) {
    const DecodeFrame part = behind_model(frame, open.directory_at);
    const TileLocation location = find_tile(part, open.units, number);
    const BinnedParts& model = open.model;
    const std::uint64_t first = std::uint64_t{number} * model.unit_values, left = job.values - first;
    count = left < model.unit_values ? static_cast<std::uint32_t>(left) : model.unit_values;
    stored = min(open.stored, count);
    at = kStreamHead * (space().map.remainders ? 2u : 1u);
    end = 4 * min(location.count, kMostWords);  // longer ones end too late
    if (location.uniform || end < at + stored * sizeof(T)) return Fault::head;
    const auto* const directory = reinterpret_cast<const std::uint32_t*>(part.payload);
    stream.unit = {directory + open.units + 1 + location.first, location.count};
    stream.set_model(model, scratch);
    const std::uint64_t from = max(first, job.start), to = min(first + count, job.stop);
    asked = static_cast<std::uint32_t>(from - first);
    asked_to = static_cast<std::uint32_t>(to - first);
    out = reinterpret_cast<T*>(frame.out) + (from - job.start);
    const bool whole = asked_to - asked == count;
    numbers = whole ? out : reinterpret_cast<T*>(scratch + job.level_bytes);
    staged = !whole || space().map.remainders || (space().map.kind != NumberKind::pattern && space().undone.lags != 0);
    bad = false;
    return Fault::none;
  }

  __device__ __forceinline__ void put(T* to, U number, U remainder) {
    if (space().map.kind == NumberKind::dictionary) {
      number &= static_cast<U>(~U{0} >> (8 * sizeof(U) - space().map.width));
      if (number >= space().map.entries) {
        bad = true;
        return;
      }
    }
    *to = static_cast<T>(value_of_number(space().map, number, remainder));
  }

  // Opens a stream; `constant` is the number of all values of a uniform one, in bin order.
  __device__ __forceinline__ Fault open_stream(std::uint32_t i, std::uint32_t values, U& constant) {
    const BinModel& bins = open.model.streams[i];
    const StreamHead own = head(i);
    if (!own.is_uniform()) return stream.open(own, values, at, end);
    if (!own.fits_uniform(bins, values)) return Fault::head;
    stream.open_none();
    constant = values != 0 ? static_cast<U>(bins.lowest[own.words & ~kUniformStream]) : 0;
    return Fault::none;
  }
  __device__ __forceinline__ Fault check_padding() const {
    if (end - at > 3) return Fault::size;
    const bool bad_byte = lane_of_warp() < end - at && bytes()[at + lane_of_warp()] != 0;
    return __any_sync(kAllOfWarp, bad_byte ? 1 : 0) == 0 ? Fault::none : Fault::padding;
  }

  // The number that is stored at index `i`.
  template <bool kPattern>
  __device__ __forceinline__ U stored_number(const NumberMap& plain, std::uint32_t i) const {
    return kPattern ? ordered(plain, static_cast<U>(numbers[i])) : static_cast<U>(numbers[i]);
  }
  template <bool kPattern>
  __device__ __forceinline__ U with_lags(const NumberMap& plain, U x, std::uint32_t i) const {
#pragma unroll 1
    for (std::uint32_t k = 0; k < space().undone.lags; ++k) {
      const std::uint32_t lag = space().undone.lag[k];
      const U before = i >= lag ? stored_number<kPattern>(plain, i - lag) : 0;
      x = (space().undone.subtracted >> k & 1) != 0 ? x - before : x + before;
    }
    return x;
  }

  // Decodes the differences, and adds them up. kPattern: numbers are patterns, and stored as values at once.
  template <bool kPattern, bool kFar, Sums kSums, Lags kLags>
  __device__ __forceinline__ Fault decode_numbers() {
    U constant = 0;
    const std::uint8_t* const first_differences = bytes() + at;
    at += stored * sizeof(T);
    const std::uint32_t coded = count - stored;
    if (const Fault fault = open_stream(0, coded, constant); fault != Fault::none) return fault;
    const bool zigzag = open.model.streams[0].zigzag;
    const std::uint32_t decoded = head(0).is_uniform() ? 0 : coded;
    const std::uint32_t width = kFloat ? 8 * sizeof(U) : space().map.width;
    NumberMap plain;
    plain.is_float = kFloat;
    plain.is_unsigned = !kFloat && space().map.is_unsigned;
    plain.width = width;
    constexpr int kHeld = kLags == Lags::one ? 1 : kLags == Lags::three ? 3 : 0;
    constexpr bool kCopies = sizeof(T) >= 4;  // shorter numbers cannot be copied one by one
    std::uint32_t lag[kHeld + 1];
    bool lags_ahead = true;  // none is of the step before: they are copied a step ahead
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      lag[k] = space().undone.lag[k];
      lags_ahead = lags_ahead && lag[k] >= 64;
    }
    const auto lagged = [&](int k, std::uint32_t next) -> U& {  // a step's place of the numbers that `lag` says
      return stream.rings().lagged[next / 32 % 2][k][lane_of_warp()];
    };
    const auto copy_lagged = [&](std::uint32_t i, std::uint32_t next) {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if constexpr (kCopies)
          copy_later_if<sizeof(T)>(lags_ahead && i < count && i >= lag[k], &lagged(k, next), numbers + (i - lag[k]));
    };
    const auto load_lagged = [&](std::uint32_t i, int k) {
      return i < count && i >= lag[k] ? static_cast<U>(numbers[i - lag[k]]) : U{0};
    };
    ShortSums<U, kSums> sums;
    // the first differences are a step of their own, with zeros before them
    const std::uint32_t first_i = lane_of_warp() + stored - 32;
    U x = 0;
    if (first_i < stored) x = load_le<T>(first_differences + first_i * sizeof(T));
    auto pending = PendingNumber<U>::known(to_bin_order<U>(zigzag, width, x));

    // Begins a step, then completes the one before. kFull: all lanes have values in both.
    const auto iterate = [&]<bool kFull>(std::uint32_t next) {
      const std::uint32_t i = first_i + next;  // wraps before the first value
      const std::uint32_t level = stream.template begin_step<kFar>(next);
      const U arrived = from_bin_order<U>(zigzag, width, pending.value());
      __syncwarp();  // orders what has been read and copies
      copy_lagged(i + 32, next + 32);
      stream.copy_ahead(next);
      U before[kHeld + 1] = {};
      if constexpr (!kCopies)
#pragma unroll
        for (int k = 0; k < kHeld; ++k) before[k] = load_lagged(i, k);
      typename BinStream<T>::Step step = {};
      if (kFull || next < decoded)
        step = stream.template take_symbols<kFull, kFar, (sizeof(T) > 1)>(space().tables, next, coded - next, level);
      std::uint32_t upto = step.own;
      if (kCopies && !lags_ahead)
#pragma unroll
        for (int k = 0; k < kHeld; ++k) lagged(k, next) = load_lagged(i, k);
      U number = sums.add(space().undone, arrived, upto);
      pending = kFull || next < decoded ? stream.read_offsets(step, upto) : PendingNumber<U>::known(constant);
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        if constexpr (kCopies) before[k] = lagged(k, next);
        const U own = kPattern ? ordered(plain, before[k]) : before[k];
        if (i >= lag[k]) number = k == 2 ? number - own : number + own;
      }
      if (kFull || i < count) {
        if constexpr (kLags == Lags::any) number = with_lags<kPattern>(plain, number, i);
        if constexpr (kPattern)
          numbers[i] = static_cast<T>(pattern_of(plain, number));
        else if (staged)
          numbers[i] = static_cast<T>(number);
        else
          put(numbers + i, number, 0);
      }
      __syncwarp();  // orders levels and numbers
    };
    for (std::uint32_t next = 0;;) {
      iterate.template operator()<false>(next);
      if (next >= coded) break;
#pragma unroll 1
      for (next += 32; next + 32 <= decoded; next += 32) iterate.template operator()<true>(next);
    }
    return decoded == 0 || stream.ended() ? Fault::none : Fault::stream;
  }
  template <bool kPattern, bool kFar, Sums kSums>
  __device__ __forceinline__ Fault decode_numbers() {
    if (space().undone.lags == 0) return decode_numbers<kPattern, kFar, kSums, Lags::none>();
    if constexpr (kPattern && kSums != Sums::three) {
      if (space().undone.lags == 1) return decode_numbers<kPattern, kFar, kSums, Lags::one>();
      if (space().undone.lags == 3 && space().undone.subtracted == 4)
        return decode_numbers<kPattern, kFar, kSums, Lags::three>();
    }
    return decode_numbers<kPattern, kFar, kSums, Lags::any>();
  }
  template <bool kPattern, bool kFar>
  __device__ __forceinline__ Fault decode_numbers() {
    const UndoneStrides& undone = space().undone;
    std::uint32_t ones = undone.shorts;  // 0: not all are 1
    for (std::uint32_t k = 0; k < undone.shorts; ++k) ones = undone.short_stride[k] == 1 ? ones : 0;
    if (ones == 1) return decode_numbers<kPattern, kFar, Sums::one>();
    if constexpr (kPattern) {
      if (undone.shorts == 0) return decode_numbers<kPattern, kFar, Sums::none>();
      if (ones == 2) return decode_numbers<kPattern, kFar, Sums::two>();
      if (ones == 3) return decode_numbers<kPattern, kFar, Sums::three>();
    }
    return decode_numbers<kPattern, kFar, Sums::any>();
  }
  template <bool kPattern>
  __device__ __forceinline__ Fault decode_numbers() {
    return stream.neighbours.far ? decode_numbers<kPattern, true>() : decode_numbers<kPattern, false>();
  }
  // Turns numbers and remainders into values.
  template <bool kFar>
  __device__ __forceinline__ Fault decode_remainders() {
    U constant = 0;
    if (const Fault fault = open_stream(1, count, constant); fault != Fault::none) return fault;
    const bool uniform = head(1).is_uniform(), zigzag = open.model.streams[1].zigzag;
    PendingNumber<U> pending = {};
    U before = 0;                             // the last remainder of the step before, where the stream has changes
    constexpr bool kCopies = sizeof(T) >= 4;  // shorter numbers cannot be copied one by one
    const auto place_of = [&](std::uint32_t next) { return &stream.rings().lagged[next / 32 % 2][0][lane_of_warp()]; };
#pragma unroll 1
    for (std::uint32_t next = 0; next < count + 32; next += 32) {  // begins a step, then completes the one before
      auto begun = PendingNumber<U>::known(constant);
      const std::uint32_t level = stream.template begin_step<kFar>(next);
      const std::uint32_t i = next + lane_of_warp() - 32;  // wraps in the first step
      U number = 0;
      if constexpr (kCopies)
        number = *place_of(next - 32);
      else if (i < count)
        number = numbers[i];
      __syncwarp();
      if constexpr (kCopies) copy_later_if<sizeof(T)>(i + 32 < count, place_of(next), numbers + (i + 32));
      stream.copy_ahead(next);
      if (!uniform && next < count) {
        const auto step = stream.template take_symbols<false, kFar, false>(space().tables, next, count - next, level);
        begun = stream.read_offsets(step, sum_upto(step.own));
      }
      U remainder = from_bin_order<U>(zigzag, space().map.width, pending.value());
      if (space().map.changes && next != 0) {
        remainder = before + sum_upto(remainder);
        before = __shfl_sync(kAllOfWarp, remainder, 31);
      }
      if (next != 0 && i >= asked && i < asked_to) put(out + (i - asked), number, remainder);
      pending = begun;
      __syncwarp();
    }
    return uniform || stream.ended() ? Fault::none : Fault::stream;
  }
  __device__ __forceinline__ void copy_values() {
    constexpr std::uint32_t kAtOnce = 4;  // loads on their way together
    for (std::uint32_t first = asked + lane_of_warp(); first < asked_to; first += 32 * kAtOnce) {
      U number[kAtOnce] = {};
#pragma unroll
      for (std::uint32_t k = 0; k < kAtOnce; ++k)
        if (first + 32 * k < asked_to) number[k] = numbers[first + 32 * k];
#pragma unroll
      for (std::uint32_t k = 0; k < kAtOnce; ++k)
        if (first + 32 * k < asked_to) put(out + (first + 32 * k - asked), number[k], 0);
    }
  }
  __device__ __forceinline__ Fault decode_first() {
    const Fault fault =
        !staged && space().map.kind == NumberKind::pattern ? decode_numbers<true>() : decode_numbers<false>();
    if (fault != Fault::none || space().map.remainders) return fault;
    __syncwarp();
    if (staged) copy_values();
    return check_padding();
  }
  __device__ __forceinline__ Fault decode_rest() {
    __syncwarp();
    const Fault fault = stream.neighbours.far ? decode_remainders<true>() : decode_remainders<false>();
    return fault != Fault::none ? fault : check_padding();
  }
};

// Sums the groups of units of all frames with one warp.
__device__ __forceinline__ void sum_groups(const BinnedDecode& job, std::uint32_t* ends) {
  std::uint32_t sum = 0;
  for (std::uint32_t first = 0; first < job.frame_count; first += 32) {
    const std::uint32_t frame = first + lane_of_warp();
    std::uint32_t own = 0;
    if (frame < job.frame_count && job.opened[frame].good != 0)
      own = (job.opened[frame].wanted + job.warps - 1) / job.warps;
    const std::uint32_t upto = sum + sum_upto(own);
    if (frame < job.frame_count) ends[frame] = upto;
    sum = __shfl_sync(kAllOfWarp, upto, 31);
  }
}

template <class T, bool kFloat>
static __global__ void __launch_bounds__(32 * kMostBinnedWarps, 2)
    decode_binned_kernel(const __grid_constant__ BinnedDecode job) {
  using U = NumberOf<T>;
  BinnedShared<U>& shared = binned_space<U>();
  const std::uint32_t warp = threadIdx.x / 32;
  std::uint8_t* const scratch = job.scratch + (std::size_t{blockIdx.x} * job.warps + warp) * job.scratch_bytes;
  if (warp == 0) sum_groups(job, shared.ends);
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) shared.work = atomicAdd(job.next_work, 1u);
    __syncthreads();
    const std::uint32_t work = shared.work;
    if (work >= shared.ends[job.frame_count - 1]) return;
    std::uint32_t number = 0, above = job.frame_count - 1;  // the first frame that ends behind `work`
    while (number < above) {
      const std::uint32_t middle = (number + above) / 2;
      if (shared.ends[middle] > work)
        above = middle;
      else
        number = middle + 1;
    }
    const std::uint32_t group = work - (number != 0 ? shared.ends[number - 1] : 0);
    const OpenBins& open = job.opened[number];
    const DecodeFrame& frame = job.frame(number);
    const std::uint32_t own = group * job.warps + warp;
    const bool remainders = open.model.map.remainders;
    if (threadIdx.x == 0) {
      shared.undone.find(open.model);
      shared.map = open.model.map;
    }
    shared.tables.load(open.model.streams[0], job.tables[2 * number]);
    __syncthreads();
    BinnedUnit<T, kFloat> unit{open};
    Fault fault = Fault::none;
    if (own < open.wanted) {
      fault = unit.begin(job, frame, open.first_unit + own, scratch);
      if (fault == Fault::none) fault = unit.decode_first();
    }
    if (remainders) {
      __syncthreads();
      shared.tables.load(open.model.streams[1], job.tables[2 * number + 1]);
      __syncthreads();
      if (own < open.wanted && fault == Fault::none) fault = unit.decode_rest();
    }
    if (own < open.wanted && fault == Fault::none && unit.bad) fault = Fault::list;
    if (fault != Fault::none) report(frame, fault);
  }
}

}  // namespace pyfilter::cuda
