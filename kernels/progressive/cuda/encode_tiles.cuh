// SPDX-License-Identifier: BSD-3-Clause
// Planes of tiles to pieces (docs/format.md, section 13.5). A warp takes a tile, four words of each plane in a lane:
// significant positions stay in registers, neighbours come by shuffles. A piece is assembled in shared memory. Counts
// give the offset of every class, sign and bit of a significant position; lengths give the offsets of runs.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kEncodeTileThreads = 256;
inline constexpr std::uint32_t kPieceWords = (kMostPieceBytes + 3) / 4 + 3;

__device__ __forceinline__ LaneWords load_words(const std::uint32_t* from) {
  const uint4 w = reinterpret_cast<const uint4*>(from)[threadIdx.x % 32];
  return {{w.x, w.y, w.z, w.w}};
}

// Writes `n` bits at bit `at` into zeroed words.
__device__ __forceinline__ void put_bits(std::uint32_t* words, std::uint32_t at, std::uint32_t bits, std::uint32_t n) {
  const std::uint32_t shift = at % 32;
  if (bits == 0) return;
  atomicOr(words + at / 32, bits << shift);
  if (shift + n > 32) atomicOr(words + at / 32 + 1, bits >> (32 - shift));
}

// Writes the selected bits of all lanes' words, in the order of lanes, from bit `at` on. Returns the number of bits of
// all lanes.
__device__ __forceinline__ std::uint32_t put_masked_words(std::uint32_t* words, std::uint32_t at, const LaneWords& from,
                                                          const LaneWords& mask) {
  std::uint32_t all;
  at += warp_sum_before(count_words(mask), all);
  const LaneWords bits = gather_words(from, mask);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const auto n = static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
    put_bits(words, at, bits.w[j], n);
    at += n;
  }
  return all;
}

// Calls visit(run) for the runs in front of the ones of a lane's words in a class. The class's positions are numbered
// from `rank` on; `end`: the end of the previous one. Returns the end of the last one.
template <class Visit>
__device__ __forceinline__ std::uint32_t visit_runs(const LaneWords& ones, const LaneWords& mask, std::uint32_t rank,
                                                    std::uint32_t end, const Visit& visit) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    for (std::uint32_t left = ones.w[j] & mask.w[j]; left != 0; left &= left - 1) {
      const std::uint32_t below = (left & (0u - left)) - 1,
                          here = rank + static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j] & below)));
      visit(here - end);
      end = here + 1;
    }
    rank += static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
  }
  return end;
}

// The end of the last one of a lane's words in a class, 0 if there is none.
__device__ __forceinline__ std::uint32_t end_of_ones(const LaneWords& ones, const LaneWords& mask, std::uint32_t rank) {
  std::uint32_t end = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const std::uint32_t here = ones.w[j] & mask.w[j];
    if (here != 0) {
      const std::uint32_t top = 31 - static_cast<std::uint32_t>(__clz(static_cast<int>(here)));
      end = rank + static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j] & ((1u << top) - 1)))) + 1;
    }
    rank += static_cast<std::uint32_t>(__popc(static_cast<int>(mask.w[j])));
  }
  return end;
}

// Writes the runs of a class with parameter 2^k, from bit `at` on; returns their bits. The class has `count` positions,
// `own_count` of them in this lane.
__device__ __forceinline__ std::uint32_t put_class_runs(std::uint32_t* words, std::uint32_t at, const LaneWords& ones,
                                                        const LaneWords& mask, std::uint32_t own_count,
                                                        std::uint32_t count, std::uint32_t k) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t rank = sum_upto(own_count) - own_count;
  std::uint32_t before = end_of_ones(ones, mask, rank);  // then the maximum over the lanes up to this one
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const std::uint32_t other = __shfl_up_sync(kAllLanes, before, d);
    if (lane >= static_cast<unsigned>(d)) before = max(before, other);
  }
  const std::uint32_t last = __shfl_sync(kAllLanes, before, 31), left = __shfl_up_sync(kAllLanes, before, 1),
                      end = lane == 0 ? 0 : left;
  std::uint32_t own = 0, all = 0;
  visit_runs(ones, mask, rank, end, [&](std::uint32_t run) { own += (run >> k) + 1 + k; });
  std::uint32_t to = at + warp_sum_before(own, all);
  const auto put = [&](std::uint32_t offset, std::uint32_t run) {
    put_bits(words, offset + (run >> k), 1u | (run & ((1u << k) - 1)) << 1, k + 1);
    return offset + (run >> k) + 1 + k;
  };
  visit_runs(ones, mask, rank, end, [&](std::uint32_t run) { to = put(to, run); });
  const std::uint32_t rest = count - last;
  if (rest == 0) return all;
  if (lane == 0) put(at + all, rest);
  return all + (rest >> k) + 1 + k;
}

// Writes the piece of plane `p` into zeroed words; returns its size.
__device__ __forceinline__ std::uint32_t encode_piece_words(TileForm form, int p, const LaneWords& plane,
                                                            const LaneWords& above, const LaneWords& sign,
                                                            const LaneWords& valid, const LaneWords& known,
                                                            const LaneWords& before, std::uint32_t* words) {
  const unsigned lane = threadIdx.x % 32;
  if (p < 0) return (put_masked_words(words, 0, above, before) + 7) / 8;
  LaneWords ones;
  std::uint32_t any_one = 0, any_before = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    ones.w[j] = plane.w[j] & ~known.w[j];
    any_one |= ones.w[j];
    any_before |= before.w[j];
  }
  const bool open = __any_sync(kAllLanes, any_one != 0) != 0, older = __any_sync(kAllLanes, any_before != 0) != 0;
  if (!open && !older) return 0;
  std::uint32_t at = 16;
  if (open) {
    const LaneClasses classes = classify_words(form, known, valid);
    LaneClasses ones_of = classes;
#pragma unroll
    for (int j = 0; j < 4; ++j) ones_of.open.w[j] = ones.w[j];
    const std::uint64_t own_counts = count_classes(classes), counts = warp_total_of_classes(own_counts),
                        found = warp_total_of_classes(count_classes(ones_of));
    // one lane for each class
    const std::uint32_t own =
        lane < kClasses && count_of(counts, static_cast<int>(lane)) != 0
            ? choose_mode(count_of(counts, static_cast<int>(lane)), count_of(found, static_cast<int>(lane)))
            : 0;
    std::uint32_t modes = 0;
#pragma unroll 1
    for (int c = 0; c < kClasses; ++c) {
      const std::uint32_t mode = __shfl_sync(kAllLanes, own, c);
      modes |= mode << (4 * c);
      if (mode == kDirect)
        at += put_masked_words(words, at, ones, classes.mask(c));
      else if (mode != kNoOnes)
        at += put_class_runs(words, at, ones, classes.mask(c), count_of(own_counts, c), count_of(counts, c), mode - 1);
    }
    at += put_masked_words(words, at, sign, ones);
    if (lane == 0) put_bits(words, 0, modes, 16);
  }
  if (older) at += put_masked_words(words, at, above, before);
  return (at + 7) / 8;
}

static __global__ void __launch_bounds__(kEncodeTileThreads, 4)
    encode_tiles_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint32_t pieces[kEncodeTileThreads / 32][kPieceWords];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t tile = blockIdx.x * (kEncodeTileThreads / 32) + warp;
  const FrameHead& head = job.heads[blockIdx.y];
  if (head.dead != 0 || tile >= job.tiles) return;
  int u = job.shared->layout.units - 1;
  while (job.shared->first_tile[u] > tile) --u;
  const ProgressiveUnit& unit = job.shared->layout.unit[u];
  const std::uint32_t of_unit = tile - job.shared->first_tile[u];
  const int planes = head.head.planes[u];
  if (planes == 0) return;
  const TileForm form = form_of(unit);
  const LaneWords valid = valid_words(form, bounds_of_tile(unit, of_unit));
  const std::uint32_t* const from = job.planes.of(blockIdx.y) + tile * job.slot_words();
  std::uint32_t* const to = job.bytes.of(blockIdx.y) + tile * job.slot_words();
  std::uint32_t* const sizes = job.sizes.of(blockIdx.y) + job.piece_index(u, planes, planes - 1) + of_unit;
  std::uint32_t* const words = pieces[warp];
  for (std::uint32_t i = lane; i < kPieceWords; i += 32) words[i] = 0;
  const LaneWords sign = load_words(from + static_cast<std::uint32_t>(8 * job.width - 1) * kTileWords);
  LaneWords known = {}, before = {}, above = {};
  std::uint32_t used = 0;  // words of the slot
  LaneWords next = load_words(from + static_cast<std::uint32_t>(planes - 1) * kTileWords);
#pragma unroll 1
  for (int p = planes - 1; p >= -1; --p) {
    LaneWords plane;
#pragma unroll
    for (int j = 0; j < 4; ++j) plane.w[j] = next.w[j] & valid.w[j];
    if (p > 0) next = load_words(from + static_cast<std::uint32_t>(p - 1) * kTileWords);
    __syncwarp();
    const std::uint32_t size = encode_piece_words(form, p, plane, above, sign, valid, known, before, words);
    __syncwarp();
    for (std::uint32_t i = lane; 4 * i < size; i += 32) {
      to[used + i] = words[i];
      words[i] = 0;
    }
    if (lane == 0) sizes[static_cast<std::size_t>(planes - 1 - p) * unit.tiles] = used << 16 | size;
    used += (size + 3) / 4;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      before.w[j] = known.w[j];
      known.w[j] |= plane.w[j];
      above.w[j] = plane.w[j];
    }
  }
}

}  // namespace pyfilter::cuda
