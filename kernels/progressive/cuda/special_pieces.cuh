// SPDX-License-Identifier: BSD-3-Clause
// The section of special values (docs/format.md, section 13.7), written in three steps: pieces of the mask as bits and
// the sizes of verbatim values; offsets, and with them the size of the section; once the payload's order is known, all
// bytes. The CPU's write_specials().
#pragma once

#include <cstdint>

#include "progressive/cuda/bits.cuh"
#include "progressive/cuda/params.cuh"
#include "progressive/head.hpp"
#include "progressive/specials.hpp"

namespace pyfilter::cuda {

inline constexpr int kSpecialThreads = 256;
inline constexpr std::uint32_t kOwnWords = kMaskPieceWords / kSpecialThreads;
static_assert(kMaskPieceWords % kSpecialThreads == 0 && kMostMaskBytes <= 4 * kMaskWords);

// The largest number of all earlier threads of a block; `memory`: for each warp.
__device__ __forceinline__ std::uint64_t largest_before(std::uint64_t own, std::uint64_t* memory) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint64_t upto = own;
#pragma unroll
  for (unsigned d = 1; d < 32; d *= 2) {
    const std::uint64_t other = __shfl_up_sync(kAllLanes, upto, d);
    if (lane >= d) upto = other > upto ? other : upto;
  }
  std::uint64_t before = __shfl_up_sync(kAllLanes, upto, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  if (lane == 31) memory[warp] = upto;
  __syncthreads();
  for (unsigned w = 0; w < warp; ++w) before = memory[w] > before ? memory[w] : before;
  __syncthreads();
  return before;
}

// The changes of the mask in a word: a value differs from the one a row before, in the first row from its left
// neighbour.
__device__ __forceinline__ std::uint32_t mask_changes(const std::uint32_t* missing, std::uint64_t word,
                                                      std::uint64_t count, std::uint64_t row) {
  const std::uint64_t first = 32 * word;
  if (first >= count) return 0;
  const std::uint32_t own = missing[word];
  std::uint32_t above = 0;
  if (first >= row) {
    const std::uint64_t from = first - row;
    const auto bit = static_cast<std::uint32_t>(from % 32);
    above = __funnelshift_r(missing[from / 32], bit != 0 ? missing[from / 32 + 1] : 0, bit);
  } else {
    const auto left_in_row = static_cast<std::uint32_t>(min(row - first, std::uint64_t{32}));
    const std::uint32_t left = own << 1 | (word != 0 ? missing[word - 1] >> 31 : 0);
    above = left;
    if (left_in_row < 32) above = (left & ((1u << left_in_row) - 1)) | missing[0] << left_in_row;
  }
  const std::uint64_t there = count - first;
  return (own ^ above) & (there >= 32 ? ~0u : (1u << there) - 1);
}

// A thread's words of a piece.
struct OwnWords {
  std::uint32_t w[kOwnWords];
  std::uint32_t ones = 0;
  std::uint64_t behind = 0;  // one more than the position of the last one, 0: there is none

  template <class Load>
  __device__ __forceinline__ OwnWords(std::uint64_t first_word, const Load& load) {
#pragma unroll
    for (std::uint32_t i = 0; i < kOwnWords; ++i) {
      w[i] = load(first_word + i);
      ones += static_cast<std::uint32_t>(__popc(static_cast<int>(w[i])));
      if (w[i] != 0) behind = 32 * (first_word + i) + 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(w[i])));
    }
  }
  // Calls visit(position) for each one.
  template <class Visit>
  __device__ __forceinline__ void visit(std::uint64_t first_word, const Visit& visit) const {
#pragma unroll 1
    for (std::uint32_t i = 0; i < kOwnWords; ++i)
      for (std::uint32_t left = w[i]; left != 0; left &= left - 1)
        visit(32 * (first_word + i) + static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1));
  }
};

__device__ __forceinline__ OwnWords verbatim_words(const ProgressiveEncode& job, std::uint64_t first_word) {
  const std::uint32_t *const special = job.special.of(blockIdx.y) + job.grid_at[0] / 32, *const missing =
                                                                                             job.missing.of(blockIdx.y);
  return OwnWords(first_word,
                  [&](std::uint64_t word) { return 32 * word < job.count ? special[word] & ~missing[word] : 0; });
}

// A block a piece: its bits of the mask, and the sizes of its verbatim values.
static __global__ void __launch_bounds__(kSpecialThreads)
    encode_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t memory[kSpecialThreads / 32];
  __shared__ std::uint32_t bits[kMaskWords];
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  if (job.heads[blockIdx.y].dead != 0) return;
  SpecialPiece& piece = job.special_pieces.of(blockIdx.y)[blockIdx.x];
  const std::uint64_t row = job.shared->layout.grids[0].x, begin = blockIdx.x * kMaskPiece,
                      first_word = begin / 32 + threadIdx.x * kOwnWords;
  std::uint64_t all = 0;
  if (threadIdx.x == 0) piece = {};
  __syncthreads();
  if (note.missing != 0 && note.missing != job.count) {
    const std::uint32_t* const missing = job.missing.of(blockIdx.y);
    const OwnWords changes(first_word, [&](std::uint64_t word) { return mask_changes(missing, word, job.count, row); });
    sum_before<kSpecialThreads>(std::uint64_t{changes.ones}, memory, all);
    const auto ones = static_cast<std::uint32_t>(all),
               count = static_cast<std::uint32_t>(min(kMaskPiece, job.count - begin));
    if (ones != 0) {
      const std::uint32_t k = choose_mask_code(count, ones);
      const std::uint64_t last = largest_before(changes.behind, memory), next_of_own = last < begin ? begin : last;
      std::uint64_t own = 0, next = next_of_own;
      changes.visit(first_word, [&](std::uint64_t at) {
        own += (static_cast<std::uint32_t>(at - next) >> k) + 1 + k;
        next = at + 1;
      });
      const bool is_last = threadIdx.x == kSpecialThreads - 1;
      if (changes.ones == 0) next = next_of_own;
      const auto behind = static_cast<std::uint32_t>(begin + count - next);  // of the last thread: zeros at the end
      if (is_last && behind != 0) own += (behind >> k) + 1 + k;
      for (std::uint32_t i = threadIdx.x; i < kMaskWords; i += kSpecialThreads) bits[i] = 0;
      auto to = static_cast<std::uint32_t>(sum_before<kSpecialThreads>(own, memory, all));
      __syncthreads();
      const auto put_run = [&](std::uint32_t run) {
        to += run >> k;
        const std::uint64_t value = std::uint64_t{1u | (run & ((1u << k) - 1)) << 1} << (to % 32);
        atomicOr(bits + to / 32, static_cast<std::uint32_t>(value));
        if (value >> 32 != 0) atomicOr(bits + to / 32 + 1, static_cast<std::uint32_t>(value >> 32));
        to += 1 + k;
      };
      next = next_of_own;
      changes.visit(first_word, [&](std::uint64_t at) {
        put_run(static_cast<std::uint32_t>(at - next));
        next = at + 1;
      });
      if (is_last && behind != 0) put_run(behind);
      __syncthreads();
      std::uint32_t* const out = job.mask_bits.of(blockIdx.y) + std::size_t{blockIdx.x} * kMaskWords;
      for (std::uint32_t i = threadIdx.x; i < (all + 31) / 32; i += kSpecialThreads) out[i] = bits[i];
      if (threadIdx.x == 0) {
        piece.mask_bytes = static_cast<std::uint32_t>(1 + (all + 7) / 8);
        piece.code = k;
      }
    }
  }
  if (note.verbatim == 0) return;
  const OwnWords words = verbatim_words(job, first_word);
  std::uint64_t next = largest_before(words.behind, memory), own = 0, first = ~std::uint64_t{0};
  words.visit(first_word, [&](std::uint64_t at) {
    if (next != 0)
      own += varint_bytes(at - next);
    else
      first = at;
    own += static_cast<std::uint32_t>(job.width);
    next = at + 1;
  });
  sum_before<kSpecialThreads>(own, memory, all);
  if (first != ~std::uint64_t{0}) piece.first = first;
  if (threadIdx.x == kSpecialThreads - 1) {
    piece.verbatim_bytes = all;
    piece.behind = next;
  }
}

// A block a frame: offsets of pieces, and the size of the section.
static __global__ void __launch_bounds__(kSpecialThreads)
    place_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t memory[kSpecialThreads / 32];
  FrameHead& head = job.heads[blockIdx.y];
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  if (head.dead != 0) return;
  SpecialPiece* const pieces = job.special_pieces.of(blockIdx.y);
  const auto count = static_cast<std::uint32_t>(mask_pieces(job.count)),
             each = (count + kSpecialThreads - 1) / kSpecialThreads, first = min(threadIdx.x * each, count),
             last = min(first + each, count);
  const bool masked = note.missing != 0 && note.missing != job.count;
  std::uint64_t own = 0, all = 0;
  for (std::uint32_t p = first; p < last; ++p) own += pieces[p].mask_bytes;
  const std::uint64_t begin = 16 + (masked ? 2 * std::uint64_t{count} : 0);
  std::uint64_t at = begin + sum_before<kSpecialThreads>(own, memory, all);
  for (std::uint32_t p = first; p < last; ++p) {
    pieces[p].mask_at = at;
    at += pieces[p].mask_bytes;
  }
  std::uint64_t end = begin + all;
  if (note.verbatim != 0) {
    std::uint64_t behind = 0;
    for (std::uint32_t p = first; p < last; ++p) behind = pieces[p].behind != 0 ? pieces[p].behind : behind;
    std::uint64_t next = largest_before(behind, memory);
    own = 0;
    for (std::uint32_t p = first; p < last; ++p) {
      pieces[p].next = next;
      if (pieces[p].behind == 0) continue;
      own += pieces[p].verbatim_bytes += varint_bytes(pieces[p].first - next);
      next = pieces[p].behind;
    }
    at = end + sum_before<kSpecialThreads>(own, memory, all);
    for (std::uint32_t p = first; p < last; ++p) {
      pieces[p].verbatim_at = at;
      at += pieces[p].verbatim_bytes;
    }
    end += all;
  }
  if (threadIdx.x == 0) head.head.special_bytes = end;
}

// A block a piece: its bytes in the payload.
static __global__ void __launch_bounds__(kSpecialThreads)
    write_specials_kernel(const __grid_constant__ ProgressiveEncode job) {
  __shared__ std::uint64_t memory[kSpecialThreads / 32];
  const FrameHead& head = job.heads[blockIdx.y];
  const EncodeNote& note = *job.notes.of(blockIdx.y);
  if (head.dead != 0) return;
  const SpecialPiece piece = job.special_pieces.of(blockIdx.y)[blockIdx.x];
  std::uint8_t* const to = job.payload(blockIdx.y) + head.head.specials_at;
  if (blockIdx.x == 0 && threadIdx.x < 16) {
    const unsigned long long number = threadIdx.x < 8 ? note.missing : note.verbatim;
    to[threadIdx.x] = static_cast<std::uint8_t>(number >> (8 * (threadIdx.x % 8)));
  }
  if (note.missing != 0 && note.missing != job.count) {
    if (threadIdx.x < 2)
      to[16 + 2 * std::uint64_t{blockIdx.x} + threadIdx.x] =
          static_cast<std::uint8_t>(piece.mask_bytes >> (8 * threadIdx.x));
    const auto* const bytes =
        reinterpret_cast<const std::uint8_t*>(job.mask_bits.of(blockIdx.y) + std::size_t{blockIdx.x} * kMaskWords);
    for (std::uint32_t i = threadIdx.x; i < piece.mask_bytes; i += kSpecialThreads)
      to[piece.mask_at + i] = i == 0 ? static_cast<std::uint8_t>(piece.code) : bytes[i - 1];
  }
  if (note.verbatim == 0) return;
  const std::uint64_t first_word = blockIdx.x * (kMaskPiece / 32) + threadIdx.x * kOwnWords;
  const OwnWords words = verbatim_words(job, first_word);
  const std::uint64_t before = largest_before(words.behind, memory), next_of_own = before != 0 ? before : piece.next;
  std::uint64_t own = 0, all = 0, next = next_of_own;
  words.visit(first_word, [&](std::uint64_t at) {
    own += varint_bytes(at - next) + static_cast<std::uint32_t>(job.width);
    next = at + 1;
  });
  std::uint8_t* entry = to + piece.verbatim_at + sum_before<kSpecialThreads>(own, memory, all);
  const std::uint8_t* const values = job.values + blockIdx.y * job.value_stride;
  next = next_of_own;
  words.visit(first_word, [&](std::uint64_t at) {
    entry = put_varint(entry, at - next);
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(job.width); ++i)
      *entry++ = values[at * static_cast<std::uint32_t>(job.width) + i];
    next = at + 1;
  });
}

}  // namespace pyfilter::cuda
