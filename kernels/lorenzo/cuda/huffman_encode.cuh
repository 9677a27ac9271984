// SPDX-License-Identifier: BSD-3-Clause
// Groups of tiles to Huffman streams (lorenzo/cpu/huffman_stream.hpp is the same on the CPU). One warp for each group
// takes a round of 32 blocks, computes where each lane's codewords start, and writes all lanes' codewords at once.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/group_tiles.cuh"
#include "lorenzo/cuda/pairs.cuh"
#include "lorenzo/cuda/rans_encode.cuh"
#include "lorenzo/cuda/residuals.cuh"

namespace pyfilter::cuda {

// The most gaps of a stream. They wait at the end of the stream's slot.
__device__ __forceinline__ std::uint32_t most_gaps(std::uint32_t tiles, std::size_t code_bytes) {
  return static_cast<std::uint32_t>(tiles * stream_slot(code_bytes) / (kGapBits / 8) + 4) / 4 * 4;
}

// A lane's bits of a stream, from bit `at` on. Words shared with other lanes are combined by atomics.
struct LaneBits {
  std::uint32_t* words;
  std::uint32_t at;
  std::uint64_t held = 0;  // the bits of the current word
  bool first = true;       // the word may hold bits of the previous lane

  __device__ __forceinline__ void put(std::uint32_t value, std::uint32_t bits) {
    const std::uint32_t used = at % 32;
    if (bits == 0) return;
    held |= static_cast<std::uint64_t>(value) << (64 - used - bits);
    at += bits;
    if (used + bits < 32) return;
    store(at / 32 - 1);
    held <<= 32;
    first = false;
  }
  __device__ __forceinline__ void finish() {
    if (at % 32 != 0) atomicOr(words + at / 32, static_cast<std::uint32_t>(held >> 32));
  }

 private:
  __device__ __forceinline__ void store(std::uint32_t word) {
    if (first)
      atomicOr(words + word, static_cast<std::uint32_t>(held >> 32));
    else
      words[word] = static_cast<std::uint32_t>(held >> 32);
  }
};

__device__ __forceinline__ bool is_escaped(const HuffmanCodes& codes, std::uint32_t codeword) {
  return codeword == kEscape || codes.length[codeword] == 0;
}
// Bits of a codeword and its raw bits.
__device__ __forceinline__ std::uint32_t written_bits(const HuffmanCodes& codes, std::uint32_t codeword, bool pair) {
  const bool escaped = is_escaped(codes, codeword);
  return codes.length[escaped ? kEscape : codeword] + (escaped ? kEscapeBits : 0) + (pair ? 0 : raw_bits(codeword));
}

// The current position of a warp's stream.
struct StreamPosition {
  std::uint32_t at = 0, last_start = 0;
};

// Writes a round of a tile; `state`: the pair state before it, replaced by the state after it.
template <class Code>
__device__ __forceinline__ void write_round(const HuffmanCodes& codes, const Code (&z)[32], Code next, bool active,
                                            std::uint32_t& state, std::uint32_t* words, std::uint8_t* gaps,
                                            StreamPosition& position) {
  const unsigned lane = threadIdx.x % 32;
  const auto exists = [&](std::uint32_t c) { return codes.length[c] != 0; };
  PairStep all;
  const std::uint32_t positions = pair_positions(z, next, exists);
  const PairStep step = active ? pair_step(positions) : kSameState;
  const PairStep before = steps_before(step, &all);
  std::uint32_t own_state = before >> state & 1;
  state = all >> state & 1;
  const std::uint32_t starts = active ? codeword_starts(positions, own_state) : 0;
  std::uint32_t bits = 0, last = 0;
  visit_codewords_of(z, next, positions, starts, [&](int, std::uint32_t codeword, bool pair) {
    last = bits;
    bits += written_bits(codes, codeword, pair);
  });
  const std::uint32_t upto = sum_upto(bits), start = position.at + upto - bits;
  const std::uint32_t stop = position.at + __shfl_sync(kAllLanes, upto, 31);
  for (std::uint32_t word = (position.at + 31) / 32 + lane; word <= stop / 32; word += 32) words[word] = 0;
  __syncwarp();
  if (active) {
    LaneBits out{words, start};
    visit_codewords_of(z, next, positions, starts, [&](int i, std::uint32_t codeword, bool pair) {
      const bool escaped = is_escaped(codes, codeword);
      const std::uint32_t of = escaped ? kEscape : codeword, from = out.at;
      out.put(codes.code[of], codes.length[of]);
      if (escaped) out.put(codeword, kEscapeBits);
      std::uint32_t raw = pair ? 0 : raw_bits(codeword);
      if (raw > 32) {
        out.put(static_cast<std::uint32_t>(static_cast<std::uint64_t>(z[i]) >> 32) & ((1u << (raw - 32)) - 1),
                raw - 32);
        raw = 32;
      }
      if (raw != 0) out.put(static_cast<std::uint32_t>(z[i]) & (~0u >> (32 - raw)), raw);
      if ((from ^ out.at) / kGapBits != 0) gaps[out.at / kGapBits] = static_cast<std::uint8_t>(out.at % kGapBits);
    });
    out.finish();
  }
  const std::uint32_t with = __ballot_sync(kAllLanes, bits != 0);
  if (with != 0) position.last_start = __shfl_sync(kAllLanes, start + last, 31 - __clz(static_cast<int>(with)));
  position.at = stop;
  __syncwarp();
}

template <class Code, int S>
__device__ __forceinline__ void encode_codewords(const StreamParams& job, std::uint32_t chunk, std::uint32_t unit,
                                                 std::uint32_t group_tiles, const HuffmanCodes& codes) {
  const unsigned lane = threadIdx.x % 32;
  const GroupSpan span = group_span(job.base.tiles, group_tiles, unit);
  const LaneTile own = finish_tiles<Code, S>(job, chunk, span);
  const std::size_t slot = std::size_t{chunk} * job.slots + static_cast<std::uint32_t>(span.first);
  std::uint8_t* const stream_memory = job.streams + slot * stream_slot(sizeof(Code));
  auto* const words = reinterpret_cast<std::uint32_t*>(stream_memory);
  std::uint8_t* const gaps =
      stream_memory + span.count * stream_slot(sizeof(Code)) - most_gaps(span.count, sizeof(Code));
  StreamPosition position;
#pragma unroll 1
  for (std::uint32_t i = 0; i < span.count; ++i) {
    const StreamTile<Code> tile(own, i);
    if (tile.count == 0) continue;
    const std::uint8_t* const from = job.residuals + (slot + i) * residual_slot(sizeof(Code));
    std::uint32_t state = 0;
#pragma unroll 1
    for (std::uint32_t round = 0; round < (tile.count + 31) / 32; ++round) {
      const std::uint32_t k = 32 * round + lane, waits = k + (tile.first_coded ? 0 : 1);
      const bool active = k < tile.count;
      Code z[32];
      if (active) {
        read_residuals(from, tile.width, waits, z);
      } else {
#pragma unroll
        for (int n = 0; n < 32; ++n) z[n] = kDirectSymbols;
      }
      if (k == 0 && tile.first_coded) z[0] = tile.first_residual;
      Code next = __shfl_down_sync(kAllLanes, z[0], 1);
      if (lane == 31)
        next = k + 1 < tile.count ? first_of_block<Code>(from, tile.width, waits + 1) : Code{kDirectSymbols};
      write_round(codes, z, next, active, state, words, gaps, position);
    }
  }
  const GroupHead head = group_head(span.count, list_bytes(own.coding, own.count, true), own.special_words);
  const bool any = __any_sync(kAllLanes, own.count != 0 || own.special_words != 0);
  if (lane != 0) return;
  const std::uint32_t count = (position.at + 31) / 32, gap_count = (count + kGapBits / 32 - 1) / (kGapBits / 32);
  if (position.at != 0) {
    gaps[0] = 0;
    // no codeword starts after the last one
    const std::uint32_t behind = position.at / kGapBits;
    if (position.last_start / kGapBits != behind && behind < gap_count) gaps[behind] = kNoGap;
  }
  const std::uint32_t gap_bytes = job.coder == kHuffmanGaps ? (gap_count + 3) / 4 * 4 : 0;
  job.groups[std::size_t{chunk} * job.slots + unit] = {
      any ? head.bytes + 4 * head.special_words + 4 + gap_bytes + 4 * count : 0, 4 * count, gap_count};
}

template <class Code, int S>
__global__ void __launch_bounds__(kStreamThreads, sizeof(Code) == 8 ? 1 : 2)
    huffman_encode_kernel(const __grid_constant__ StreamParams job) {
  __shared__ HuffmanCodes codes;
  const std::uint32_t chunk = blockIdx.y;
  if (!takes_part(job.base.plans[chunk], S)) return;
  const StreamModel& model = job.models[chunk];
  const std::uint32_t group_tiles = 1u << model.model.group_log2,
                      units = (job.base.tiles + group_tiles - 1) / group_tiles;
  if (blockIdx.x * kStreamWarps >= units) return;
  for (unsigned c = threadIdx.x; c < kCodewords; c += kStreamThreads) {
    codes.code[c] = model.codes.code[c];
    codes.length[c] = model.codes.length[c];
  }
  __syncthreads();
  for (std::uint32_t unit = blockIdx.x * kStreamWarps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * kStreamWarps)
    encode_codewords<Code, S>(job, chunk, unit, group_tiles, codes);
}

}  // namespace pyfilter::cuda
