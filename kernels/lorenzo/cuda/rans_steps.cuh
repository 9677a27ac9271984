// SPDX-License-Identifier: BSD-3-Clause
// Steps of a rans stream by a warp, a thread for each lane. They decode states, and do single steps for symbols with
// outer bits and escapes.
#pragma once

#include <cstdint>

#include "lorenzo/cuda/params.cuh"
#include "lorenzo/cuda/rans_words.cuh"
#include "lorenzo/rans.hpp"

namespace pyfilter::cuda {

// Tables by the sum of two neighbours, as addresses, for the sums of residuals without outer bits and escapes.
inline constexpr std::uint32_t kLevelSums = 1024, kLevelBytes = 4 * kLevelSums;
// They are behind the entries of all tables.
inline constexpr std::uint32_t kLevelsAt = kMostTables * 4 * kFrequencySum;
// Neighbours from this size on are not in the table.
inline constexpr std::uint32_t kLargeResidual = kLevelSums / 2;

// The tables of a group's steps: the shared address of the entries, a multiple of 4096.
struct RansTables {
  std::uint32_t entries;
  TableOfSum of_sum;
  std::uint32_t first, frequencies;  // the table of a block's first residual; the frequencies of flags, ten bits each
};

// A decoded step: the state before and after its inner bits, and its residual if the symbol has no other bits.
struct DecodedStep {
  std::uint32_t entry, state, value, x;

  __device__ __forceinline__ bool slow() const { return entry >= kSlowEntry; }
  // Whether the symbol has more outer bits than one step takes, is an escape, or exceeds the residuals' width.
  __device__ __forceinline__ bool hard() const {
    return slow() && (entry & 0xFF) >= 4 * (2 + kInnerBits + kStepBits + 1);
  }
};
__device__ __forceinline__ DecodedStep decode_step(std::uint32_t table, std::uint32_t x) {
  const std::uint32_t entry = load_table(x << 2 & (4 * kFrequencySum - 4) | table);
  const std::uint32_t state = (entry >> 8 & 0x7FF) * (x >> kProbabilityBits) + (entry >> 19 & 0x3FF), raw = entry >> 29;
  // the low bits of the smallest residual are 0; one operation has three operands
  return {entry, state, (entry | (state & ~(~0u << raw))) & 0xFF, state >> raw};
}

// Decodes the outer bits of a symbol and the residual of an escape. Lanes with neither keep their residual and state,
// and receive words.
template <class Code>
struct SlowStep {
  Code value;
  bool failed;
  std::uint32_t x;
};
// For outer bits that one step can take; a lane without outer bits takes none. A lane without a block decodes small
// residuals, since they select tables.
template <class Code>
__device__ __forceinline__ SlowStep<Code> decode_outer(const DecodedStep& step, bool active, WordsForth& words) {
  words.advance();  // refill() follows twice here, and up to three times in the caller
  const bool slow = active && step.slow();
  const std::uint32_t symbol = step.entry & 0xFF, raw = symbol / 4 - 2, outer = slow ? raw - kInnerBits : 0;
  std::uint32_t x = slow ? step.state >> kInnerBits : step.x,
                value = slow ? shift_left(4 + symbol % 4, raw) + (step.state & ((1u << kInnerBits) - 1)) : step.value;
  words.refill(x, active);
  value += (x & ~shift_left(~0u, outer)) << kInnerBits;
  x = shift_right(x, outer);
  words.refill(x, active);
  return {value, false, x};
}
// For more outer bits, and for escapes.
template <class Code>
__device__ __forceinline__ SlowStep<Code> decode_any(const DecodedStep& step, bool active, WordsForth& words) {
  constexpr std::uint32_t kSymbolsHere = symbols_of_width(8 * sizeof(Code));
  const std::uint32_t symbol = step.entry & 0xFF, inner = symbol == kEscape ? 0 : kInnerBits;
  const bool slow = active && step.slow(), escaped = symbol == kEscape;
  SlowStep<Code> out = {step.value, slow && !escaped && symbol >= kSymbolsHere, slow ? step.state >> inner : step.x};
  words.refill(out.x, active);
  std::uint32_t left = !slow || out.failed ? 0 : escaped ? ~0u : outer_bits(symbol), taken = kInnerBits;
  if (slow && !out.failed && !escaped)
    out.value = static_cast<Code>(smallest_of<Code>(symbol) + (step.state & ((1u << kInnerBits) - 1)));
#pragma unroll 1
  while (__any_sync(kAllLanes, left != 0)) {
    const bool takes = left != 0;
    words.advance();
    if (left == ~0u) {
      const std::uint32_t s = out.x & ((1u << kEscapeBits) - 1);
      out.x >>= kEscapeBits;
      out.failed = out.failed || s >= kSymbolsHere;
      out.value = out.failed ? Code{0} : smallest_of<Code>(s);
      left = out.failed ? 0 : raw_bits(s);
      taken = 0;
    } else if (takes) {
      const std::uint32_t bits = min(left, kStepBits);
      out.value += static_cast<Code>(out.x & ((1u << bits) - 1)) << taken;
      out.x >>= bits;
      taken += bits;
      left -= bits;
    }
    words.refill(out.x, takes);
  }
  words.advance();
  return out;
}

// Chooses the cheapest of the two that suffices.
template <class Code>
__device__ __forceinline__ SlowStep<Code> decode_slow(const DecodedStep& step, bool active, WordsForth& words) {
  const bool outer = !__any_sync(kAllLanes, active && step.hard());
  return outer ? decode_outer<Code>(step, active, words) : decode_any<Code>(step, active, words);
}
// decode_any() as a call, for rare cases.
template <class Code>
struct CalledStep {
  SlowStep<Code> step;
  WordsForth words;
};
template <class Code>
__device__ __noinline__ CalledStep<Code> call_any(DecodedStep step, bool active, WordsForth words) {
  const SlowStep<Code> slow = decode_any<Code>(step, active, words);
  return {slow, words};
}

// Decodes steps of any kind, one by one, up to the end of a four. `sum0` to `sum3`: sums of their neighbours before
// these steps; `weights`: how often each of the two preceding steps is a neighbour, two bits each. Starts with step
// `from` of the four.
template <class Code>
struct FourSteps {
  Code z0, z1, z2, z3;
  std::uint32_t x;
  bool failed, slow, large;  // slow, large: of all lanes
  WordsForth words;
};
template <class Code>
__device__ __noinline__ FourSteps<Code> decode_four_slow(const RansTables tables, std::uint32_t sum0,
                                                         std::uint32_t sum1, std::uint32_t sum2, std::uint32_t sum3,
                                                         std::uint32_t weights, int from, bool active, std::uint32_t x,
                                                         WordsForth words) {
  FourSteps<Code> out = {0, 0, 0, 0, x, false, false, false, words};
  bool large = false;
#pragma unroll 1
  for (int k = from; k < 4; ++k) {
    const std::uint32_t sum = (k == 0   ? sum0
                               : k == 1 ? sum1
                               : k == 2 ? sum2
                                        : sum3) +
                              (weights >> 2 * k & 3) * capped(out.z3) + (weights >> 2 * k + 8 & 3) * capped(out.z2);
    const DecodedStep step = decode_step(tables.entries + tables.of_sum(sum) * (4 * kFrequencySum), out.x);
    Code z = step.value;
    out.x = step.x;
    if (__any_sync(kAllLanes, active && step.slow())) {
      const SlowStep<Code> slow = decode_slow<Code>(step, active, out.words);
      z = slow.value;
      out.x = slow.x;
      out.slow = true;
      out.failed = out.failed || slow.failed;
    } else {
      out.words.refill(out.x, active);
    }
    large = large || (active && z >= kLargeResidual);
    out.z0 = out.z1;
    out.z1 = out.z2;
    out.z2 = out.z3;
    out.z3 = z;
  }
  out.large = __any_sync(kAllLanes, large);
  return out;
}

// decode_four() for steps whose neighbours are the two before; `before` and `last`: the residuals of the two steps
// before the first.
template <class Code>
__device__ __forceinline__ FourSteps<Code> decode_four_line(const RansTables& tables, std::uint32_t before,
                                                            std::uint32_t last, int from, bool active, std::uint32_t x,
                                                            WordsForth words) {
  FourSteps<Code> out = {0, 0, 0, 0, x, false, false, false, words};
#pragma unroll 1  // its code is as long as that of many steps without outer bits
  for (int k = from; k < 4; ++k) {
    const DecodedStep step = decode_step(tables.entries + tables.of_sum(before + last) * (4 * kFrequencySum), out.x);
    Code z = step.value;
    before = last;
    last = step.value;
    if (!__any_sync(kAllLanes, active && step.slow())) {
      out.x = step.x;
      out.words.refill(out.x, active);
    } else if (!__any_sync(kAllLanes, active && step.hard())) {
      const SlowStep<std::uint32_t> outer = decode_outer<std::uint32_t>(step, active, out.words);
      out.x = outer.x;
      last = outer.value;
      z = outer.value;
      out.slow = true;
    } else {
      const CalledStep<Code> called = call_any<Code>(step, active, out.words);
      out.x = called.step.x;
      last = capped(called.step.value);
      z = called.step.value;
      out.words = called.words;
      out.slow = true;
      out.failed = out.failed || called.step.failed;
    }
    out.z0 = out.z1;
    out.z1 = out.z2;
    out.z2 = out.z3;
    out.z3 = z;
  }
  out.large = __any_sync(kAllLanes, active && (out.z2 >= kLargeResidual || out.z3 >= kLargeResidual));
  return out;
}

// decode_four_line() as a call, for rare cases.
template <class Code>
__device__ __noinline__ FourSteps<Code> call_four_line(const RansTables tables, std::uint32_t before,
                                                       std::uint32_t last, int from, bool active, std::uint32_t x,
                                                       WordsForth words) {
  return decode_four_line<Code>(tables, before, last, from, active, x, words);
}

// Decodes the first step of a round, if it is slow.
template <class Code>
__device__ __noinline__ CalledStep<Code> decode_first_slow(DecodedStep step, bool active, WordsForth words) {
  const SlowStep<Code> slow = decode_slow<Code>(step, active, words);
  return {slow, words};
}

}  // namespace pyfilter::cuda
