// SPDX-License-Identifier: BSD-3-Clause
// Frequencies of symbols (docs/format.md, section 8.2): from counts, to bits and back, and the encoding and decoding
// tables. Integers only, so CPU and GPU agree. Frequencies sum to 2^Bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bits.hpp"
#include "core/target.hpp"
#include "core/wire.hpp"
#include "stages/symbols.hpp"

namespace pyfilter {

// Frequencies sum to 2^10. All but the main symbol's have four significant bits.
inline constexpr std::uint32_t kProbabilityBits = 10, kFrequencySum = 1u << kProbabilityBits;
inline constexpr std::uint32_t kSignificantBits = 4, kMostEscape = 15;

struct Frequencies {
  std::uint32_t listed = 1;         // symbols 0 to listed - 1 and the escape have frequencies
  std::uint32_t main = 0;           // the symbol whose frequency is the remainder
  std::uint16_t of[kSymbols] = {};  // 0: the symbol cannot occur
};

KFN std::uint32_t rounded_frequency(std::uint32_t f) {
  const std::uint32_t shift =
      f >> kSignificantBits != 0 ? static_cast<std::uint32_t>(bit_width(f)) - kSignificantBits : 0;
  return (f + ((1u << shift) >> 1)) >> shift << shift;
}

// The frequency of the escape, and of a symbol other than the main one; `total` is without escapes, or with them.
template <std::uint32_t Bits = kProbabilityBits>
KFN std::uint32_t escape_frequency(std::uint64_t escapes, std::uint64_t total) {
  const std::uint64_t f = total != 0 ? (escapes << Bits) / (total + escapes) : 0;
  return f < 1 ? 1 : f > kMostEscape ? kMostEscape : static_cast<std::uint32_t>(f);
}
template <std::uint32_t Bits = kProbabilityBits>
KFN std::uint32_t symbol_frequency(std::uint32_t count, std::uint64_t total) {
  const auto exact = static_cast<std::uint32_t>(((std::uint64_t{count} << Bits) + total / 2) / total);
  return rounded_frequency(exact < 1 ? 1 : exact);
}
// The main symbol gets the remainder of `sum`; if rounding up left no remainder, the largest frequencies shrink.
template <std::uint32_t Bits = kProbabilityBits>
KFN void give_rest(Frequencies& f, std::uint32_t sum) {
  while (sum >= 1u << Bits) {
    std::uint32_t largest = f.main == 0 ? 1 : 0;
    for (std::uint32_t s = 0; s < f.listed; ++s)
      if (s != f.main && f.of[s] > f.of[largest]) largest = s;
    const std::uint32_t less = rounded_frequency(f.of[largest] - (f.of[largest] + 15u) / 16u);
    sum -= f.of[largest] - less;
    f.of[largest] = static_cast<std::uint16_t>(less);
  }
  f.of[f.main] = static_cast<std::uint16_t>((1u << Bits) - sum);
}

// Every counted symbol gets a frequency, and so does the escape: symbols outside the sample may still occur.
template <std::uint32_t Bits = kProbabilityBits>
KFN void make_frequencies(const std::uint32_t* counts, Frequencies& f) {
  std::uint64_t total = 0;
  f.listed = 1;
  f.main = 0;
  for (std::uint32_t s = 0; s < kEscape; ++s) {
    total += counts[s];
    if (counts[s] != 0) f.listed = s + 1;
    if (counts[s] > counts[f.main]) f.main = s;
    f.of[s] = 0;
  }
  f.of[kEscape] = static_cast<std::uint16_t>(escape_frequency<Bits>(counts[kEscape], total));
  total += counts[kEscape];
  std::uint32_t sum = f.of[kEscape];
  for (std::uint32_t s = 0; s < f.listed; ++s) {
    if (s == f.main || counts[s] == 0) continue;
    f.of[s] = static_cast<std::uint16_t>(symbol_frequency<Bits>(counts[s], total));
    sum += f.of[s];
  }
  give_rest<Bits>(f, sum);
}

// Writes bits, lowest first, into zeroed words.
struct BitWriter {
  std::uint8_t* to;
  std::size_t bits = 0;

  KFN void put(std::uint32_t value, std::uint32_t count) {
    while (count != 0) {
      const auto at = static_cast<std::uint32_t>(bits % 8), here = count < 8 - at ? count : 8 - at;
      to[bits / 8] = static_cast<std::uint8_t>(to[bits / 8] | (value & ((1u << here) - 1)) << at);
      value >>= here;
      count -= here;
      bits += here;
    }
  }
  KFN void skip(std::uint32_t count) { bits += count; }  // zeros
};
class BitReader {
 public:
  std::size_t end;       // in bits
  std::size_t bits = 0;  // that have been read
  bool failed = false;

  KFN BitReader(const std::uint8_t* bytes, std::size_t end_bit) : end(end_bit), from_(bytes) {}
  // Reads at most 32 bits.
  KFN std::uint32_t take(std::uint32_t count) {
    if (count > held_bits_) {
      hold();
      if (count > held_bits_) {
        failed = true;
        return 0;
      }
    }
    const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << count) - 1));
    consume(count);
    return value;
  }
  // Consumes zeros up to and including a one; false if there are more than `most` zeros, or no one.
  KFN bool take_zeros(std::uint32_t most, std::uint32_t& count) {
    bool found = false;
    for (count = 0; !found && count <= most;) {
      if (held_bits_ == 0) hold();
      if (held_bits_ == 0) break;
      found = held_ != 0;
      const std::uint32_t zeros =
          found ? static_cast<std::uint32_t>(bit_width(held_ & (std::uint64_t{0} - held_))) - 1 : held_bits_;
      count += zeros;
      consume(zeros);
      if (found) consume(1);
    }
    failed = failed || !found || count > most;
    return !failed;
  }

 private:
  const std::uint8_t* from_;
  std::uint64_t held_ = 0;  // the next bits, and zeros
  std::uint32_t held_bits_ = 0;

  // Loads the next bits: 57 at least, or all that there are.
  KFN void hold() {
    const std::size_t byte = bits / 8, bytes = (end + 7) / 8 - byte, left = end - bits;
    const auto read = static_cast<std::uint32_t>(bits % 8);
    held_ = 0;
    if (bytes >= 8)
      held_ = load_le<std::uint64_t>(from_ + byte);
    else
      for (std::size_t i = 0; i < bytes; ++i) held_ |= std::uint64_t{from_[byte + i]} << (8 * i);
    held_ >>= read;
    held_bits_ = left < 64 - read ? static_cast<std::uint32_t>(left) : 64 - read;
    if (held_bits_ < 64) held_ &= (std::uint64_t{1} << held_bits_) - 1;
  }
  KFN void consume(std::uint32_t count) {  // at most held_bits_
    held_ = count < 64 ? held_ >> count : 0;
    held_bits_ -= count;
    bits += count;
  }
};

// The width of a frequency is predicted by the width of the listed symbol two before it (8 at first). A frequency is
// stored as the difference to its predicted width, in unary in the order 0, -1, 1, -2, 2 and so on. Up to three bits
// below its first bit follow.
inline constexpr std::uint32_t kFirstWidth = 8;

template <class Writer>
KFN void write_frequencies(const Frequencies& f, Writer& out) {
  out.put(f.listed, 8);
  out.put(f.main, 8);
  out.put(f.of[kEscape], 4);
  std::uint32_t before[2] = {kFirstWidth, kFirstWidth};
  for (std::uint32_t s = 0; s < f.listed; ++s) {
    if (s == f.main) continue;
    const auto width = static_cast<std::uint32_t>(bit_width(std::uint32_t{f.of[s]}));
    const std::uint32_t steps =
        width <= before[0] ? 2 * (before[0] - width) - (width != before[0] ? 1 : 0) : 2 * (width - before[0]);
    out.skip(steps);
    out.put(1, 1);
    const std::uint32_t fraction = width < 2 ? 0 : width - 1 < kSignificantBits - 1 ? width - 1 : kSignificantBits - 1;
    if (fraction != 0) out.put((std::uint32_t{f.of[s]} >> (width - 1 - fraction)) & ((1u << fraction) - 1), fraction);
    before[0] = before[1];
    before[1] = width;
  }
}

// False if the bits are no frequencies: they run out, or leave nothing for the main symbol.
template <std::uint32_t Bits = kProbabilityBits>
KFN bool read_frequencies(BitReader& in, Frequencies& f) {
  for (std::uint32_t s = 0; s < kSymbols; ++s) f.of[s] = 0;
  f.listed = in.take(8);
  f.main = in.take(8);
  f.of[kEscape] = static_cast<std::uint16_t>(in.take(4));
  if (in.failed || f.listed == 0 || f.main >= f.listed) return false;
  std::uint32_t sum = f.of[kEscape], before[2] = {kFirstWidth, kFirstWidth};
  for (std::uint32_t s = 0; s < f.listed; ++s) {
    if (s == f.main) continue;
    std::uint32_t steps = 0;
    if (!in.take_zeros(2 * Bits, steps)) return false;
    const std::uint32_t width = steps % 2 != 0 ? before[0] - (steps + 1) / 2 : before[0] + steps / 2;
    if (width > Bits) return false;  // includes widths below 0, which wrap
    const std::uint32_t fraction = width < 2 ? 0 : width - 1 < kSignificantBits - 1 ? width - 1 : kSignificantBits - 1;
    const std::uint32_t low = in.take(fraction);
    f.of[s] = static_cast<std::uint16_t>(width == 0 ? 0 : ((1u << fraction) | low) << (width - 1 - fraction));
    sum += f.of[s];
    before[0] = before[1];
    before[1] = width;
  }
  if (in.failed || sum >= 1u << Bits) return false;
  f.of[f.main] = static_cast<std::uint16_t>((1u << Bits) - sum);
  return true;
}

// An entry of the decoder's table of 2^10 slots: symbol, frequency, rank of the slot within the symbol's slots, and the
// symbol's raw bits.
constexpr KFN std::uint32_t decode_entry(std::uint32_t symbol, std::uint32_t frequency, std::uint32_t rank) {
  const std::uint32_t raw = symbol == kEscape ? 0 : raw_bits(symbol);
  return symbol | frequency << 8 | rank << 19 | (raw < kInnerBits ? raw : kInnerBits) << 29;
}
KFN void make_decode_table(const Frequencies& f, std::uint32_t* entries) {
  std::uint32_t slot = 0;
  for (std::uint32_t s = 0; s < kSymbols; ++s)
    for (std::uint32_t i = 0; i < f.of[s]; ++i) entries[slot++] = decode_entry(s, f.of[s], i);
}

// A symbol's entry for the encoder: frequency, first slot, and a reciprocal. x / frequency is the high half of x *
// reciprocal, shifted, for x below 2^31.
struct EncodeEntry {
  std::uint32_t reciprocal = 0;
  std::uint32_t packed = 0;  // frequency, first slot << 11, shift << 21

  constexpr KFN std::uint32_t frequency() const { return packed & 0x7FF; }
  constexpr KFN std::uint32_t first() const { return packed >> 11 & 0x3FF; }
  constexpr KFN std::uint32_t shift() const { return packed >> 21; }
};
constexpr KFN EncodeEntry encode_entry(std::uint32_t frequency, std::uint32_t first) {
  if (frequency == 0) return {};
  // shift = ceil(log2(frequency)); 2^(31 + shift) / frequency, rounded up, has 32 bits and is too large by less than
  // frequency <= 2^shift: the quotient of x < 2^31 is exact. The product is shifted by 31 + shift in all.
  std::uint32_t shift = 0;
  while ((1u << shift) < frequency) ++shift;
  const std::uint64_t reciprocal = ((std::uint64_t{1} << (31 + shift)) + frequency - 1) / frequency;
  return {static_cast<std::uint32_t>(reciprocal), frequency | first << 11 | shift << 21};
}
KFN std::uint32_t divided(std::uint32_t x, const EncodeEntry& entry) {
#if defined(__CUDA_ARCH__)
  return __umulhi(x << 1, entry.reciprocal) >> entry.shift();
#else
  return static_cast<std::uint32_t>((std::uint64_t{x} * entry.reciprocal) >> 31 >> entry.shift());
#endif
}
KFN void make_encode_table(const Frequencies& f, EncodeEntry* entries) {
  std::uint32_t first = 0;
  for (std::uint32_t s = 0; s < kSymbols; ++s) {
    entries[s] = encode_entry(f.of[s], first & (kFrequencySum - 1));
    first += f.of[s];
  }
}

}  // namespace pyfilter
