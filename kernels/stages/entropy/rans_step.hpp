// SPDX-License-Identifier: BSD-3-Clause
// Streams of 32 interleaved coders (docs/format.md, section 8.3): the step of one lane, for CPU and GPU. A lane's state
// is 2^15 to 2^31 - 1; a smaller state reads 16 bits of the stream.
#pragma once

#include <cstdint>

#include "core/target.hpp"
#include "stages/entropy/tables.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kLaneCount = 32, kLowestState = 1u << 15, kStateBits = 31;

// A symbol and `raw` bits of it. The state shrinks to x, which the caller refills.
struct DecodedSymbol {
  std::uint32_t symbol, raw;
};
KFN DecodedSymbol decode_symbol(std::uint32_t entry, std::uint32_t& x) {
  const std::uint32_t raw = entry >> 29;
  x = (entry >> 8 & 0x7FF) * (x >> kProbabilityBits) + (entry >> 19 & 0x3FF);
  const DecodedSymbol symbol{entry & 0xFF, x & ((1u << raw) - 1)};
  x >>= raw;
  return symbol;
}
// Whether a state emits 16 bits to the stream before a symbol with `raw` bits, or before `raw` bits alone.
KFN bool must_spill(std::uint32_t x, std::uint32_t frequency, std::uint32_t raw) {
  return x >> (kStateBits - kProbabilityBits - raw) >= frequency;
}
KFN bool must_spill_raw(std::uint32_t x, std::uint32_t raw) { return x >> (kStateBits - raw) != 0; }
KFN std::uint32_t encode_symbol(std::uint32_t x, const EncodeEntry& entry, std::uint32_t raw, std::uint32_t bits) {
  x = x << raw | bits;
  const std::uint32_t quotient = divided(x, entry);
  return x + entry.first() + quotient * (kFrequencySum - entry.frequency());
}

// A block's flag: coded, or all zero.
KFN bool decode_flag(std::uint32_t frequency, std::uint32_t& x) {
  const std::uint32_t slot = x & (kFrequencySum - 1);
  const bool coded = slot < frequency;
  x = coded ? frequency * (x >> kProbabilityBits) + slot
            : (kFrequencySum - frequency) * (x >> kProbabilityBits) + slot - frequency;
  return coded;
}
KFN std::uint32_t encode_flag(std::uint32_t x, std::uint32_t frequency, bool coded) {
  const std::uint32_t own = coded ? frequency : kFrequencySum - frequency;
  return (x / own << kProbabilityBits) + x % own + (coded ? 0 : frequency);
}

}  // namespace pyfilter
