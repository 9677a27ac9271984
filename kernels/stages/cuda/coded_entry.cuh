// SPDX-License-Identifier: BSD-3-Clause
// An encoder's entry of a symbol in eight bytes, for frequencies that sum to 2^Bits, with up to 12 bits.
#pragma once

#include <cstdint>

#include "stages/cuda/warp_sum.cuh"
#include "stages/entropy/slots.hpp"

namespace pyfilter::cuda {

// Without a frequency the symbol cannot be coded.
template <std::uint32_t Bits>
struct CodedEntry {
  static_assert(Bits <= 12);
  std::uint32_t reciprocal, packed;  // packed: frequency, from bit 12 on the first slot, from bit 24 on the shift

  CodedEntry() = default;
  explicit KFN CodedEntry(const SymbolEntry& e)
      : reciprocal(e.reciprocal), packed(e.frequency | std::uint32_t{e.first} << 12 | e.shift << 24) {}
  KFN std::uint32_t frequency() const { return packed & 0xFFF; }
  KFN std::uint32_t coded(std::uint32_t x) const {
    const auto quotient = static_cast<std::uint32_t>((std::uint64_t{x} * reciprocal) >> 31 >> (packed >> 24));
    return x + (packed >> 12 & 0xFFF) + quotient * ((1u << Bits) - frequency());
  }
};

// Makes the entries of a table by the threads of a warp; the first slots of symbols are sums over it.
template <std::uint32_t Bits>
__device__ __forceinline__ void make_coded_entries(const Frequencies& f, CodedEntry<Bits>* entries) {
  std::uint32_t first = 0;
  for (std::uint32_t from = 0; from < kSymbols; from += 32) {
    const std::uint32_t s = from + threadIdx.x % 32, own = f.of[s], upto = sum_upto(own);
    entries[s] = CodedEntry<Bits>(symbol_entry(own, first + upto - own));
    first += __shfl_sync(kAllLanes, upto, 31);
  }
}

}  // namespace pyfilter::cuda
