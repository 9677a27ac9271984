// SPDX-License-Identifier: BSD-3-Clause
// Changes frames such that most pass the first checks. Header fields get plausible values, directories ascending
// offsets. Bytes are inserted into tiles or removed, and all later offsets adjusted. Then seal() makes size and
// checksum right. Without this nearly every input would end at the checksum.
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "registry_table.hpp"
#include "support.hpp"

namespace pyfilter::fuzz {
namespace {

using Random = std::minstd_rand;
std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

std::size_t header_size(const std::uint8_t* frame, std::size_t size) {
  const std::size_t bytes = kFixedHeader + 8 * std::size_t{frame[11]};
  return bytes <= size ? bytes : size;
}

void change_dims(std::uint8_t* frame, std::size_t rank, Random& random) {
  static constexpr std::uint16_t kSides[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   16,
                                             17, 31, 32, 33, 64, 65, 100, 130, 256, 4097};
  if (rank == 0) return;
  std::uint8_t* const dim = frame + kFixedHeader + 8 * below(random, rank);
  const auto old = load<std::uint64_t>(dim);
  switch (below(random, 8)) {
    case 0:
      return store(dim, old + 1);
    case 1:
      return store(dim, old - 1);
    case 2:
      return store(dim, std::uint64_t{1} << below(random, 64));
    default:
      return store(dim, std::uint64_t{kSides[below(random, std::size(kSides))]});
  }
}

void change_float(std::uint8_t* field, Random& random) {
  static constexpr double kValues[] = {0,         1,        0.5,    0.25,   3,           1e-3,
                                       0x1p-1074, 0x1p-149, 1e300,  1e-300, 0x1p1023,    1.0 / 3,
                                       0x1p-30,   0x1p62,   0x1p52, 65535,  2147483648.0};
  switch (below(random, 4)) {
    case 0:
      return store(field, load<double>(field) * 2);
    case 1:
      field[below(random, 8)] ^= static_cast<std::uint8_t>(1u << below(random, 8));
      return;
    default:
      return store(field, kValues[below(random, std::size(kValues))]);
  }
}

void change_header(std::uint8_t* frame, std::size_t size, Random& random) {
  const std::size_t rank = (header_size(frame, size) - kFixedHeader) / 8;
  switch (below(random, 8)) {
    case 0:
      frame[9] = static_cast<std::uint8_t>(1 + below(random, 10));
      return;
    case 1:
      frame[10] ^= static_cast<std::uint8_t>(1u << below(random, 4));
      return;
    case 2:
    case 3:
      return change_dims(frame, rank, random);
    case 4:
      return change_float(frame + (below(random, 2) != 0 ? 24 : 32), random);
    case 5:
      frame[40 + below(random, 8)] ^= static_cast<std::uint8_t>(1u << below(random, 8));
      return;
    default:
      frame[48 + below(random, 4)] = static_cast<std::uint8_t>(below(random, 6));
  }
}

// The directory: where it starts (behind the tables of streams, a model) and how many entries it has. False where none
// is seen.
bool find_directory(const std::uint8_t* frame, std::size_t size, std::size_t* at, std::size_t* entries) {
  *at = header_size(frame, size);
  if (frame[8] == 4 && *at + 4 <= size) *at += 4 * std::size_t{load<std::uint16_t>(frame + *at)};
  if (frame[8] == kAdaptive && *at + 12 <= size) *at += 8 + 4 * std::size_t{load<std::uint16_t>(frame + *at + 8)};
  if (*at + 8 > size || (size - *at) % 4 != 0) return false;
  const std::size_t words = (size - *at) / 4;
  for (std::size_t n = 1; n < words && n < 300; ++n) {
    if (n + 1 + (load<std::uint32_t>(frame + *at + 4 * n) & 0x7FFFFFFFu) != words) continue;
    *entries = n;
    return true;
  }
  return false;
}

// Adds to all entries behind `first`, the bit of uniform tiles as it is.
void shift_entries(std::uint8_t* directory, std::size_t first, std::size_t entries, std::uint32_t by) {
  for (std::size_t i = first + 1; i <= entries; ++i)
    store(directory + 4 * i, load<std::uint32_t>(directory + 4 * i) + by);
}

// Puts words into a tile or takes some out; `frame` has room for `most`. Returns the new size.
std::size_t resize_tile(std::uint8_t* frame, std::size_t size, std::size_t most, Random& random) {
  std::size_t at = 0, entries = 0;
  if (!find_directory(frame, size, &at, &entries)) return size;
  std::uint8_t* const directory = frame + at;
  const std::size_t tile = below(random, entries), tiles = at + 4 * (entries + 1);
  const std::size_t from = tiles + 4 * std::size_t{load<std::uint32_t>(directory + 4 * tile) & 0x7FFFFFFFu};
  const std::size_t to = tiles + 4 * std::size_t{load<std::uint32_t>(directory + 4 * tile + 4) & 0x7FFFFFFFu};
  if (from > to || to > size) return size;
  const std::size_t bytes = 4 * (1 + below(random, below(random, 4) != 0 ? 3 : 64));
  if (below(random, 2) != 0) {
    if (size + bytes > most) return size;
    const std::size_t where = from + 4 * below(random, (to - from) / 4 + 1);
    std::memmove(frame + where + bytes, frame + where, size - where);
    for (std::size_t i = 0; i < bytes; ++i)
      frame[where + i] = below(random, 2) != 0 ? 0 : static_cast<std::uint8_t>(random() >> 8);
    shift_entries(directory, tile, entries, static_cast<std::uint32_t>(bytes / 4));
    return size + bytes;
  }
  if (to - from < bytes) return size;
  const std::size_t where = from + 4 * below(random, (to - from - bytes) / 4 + 1);
  std::memmove(frame + where, frame + where + bytes, size - where - bytes);
  shift_entries(directory, tile, entries, ~static_cast<std::uint32_t>(bytes / 4) + 1);
  return size - bytes;
}

// The number of tiles changes with the shape: one entry more or less, of an empty tile.
std::size_t resize_directory(std::uint8_t* frame, std::size_t size, std::size_t most, Random& random) {
  std::size_t at = 0, entries = 0;
  if (!find_directory(frame, size, &at, &entries)) return size;
  const std::size_t where = at + 4 * below(random, entries + 1);
  if (below(random, 2) != 0 && size + 4 <= most) {
    std::memmove(frame + where + 4, frame + where, size - where);
    return size + 4;
  }
  if (entries < 2) return size;
  std::memmove(frame + at, frame + at + 4, size - at - 4);  // the first tile gone, its bytes are the second's
  store(frame + at, load<std::uint32_t>(frame + at) & 0x80000000u);
  return size - 4;
}

void change_directory(std::uint8_t* frame, std::size_t size, Random& random) {
  std::size_t at = 0, entries = 0;
  if (!find_directory(frame, size, &at, &entries)) return;
  std::uint8_t* const entry = frame + at + 4 * below(random, entries + 1);
  const auto old = load<std::uint32_t>(entry);
  static constexpr std::uint32_t kSteps[] = {1, 2, ~0u, ~1u, 0x80000000u, 0x40000000u};
  store(entry, old + kSteps[below(random, std::size(kSteps))]);
}

// A few bytes of the head of a tile or anywhere behind the header.
void change_bytes(std::uint8_t* frame, std::size_t size, Random& random) {
  const std::size_t header = header_size(frame, size);
  if (header == size) return;
  std::size_t at = header + below(random, size - header), directory = 0, entries = 0;
  if (below(random, 2) != 0 && find_directory(frame, size, &directory, &entries)) {
    const std::size_t tile = load<std::uint32_t>(frame + directory + 4 * below(random, entries)) & 0x7FFFFFFFu;
    const std::size_t head = directory + 4 * (entries + 1) + 4 * tile + below(random, 48);
    if (head < size) at = head;
  }
  if (below(random, 2) != 0)
    frame[at] ^= static_cast<std::uint8_t>(1u << below(random, 8));
  else
    frame[at] = static_cast<std::uint8_t>(random() >> 8);
}

std::size_t change_frame(std::uint8_t* frame, std::size_t size, std::size_t most, Random& random, std::uint8_t codec) {
  if (size < kFixedHeader || below(random, codec == 0 ? 8 : 64) == 0) size = mutate(frame, size, most);
  if (size < kFixedHeader) return size;
  if (frame[11] > 32) frame[11] %= 33;
  for (std::size_t turns = 1 + below(random, 3); turns != 0; --turns) {
    const std::size_t header = header_size(frame, size);
    switch (below(random, 8)) {
      case 0:
        change_header(frame, size, random);
        break;
      case 1:
        change_directory(frame, size, random);
        break;
      case 2:
        if (frame[8] == kProgressive) {
          size = mutate_progressive(frame, size, most, random);
          break;
        }
        size = below(random, 4) != 0 ? resize_tile(frame, size, most, random)
                                     : resize_directory(frame, size, most, random);
        break;
      case 3:
      case 4:
        if (header < most) size = header + mutate(frame + header, size - header, most - header);
        break;
      default:
        change_bytes(frame, size, random);
    }
  }
  if (codec == 0 && below(random, 16) == 0) return size;
  if (codec == 0 && below(random, 16) == 0)
    frame[8] = static_cast<std::uint8_t>(1 + below(random, std::size(registry::kCodecs)));
  seal(frame, size, codec);
  if (below(random, 64) == 0 && size > 24) store(frame + 16, load<std::uint64_t>(frame + 16) + below(random, 9) - 4);
  return size;
}

}  // namespace

// Changes that a header's checks end are made again, mostly: what they refuse is soon known.
std::size_t mutate_frame(std::uint8_t* frame, std::size_t size, std::size_t most, unsigned seed, std::uint8_t codec) {
  static std::vector<std::uint8_t> before;
  before.assign(frame, frame + size);
  Random random(seed + 1);
  for (int i = 0; i < 8; ++i) random();
  for (std::size_t tries = below(random, 8) == 0 ? 1 : 4;; --tries) {
    const std::size_t changed = change_frame(frame, size, most, random, codec);
    pyf_info info{};
    info.struct_bytes = sizeof info;
    if (tries == 1 || pyf_frame_info(frame, changed, &info) == PYF_OK) return changed;
    if (!before.empty()) std::memcpy(frame, before.data(), size);
  }
}

}  // namespace pyfilter::fuzz
