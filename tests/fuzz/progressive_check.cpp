// SPDX-License-Identifier: BSD-3-Clause
// Progressive frames in part (support.hpp): the head alone, prefixes, grids of every level. Bytes that are not needed
// differ each time, or lie behind a page without access.
#include <cmath>
#include <cstring>
#include <vector>

#include "support.hpp"

namespace pyfilter::fuzz {
namespace {

struct Parts {
  std::vector<pyf_progressive_part> part;
  pyf_progressive summary{};
};

// What the table says; false where the head is refused, which is then no good frame.
bool read_parts(const std::uint8_t* frame, std::size_t size, Parts& parts) {
  const Meter meter;
  bool good = pyf_progressive_summary(frame, size, &parts.summary) == PYF_OK;
  if (good) {
    require(parts.summary.prefix_bytes <= size || size < 4096, "a head longer than its frame");
    require(parts.summary.segments <= 65535 && parts.summary.levels <= 64, "too many segments or levels");
    parts.part.resize(parts.summary.segments);
    good = pyf_progressive_parts(frame, size, 0, parts.part.data(), parts.summary.segments) == PYF_OK;
  }
  require(meter.peak() <= kDecoderBytes + 2 * 65536 * sizeof(pyf_progressive_part), "a head took memory",
          static_cast<long long>(meter.peak()));
  return good;
}

}  // namespace

void check_parts(const std::uint8_t* frame, std::size_t size, const pyf_info& info, const std::uint8_t* values) {
  static GuardedRoom frame_room(std::size_t{1} << 20), value_room(kMostValueBytes);
  Parts parts;
  if (!read_parts(frame, size, parts)) {
    require(values == nullptr, "a good frame's table is refused");
    return;
  }
  const auto segments = parts.summary.segments;
  std::uint64_t next = parts.summary.prefix_bytes;
  for (const pyf_progressive_part& part : parts.part) {
    require(part.offset == next && part.offset + part.size <= info.frame_bytes, "a segment that lies elsewhere");
    require(part.error >= 0 && part.level < parts.summary.levels, "a segment without an error or a level");
    next = part.offset + part.size;
  }
  Parts of_prefix;
  require(read_parts(frame_room.put(frame, parts.summary.prefix_bytes), parts.summary.prefix_bytes, of_prefix) &&
              of_prefix.part.size() == parts.part.size(),
          "the head needs more than its bytes");
  if (next > size) return;
  const std::uint32_t draw = header_crc(frame, info.header_bytes) ^ frame[size - 1];
  const std::size_t width = info.value_count != 0 ? info.value_bytes / info.value_count : 1;
  for (std::uint32_t level = 0; level <= parts.summary.levels; level += 1 + draw % 3) {
    if (level != 0 && info.rank > 3) break;
    const std::uint32_t count = level == 0 || draw % 4 == 0 ? segments : (draw >> 8) % (segments + 1);
    std::size_t end = parts.summary.prefix_bytes, grid = width;
    for (std::uint32_t i = 0; i < count; ++i)
      if (parts.part[i].level >= level) end = static_cast<std::size_t>(parts.part[i].offset + parts.part[i].size);
    for (int i = 0; i < info.rank; ++i) grid *= (info.dims[i] + (std::uint64_t{1} << level) - 1) >> level;
    // level 0: segments one by one are not needed by it, so all of them; above it finer ones are other bytes
    std::uint8_t* const cut = frame_room.get(end, 0xA5);
    std::memcpy(cut, frame, parts.summary.prefix_bytes);
    for (std::uint32_t i = 0; i < count; ++i) {
      const pyf_progressive_part& part = parts.part[i];
      if (part.level >= level) std::memcpy(cut + part.offset, frame + part.offset, part.size);
    }
    std::uint8_t* const out = value_room.get(grid, 0x3C);
    const Meter meter;
    const int code = pyf_progressive_decode(cut, end, count, level, out, grid);
    require(meter.peak() <= decoder_bytes(info), "a decoder of a part took memory",
            static_cast<long long>(meter.peak()));
    require(code == PYF_OK || pyf_last_error()[0] != '\0', "a failure without a text", code);
    require(code == PYF_OK || code == PYF_CORRUPT || code == PYF_TRUNCATED, "a part gives another code", code);
    require(code == PYF_OK || values == nullptr, "a part of a good frame is refused", code);
    if (code == PYF_OK) require_written(out, grid);
    if (level == 0 && count == segments && values != nullptr)
      require(std::memcmp(out, values, grid) == 0, "all segments give other values than the frame");
    if (level == 0 && end > parts.summary.prefix_bytes)
      require(pyf_progressive_decode(frame_room.put(frame, end - 1), end - 1, count, 0, out, grid) == PYF_TRUNCATED,
              "a byte less is not missed");
  }
}

}  // namespace pyfilter::fuzz
