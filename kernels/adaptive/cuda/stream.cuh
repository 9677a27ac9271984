// SPDX-License-Identifier: BSD-3-Clause
// The stream of a unit, decoded by a warp with a thread for each lane (cpu/stream.hpp decodes lane by lane).
#pragma once

#include <cstdint>

#include "adaptive/cuda/slots.cuh"
#include "stages/entropy/packed_states.hpp"

namespace pyfilter::cuda {

// Codes of a step. `exact` and `origin`: lanes that have a stored value instead of a code.
struct StepCodes {
  Ints codes;
  std::uint32_t exact, origin;
};

// Words are loaded 32 to 64 ahead of their use; each thread holds two.
struct UnitStream {
  const std::uint16_t* words;
  std::uint32_t count, at, base;  // words; words used; index of the first word held
  std::uint32_t near_word, far_word;
  std::uint32_t x;  // this lane's state
  bool failed;      // of this lane

  PYF_LANES UnitStream open(std::uint32_t state, const void* from, std::uint32_t count) {
    UnitStream s = {static_cast<const std::uint16_t*>(from), count, 0, 0, 0, 0, state, false};
    s.near_word = s.load(0);
    s.far_word = s.load(kRows);
    return s;
  }
  __device__ __forceinline__ std::uint32_t load(std::uint32_t from) const {
    const std::uint32_t i = from + this_lane();
    return i < count ? words[i] : 0;
  }
  __device__ __forceinline__ bool ended() const { return at == count && is_first_state(x); }

  // Gives words to the lanes whose state is below kLowestState, in the order of lanes, while there are any.
  __device__ __forceinline__ void refill() {
    const bool needs = x < kLowestState && at < count;
    const std::uint32_t taking = __ballot_sync(kAllRows, needs ? 1 : 0);
    if (taking == 0) return;
    const std::uint32_t mine = at + popcount(taking & lanes_below()), place = mine - base;  // below 64
    const std::uint32_t low = __shfl_sync(kAllRows, near_word, static_cast<int>(place % kRows)),
                        high = __shfl_sync(kAllRows, far_word, static_cast<int>(place % kRows));
    if (needs && mine < count) x = x << 16 | (place < kRows ? low : high);
    at = min(at + popcount(taking), count);
    if (at - base < kRows) return;
    base += kRows;
    near_word = far_word;
    far_word = load(base + kRows);
  }

  // Returns the lanes of `bits` that have special values.
  __device__ __forceinline__ std::uint32_t read_flags(const AdaptiveModel& model, std::uint32_t context,
                                                      std::uint32_t bits) {
    bool special = false;
    if ((bits >> this_lane() & 1) != 0) special = decode_flag(model.mask_frequency[context], x);
    refill();
    return __ballot_sync(kAllRows, special ? 1 : 0);
  }

  __device__ __forceinline__ StepCodes read(const std::uint32_t* first_of_level, const FrameSlots& slots,
                                            const Ints& level, std::uint32_t bits, const Ints& active) {
    const SymbolStep step = take_symbols(first_of_level, slots, {static_cast<std::int32_t>(x)}, level, active);
    x = static_cast<std::uint32_t>(step.next.v);
    refill();
    StepCodes result = {step.codes(), 0, 0};
    const std::uint32_t unusual = bits & bits_of_condition(step.unusual());
    if (unusual != 0) finish(step, unusual, result);
    return result;
  }

 private:
  __device__ __forceinline__ std::uint32_t take_bits(std::uint32_t n) {
    const std::uint32_t taken = x & ((1u << n) - 1);
    x >>= n;
    return taken;
  }
  // Finishes symbols with more raw bits, and escapes.
  __device__ __forceinline__ void finish(const SymbolStep& step, std::uint32_t unusual, StepCodes& result) {
    auto symbol = static_cast<std::uint32_t>(step.symbol.v), low = static_cast<std::uint32_t>(step.low.v);
    const bool mine = (unusual >> this_lane() & 1) != 0, escaped = mine && symbol == kEscape;
    // one lane at a time: each takes the words of its two parts
    for (std::uint32_t left = __ballot_sync(kAllRows, escaped ? 1 : 0); left != 0; left &= left - 1) {
      const bool turn = (left & (0u - left)) == 1u << this_lane();
      if (turn) symbol = take_bits(kEscapeBits);
      refill();
      if (turn && symbol <= kMostSymbol) low = take_bits(bits_with(symbol));
      refill();
    }
    const bool exact = escaped && symbol == kExactSymbol, origin = escaped && symbol == kOriginSymbol;
    if (mine && !exact && !origin && symbol > kMostSymbol) {
      failed = true;
      symbol = 0;
    }
    std::uint32_t later = 0;
    if (mine && !exact && !origin) later = take_bits(bits_behind(symbol));
    refill();
    if (mine)
      result.codes.v =
          exact || origin
              ? 0
              : static_cast<std::int32_t>(unzigzag(smallest_of<std::uint32_t>(symbol) + (low | later << kWithSymbol)));
    result.exact = __ballot_sync(kAllRows, exact ? 1 : 0);
    result.origin = __ballot_sync(kAllRows, origin ? 1 : 0);
  }
};

}  // namespace pyfilter::cuda
