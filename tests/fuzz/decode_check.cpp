// SPDX-License-Identifier: BSD-3-Clause
// Decodes a frame on every CPU level, whole and in parts: an error or the same values everywhere. No byte outside of
// the caller's memory is touched, no value is left out, and a frame's claims allocate no memory (support.hpp).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "registry_table.hpp"
#include "support.hpp"

namespace pyfilter::fuzz {
namespace {

// All NaNs that a quantised code gives count as one (docs/format.md, section 6).
template <class Value>
bool same_floats(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(Value)) {
    if (std::memcmp(a + at, b + at, sizeof(Value)) == 0) continue;
    if (!std::isnan(load<Value>(a + at)) || !std::isnan(load<Value>(b + at))) return false;
  }
  return true;
}

// The same for floats of 16 bits.
bool same_halves(const pyf_info& info, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
  const unsigned infinity = info.dtype == kFloat16 ? 0x7C00 : 0x7F80;
  const auto is_nan = [&](std::uint16_t half) { return (half & 0x7FFFu) > infinity; };
  for (std::size_t at = 0; at + 2 <= bytes; at += 2) {
    const auto x = load<std::uint16_t>(a + at), y = load<std::uint16_t>(b + at);
    if (x != y && !(is_nan(x) && is_nan(y))) return false;
  }
  return true;
}

bool same_values(const pyf_info& info, const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return true;
  const bool singles = info.dtype == 1 || info.dtype == 11, doubles = info.dtype == 2 || info.dtype == 12;
  if (info.step != 0 && (info.dtype == kFloat16 || info.dtype == kBfloat16)) return same_halves(info, a, b, bytes);
  if (info.step == 0 || !(singles || doubles)) return false;
  return singles ? same_floats<float>(a, b, bytes) : same_floats<double>(a, b, bytes);
}

// What a header that was accepted promises to its reader.
void check_info(const pyf_info& info, const std::uint8_t* frame) {
  static constexpr std::size_t kWidths[] = {0, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 1, 2, 2};
  require(info.dtype >= 1 && info.dtype <= 15, "frame_info: dtype", info.dtype);
  require(info.rank >= 0 && info.rank <= 32, "frame_info: rank", info.rank);
  require(info.header_bytes == kFixedHeader + 8 * static_cast<std::size_t>(info.rank), "frame_info: header_bytes");
  require(info.frame_bytes >= info.header_bytes, "frame_info: frame_bytes");
  require(header_crc(frame, info.header_bytes) == load<std::uint32_t>(frame + 12), "frame_info: checksum");
  __uint128_t count = 1;
  for (int i = 0; i < info.rank; ++i) {
    require(count < __uint128_t{1} << 61, "frame_info: too many values");
    count *= info.dims[i];
  }
  require(count == info.value_count && info.value_bytes == info.value_count * kWidths[info.dtype],
          "frame_info: counts");
  require(std::isfinite(info.bound) && std::isfinite(info.step) && info.bound >= 0 && info.step >= 0,
          "frame_info: bound and step");
  // so many values a frame may hold at most: 32 tiles for each word behind the header, or all as they are
  const __uint128_t most = static_cast<__uint128_t>(info.frame_bytes - info.header_bytes) * 32768;
  require(info.stored_raw != 0 || count <= most, "frame_info: more values than the frame can hold");
}

// The values of a frame and those that fill up its tiles and blocks, about: the work that it asks for.
double padded_values(const pyf_info& info) {
  static constexpr double kTiles[][3] = {{1, 1, 1}, {1, 1, 4096}, {1, 64, 64}, {8, 16, 32}, {1, 1024, 4}};
  static constexpr double kBlocks[][3] = {{1, 1, 1}, {1, 1, 32}, {1, 8, 8}, {4, 4, 4}};
  const auto count = static_cast<double>(info.value_count);
  const double* sides = kTiles[0];
  if (info.stored_raw == 0 &&
      (info.codec == registry::kCodecHierarchicalDelta || info.codec == registry::kCodecLorenzo))
    sides = kTiles[std::min<int>(info.parameters[0], 4)];
  else if (info.stored_raw == 0 && (info.codec == registry::kCodecCuszp2 || info.codec == registry::kCodecLossless))
    sides = kBlocks[std::min<int>(info.parameters[1], 3)];
  if (sides[1] == 1 || count == 0) return count;  // what is taken flat has no padding to speak of
  double padded = count, rows = count / static_cast<double>(info.dims[info.rank - 1]);
  for (int i = 0; i < std::min(info.rank, 3); ++i) {
    const double side = i == 1 && sides[1] == 1024 ? rows : static_cast<double>(info.dims[info.rank - 1 - i]);
    padded *= std::ceil(side / sides[2 - i]) * sides[2 - i] / side;
  }
  return padded;
}

// Frames of up to so many values are decoded, one in 16 up to so many: a full group of lorenzo.
constexpr double kMostValues = 8 * 4096, kMostValuesOfSome = 33 * 4096;

// What became of the inputs, for the record.
struct Tally {
  unsigned long long header = 0, large = 0, refused = 0, good = 0;
  ~Tally() {
    if (header + large + refused + good > 1)
      std::fprintf(stderr, "tally: %llu refused by their headers, %llu too large, %llu refused, %llu decoded\n", header,
                   large, refused, good);
  }
};

struct Rooms {
  GuardedRoom frame{std::size_t{1} << 20}, values{kMostValueBytes}, part{kMostValueBytes};
};

int decode(const std::uint8_t* frame, std::size_t size, std::uint8_t* values, std::size_t bytes, std::size_t most) {
  const Meter meter;
  const int code = pyf_decode(frame, size, values, bytes);
  require(meter.peak() <= most, "a decoder took memory", static_cast<long long>(meter.peak()));
  require(code == PYF_OK || code == PYF_CORRUPT || code == PYF_TRUNCATED || code == PYF_TOO_NEW,
          "a damaged frame gives another code", code);
  require(code == PYF_OK || pyf_last_error()[0] != '\0', "a failure without a text", code);
  if (code == PYF_OK) require_written(values, bytes);
  return code;
}

}  // namespace

bool check_decoders(const std::uint8_t* data, std::size_t size, bool any_size) {
  static Rooms rooms;
  static Tally tally;
  if (size > std::size_t{1} << 20) return false;
  const std::uint8_t* const frame = rooms.frame.put(data, size);
  pyf_info info{};
  info.struct_bytes = sizeof info;
  const int parsed = pyf_frame_info(frame, size, &info);
  if (parsed != PYF_OK) {
    require(decode(frame, size, rooms.values.get(16, 0), 16, kDecoderBytes) == parsed, "frame_info and decode disagree",
            parsed);
    ++tally.header;
    return false;
  }
  check_info(info, frame);
  const double most = frame[12] % 16 == 0 ? kMostValuesOfSome : kMostValues;  // by a byte of the checksum
  if (info.value_bytes > kMostValueBytes || (!any_size && padded_values(info) > most)) {
    ++tally.large;
    return false;
  }
  const std::size_t bytes = info.value_bytes, width = info.value_count != 0 ? bytes / info.value_count : 1;
  static std::vector<std::uint8_t> first(kMostValueBytes);
  int code = 0;
  for (std::size_t level = 0; level < levels().size(); ++level) {
    use_level(levels()[level]);
    std::uint8_t* const values = rooms.values.get(bytes, level == 0 ? 0xA5 : 0x5A);
    const int here = decode(frame, size, values, bytes, decoder_bytes(info));
    require(here != PYF_OK || info.frame_bytes == size, "decoded a frame of another size");
    if (info.codec == kProgressive && info.stored_raw == 0)
      check_parts(frame, size, info, here == PYF_OK ? values : nullptr);
    if (level == 0) {
      code = here;
      if (code == PYF_OK && bytes != 0) std::memcpy(first.data(), values, bytes);
      continue;
    }
    require(here == code, "levels disagree on the error", here, code);
    require(code != PYF_OK || same_values(info, first.data(), values, bytes), "levels give other values",
            static_cast<long long>(level));
  }
  ++(code == PYF_OK ? tally.good : tally.refused);
  // a part, other ones for other frames, of every good frame and of a quarter of the bad ones
  const std::uint32_t draw = header_crc(frame, info.header_bytes) ^ frame[size / 2];
  if (code != PYF_OK && (draw >> 26) % 4 != 0) return false;
  const std::uint64_t start = info.value_count != 0 ? draw % info.value_count : 0;
  const std::uint64_t stop = start + (draw >> 8) % (info.value_count - start + 1);
  use_level(levels()[draw >> 4 & 1 && levels().size() > 1 ? levels().size() - 1 : 0]);
  std::uint8_t* const part = rooms.part.get((stop - start) * width, 0x3C);
  const int of_part = pyf_decode_range(frame, size, start, stop, part, (stop - start) * width);
  require(code != PYF_OK || of_part == PYF_OK, "a part of a good frame is refused", of_part);
  if (of_part == PYF_OK) require_written(part, (stop - start) * width);
  require(code != PYF_OK || same_values(info, first.data() + start * width, part, (stop - start) * width),
          "a part has other values than the whole", static_cast<long long>(start), static_cast<long long>(stop));
  require(pyf_decode_range(frame, size, 0, info.value_count + 1, part, 0) != PYF_OK, "values behind the last one");
  return code == PYF_OK;
}

}  // namespace pyfilter::fuzz
