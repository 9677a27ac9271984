// SPDX-License-Identifier: BSD-3-Clause
// Offsets of groups in frames. A thread block for each chunk sums up the groups' sizes, and decides which codec's frame
// the chunk becomes. Then a warp for each group copies the group's parts.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/group_tiles.cuh"
#include "lorenzo/cuda/huffman_encode.cuh"
#include "lorenzo/cuda/rans_encode.cuh"
#include "stages/cuda/block_sum.cuh"
#include "stages/cuda/header.cuh"

namespace pyfilter::cuda {

// Bytes behind a frame's header, from the frame's recorded size.
__device__ __forceinline__ std::uint64_t written_payload(const EncodeParams& job, std::uint32_t chunk) {
  return job.frame_bytes[chunk] - 4 * job.header_words;
}

// A chunk becomes a frame of lorenzo if this frame is shorter than the values. A small chunk already has a frame of
// hierarchical_delta, and keeps it if it is the shorter one. Other chunks become raw frames.
static __global__ void __launch_bounds__(kPlaceThreads) place_kernel(const __grid_constant__ StreamParams job) {
  __shared__ std::uint64_t warps[32];
  const std::uint32_t chunk = blockIdx.x;
  const ChunkPlan& plan = job.base.plans[chunk];
  if (plan.quantise == 0) return;
  const StreamModel& model = job.models[chunk];
  const auto tiles = static_cast<std::uint32_t>(job.grids[shape_of(plan)].tiles);
  const std::uint32_t group_log2 = model.model.group_log2, units = (tiles + (1u << group_log2) - 1) >> group_log2;
  const GroupNote* const groups = job.groups + std::size_t{chunk} * job.slots;
  const bool compares = tiles <= job.compare_tiles;
  const bool other_is_raw = compares && job.base.raw[chunk] != 0;
  const std::uint64_t other = compares && !other_is_raw ? written_payload(job.base, chunk) : job.base.value_bytes,
                      limit = min(other, job.base.value_bytes);
  std::uint64_t own = 0;
  for (std::uint32_t unit = threadIdx.x; unit < units; unit += kPlaceThreads) own += groups[unit].bytes;
  std::uint64_t words = 0;
  block_sum_before(own / 4, warps, &words);
  const std::uint64_t payload = model.table_bytes + 4 * (std::uint64_t{units} + 1 + words);
  const bool taken = payload < limit;
  auto* const frame = job.base.frames + chunk * job.base.frame_stride + 4 * job.base.header_words;
  if (taken) {
    auto* const text = reinterpret_cast<std::uint32_t*>(frame);
    for (std::uint32_t i = threadIdx.x; i < model.table_bytes / 4; i += kPlaceThreads)
      text[i] = reinterpret_cast<const std::uint32_t*>(model.text)[i];
    std::uint32_t* const directory = text + model.table_bytes / 4;
    std::uint64_t before = 0;
    for (std::uint32_t first = 0; first < units; first += kPlaceThreads) {
      const std::uint32_t unit = first + threadIdx.x;
      std::uint64_t all = 0;
      const std::uint64_t at = block_sum_before(unit < units ? groups[unit].bytes / 4 : 0, warps, &all);
      if (unit < units) directory[unit] = static_cast<std::uint32_t>(before + at);
      before += all;
    }
    if (threadIdx.x == 0) directory[units] = static_cast<std::uint32_t>(words);
  }
  __syncthreads();
  const bool raw = !taken && (!compares || other_is_raw);
  if (threadIdx.x == 0) {
    if (model.table_bytes < limit) job.plans[chunk].predictor |= group_log2 << 24;
    job.models[chunk].table_bytes = taken ? model.table_bytes : 0;
    if (taken || raw) {
      job.base.raw[chunk] = raw ? 1 : 0;
      if (raw) atomicAdd(&job.base.counters->raw_chunks, 1);
    }
  }
  __syncthreads();
  if ((taken || raw) && threadIdx.x < 32) write_header(job.base, chunk, raw, raw ? job.base.value_bytes : payload);
}

// Copies words word(0), word(1) ... by a warp. As many loads are in flight together as registers allow: a loop that
// checks its end between two loads would wait for each.
template <class Word>
__device__ __forceinline__ void copy_batches(std::uint32_t* __restrict__ to, std::uint32_t count, const Word& word) {
  constexpr std::uint32_t kBatch = 8;
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x % 32; i < count; i += 32 * kBatch) {
    std::uint32_t batch[kBatch];
#pragma unroll
    for (std::uint32_t k = 0; k < kBatch; ++k) batch[k] = i + 32 * k < count ? word(i + 32 * k) : 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kBatch; ++k)
      if (i + 32 * k < count) to[i + 32 * k] = batch[k];
  }
}

// Copies words from an address that is a multiple of 2 bytes; the half word after the last half is 0.
__device__ __forceinline__ void copy_halves(std::uint32_t* __restrict__ to, const std::uint16_t* __restrict__ from,
                                            std::uint32_t halves) {
  const bool odd = reinterpret_cast<std::uintptr_t>(from) % 4 != 0;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(from - (odd ? 1 : 0));
  const std::uint32_t whole = halves / 2;
  if (odd)
    copy_batches(to, whole, [&](std::uint32_t i) { return __funnelshift_r(words[i], words[i + 1], 16); });
  else
    copy_batches(to, whole, [&](std::uint32_t i) { return words[i]; });
  if (halves % 2 != 0 && threadIdx.x % 32 == 0) to[whole] = from[halves - 1];
}

__device__ __forceinline__ void copy_words(std::uint32_t* __restrict__ to, const std::uint32_t* __restrict__ from,
                                           std::uint32_t count) {
  copy_batches(to, count, [&](std::uint32_t i) { return from[i]; });
}

// Writes head, lists, sizes, padding and special parts of a group; returns their end.
static __device__ std::uint32_t* write_group_head(const StreamParams& job, std::size_t slot, std::uint32_t tiles,
                                                  bool flags, std::uint8_t* to) {
  const unsigned lane = threadIdx.x % 32;
  const bool mine = lane < tiles;
  const TileNote* const note = job.notes + slot + (mine ? lane : 0);
  const std::uint32_t coding = mine ? note->flags & kNoteCoding : 0, special = mine ? note->special_words : 0;
  std::uint32_t coded[4], count = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    coded[w] = note->coded[w];
    count += static_cast<std::uint32_t>(__popc(static_cast<int>(coded[w])));
  }
  const std::uint32_t own_list = mine ? list_bytes(coding, count, flags) : 0;
  const GroupHead head = group_head(tiles, own_list, special);
  const std::uint32_t nibble = coding | (special != 0 ? kSpecialPart : 0);
  const std::uint32_t next = __shfl_down_sync(kAllLanes, nibble, 1);
  if (mine && lane % 2 == 0) to[lane / 2] = static_cast<std::uint8_t>(nibble | (lane + 1 < tiles ? next << 4 : 0));
  std::uint8_t* list = to + (tiles + 1) / 2 + sum_upto(own_list) - own_list;
  if (own_list != 0 && coding == kTileListed) {
    *list++ = static_cast<std::uint8_t>(count);
    for (unsigned w = 0; w < 4; ++w)
      for (std::uint32_t rest = coded[w]; rest != 0; rest &= rest - 1)
        *list++ = static_cast<std::uint8_t>(32 * w + static_cast<unsigned>(__ffs(static_cast<int>(rest))) - 1);
  } else if (own_list != 0) {
    for (unsigned i = 0; i < kFlagBytes; ++i) list[i] = static_cast<std::uint8_t>(coded[i / 4] >> 8 * (i % 4));
  }
  const std::uint32_t specials = __ballot_sync(kAllLanes, special != 0);
  std::uint8_t* const sizes = to + (tiles + 1) / 2 + head.lists;
  if (special != 0) {
    const int before = __popc(static_cast<int>(specials & ((1u << lane) - 1)));
    sizes[2 * before] = static_cast<std::uint8_t>(special);
    sizes[2 * before + 1] = static_cast<std::uint8_t>(special >> 8);
  }
  std::uint8_t* const end = sizes + 2 * head.specials;
  if (end + lane < to + head.bytes) end[lane] = 0;
  auto* words = reinterpret_cast<std::uint32_t*>(to + head.bytes);
  for (std::uint32_t rest = specials; rest != 0; rest &= rest - 1) {
    const int tile = __ffs(static_cast<int>(rest)) - 1;
    const std::uint32_t size = __shfl_sync(kAllLanes, special, tile);
    copy_words(words,
               reinterpret_cast<const std::uint32_t*>(job.specials + (slot + static_cast<unsigned>(tile)) *
                                                                         special_slot(job.value_size)),
               size);
    words += size;
  }
  return words;
}

// The number of a Huffman stream's words, its gaps, and the words.
static __device__ void copy_codewords(const StreamParams& job, const GroupNote& note, std::uint32_t tiles,
                                      const std::uint8_t* stream, std::uint32_t* words) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t count = note.stream_bytes / 4, gap_count = job.coder == kHuffmanGaps ? note.lead : 0,
                      padded = (gap_count + 3) / 4 * 4;
  const std::uint8_t* const gaps = stream + tiles * stream_slot(job.code_size) - most_gaps(tiles, job.code_size);
  if (lane == 0) words[0] = count;
  auto* const to = reinterpret_cast<std::uint8_t*>(words + 1);
  for (std::uint32_t i = lane; i < padded; i += 32) to[i] = i < gap_count ? gaps[i] : 0;
  copy_words(words + 1 + padded / 4, reinterpret_cast<const std::uint32_t*>(stream), count);
}

static __global__ void __launch_bounds__(kStreamThreads) copy_groups_kernel(const __grid_constant__ StreamParams job) {
  const std::uint32_t chunk = blockIdx.y;
  const ChunkPlan& plan = job.base.plans[chunk];
  const StreamModel& model = job.models[chunk];
  if (plan.quantise == 0 || model.table_bytes == 0) return;
  const auto tiles = static_cast<std::uint32_t>(job.grids[shape_of(plan)].tiles);
  const std::uint32_t group_tiles = 1u << model.model.group_log2, units = (tiles + group_tiles - 1) / group_tiles;
  auto* const directory = reinterpret_cast<std::uint32_t*>(job.base.frames + chunk * job.base.frame_stride +
                                                           4 * job.base.header_words + model.table_bytes);
  for (std::uint32_t unit = blockIdx.x * kStreamWarps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * kStreamWarps) {
    const GroupNote note = job.groups[std::size_t{chunk} * job.slots + unit];
    if (note.bytes == 0) continue;
    const GroupSpan span = group_span(tiles, group_tiles, unit);
    const std::size_t slot = std::size_t{chunk} * job.slots + static_cast<std::uint32_t>(span.first);
    std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(directory + units + 1 + directory[unit]);
    std::uint32_t* words = write_group_head(job, slot, span.count, !is_rans(job.coder), to);
    const std::uint8_t* const stream = job.streams + slot * stream_slot(job.code_size);
    if (!is_rans(job.coder)) {
      copy_codewords(job, note, span.count, stream, words);
      continue;
    }
    copy_words(words, reinterpret_cast<const std::uint32_t*>(stream), note.lead);
    const auto* const end = reinterpret_cast<const std::uint16_t*>(stream + span.count * stream_slot(job.code_size));
    copy_halves(words + note.lead, end - note.stream_bytes / 2, note.stream_bytes / 2);
  }
}

}  // namespace pyfilter::cuda
