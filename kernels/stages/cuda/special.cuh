// SPDX-License-Identifier: BSD-3-Clause
// Special blocks (stages/special.hpp), by the threads that hold their values.
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "stages/cuda/block_values.cuh"
#include "stages/cuda/params.cuh"
#include "stages/cuda/residuals.cuh"
#include "stages/quantize.hpp"
#include "stages/rate.hpp"

namespace pyfilter::cuda {

// Masks of a thread's 32 values, and the facts about its block that both its threads know.
struct Specials {
  std::uint32_t sentinel = 0, nan = 0, verbatim = 0;
  std::uint32_t masks = 0;           // of the block: kMaskSentinel, kMaskNan, kMaskVerbatim
  std::uint32_t verbatim_count = 0;  // of the block
  bool only_sentinels = false;       // the block
};

// Sorts 32 values, a row of the arena, into masks and replaces them by biased codes.
template <class T>
__device__ __forceinline__ Specials sort_values(const Quantizer<T>& p, T* row) {
  using Traits = FloatTraits<T>;
  using Code = typename Traits::Code;
  Code* const codes = reinterpret_cast<Code*>(row);
  Specials s;
  for (int i = 0; i < 32; ++i) {
    const T x = row[i];
    const Code bits = std::bit_cast<Code>(x);
    const T t = magic_form(p, x), decoded = decoded_value(p.step, t);
    Code q = code_of(t);
    const std::uint32_t bit = 1u << i;
    if (p.has_sentinel && bits == p.sentinel_bits)
      s.sentinel |= bit;
    else if (bits == Traits::kQuietNan)
      s.nan |= bit;
    else if (!(keeps_bound(p, x, decoded) & in_reach(p, x) & !(decoded == p.sentinel)) && !neighbour_fits<T>(p, x, q))
      s.verbatim |= bit;
    codes[i] = q + Traits::kMagicBits;
  }
  return s;
}

// The same for this thread's values, with codes for special values. All lanes of the warp must call it.
template <int D, class T>
__device__ __noinline__ Specials note_specials(const ChunkPlan& plan, int half, bool valid, T* row) {
  using Traits = FloatTraits<T>;
  using Code = typename Traits::Code;
  Code* const codes = reinterpret_cast<Code*>(row);
  Specials s;
  if (valid) s = sort_values(plan.quantizer<T>(), row);
  // special values take the code before them, leading ones the block's first plain code
  const std::uint32_t plain = valid ? ~(s.sentinel | s.nan | s.verbatim) : 0;
  Code first = plain != 0 ? codes[__ffs(static_cast<int>(plain)) - 1] : Traits::kMagicBits;
  Code last = plain != 0 ? codes[31 - __clz(static_cast<int>(plain))] : Traits::kMagicBits;
  s.masks = (s.sentinel != 0 ? kMaskSentinel : 0) | (s.nan != 0 ? kMaskNan : 0) | (s.verbatim != 0 ? kMaskVerbatim : 0);
  s.verbatim_count = static_cast<std::uint32_t>(__popc(s.verbatim));
  s.only_sentinels = s.sentinel == kAllLanes;
  Code before = first;
  if constexpr (D > 1) {
    const std::uint32_t other_plain = __shfl_xor_sync(kAllLanes, plain, 1);
    const Code other_first = __shfl_xor_sync(kAllLanes, first, 1), other_last = __shfl_xor_sync(kAllLanes, last, 1);
    s.masks |= __shfl_xor_sync(kAllLanes, s.masks, 1);
    s.verbatim_count += __shfl_xor_sync(kAllLanes, s.verbatim_count, 1);
    s.only_sentinels = __shfl_xor_sync(kAllLanes, static_cast<int>(s.only_sentinels), 1) != 0 && s.only_sentinels;
    if (half != 0)
      before = other_plain != 0 ? other_last : first;
    else
      before = plain != 0 ? first : other_first;
  }
  for (int i = 0; i < 32; ++i) {
    if ((plain >> i & 1) != 0)
      before = codes[i];
    else
      codes[i] = before;
  }
  return s;
}

// Writes masks and verbatim values in front of a special block's planes, and verbatim blocks. `to`: this thread's
// words.
template <class Map, int D>
__device__ __noinline__ void write_special(const EncodeParams& job, const std::uint8_t* values, std::uint32_t tile,
                                           std::uint32_t rate, const std::uint32_t* masks, std::uint32_t verbatim,
                                           std::uint32_t partner_words, std::uint32_t* to) {
  using Value = typename Map::Value;
  constexpr int kHalves = kBlockValues<D> / 32, kValueWords = sizeof(Value) / 4;
  const int half = D == 1 ? 0 : static_cast<int>(threadIdx.x % 2);
  const std::uint32_t block = tile * kTileBlocks<D> + threadIdx.x / (D == 1 ? 1 : 2);
  const HalfBlock<D == 1 ? 2 : D> half_block(job.grid, D == 1 ? 0 : block, half);
  const auto copy_value = [&](int i, std::uint32_t* words) {
    std::uint64_t index = 0;
    if constexpr (D == 1) {
      index = std::uint64_t{block} * 32 + static_cast<unsigned>(i);
      if (index >= job.grid.values) index = job.grid.values - 1;
    } else {
      index = half_block.value_at(i);
    }
    const auto* from = reinterpret_cast<const std::uint32_t*>(values + index * sizeof(Value));
    for (int w = 0; w < kValueWords; ++w) words[w] = from[w];
  };
  if (rate == kRateVerbatim) {
    for (int i = 0; i < 32; ++i) copy_value(i, to + i * kValueWords);
    return;
  }
  if (half != 0) to -= partner_words;  // the block's first word
  const std::uint32_t present = rate - kRateSentinel;
  for (int m = 0; m < 3; ++m) {
    if ((present >> m & 1) == 0) continue;
    to[half] = masks[m * kThreads];
    to += kHalves;
  }
  to += verbatim * kValueWords;  // of the first half
  for (std::uint32_t rest = masks[2 * kThreads]; rest != 0; rest &= rest - 1, to += kValueWords)
    copy_value(__ffs(static_cast<int>(rest)) - 1, to);
}

}  // namespace pyfilter::cuda
