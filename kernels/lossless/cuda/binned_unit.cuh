// SPDX-License-Identifier: BSD-3-Clause
// Units (docs/format.md, section 15.3), decoded by a warp each. Differences become numbers while they are decoded: sums
// along strides commute, so those of short strides are sums over lanes. Those of longer strides need numbers before:
//   number[i] = x[i] + number[i - a] + number[i - b] - number[i - a - b]   for strides a and b
#pragma once

#include <cstdint>

#include "lossless/cuda/binned_stream.cuh"
#include "stages/cuda/directory.cuh"

namespace pyfilter::cuda {

// The differences of a model as a warp undoes them: strides below 32, and the lags of numbers for all others.
struct UndoneStrides {
  static constexpr std::uint32_t kMostLags = (1u << kMostStrides) - 1;

  std::uint32_t shorts, short_stride[kMostStrides];
  std::uint32_t lags, lag[kMostLags], subtracted;  // subtracted: a bit for each lag

  __device__ __forceinline__ void find(const BinnedParts& model) {
    std::uint32_t longs = 0, stride[kMostStrides] = {};
    shorts = lags = subtracted = 0;
    for (std::uint32_t k = 0; k < model.strides; ++k)
      if (model.stride[k] < 32)
        short_stride[shorts++] = model.stride[k];
      else
        stride[longs++] = model.stride[k];
    for (std::uint32_t chosen = 1; chosen < 1u << longs; ++chosen) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = 0; k < longs; ++k) sum += (chosen >> k & 1) != 0 ? stride[k] : 0;
      if (sum >= model.unit_values) continue;  // there is no such number
      if (__popc(chosen) % 2 == 0) subtracted |= 1u << lags;
      lag[lags++] = sum;
    }
  }
};

// What a loop over steps is compiled for.
enum class Sums { none, one, two, any };    // along short strides; one and two: of stride 1
enum class Lags { none, one, three, any };  // of numbers along long strides; three: those of two strides

// Sums over this lane and the lanes before, side by side.
template <class U>
__device__ __forceinline__ void sum_both(U& x, std::uint32_t& bits) {
  add_lane_before<1, 32>(bits);
  add_lane_before<1, 32>(x);
  add_lane_before<2, 32>(bits);
  add_lane_before<2, 32>(x);
  add_lane_before<4, 32>(bits);
  add_lane_before<4, 32>(x);
  add_lane_before<8, 32>(bits);
  add_lane_before<8, 32>(x);
  add_lane_before<16, 32>(bits);
  add_lane_before<16, 32>(x);
}

// Sums along short strides.
template <class U, Sums kSums>
struct ShortSums {
  // the sums of the step before
  U before[kSums == Sums::any ? kMostStrides : kSums == Sums::two ? 2 : 1] = {};

  // Returns the sums of numbers, and replaces `bits` by its sums over lanes.
  __device__ __forceinline__ U add(const UndoneStrides& undone, U x, std::uint32_t& bits) {
    if constexpr (kSums == Sums::one || kSums == Sums::two) {
      sum_both(x, bits);
      x = continued(0, x, 31);
      return kSums == Sums::one ? x : continued(1, sum_upto(x), 31);
    }
    bits = sum_upto(bits);
    return kSums == Sums::none ? x : add_any(undone, x);
  }

 private:
  __device__ __forceinline__ U continued(std::uint32_t k, U x, std::uint32_t source) {
    x += __shfl_sync(kAllOfWarp, before[k], static_cast<int>(source));
    before[k] = x;
    return x;
  }
  __device__ __forceinline__ U add_any(const UndoneStrides& undone, U x) {
#pragma unroll
    for (std::uint32_t k = 0; k < sizeof before / sizeof(U); ++k) {
      if (k >= undone.shorts) break;
      const std::uint32_t stride = undone.short_stride[k];
      std::uint32_t source = 31;  // the lane of the step before whose sum this lane continues
      if (stride == 1) {
        x = sum_upto(x);
      } else {
        source = 32 + lane_of_warp() - stride * (lane_of_warp() / stride + 1);
#pragma unroll 1
        for (std::uint32_t by = stride; by < 32; by *= 2) {
          const U other = __shfl_up_sync(kAllOfWarp, x, by);
          if (lane_of_warp() >= by) x += other;
        }
      }
      x = continued(k, x, source);
    }
    return x;
  }
};

template <class U>
struct BinnedShared {
  BlockTables<U> tables;
  UndoneStrides undone;
  std::uint32_t ends[kBinnedFrames];  // groups of units up to the end of each frame
  std::uint32_t work;
};

template <class T, bool kFloat>
struct BinnedUnit {
  using U = NumberOf<T>;

  // Two streams of as many bytes as they may have, heads and first differences.
  static constexpr std::uint32_t kMostWords = 256 + 2 * (32 + (3 + sizeof(U)) * (kMostUnitValues / 4));

  const BinnedShared<U>& shared;
  const OpenBins& open;
  NumberMap map;
  BinStream<T> stream;
  std::uint32_t at, end;          // bytes of the unit: read, and all
  std::uint32_t count, stored;    // values, first differences
  std::uint32_t asked, asked_to;  // requested values
  T *numbers, *out;               // out: of value `asked`
  bool staged;                    // numbers are stored, and become values later
  bool bad;                       // of this lane: an index beyond its list

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
    at = kStreamHead * (map.remainders ? 2u : 1u);
    end = 4 * min(location.count, kMostWords);  // longer ones end too late
    if (location.uniform || end < at + stored * sizeof(T)) return Fault::head;
    const auto* const directory = reinterpret_cast<const std::uint32_t*>(part.payload);
    stream.unit = {directory + open.units + 1 + location.first, location.count - 1};
    stream.set_model(model, scratch, static_cast<std::uint32_t>(job.level_bytes) - 1);
    const std::uint64_t from = max(first, job.start), to = min(first + count, job.stop);
    asked = static_cast<std::uint32_t>(from - first);
    asked_to = static_cast<std::uint32_t>(to - first);
    out = reinterpret_cast<T*>(frame.out) + (from - job.start);
    const bool whole = asked_to - asked == count;
    numbers = whole ? out : reinterpret_cast<T*>(scratch + job.level_bytes);
    staged = !whole || map.remainders || (map.kind != NumberKind::pattern && shared.undone.lags != 0);
    bad = false;
    return Fault::none;
  }

  __device__ __forceinline__ void put(T* to, U number, U remainder) {
    if (map.kind == NumberKind::dictionary) {
      number &= static_cast<U>(~U{0} >> (8 * sizeof(U) - map.width));
      if (number >= map.entries) {
        bad = true;
        return;
      }
    }
    *to = static_cast<T>(value_of_number(map, number, remainder));
  }

  // Opens a stream; `constant` is the number of all values of a uniform one, in bin order.
  __device__ __forceinline__ Fault open_stream(std::uint32_t i, std::uint32_t values, U& constant) {
    const BinModel& bins = open.model.streams[i];
    const StreamHead own = head(i);
    if (!own.is_uniform()) return stream.open(own, values, at, end);
    if (!own.fits_uniform(bins, values)) return Fault::head;
    constant = values != 0 ? static_cast<U>(bins.lowest[own.words & ~kUniformStream]) : 0;
    return Fault::none;
  }
  __device__ __forceinline__ Fault check_padding() const {
    if (end - at > 3) return Fault::size;
    return stream.unit.take(8 * at, 8 * (end - at)) == 0 ? Fault::none : Fault::padding;
  }

  // The number that is stored at index `i`.
  template <bool kPattern>
  __device__ __forceinline__ U stored_number(const NumberMap& plain, std::uint32_t i) const {
    return kPattern ? ordered(plain, static_cast<U>(numbers[i])) : static_cast<U>(numbers[i]);
  }
  template <bool kPattern>
  __device__ __forceinline__ U with_lags(const NumberMap& plain, U x, std::uint32_t i) const {
#pragma unroll 1
    for (std::uint32_t k = 0; k < shared.undone.lags; ++k) {
      const std::uint32_t lag = shared.undone.lag[k];
      const U before = i >= lag ? stored_number<kPattern>(plain, i - lag) : 0;
      x = (shared.undone.subtracted >> k & 1) != 0 ? x - before : x + before;
    }
    return x;
  }

  // Decodes the differences, and adds them up. kPattern: numbers are patterns, and stored as values at once.
  template <bool kPattern, bool kAhead, Sums kSums, Lags kLags>
  __device__ __forceinline__ Fault decode_numbers() {
    U constant = 0;
    const std::uint8_t* const first_differences = bytes() + at;
    at += stored * sizeof(T);
    const std::uint32_t coded = count - stored;
    if (const Fault fault = open_stream(0, coded, constant); fault != Fault::none) return fault;
    const bool zigzag = open.model.streams[0].zigzag;
    const std::uint32_t decoded = head(0).is_uniform() ? 0 : coded;
    const std::uint32_t width = kFloat ? 8 * sizeof(U) : map.width;
    NumberMap plain;
    plain.is_float = kFloat;
    plain.is_unsigned = !kFloat && map.is_unsigned;
    plain.width = width;
    constexpr int kHeld = kLags == Lags::one ? 1 : kLags == Lags::three ? 3 : 0;
    std::uint32_t lag[kHeld + 1];
#pragma unroll
    for (int k = 0; k < kHeld; ++k) lag[k] = shared.undone.lag[k];
    ShortSums<U, kSums> sums;
    // the first differences are a step of their own, with zeros before them
    const std::uint32_t first_i = lane_of_warp() + stored - 32;
    U x = 0;
    if (first_i < stored) x = load_le<T>(first_differences + first_i * sizeof(T));
    auto pending = PendingNumber<U>::known(to_bin_order<U>(zigzag, width, x));

    // Begins a step, then completes the one before. kFull: all lanes have values in both.
    const auto iterate = [&]<bool kFull>(std::uint32_t next) {
      const std::uint32_t i = first_i + next;  // wraps before the first value
      T before[kHeld + 1] = {};                // the numbers that `lag` says, loaded before symbols are taken
      bool has[kHeld + 1] = {};
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        has[k] = (kFull || i < count) && i >= lag[k];
        if (has[k]) before[k] = numbers[i - lag[k]];
      }
      typename BinStream<T>::Step step = {};
      if (kFull || next < decoded)
        step = stream.template take_symbols<kFull, kAhead, (sizeof(T) > 1)>(shared.tables, next, coded - next);
      std::uint32_t upto = step.own;
      U number = sums.add(shared.undone, from_bin_order<U>(zigzag, width, pending.value()), upto);
      pending = kFull || next < decoded ? stream.read_offsets(step, upto) : PendingNumber<U>::known(constant);
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        const U own = has[k] && kPattern ? ordered(plain, static_cast<U>(before[k])) : before[k];
        number = k == 2 ? number - own : number + own;
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
  template <bool kPattern, bool kAhead, Sums kSums>
  __device__ __forceinline__ Fault decode_numbers() {
    if constexpr (kPattern) {
      if (shared.undone.lags == 0) return decode_numbers<kPattern, kAhead, kSums, Lags::none>();
      if (shared.undone.lags == 1) return decode_numbers<kPattern, kAhead, kSums, Lags::one>();
      if (shared.undone.lags == 3 && shared.undone.subtracted == 4)
        return decode_numbers<kPattern, kAhead, kSums, Lags::three>();
    }
    return decode_numbers<kPattern, kAhead, kSums, Lags::any>();
  }
  template <bool kPattern, bool kAhead>
  __device__ __forceinline__ Fault decode_numbers() {
    const UndoneStrides& undone = shared.undone;
    const bool ones = undone.shorts == 1 ? undone.short_stride[0] == 1
                                         : undone.shorts == 2 && undone.short_stride[0] * undone.short_stride[1] == 1;
    if (ones && undone.shorts == 1) return decode_numbers<kPattern, kAhead, Sums::one>();
    if constexpr (kPattern) {
      if (undone.shorts == 0) return decode_numbers<kPattern, kAhead, Sums::none>();
      if (ones) return decode_numbers<kPattern, kAhead, Sums::two>();
    }
    return decode_numbers<kPattern, kAhead, Sums::any>();
  }
  template <bool kPattern>
  __device__ __forceinline__ Fault decode_numbers() {
    return stream.ahead ? decode_numbers<kPattern, true>() : decode_numbers<kPattern, false>();
  }
  // Turns numbers and remainders into values.
  template <bool kAhead>
  __device__ __forceinline__ Fault decode_remainders() {
    U constant = 0;
    if (const Fault fault = open_stream(1, count, constant); fault != Fault::none) return fault;
    const bool uniform = head(1).is_uniform(), zigzag = open.model.streams[1].zigzag;
    PendingNumber<U> pending = {};
    U before = 0;  // the last remainder of the step before, where the stream has changes
#pragma unroll 1
    for (std::uint32_t next = 0; next < count + 32; next += 32) {  // begins a step, then completes the one before
      auto begun = PendingNumber<U>::known(constant);
      if (!uniform && next < count) {
        const auto step = stream.template take_symbols<false, kAhead, false>(shared.tables, next, count - next);
        begun = stream.read_offsets(step, sum_upto(step.own));
      }
      const std::uint32_t i = next + lane_of_warp() - 32;  // wraps in the first step
      U remainder = from_bin_order<U>(zigzag, map.width, pending.value());
      if (map.changes && next != 0) {
        remainder = before + sum_upto(remainder);
        before = __shfl_sync(kAllOfWarp, remainder, 31);
      }
      if (next != 0 && i >= asked && i < asked_to) put(out + (i - asked), numbers[i], remainder);
      pending = begun;
      __syncwarp();
    }
    return uniform || stream.ended() ? Fault::none : Fault::stream;
  }
  __device__ __forceinline__ void copy_values() {
    for (std::uint32_t i = asked + lane_of_warp(); i < asked_to; i += 32) put(out + (i - asked), numbers[i], 0);
  }
  __device__ __forceinline__ Fault decode_first() {
    const Fault fault = !staged && map.kind == NumberKind::pattern ? decode_numbers<true>() : decode_numbers<false>();
    if (fault != Fault::none || map.remainders) return fault;
    __syncwarp();
    if (staged) copy_values();
    return check_padding();
  }
  __device__ __forceinline__ Fault decode_rest() {
    __syncwarp();
    const Fault fault = stream.ahead ? decode_remainders<true>() : decode_remainders<false>();
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
  __shared__ __align__(16) unsigned char shared_memory[sizeof(BinnedShared<U>)];
  auto& shared = *reinterpret_cast<BinnedShared<U>*>(shared_memory);
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
    if (threadIdx.x == 0) shared.undone.find(open.model);
    shared.tables.load(open.model.streams[0], job.tables[2 * number]);
    __syncthreads();
    BinnedUnit<T, kFloat> unit{shared, open, open.model.map};
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
