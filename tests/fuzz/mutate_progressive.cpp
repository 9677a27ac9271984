// SPDX-License-Identifier: BSD-3-Clause
// Changes progressive frames such that their table still adds up. Bytes are inserted into a segment or the special
// values, or removed, and the head's size is corrected (docs/format.md, section 13).
#include <cstring>
#include <random>

#include "support.hpp"

namespace pyfilter::fuzz {
namespace {

constexpr std::size_t kFixedHead = 32;

std::size_t below(std::minstd_rand& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

// Number of values of the coarsest grid.
std::uint64_t roots(const std::uint8_t* frame) {
  std::uint64_t extent[3] = {1, 1, 1};
  const int rank = frame[11];
  for (int i = 0; i < rank; ++i) {
    std::uint64_t& e = extent[rank - 1 - i < 2 ? rank - 1 - i : 2];
    e *= load<std::uint64_t>(frame + kFixedHeader + 8 * static_cast<std::size_t>(i)) & 0xFFFF;
  }
  while (extent[0] * extent[1] * extent[2] > 32)
    for (std::uint64_t& e : extent) e -= e / 2;
  return extent[0] * extent[1] * extent[2];
}

// Puts `bytes` bytes in at `at`, or takes them out.
void move(std::uint8_t* frame, std::size_t size, std::size_t at, std::size_t bytes, bool in, std::minstd_rand& random) {
  if (!in) {
    std::memmove(frame + at, frame + at + bytes, size - at - bytes);
    return;
  }
  std::memmove(frame + at + bytes, frame + at, size - at);
  for (std::size_t i = 0; i < bytes; ++i)
    frame[at + i] = below(random, 2) != 0 ? 0 : static_cast<std::uint8_t>(random() >> 8);
}

}  // namespace

std::size_t mutate_progressive(std::uint8_t* frame, std::size_t size, std::size_t most, std::minstd_rand& random) {
  const std::size_t head = kFixedHeader + 8 * std::size_t{frame[11]};
  if (frame[11] > 32 || size < head + kFixedHead) return size;
  std::uint8_t* const fixed = frame + head;
  const std::size_t table = head + kFixedHead + fixed[30] + roots(frame) * (frame[9] == 2 ? 8 : 4);
  const std::size_t specials = table + load<std::uint32_t>(fixed + 24);
  const std::uint64_t special_bytes = load<std::uint64_t>(fixed);
  if (specials > size || special_bytes > size - specials) return size;
  const bool in = below(random, 2) != 0;
  const std::size_t bytes = 1 + below(random, below(random, 4) != 0 ? 3 : 40);
  if (in && size + bytes > most) return size;
  switch (below(random, 4)) {
    case 0: {  // the part of special values
      if (!in && special_bytes < bytes) return size;
      move(frame, size, specials + below(random, (in ? special_bytes : special_bytes - bytes) + 1), bytes, in, random);
      store(fixed, in ? special_bytes + bytes : special_bytes - bytes);
      return in ? size + bytes : size - bytes;
    }
    case 1: {  // a byte of the head
      fixed[below(random, table - head)] ^= static_cast<std::uint8_t>(1u << below(random, 8));
      return size;
    }
    default:
      break;
  }
  const auto segments = load<std::uint16_t>(fixed + 28);
  const std::size_t chosen = below(random, segments);
  std::size_t start = specials + special_bytes, at = table;
  for (std::size_t i = 0; at + 2 <= specials; ++i) {
    const bool has_error = frame[at] >= 128;
    const std::size_t number = ++at;
    std::size_t length = 0;
    int shift = 0;
    while (at < specials && shift < 35) {
      length |= std::size_t{frame[at] & 127u} << shift;
      shift += 7;
      if (frame[at++] < 128) break;
    }
    if (length > size || start > size - length) return size;
    if (i == chosen) {
      const std::size_t other = in ? length + bytes : length - bytes;
      if ((!in && length < bytes) || at - number != (other < 128 ? 1u : other < 16384 ? 2u : 3u)) return size;
      move(frame, size, start + below(random, (in ? length : length - bytes) + 1), bytes, in, random);
      std::size_t left = other;
      for (std::size_t k = number; k < at; ++k, left >>= 7)
        frame[k] = static_cast<std::uint8_t>(k + 1 < at ? left | 128 : left & 127);
      return in ? size + bytes : size - bytes;
    }
    start += length;
    at += has_error ? 2 : 0;
  }
  return size;
}

}  // namespace pyfilter::fuzz
