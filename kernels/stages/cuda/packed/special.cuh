// SPDX-License-Identifier: BSD-3-Clause
// Special values of packed tiles, by the threads that hold their blocks (stages/packed/encode.hpp has the rules).
#pragma once

#include <cstdint>

#include "stages/cuda/packed/lorenzo.cuh"
#include "stages/cuda/packed/values.cuh"
#include "stages/cuda/special.cuh"

namespace pyfilter::cuda {

// First and last ordinary code of each block, and which blocks have any.
template <class Code>
struct OrdinaryCodes {
  Code first[kThreads], last[kThreads];
  std::uint32_t has[kWarps];
};

// Sorts out the special values of a tile; repaired codes are in the rows of the arena afterwards, and in c. By all
// threads of the block, behind a barrier.
template <int S, class Value, class Code>
__device__ __noinline__ Specials note_packed_specials(const ChunkPlan& plan, bool valid, std::uint8_t* arena,
                                                      OrdinaryCodes<Code>& ordinary) {
  const unsigned thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  Value* const row = packed_row<S, Value>(arena);
  // absent blocks, too, take part in what codes others see
  Specials special = note_specials<1, Value>(plan, 0, true, row);
  const std::uint32_t plain = ~(special.sentinel | special.nan | special.verbatim);
  Code* const codes = reinterpret_cast<Code*>(row);
  if (plain != 0) {
    ordinary.first[thread] = codes[__ffs(static_cast<int>(plain)) - 1];
    ordinary.last[thread] = codes[31 - __clz(static_cast<int>(plain))];
  }
  const std::uint32_t has = __ballot_sync(kAllLanes, plain != 0);
  if (lane == 0) ordinary.has[warp] = has;
  __syncthreads();
  if (plain == 0) {
    Code fill = FloatTraits<Value>::kMagicBits;
    bool found = false;
    std::uint32_t before = ordinary.has[warp] & ((1u << lane) - 1);
    for (int w = static_cast<int>(warp); w >= 0 && !found; --w) {
      if (before != 0) {
        fill = ordinary.last[32 * w + 31 - __clz(static_cast<int>(before))];
        found = true;
      } else if (w > 0) {
        before = ordinary.has[w - 1];
      }
    }
    for (int w = 0; w < kWarps && !found; ++w) {
      if (ordinary.has[w] == 0) continue;
      fill = ordinary.first[32 * w + __ffs(static_cast<int>(ordinary.has[w])) - 1];
      found = true;
    }
    for (int i = 0; i < 32; ++i) codes[i] = fill;
  }
  if (!valid) special = Specials{};
  return special;
}

// Words of a block before its planes: masks and verbatim values. Returns where the planes go.
template <int S, class Value>
__device__ __noinline__ std::uint32_t* write_packed_special(const EncodeParams& job, const std::uint8_t* values,
                                                            const TileBox& box, const Specials& special,
                                                            std::uint32_t* to) {
  constexpr int kValueWords = sizeof(Value) / 4;
  if (special.sentinel != 0) *to++ = special.sentinel;
  if (special.nan != 0) *to++ = special.nan;
  if (special.verbatim != 0) *to++ = special.verbatim;
  for (std::uint32_t rest = special.verbatim; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<unsigned>(__ffs(static_cast<int>(rest)) - 1);
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + clamped_index<S>(job.grid, box, threadIdx.x, i) *
                                                                           sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) *to++ = from[w];
  }
  return to;
}

// A verbatim tile: the values of this thread's block, `index`-th of those present.
template <int S, class Value>
__device__ __noinline__ void write_verbatim_block(const EncodeParams& job, const std::uint8_t* values,
                                                  const TileBox& box, std::uint32_t index, std::uint32_t* words) {
  constexpr int kValueWords = sizeof(Value) / 4;
  std::uint32_t* to = words + index * 32 * kValueWords;
  for (unsigned i = 0; i < 32; ++i) {
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + clamped_index<S>(job.grid, box, threadIdx.x, i) *
                                                                           sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) *to++ = from[w];
  }
}

}  // namespace pyfilter::cuda
