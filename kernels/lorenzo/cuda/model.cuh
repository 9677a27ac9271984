// SPDX-License-Identifier: BSD-3-Clause
// A chunk's model from its counts (lorenzo/model.hpp has the rules), with a thread block for each chunk. It decides
// which levels share a table, and makes the frequencies, the tables as bits, and the encoder's tables. The same for
// codebooks.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/params.cuh"
#include "stages/cuda/packed/planes.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/cuda/warp_frequencies.cuh"

namespace pyfilter::cuda {

inline constexpr int kModelThreads = 512, kModelWarps = kModelThreads / 32;
inline constexpr std::uint32_t kMostTextBytes = 784;  // of one table: 20 bits, and 24 for each symbol but one

struct ModelSpace {
  union {
    struct {
      std::uint32_t upto[kLevels][kSymbols];  // for each step: sums of the counts up to it
      std::uint64_t low[kLevels], high[kLevels], own[kLevels];
    };
    struct {
      std::uint32_t sums[kMostTables][kSymbols];
      std::uint8_t text[kMostTables][kMostTextBytes];
      std::uint32_t bits[kMostTables];
    };
    struct {
      CodebookScratch codebook;
      std::uint32_t weights[kCodewords];
      HuffmanCodes codes;
    };
  };
  std::uint32_t steps, used;
  unsigned long long cost, raw, bits_of_symbols;
  std::uint64_t best[2];
  Contexts candidate[2];
  EntropyModel model;
};

// table_cost() by a warp; count(s) returns the count of symbol s.
template <class Count>
__device__ __forceinline__ std::uint64_t warp_table_cost(const Count& count) {
  TableCost cost;
#pragma unroll 1
  for (std::uint32_t s = threadIdx.x % 32; s < kSymbols; s += 32) cost.add(count(s));
  cost.total = sum_of_lanes(cost.total);
  cost.symbols = sum_of_lanes(cost.symbols);
  cost.inner = sum_of_lanes(cost.inner);
  return cost.bits();
}

// choose_contexts() for levels or octaves, by all threads; the best choice goes to space.best[octaves].
static __device__ void choose_steps(const SymbolCounts& counts, std::uint32_t octaves, ModelSpace& space) {
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if (thread == 0) space.steps = 0;
  __syncthreads();
  if (thread < kSymbols) {
    std::uint32_t sum = 0, last = 0;
    for (std::uint32_t level = 0; level < kLevels; ++level) {
      const std::uint32_t here = counts.of[level * kSymbols + thread], step = octaves != 0 ? (level + 1) / 2 : level;
      sum += here;
      space.upto[step][thread] = sum;
      if (here != 0) last = step + 1;
    }
    atomicMax(&space.steps, last);
  }
  __syncthreads();
  const std::uint32_t steps = max(space.steps, 1u);
  for (std::uint32_t task = warp; task < 3 * steps; task += kModelWarps) {
    const std::uint32_t i = task / 3, what = task % 3;
    const auto upto = [&](std::uint32_t step, std::uint32_t s) { return space.upto[step][s]; };
    const auto before = [&](std::uint32_t s) { return i > 0 ? upto(i - 1, s) : 0; };
    const std::uint64_t cost = warp_table_cost([&](std::uint32_t s) {
      return what == 0 ? upto(i, s) : what == 1 ? upto(i, s) - before(s) : upto(steps - 1, s) - before(s);
    });
    if (lane == 0) (what == 0 ? space.low : what == 1 ? space.own : space.high)[i] = cost;
  }
  __syncthreads();
  if (warp == 0) {
    std::uint64_t best = ~std::uint64_t{0};
    std::uint32_t contexts_of_best = 0xFFFFFFFF;  // of the best choice: base, last; the first of equals
    for (std::uint32_t base = lane; base + 1 < steps; base += 32) {
      std::uint64_t between = 0;
      for (std::uint32_t last = base + 1; last < steps && last - base < kMostContexts; ++last) {
        const std::uint64_t all = space.low[base] + between + space.high[last];
        between += space.own[last];
        if (all >= best) continue;
        best = all;
        contexts_of_best = base << 8 | last;
      }
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      const std::uint64_t other = __shfl_xor_sync(kAllLanes, best, d);
      const std::uint32_t there = __shfl_xor_sync(kAllLanes, contexts_of_best, d);
      if (other < best || (other == best && there < contexts_of_best)) {
        best = other;
        contexts_of_best = there;
      }
    }
    if (lane == 0) {
      const bool one = space.high[0] <= best;  // a single table
      space.best[octaves] = one ? space.high[0] : best;
      space.candidate[octaves] =
          one ? Contexts{octaves, 0, 1}
              : Contexts{octaves, contexts_of_best >> 8, (contexts_of_best & 255) - (contexts_of_best >> 8) + 1};
    }
  }
  __syncthreads();
}

// make_encode_table() by a warp: the encoder's form of a table.
static __device__ void warp_encode_table(const Frequencies& f, EncodeEntry* entries) {
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t first = 0;
  for (std::uint32_t from = 0; from < kSymbols; from += 32) {
    const std::uint32_t own = f.of[from + lane];
    const std::uint32_t upto = sum_upto(own);
    entries[from + lane] = encode_entry(own, (first + upto - own) & (kFrequencySum - 1));
    first += __shfl_sync(kAllLanes, upto, 31);
  }
}

// Concatenates the bits of all tables.
static __device__ void join_tables(ModelSpace& space, std::uint32_t tables, StreamModel& out) {
  const unsigned thread = threadIdx.x;
  std::uint32_t all = 0;
  for (std::uint32_t t = 0; t < tables; ++t) all += space.bits[t];
  const std::uint32_t words = kTableHeadBytes / 4 + (all + 31) / 32;
  auto* const text = reinterpret_cast<std::uint32_t*>(out.text);
  for (std::uint32_t w = thread; w < words; w += kModelThreads) {
    std::uint32_t value = w == 0 ? table_head(space.model, words) : w == 1 ? flag_word(space.model) : 0;
    std::uint32_t start = 8 * kTableHeadBytes;
    for (std::uint32_t t = 0; t < tables && w >= 2; start += space.bits[t++]) {
      const std::uint32_t from = 32 * w, to = from + 32;
      if (start >= to || start + space.bits[t] <= from) continue;
      for (std::uint32_t bit = max(from, start); bit < min(to, start + space.bits[t]); ++bit) {
        const std::uint32_t at = bit - start;
        value |= static_cast<std::uint32_t>(space.text[t][at / 8] >> at % 8 & 1) << (bit - from);
      }
    }
    text[w] = value;
  }
  if (thread == 0) out.table_bytes = 4 * words;
}

static __device__ void make_rans_model(const SymbolCounts& counts, ModelSpace& space, StreamModel& out) {
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  choose_steps(counts, 0, space);
  choose_steps(counts, 1, space);
  if (thread == 0) {
    const std::uint32_t octaves = space.best[1] < space.best[0] ? 1 : 0;
    space.model.contexts = space.candidate[octaves];
    space.cost = space.best[octaves];
    space.raw = 0;
  }
  __syncthreads();
  const Contexts contexts = space.model.contexts;
  const std::uint32_t tables = contexts.count + 1;
  std::uint64_t raw = 0;
  for (std::uint32_t i = thread; i < tables * kSymbols; i += kModelThreads) {
    const std::uint32_t t = i / kSymbols, s = i % kSymbols;
    std::uint32_t sum = t == contexts.count ? counts.of[kLevels * kSymbols + s] : 0;
    for (std::uint32_t level = 0; level < kLevels && t < contexts.count; ++level)
      if (contexts.of_level(level) == t) sum += counts.of[level * kSymbols + s];
    space.sums[t][s] = sum;
    raw += sum * std::uint64_t{raw_bits(s)};
  }
  raw = sum_of_lanes(raw);
  if (lane == 0) atomicAdd(&space.raw, static_cast<unsigned long long>(raw));
  for (std::uint32_t i = thread; i < sizeof space.text / 4; i += kModelThreads)
    reinterpret_cast<std::uint32_t*>(space.text)[i] = 0;
  __syncthreads();
  if (warp < tables) {
    Frequencies& f = space.model.tables[warp];
    warp_frequencies(space.sums[warp], f);
    warp_encode_table(f, out.tables.entries + warp * kSymbols);
    if (lane == 0) {
      BitWriter bits{space.text[warp]};
      write_frequencies(f, bits);
      space.bits[warp] = static_cast<std::uint32_t>(bits.bits);
    }
  } else if (warp == kModelWarps - 1) {
    const std::uint64_t first = warp_table_cost([&](std::uint32_t s) { return space.sums[contexts.count][s]; });
    if (lane == 0) {
      const std::uint64_t cost = space.cost + first + choose_flags(counts, space.model);
      space.model.group_log2 = choose_stream_group(cost, space.raw, counts.tiles);
    }
  }
  __syncthreads();
  join_tables(space, tables, out);
  if (thread == 0) {
    out.tables.contexts = contexts;
    for (std::uint32_t c = 0; c < kFlagContexts; ++c) out.tables.flag_frequency[c] = space.model.flag_frequency[c];
  }
}

static_assert(kModelWarps > static_cast<int>(kMostTables));

// make_codes() by all threads: a codeword's rank among those of its length.
__device__ inline void block_codes(const Codebook& book, HuffmanCodes& codes) {
  for (std::uint32_t c = threadIdx.x; c < kCodewords; c += blockDim.x) {
    const std::uint32_t length = book.length[c];
    std::uint32_t before = 0, code = 0;  // code space taken by shorter lengths; rank among equal lengths
    for (std::uint32_t other = 0; other < kCodewords; ++other) {
      const std::uint32_t theirs = book.length[other];
      if (theirs != 0 && theirs < length) code += (1u << length) >> theirs;
      before += theirs == length && other < c ? 1 : 0;
    }
    codes.code[c] = static_cast<std::uint16_t>(length != 0 ? code + before : 0);
    codes.length[c] = static_cast<std::uint8_t>(length);
  }
  __syncthreads();
}

static __device__ void make_codeword_model(const SymbolCounts& counts, ModelSpace& space, StreamModel& out) {
  const unsigned thread = threadIdx.x;
  if (thread == 0) {
    space.used = 0;
    space.bits_of_symbols = 0;
  }
  static_assert(kModelThreads >= static_cast<int>(kCodewords));
  const std::uint32_t weight = codeword_weight(counts.codewords, thread);
  space.weights[thread] = weight;
  space.model.book.length[thread] = 0;
  __syncthreads();
  if (weight != 0) {
    std::uint32_t rank = 0;
    for (std::uint32_t other = 0; other < kCodewords; ++other) {
      const std::uint32_t theirs = space.weights[other];
      rank += theirs != 0 && (theirs < weight || (theirs == weight && other < thread)) ? 1 : 0;
    }
    space.codebook.order[rank] = static_cast<std::uint16_t>(thread);
    atomicAdd(&space.used, 1);
  }
  for (std::uint32_t i = thread; i < kMostTableBytes / 4; i += kModelThreads)
    reinterpret_cast<std::uint32_t*>(out.text)[i] = 0;
  __syncthreads();
  if (thread == 0) {
    assign_lengths(space.weights, space.used, space.codebook, space.model.book);
    BitWriter bits{out.text + 4};
    write_codebook(space.model.book, bits);
    const auto words = static_cast<std::uint32_t>(1 + (bits.bits + 31) / 32);
    *reinterpret_cast<std::uint32_t*>(out.text) = words;
    out.table_bytes = 4 * words;
  }
  __syncthreads();
  const std::uint64_t bits = counts.codewords[thread] *
                             std::uint64_t{space.model.book.length[thread] + (thread < kEscape ? raw_bits(thread) : 0)};
  const std::uint64_t sum = sum_of_lanes(bits);
  if (thread % 32 == 0) atomicAdd(&space.bits_of_symbols, static_cast<unsigned long long>(sum));
  block_codes(space.model.book, out.codes);
  if (thread == 0) space.model.group_log2 = choose_huffman_group(space.bits_of_symbols, counts.tiles);
}

static __global__ void __launch_bounds__(kModelThreads) model_kernel(const __grid_constant__ StreamParams job) {
  extern __shared__ uint4 shared_memory[];
  auto& space = *reinterpret_cast<ModelSpace*>(shared_memory);
  const std::uint32_t chunk = blockIdx.x;
  if (job.base.plans[chunk].quantise == 0) return;
  if (is_rans(job.coder))
    make_rans_model(job.counts[chunk], space, job.models[chunk]);
  else
    make_codeword_model(job.counts[chunk], space, job.models[chunk]);
  __syncthreads();
  if (threadIdx.x != 0) return;
  EntropyModel& out = job.models[chunk].model;
  out.group_log2 = space.model.group_log2;
  for (std::uint32_t c = 0; c < kFlagContexts; ++c) out.flag_frequency[c] = space.model.flag_frequency[c];
}

}  // namespace pyfilter::cuda
