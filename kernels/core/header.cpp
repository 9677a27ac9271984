// SPDX-License-Identifier: BSD-3-Clause
// Reading and writing frame headers (header.hpp; docs/format.md, section 2).
#include "core/header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base_values.hpp"
#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/records.hpp"
#include "core/request.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

constexpr std::uint8_t kFlagRaw = 1, kFlagBigEndian = 2, kFlagSentinel = 4, kFlagPointwise = 8, kFlagCarried = 16,
                       kKnownFlags = 31;
constexpr std::uint8_t kCarriedVersion = 6;  // the format version that brought kFlagCarried
constexpr std::size_t kCrcAt = 12, kCarriedAt = 52;

// A carried bound is the upper half of a double: 20 bits of a mantissa, rounded up.
std::uint32_t carried_word(double bound) {
  const auto bits = std::bit_cast<std::uint64_t>(bound);
  return static_cast<std::uint32_t>(bits >> 32) + ((bits & 0xFFFFFFFFu) != 0 ? 1 : 0);
}
double carried_of_word(std::uint32_t word) { return std::bit_cast<double>(std::uint64_t{word} << 32); }

Status corrupt(const char* what) { return fail(Code::corrupt, "corrupt frame: %s", what); }

// Checks that the frame has at least the bytes that its shape needs. A caller must not allocate memory for values that
// the frame cannot hold.
Status check_size(const FrameInfo& info) {
  if (info.frame_bytes < info.header_bytes) return corrupt("the frame is shorter than its header");
  const std::uint64_t payload = info.frame_bytes - info.header_bytes;
  if (info.stored_raw) {
    if (payload != info.value_bytes) return corrupt("raw values do not fill the frame");
    return kOk;
  }
  return codec_of(info.codec)->check_size(info, payload);
}

// Reads the fields once the checksum matches. A check that fails here means that the writer was wrong: flipped bits are
// found by the checksum.
Status read_fields(const std::uint8_t* frame, FrameInfo* info) {
  const int rank = frame[11];
  const std::uint8_t flags = frame[10];
  info->codec = frame[8];
  info->dtype = static_cast<Dtype>(frame[9]);
  if (dtype_bytes(info->dtype) == 0) return corrupt("unknown dtype in the header");
  if (is_derived(info->dtype) && info->format_version < kDerivedVersion)
    return corrupt("a dtype that came with a later format version");
  if ((flags & ~kKnownFlags) != 0) return corrupt("reserved header flags are set");
  info->stored_raw = (flags & kFlagRaw) != 0;
  info->source_big_endian = (flags & kFlagBigEndian) != 0;
  info->has_sentinel = (flags & kFlagSentinel) != 0;
  info->pointwise = (flags & kFlagPointwise) != 0;
  info->frame_bytes = load_le<std::uint64_t>(frame + 16);
  info->bound = load_le<double>(frame + 24);
  info->step = load_le<double>(frame + 32);
  info->sentinel = load_le<std::uint64_t>(frame + 40);
  std::memcpy(info->parameters.data(), frame + 48, info->parameters.size());
  info->carried_bound = 0;
  if ((flags & kFlagCarried) != 0) {
    if (info->format_version < kCarriedVersion) return corrupt("a carried bound in a format that has none");
    info->carried_bound = carried_of_word(load_le<std::uint32_t>(frame + kCarriedAt));
    std::memset(info->parameters.data() + (kCarriedAt - 48), 0, 4);
    if (!std::isfinite(info->carried_bound) || !(info->carried_bound > info->bound) || info->pointwise)
      return corrupt("the carried bound is not finite or not above the bound");
  }
  info->shape = Shape{};
  info->shape.rank = rank;
  for (int i = 0; i < rank; ++i)
    info->shape.dims[static_cast<std::size_t>(i)] =
        load_le<std::uint64_t>(frame + kFixedHeaderBytes + 8 * static_cast<std::size_t>(i));
  if (!value_count(info->shape, &info->value_count)) return corrupt("the product of the dims is 2^61 or more");
  info->value_bytes = info->value_count * dtype_bytes(info->dtype);
  const FrameInfo base = is_derived(info->dtype) ? base_info(*info) : *info;
  const std::size_t width = dtype_bytes(base.dtype);
  if (!std::isfinite(info->bound) || info->bound < 0) return corrupt("the bound is negative or not finite");
  if (!std::isfinite(info->step) || info->step < 0) return corrupt("the step is negative or not finite");
  if (!info->has_sentinel && info->sentinel != 0) return corrupt("a sentinel without its flag");
  if (width < 8 && (info->sentinel >> (8 * width)) != 0) return corrupt("the sentinel is wider than the dtype");
  PYF_TRY(check_frame_codec(*info));
  return check_size(base);
}

}  // namespace

// Reflected polynomial 0xEDB88320, eight bytes at a time.
std::uint32_t header_crc(const std::uint8_t* header, std::size_t bytes) noexcept {
  using Table = std::array<std::uint32_t, 256>;
  static constexpr std::array<Table, 8> kTables = [] {
    std::array<Table, 8> tables{};
    for (std::uint32_t n = 0; n < 256; ++n) {
      std::uint32_t c = n;
      for (int k = 0; k < 8; ++k) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      tables[0][n] = c;
    }
    for (std::size_t t = 1; t < 8; ++t)
      for (std::size_t n = 0; n < 256; ++n) tables[t][n] = tables[0][tables[t - 1][n] & 0xFF] ^ (tables[t - 1][n] >> 8);
    return tables;
  }();
  std::uint32_t crc = 0xFFFFFFFFu;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = load_le<std::uint64_t>(header + i);
    if (i == kCrcAt / 8 * 8) word &= 0xFFFFFFFFu;
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xFF];
  }
  return ~crc;
}

bool value_count(const Shape& shape, std::uint64_t* count) noexcept {
  std::uint64_t product = 1;
  bool empty = false;
  for (int i = 0; i < shape.rank; ++i) {
    const std::uint64_t dim = shape.dims[static_cast<std::size_t>(i)];
    empty = empty || dim == 0;
    if (dim != 0 && (__builtin_mul_overflow(product, dim, &product) || product >= kMaxValueCount)) return false;
  }
  *count = empty ? 0 : product;
  return true;
}

void write_header(const FrameInfo& info, const registry::CodecRow& codec, std::uint8_t* out) noexcept {
  const std::size_t bytes = header_bytes(info.shape.rank);
  std::memset(out, 0, bytes);
  std::memcpy(out, kMagic, 4);
  const bool carried = info.carried_bound > info.bound;
  out[4] = version_of(codec, info.parameters);
  if (carried) out[4] = std::max(out[4], kCarriedVersion);
  if (is_derived(info.dtype)) out[4] = std::max(out[4], kDerivedVersion);
  out[5] = codec.needs_major;
  out[6] = codec.needs_minor;
  out[7] = static_cast<std::uint8_t>(bytes / 8);
  out[8] = info.codec;
  out[9] = static_cast<std::uint8_t>(info.dtype);
  out[10] = static_cast<std::uint8_t>((info.stored_raw ? kFlagRaw : 0) | (info.source_big_endian ? kFlagBigEndian : 0) |
                                      (info.has_sentinel ? kFlagSentinel : 0) | (info.pointwise ? kFlagPointwise : 0) |
                                      (carried ? kFlagCarried : 0));
  out[11] = static_cast<std::uint8_t>(info.shape.rank);
  store_le(out + 16, info.frame_bytes);
  store_le(out + 24, info.bound);
  store_le(out + 32, info.step);
  store_le(out + 40, info.has_sentinel ? info.sentinel : std::uint64_t{0});
  std::memcpy(out + 48, info.parameters.data(), info.parameters.size());
  if (carried) store_le(out + kCarriedAt, carried_word(info.carried_bound));
  for (int i = 0; i < info.shape.rank; ++i)
    store_le(out + kFixedHeaderBytes + 8 * static_cast<std::size_t>(i), info.shape.dims[static_cast<std::size_t>(i)]);
  store_le(out + kCrcAt, header_crc(out, bytes));
}

Status read_header(const std::uint8_t* frame, std::size_t available, FrameInfo* info) noexcept {
  if (available < 8)
    return fail(Code::truncated, "truncated frame: %zu bytes, a frame starts with at least 8", available);
  if (std::memcmp(frame, kMagic, 4) != 0)
    return fail(Code::corrupt, "not a pyfilter frame: starts with %02x %02x %02x %02x, expected 89 50 59 46", frame[0],
                frame[1], frame[2], frame[3]);
  info->format_version = frame[4];
  if (frame[4] == 0) return corrupt("format version 0, allowed: 1 or more");
  if (frame[4] > registry::kFormatVersion)
    return fail(Code::too_new,
                "frame format %d needs pyfilter >= %d.%d; this is pyfilter %s, which reads formats up to %d", frame[4],
                frame[5], frame[6], registry::kVersion, registry::kFormatVersion);
  if (is_records(frame, available))
    return fail(Code::corrupt, "a frame of records (a compound type) where one of values is expected");
  const std::size_t bytes = 8 * static_cast<std::size_t>(frame[7]);
  if (available < bytes)
    return fail(Code::truncated, "truncated frame: %zu bytes, the header alone has %zu", available, bytes);
  if (bytes < kFixedHeaderBytes || bytes > header_bytes(kMaxRank) || frame[11] > kMaxRank ||
      bytes != header_bytes(frame[11]))
    return corrupt("header size and rank disagree");
  if (load_le<std::uint32_t>(frame + kCrcAt) != header_crc(frame, bytes))
    return corrupt("the header's checksum does not match");
  info->header_bytes = bytes;
  return read_fields(frame, info);
}

}  // namespace pyfilter
