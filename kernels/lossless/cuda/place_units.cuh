// SPDX-License-Identifier: BSD-3-Clause
// The last kernel of encoding with effort "ratio": a thread block writes a unit to its place in the frame. The block of
// a chunk's first unit also writes the model, the directory and the header.
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_params.cuh"
#include "stages/cuda/header.cuh"

namespace pyfilter::cuda {

inline constexpr std::uint32_t kPlaceThreads = 256;

// Bytes from an array at any address, as words of any alignment.
struct PlacedBytes {
  const std::uint8_t* from;
  std::uint32_t begin, end;  // bytes of the unit
};

// A unit's parts, one behind the other: heads, first differences, and of each stream states, words and offsets.
struct UnitParts {
  static constexpr std::uint32_t kMost = 8;

  PlacedBytes part[kMost];
  std::uint32_t count = 0, bytes = 0;

  __device__ __forceinline__ void add(const void* from, std::uint32_t length) {
    part[count++] = {static_cast<const std::uint8_t*>(from), bytes, bytes + length};
    bytes += length;
  }
};

// Four bytes of an array from any byte on; `left`: the bytes that the array has from there on, the rest is 0.
__device__ __forceinline__ std::uint32_t word_at(const std::uint8_t* from, std::uint32_t left) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto* const aligned = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const auto shift = static_cast<std::uint32_t>(address & 3);
  const std::uint32_t low = aligned[0], high = shift + left > 4 && shift != 0 ? aligned[1] : 0;
  const std::uint32_t word = __funnelshift_r(low, high, 8 * shift);
  return left >= 4 ? word : word & ((1u << (8 * left)) - 1);
}

// The word that begins at byte `begin` of a unit, of which several parts may have bytes.
__device__ __forceinline__ std::uint32_t joined_word(const UnitParts& parts, std::uint32_t begin) {
  const std::uint32_t end = begin + 4;
  std::uint32_t word = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < UnitParts::kMost; ++k) {
    if (k >= parts.count) break;
    const PlacedBytes& part = parts.part[k];
    if (part.end <= begin || part.begin >= end) continue;
    const std::uint32_t skipped = part.begin > begin ? part.begin - begin : 0, inside = begin + skipped - part.begin;
    word |= word_at(part.from + inside, part.end - part.begin - inside) << (8 * skipped);
  }
  return word;
}

// Writes the words that lie in one part. All have the same alignment, so some are loaded together.
__device__ __forceinline__ void place_part(const PlacedBytes& part, std::uint32_t* to) {
  constexpr std::uint32_t kTogether = 4;
  const std::uint32_t first = (part.begin + 3) / 4, last = part.end / 4;  // words of the unit
  const auto address = reinterpret_cast<std::uintptr_t>(part.from + (4 * first - part.begin));
  const auto* const aligned = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const auto shift = 8 * static_cast<std::uint32_t>(address & 3);
#pragma unroll 1
  for (std::uint32_t w = first + threadIdx.x; w < last; w += kTogether * kPlaceThreads) {
    std::uint32_t low[kTogether] = {}, high[kTogether] = {};
#pragma unroll
    for (std::uint32_t k = 0; k < kTogether; ++k) {
      const std::uint32_t i = w + k * kPlaceThreads;
      if (i < last) low[k] = aligned[i - first];
      if (i < last && shift != 0) high[k] = aligned[i - first + 1];
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kTogether; ++k)
      if (w + k * kPlaceThreads < last) to[w + k * kPlaceThreads] = __funnelshift_r(low[k], high[k], shift);
  }
}

__device__ __forceinline__ void place_unit(const UnitParts& parts, std::uint32_t* to) {
#pragma unroll
  for (std::uint32_t k = 0; k < UnitParts::kMost; ++k) {
    if (k >= parts.count) break;
    const PlacedBytes& part = parts.part[k];
    place_part(part, to);
    // words at both ends that others have bytes of, or nothing has
    if (threadIdx.x == 0 && part.begin % 4 != 0) to[part.begin / 4] = joined_word(parts, part.begin / 4 * 4);
    if (threadIdx.x == 0 && part.end % 4 != 0) to[part.end / 4] = joined_word(parts, part.end / 4 * 4);
  }
}

struct PlaceSpace {
  std::uint32_t before[kPlaceThreads / 32], all[kPlaceThreads / 32];
};

template <class T>
static __global__ void __launch_bounds__(kPlaceThreads) place_units_kernel(const __grid_constant__ BinnedEncode job) {
  using U = NumberOf<T>;
  __shared__ PlaceSpace shared;
  const std::uint32_t local = blockIdx.x / job.most_units, chunk = job.first_chunk + local,
                      unit = blockIdx.x % job.most_units, lane = threadIdx.x % 32;
  const auto& trained = static_cast<const TrainedChunk<U>*>(job.trained)[chunk];
  const BinnedParts& model = trained.model;
  const auto units = static_cast<std::uint32_t>((job.values + model.unit_values - 1) / model.unit_values);
  if (unit >= units) return;
  const EncodedUnit* const done = job.units + std::uint64_t{local} * job.most_units;
  std::uint32_t before = 0, all = 0;  // words of units
  for (std::uint32_t u = threadIdx.x; u < units; u += kPlaceThreads) {
    all += done[u].bytes / 4;
    before += u < unit ? done[u].bytes / 4 : 0;
  }
  before = warp_sum(before);
  all = warp_sum(all);
  if (lane == 0) {
    shared.before[threadIdx.x / 32] = before;
    shared.all[threadIdx.x / 32] = all;
  }
  __syncthreads();
  before = all = 0;
  for (std::uint32_t w = 0; w < kPlaceThreads / 32; ++w) {
    before += shared.before[w];
    all += shared.all[w];
  }
  const std::uint64_t start = trained.text_bytes + 4 * (std::uint64_t{units} + 1),
                      bytes = start + 4 * std::uint64_t{all};
  const bool raw = bytes >= job.base.value_bytes;
  std::uint8_t* const payload = job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words;
  if (unit == 0) {
    if (threadIdx.x == 0) {
      job.base.raw[chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.base.counters->raw_chunks, 1u);
    }
    if (threadIdx.x < 32) write_header(job.base, chunk, raw, raw ? job.base.value_bytes : bytes);
  }
  if (raw) return;
  auto* const directory = reinterpret_cast<std::uint32_t*>(payload + trained.text_bytes);
  if (unit == 0)
    for (std::uint32_t i = threadIdx.x; i < trained.text_bytes / 4; i += kPlaceThreads)
      reinterpret_cast<std::uint32_t*>(payload)[i] = reinterpret_cast<const std::uint32_t*>(trained.text)[i];
  if (threadIdx.x == 0) {
    directory[unit] = before;
    if (unit + 1 == units) directory[units] = all;
  }
  const EncodedUnit own = done[unit];
  const std::uint64_t first_value = std::uint64_t{unit} * model.unit_values, first = local * job.values + first_value,
                      number = std::uint64_t{local} * job.most_units + unit, left = job.values - first_value;
  const std::uint32_t count = left < model.unit_values ? static_cast<std::uint32_t>(left) : model.unit_values,
                      streams = model.map.remainders ? 2 : 1, stored = min(model.stored_first(), count);
  const std::uint64_t part =
      std::uint64_t{local} * job.most_parts + std::uint64_t{unit} * PartsOfUnits(job, model.unit_values).of_unit;
  UnitParts parts;
  parts.add(done[unit].heads, static_cast<std::uint32_t>(kStreamHead) * streams);
  parts.add(static_cast<const T*>(job.first_differences) + kMostStored * number,
            stored * static_cast<std::uint32_t>(sizeof(T)));
#pragma unroll
  for (std::uint32_t s = 0; s < 2; ++s) {
    const StreamHead head = own.heads[s];
    if (s >= streams || head.is_uniform()) continue;
    const std::uint32_t coded = s == 0 ? count - stored : count;
    parts.add(job.states + 64 * number + 32 * s, 4 * kLaneCount);
    parts.add(job.symbols[s] + first + (coded - head.words), 2 * head.words);
    parts.add(job.offsets[s] + offset_words<U>(first, part), head.offset_bytes);
  }
  place_unit(parts, reinterpret_cast<std::uint32_t*>(payload + start) + before);
}

}  // namespace pyfilter::cuda
