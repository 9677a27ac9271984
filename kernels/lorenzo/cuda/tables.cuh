// SPDX-License-Identifier: BSD-3-Clause
// The decoding tables of frames, from their bits: one thread block a frame. One thread reads the bits, since an entry's
// end is known only after the entry is read.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/model.cuh"
#include "lorenzo/cuda/params.cuh"
#include "lorenzo/huffman.hpp"
#include "lorenzo/rans.hpp"

namespace pyfilter::cuda {

inline constexpr int kTableThreads = 512;

struct TableSpace {
  EntropyModel model;
  std::size_t bytes;
  bool good;
  std::uint32_t last_residual;
  std::uint32_t starts[kMostTables][kSymbols];  // first slot of each symbol
  HuffmanCodes codes;
  alignas(4) std::uint8_t text[kMostTableBytes];
};

// The words of the bits are copied to shared memory first: the reading thread would wait for each.
static __global__ void __launch_bounds__(kTableThreads) table_kernel(const __grid_constant__ StreamDecodeParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<TableSpace*>(shared_memory);
  const DecodeFrame frame = job.base.frame(blockIdx.x);
  FrameTables& out = job.tables[blockIdx.x];
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const bool rans = is_rans(coder_of(frame));
  const std::size_t available =
      frame.payload_bytes < kMostTableBytes ? static_cast<std::size_t>(frame.payload_bytes) : kMostTableBytes;
  for (std::uint32_t i = thread; i < available / 4; i += kTableThreads)
    reinterpret_cast<std::uint32_t*>(space.text)[i] = reinterpret_cast<const std::uint32_t*>(frame.payload)[i];
  __syncthreads();
  if (thread == 0) {
    space.bytes = 0;
    space.last_residual = 0;
    space.good = rans ? read_tables(space.text, available, space.model, &space.bytes)
                      : read_huffman_tables(space.text, available, space.model, &space.bytes);
  }
  __syncthreads();
  if (!space.good) {
    if (thread == 0) {
      out.bytes = 0;
      atomicCAS(frame.fault, 0u, static_cast<std::uint32_t>(Fault::tables));
    }
    return;
  }
  if (!rans) {
    if (thread < kEscape && space.model.book.length[thread] != 0) atomicMax(&space.last_residual, thread);
    block_codes(space.model.book, space.codes);
    for (std::uint32_t c = thread; c < kCodewords; c += kTableThreads)
      put_codeword(space.codes, c, out.huffman.codewords);
    __syncthreads();
    for (std::uint32_t bits = thread; bits < 1u << kMostCodeBits; bits += kTableThreads)
      out.huffman.residuals[bits] = residuals_of_bits(out.huffman.codewords, bits);
  } else {
    const std::uint32_t count = space.model.contexts.count + 1;
    for (std::uint32_t t = warp; t < count; t += kTableThreads / 32) {
      std::uint32_t first = 0;
      for (std::uint32_t from = 0; from < kSymbols; from += 32) {
        const std::uint32_t own = space.model.tables[t].of[from + lane];
        const std::uint32_t upto = sum_upto(own);
        space.starts[t][from + lane] = first + upto - own;
        first += __shfl_sync(kAllLanes, upto, 31);
      }
    }
    __syncthreads();
    for (std::uint32_t i = thread; i < count * kFrequencySum; i += kTableThreads) {
      const std::uint32_t t = i / kFrequencySum, slot = i % kFrequencySum;
      std::uint32_t symbol = 0;  // the last symbol that starts at or before the slot: later ones have no slots
      for (std::uint32_t step = kSymbols / 2; step > 0; step /= 2)
        if (space.starts[t][symbol + step] <= slot) symbol += step;
      out.entries[i] = device_entry(symbol, space.model.tables[t].of[symbol], slot - space.starts[t][symbol]);
    }
    if (thread == 0) {
      out.contexts = space.model.contexts;
      for (std::uint32_t c = 0; c < kFlagContexts; ++c) out.flag_frequency[c] = space.model.flag_frequency[c];
    }
  }
  if (thread != 0) return;
  out.last_residual = space.last_residual;
  out.bytes = static_cast<std::uint32_t>(space.bytes);
}

}  // namespace pyfilter::cuda
