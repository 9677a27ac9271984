// SPDX-License-Identifier: BSD-3-Clause
// Special values of progressive frames (docs/format.md, section 13.7), written after the last pass. The mask of missing
// values is rows of words; each row starts a new word. The words first hold changes. Sums modulo 2 along the first row,
// then down the columns in segments of rows, turn them into the mask.
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/cuda/runs.cuh"
#include "progressive/specials.hpp"

namespace pyfilter::cuda {

// A block a frame: reads the section's head, and locates the pieces of the mask.
static __global__ void __launch_bounds__(kMaskThreads) open_specials_kernel(const __grid_constant__ SpecialDecode job) {
  __shared__ std::uint64_t warp_sums[kMaskThreads / 32];
  FrameHead& head = job.job.heads[blockIdx.y];
  SpecialNote& note = *job.notes.of(blockIdx.y);
  const ProgressiveFrame frame = job.job.frames[blockIdx.y];
  const std::uint64_t size = head.head.special_bytes;
  if (threadIdx.x == 0) note = {};
  if (head.dead != 0 || size == 0) return;
  const std::uint8_t* const from = frame.payload + head.head.specials_at;
  if (size < 16) return damage(frame, head);
  const auto word = [from](int at) {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(from[at + i]) << (8 * i);
    return value;
  };
  const std::uint64_t missing = word(0), verbatim = word(8);
  if (missing > job.count || verbatim > job.count - missing || (missing != 0 && frame.has_sentinel == 0) ||
      (missing == 0 && verbatim == 0))
    return damage(frame, head);
  std::uint64_t end = 16;
  const bool masked = missing != 0 && missing != job.count;
  if (masked) {
    if ((size - end) / 2 < job.pieces) return damage(frame, head);
    const std::uint8_t* const sizes = from + end;
    end += 2 * std::uint64_t{job.pieces};
    const std::uint32_t each = (job.pieces + kMaskThreads - 1) / kMaskThreads,
                        first = min(threadIdx.x * each, job.pieces), last = min(first + each, job.pieces);
    const auto size_of = [sizes](std::uint32_t p) {
      return static_cast<std::uint32_t>(sizes[2 * p]) | static_cast<std::uint32_t>(sizes[2 * p + 1]) << 8;
    };
    std::uint64_t own = 0, all = 0;
    for (std::uint32_t p = first; p < last; ++p) own += size_of(p);
    std::uint64_t at = head.head.specials_at + end + sum_before<kMaskThreads>(own, warp_sums, all);
    if (all > size - end) return damage(frame, head);
    end += all;
    for (std::uint32_t p = first; p < last; ++p) {
      job.piece_at.of(blockIdx.y)[p] = pack_piece(at, size_of(p));
      at += size_of(p);
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  note.missing = missing;
  note.verbatim = verbatim;
  note.mask_at = masked ? 16 : 0;
  note.verbatim_at = head.head.specials_at + end;
}

// A warp for each piece of the mask: sets the bits of values where the mask changes.
static __global__ void __launch_bounds__(kMaskThreads) read_mask_kernel(const __grid_constant__ SpecialDecode job) {
  constexpr std::uint32_t kWarps = kMaskThreads / 32;
  __shared__ std::uint32_t ones[kWarps][kMaskPieceWords + 1];
  FrameHead& head = job.job.heads[blockIdx.y];
  const SpecialNote& note = *job.notes.of(blockIdx.y);
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, p = blockIdx.x * kWarps + warp;
  if (__shfl_sync(kAllLanes, is_damaged(head) ? 1 : 0, 0) != 0 || note.mask_at == 0 || p >= job.pieces) return;
  const ProgressiveFrame frame = job.job.frames[blockIdx.y];
  const std::uint64_t piece = job.piece_at.of(blockIdx.y)[p], first = p * kMaskPiece;
  const auto values = static_cast<std::uint32_t>(min(kMaskPiece, job.count - first)), words = (values + 31) / 32;
  std::uint32_t* const bits = job.changes.of(blockIdx.y) + first / 32;
  const std::uint32_t size = piece_size(piece);
  if (size == 0) {
    for (std::uint32_t i = lane; i < words; i += 32) bits[i] = 0;
    return;
  }
  const std::uint8_t k = frame.payload[piece_offset(piece)];
  const PieceBits runs(frame, pack_piece(piece_offset(piece) + 1, size - 1));
  const std::uint32_t all = 8 * (size - 1);
  std::uint32_t end = 0;
  bool good = size >= 2 && k <= 15 && read_runs<MaskRuns>(runs, k, values, end, ones[warp]);
  good = good && end <= all && all - end < 8 && (runs.bits(end) & ((1u << (all - end)) - 1)) == 0;
  if (!good) {
    if (lane == 0) damage(frame, head);
    return;
  }
  __syncwarp();
  for (std::uint32_t i = lane; i < words; i += 32) bits[i] = ones[warp][i];
}

// The changes of 32 values of a row.
__device__ __forceinline__ std::uint32_t row_changes(const SpecialDecode& job, std::uint32_t row, std::uint32_t word) {
  const std::uint32_t* const bits = job.changes.of(blockIdx.y);
  const std::uint64_t bit = std::uint64_t{row} * job.row + 32 * word, last = (job.count - 1) / 32;
  const std::uint32_t low = bits[bit / 32], high = bit / 32 < last ? bits[bit / 32 + 1] : 0;
  return __funnelshift_r(low, high, static_cast<unsigned>(bit % 32)) & first_bits(job.row - 32 * word);
}

// A block a frame: the first row.
static __global__ void __launch_bounds__(kMaskThreads)
    first_mask_row_kernel(const __grid_constant__ SpecialDecode job) {
  __shared__ std::uint32_t warp_sums[kMaskThreads / 32];
  if (job.job.heads[blockIdx.y].dead != 0 || job.notes.of(blockIdx.y)->mask_at == 0) return;
  std::uint32_t* const mask = job.mask.of(blockIdx.y);
  std::uint32_t odd = 0;  // parity of all values before
  for (std::uint32_t first = 0; first < job.words; first += kMaskThreads) {
    const std::uint32_t w = first + threadIdx.x;
    std::uint32_t sums = w < job.words ? row_changes(job, 0, w) : 0, all = 0;
    for (int d = 1; d < 32; d *= 2) sums ^= sums << d;
    const std::uint32_t before = sum_before<kMaskThreads>(sums >> 31, warp_sums, all);
    if (w < job.words) mask[w] = ((before + odd) % 2 != 0 ? ~sums : sums) & first_bits(job.row - 32 * w);
    odd += all;
    __syncthreads();
  }
}

// A thread for each word of a row and each segment of rows: the sum of the segment.
static __global__ void __launch_bounds__(kMaskThreads) sum_mask_rows_kernel(const __grid_constant__ SpecialDecode job) {
  const std::uint32_t i = blockIdx.x * kMaskThreads + threadIdx.x, word = i % job.words, segment = i / job.words;
  if (job.job.heads[blockIdx.y].dead != 0 || job.notes.of(blockIdx.y)->mask_at == 0 || segment >= job.segments) return;
  const std::uint32_t first = segment * kMaskRows, last = min(first + kMaskRows, job.rows);
  std::uint32_t sum = 0;
  for (std::uint32_t row = first; row < last; ++row)
    sum ^= row == 0 ? job.mask.of(blockIdx.y)[word] : row_changes(job, row, word);
  job.sums.of(blockIdx.y)[segment * job.words + word] = sum;
}

// A thread for each word of a row: the sums of all earlier segments.
static __global__ void __launch_bounds__(kMaskThreads) sum_segments_kernel(const __grid_constant__ SpecialDecode job) {
  const std::uint32_t word = blockIdx.x * kMaskThreads + threadIdx.x;
  if (job.job.heads[blockIdx.y].dead != 0 || job.notes.of(blockIdx.y)->mask_at == 0 || word >= job.words) return;
  std::uint32_t* const sums = job.sums.of(blockIdx.y);
  std::uint32_t sum = 0;
  for (std::uint32_t s = 0; s < job.segments; ++s) {
    const std::uint32_t here = sums[s * job.words + word];
    sums[s * job.words + word] = sum;
    sum ^= here;
  }
}

static __global__ void __launch_bounds__(kMaskThreads) make_mask_kernel(const __grid_constant__ SpecialDecode job) {
  const std::uint32_t i = blockIdx.x * kMaskThreads + threadIdx.x, word = i % job.words, segment = i / job.words;
  SpecialNote& note = *job.notes.of(blockIdx.y);
  if (job.job.heads[blockIdx.y].dead != 0 || note.mask_at == 0) return;
  std::uint32_t found = 0;
  if (segment < job.segments) {
    std::uint32_t* const mask = job.mask.of(blockIdx.y);
    const std::uint32_t first = segment * kMaskRows, last = min(first + kMaskRows, job.rows);
    std::uint32_t sum = job.sums.of(blockIdx.y)[segment * job.words + word];
    for (std::uint32_t row = first; row < last; ++row) {
      sum ^= row == 0 ? mask[word] : row_changes(job, row, word);
      mask[std::uint64_t{row} * job.words + word] = sum;
      found += static_cast<std::uint32_t>(__popc(static_cast<int>(sum)));
    }
  }
  found = warp_total(found);
  if (threadIdx.x % 32 == 0 && found != 0) atomicAdd(&note.found, static_cast<unsigned long long>(found));
}

}  // namespace pyfilter::cuda
