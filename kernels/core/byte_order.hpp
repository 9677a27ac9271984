// SPDX-License-Identifier: BSD-3-Clause
// Byte swapping of whole arrays, for big-endian datasets. Codecs and frames see the host's order only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pyfilter {

constexpr bool needs_swap(bool big_endian) { return big_endian != (std::endian::native == std::endian::big); }

inline std::uint16_t swap_bytes(std::uint16_t value) { return __builtin_bswap16(value); }
inline std::uint32_t swap_bytes(std::uint32_t value) { return __builtin_bswap32(value); }
inline std::uint64_t swap_bytes(std::uint64_t value) { return __builtin_bswap64(value); }

template <class Word>
void swap_words(const void* from, void* to, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, static_cast<const char*>(from) + at, sizeof word);  // any alignment
    word = swap_bytes(word);
    std::memcpy(static_cast<char*>(to) + at, &word, sizeof word);
  }
}

// `from` and `to` are the same array or do not overlap.
inline void swap_values(const void* from, void* to, std::size_t bytes, std::size_t value_bytes) {
  switch (value_bytes) {
    case 2:
      return swap_words<std::uint16_t>(from, to, bytes);
    case 4:
      return swap_words<std::uint32_t>(from, to, bytes);
    case 8:
      return swap_words<std::uint64_t>(from, to, bytes);
    default:
      if (from != to) std::memcpy(to, from, bytes);
  }
}

}  // namespace pyfilter
