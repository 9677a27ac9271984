// SPDX-License-Identifier: BSD-3-Clause
// Values of a block picked by bit masks, and codes for values that have none. N is 16, 32 or 64; Code is the unsigned
// integer as wide as a value. Values are handled as their bits, so that a NaN never passes through a floating-point
// register.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/planes.hpp"
#include "stages/simd/vector.hpp"

PYF_BEGIN_TARGET

#if defined(PYF_FLAG_VECTORS)
// A bit for each of N lanes; lanes(i) returns the lanes from i on.
template <int N, class Code, class Get>
KFN std::uint64_t bits_of_lanes(const Get& lanes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < N; i += kFlagged<Code> * kPer<Code>) {
    Lanes<Code> here[kFlagged<Code>];
    for (int k = 0; k < kFlagged<Code>; ++k) here[k] = lanes(i + k * kPer<Code>);
    bits |= joined_bits(here) << i;
  }
  return bits;
}
#endif

// Bit i is set if flags[i] has all bits set; otherwise flags[i] must be 0.
template <int N, class Code>
KFN std::uint64_t flag_bits(const Code (&flags)[N]) {
#if defined(PYF_FLAG_VECTORS)
  return bits_of_lanes<N, Code>([&](int i) { return set_lanes(load(flags + i)); });
#else
  std::uint64_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= static_cast<std::uint64_t>(flags[i] != 0) << i;
  return bits;
#endif
}

// Bit i is set if x[i] has exactly the bits `wanted`.
template <int N, class Code>
KFN std::uint64_t equal_bits(const void* x, Code wanted) {
  const auto* const from = static_cast<const std::uint8_t*>(x);
#if defined(PYF_FLAG_VECTORS)
  return bits_of_lanes<N, Code>(
      [&](int i) { return equal(load<Code>(from + i * static_cast<int>(sizeof(Code))), Vector<Code>{} + wanted); });
#else
  std::uint64_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= static_cast<std::uint64_t>(load_le<Code>(from + i * sizeof(Code)) == wanted) << i;
  return bits;
#endif
}

#if defined(PYF_VECTORS)
// Calls work(first lane, bits) for each vector of N values, or only for vectors that have bits set in the mask.
template <int N, class Code, class Work>
KFN void for_masked(std::uint64_t mask, const Work& work) {
  constexpr std::uint64_t kLanesOfOne = (std::uint64_t{1} << kPer<Code>)-1;
  if constexpr (kSkipsEmpty) {
    while (mask != 0) {
      const int first = __builtin_ctzll(mask) & -kPer<Code>;
      work(first, static_cast<unsigned>(mask >> first & kLanesOfOne));
      mask &= ~(kLanesOfOne << first);
    }
  } else {
    for (int first = 0; first < N; first += kPer<Code>) work(first, static_cast<unsigned>(mask >> first & kLanesOfOne));
  }
}

// Sets x[i] = value for each set bit i.
template <int N, class Code>
KFN void fill_masked(void* x, std::uint64_t mask, Code value) {
  for (int i = 0; i < N; i += kPer<Code>) {
    auto* const at = static_cast<std::uint8_t*>(x) + i * sizeof(Code);
    store<Code>(at, select(lanes_of(mask, i, Code{}), all_of(value), load<Code>(at)));
  }
}

// Sets x[i] = from[i] for each set bit i.
template <int N, class Code>
KFN void copy_masked(Code* x, std::uint64_t mask, const Code* from) {
  for (int i = 0; i < N; i += kPer<Code>) store(x + i, select(lanes_of(mask, i, Code{}), load(from + i), load(x + i)));
}

// Gathers the values whose bits are set, contiguously. `to` needs room for N values.
template <int N, class Code>
KFN void gather_masked(const void* x, std::uint64_t mask, void* to) {
  auto* out = static_cast<std::uint8_t*>(to);
  for_masked<N, Code>(mask, [&](int first, unsigned bits) {
    const auto* const from = static_cast<const std::uint8_t*>(x) + first * static_cast<int>(sizeof(Code));
    store<Code>(out, packed_lanes<Code>(load<Code>(from), bits));
    out += static_cast<int>(sizeof(Code)) * __builtin_popcount(bits);
  });
}

// The inverse: scatters contiguous values to the positions whose bits are set. Reads only as many values as bits are
// set.
template <int N, class Code>
KFN void scatter_masked(void* x, std::uint64_t mask, const std::uint8_t* from) {
  for_masked<N, Code>(mask, [&](int first, unsigned bits) {
    auto* const at = static_cast<std::uint8_t*>(x) + first * static_cast<int>(sizeof(Code));
    store<Code>(at, spread_lanes<Code>(load<Code>(at), bits, from));
    from += static_cast<int>(sizeof(Code)) * __builtin_popcount(bits);
  });
}
#else
template <int N, class Code>
KFN void fill_masked(void* x, std::uint64_t mask, Code value) {
  auto* to = static_cast<std::uint8_t*>(x);
  for (; mask != 0; mask &= mask - 1) store_le(to + __builtin_ctzll(mask) * sizeof(Code), value);
}

template <int N, class Code>
KFN void copy_masked(Code* x, std::uint64_t mask, const Code* from) {
  for (; mask != 0; mask &= mask - 1) x[__builtin_ctzll(mask)] = from[__builtin_ctzll(mask)];
}

template <int N, class Code>
KFN void gather_masked(const void* x, std::uint64_t mask, void* to) {
  const auto* from = static_cast<const std::uint8_t*>(x);
  auto* out = static_cast<std::uint8_t*>(to);
  while (mask != 0) {
    for (int k = 0; k < 4; ++k, mask &= mask - 1) {  // in groups of four: a loop over single bits mispredicts its end
      std::memcpy(out, from + (mask != 0 ? __builtin_ctzll(mask) : 0) * sizeof(Code), sizeof(Code));
      out += mask != 0 ? sizeof(Code) : 0;
    }
  }
}

template <int N, class Code>
KFN void scatter_masked(void* x, std::uint64_t mask, const std::uint8_t* from) {
  auto* to = static_cast<std::uint8_t*>(x);
  for (; mask != 0; mask &= mask - 1, from += sizeof(Code))
    std::memcpy(to + __builtin_ctzll(mask) * sizeof(Code), from, sizeof(Code));
}
#endif

#if defined(PYF_VECTORS)
// forward_fill() with vectors. A code carried into a vector is read from q, where plain codes never change. Four
// vectors are read before one is stored, so that no read waits for a store.
template <int B, class Code>
KFN void fill_lanes(Code* q, std::uint64_t plain) {
  constexpr int kAtOnce = B / kPer<Code> < 4 ? B / kPer<Code> : 4;
  const std::uint64_t start = plain & (0 - plain);
  for (int first = 0; first < B; first += kAtOnce * kPer<Code>) {
    Vector<Code> filled[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kPer<Code>;
      const std::uint64_t before = (plain & ((std::uint64_t{1} << at) - 1)) | start;
      const auto bits = static_cast<unsigned>(plain >> at & ((1u << kPer<Code>)-1));
      filled[i] = filled_lanes(load(q + at), bits, all_of(q[63 - __builtin_clzll(before)]));
    }
    for (int i = 0; i < kAtOnce; ++i) store(q + first + i * kPer<Code>, filled[i]);
  }
}
#endif

// Replaces each code whose bit in `plain` is 0 by the last plain code before it. Codes before the first plain code
// become that code. `plain` is not 0.
template <int B, class Code>
KFN void forward_fill(Code* q, std::uint64_t plain) {
#if defined(PYF_VECTORS)
  if constexpr (kHasFilledLanes<Code>) return fill_lanes<B>(q, plain);
#endif
  q[0] = q[__builtin_ctzll(plain)];
  plain |= 1;
  std::uint64_t rest = ~plain & (~std::uint64_t{0} >> (64 - B));
  while (rest != 0) {
    for (int k = 0; k < 4; ++k, rest &= rest - 1) {  // in groups of four: a loop over single bits mispredicts its end
      const std::uint64_t lowest = rest != 0 ? rest & (0 - rest) : 1;
      // the last plain code, not q[i - 1]: the next iteration would wait for that store
      q[63 - __builtin_clzll(lowest)] = q[63 - __builtin_clzll((plain & (lowest - 1)) | 1)];
    }
  }
}

PYF_END_TARGET
