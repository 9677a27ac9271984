// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes header and table of a container of records (records_header.hpp).
#include "core/records_header.hpp"

#include <cstring>

#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/wire.hpp"
#include "registry_table.hpp"

namespace pyfilter {
namespace {

constexpr std::uint8_t kNeedsMajor = 0, kNeedsMinor = 1;  // the first release that reads records
constexpr std::size_t kCrcAt = 12;

Status corrupt(const char* what) { return fail(Code::corrupt, "corrupt frame of records: %s", what); }

// Reads the fields once the checksum matches.
Status read_fields(const std::uint8_t* frame, std::uint32_t columns, RecordsInfo* info) {
  info->shape = Shape{};
  info->shape.rank = frame[11];
  for (int i = 0; i < info->shape.rank; ++i)
    info->shape.dims[static_cast<std::size_t>(i)] =
        load_le<std::uint64_t>(frame + 40 + 8 * static_cast<std::size_t>(i));
  info->frame_bytes = load_le<std::uint64_t>(frame + 16);
  info->record_bytes = load_le<std::uint64_t>(frame + 24);
  if (frame[9] != 0 || frame[10] != 0 || load_le<std::uint32_t>(frame + 36) != 0)
    return corrupt("a reserved field is not zero");
  if (!value_count(info->shape, &info->record_count)) return corrupt("the product of the dims is 2^61 or more");
  if (__builtin_mul_overflow(info->record_count, info->record_bytes, &info->value_bytes) ||
      info->value_bytes >= kMaxValueCount)
    return corrupt("records of 2^61 bytes or more");
  const std::uint8_t* entry = frame + records_table_at(info->shape.rank);
  std::uint64_t at = records_table_at(info->shape.rank) + kTableEntryBytes * columns, bytes = 0;
  info->parts.clear();
  info->parts.reserve(columns);
  for (std::uint32_t i = 0; i < columns; ++i, entry += kTableEntryBytes) {
    const RecordsInfo::Part part{load_le<std::uint32_t>(entry), entry[4] == 0, at, load_le<std::uint64_t>(entry + 8)};
    if (part.bytes == 0) return corrupt("a column without bytes");
    if (entry[4] > 1 || entry[5] != 0 || entry[6] != 0 || entry[7] != 0)
      return corrupt("an unknown kind of column, or a reserved field that is not zero");
    if (part.size > info->frame_bytes - at) return corrupt("a column reaches beyond the frame");
    bytes += part.bytes;
    at += padded(part.size);
    if (at > info->frame_bytes) return corrupt("a column reaches beyond the frame");
    info->parts.push_back(part);
  }
  if (bytes != info->record_bytes) return corrupt("the columns do not make up a record");
  if (at != info->frame_bytes) return corrupt("the columns do not fill the frame");
  return kOk;
}

}  // namespace

bool is_records(const void* frame, std::size_t available) noexcept {
  const auto* const bytes = static_cast<const std::uint8_t*>(frame);
  return available > 8 && std::memcmp(bytes, kMagic, sizeof kMagic) == 0 && bytes[4] >= kRecordsVersion &&
         bytes[4] <= registry::kFormatVersion && bytes[8] == 0;
}

void write_records_header(const RecordsInfo& info, std::uint8_t* out) noexcept {
  const std::size_t table = records_table_at(info.shape.rank), bytes = table + kTableEntryBytes * info.parts.size();
  std::memset(out, 0, bytes);
  std::memcpy(out, kMagic, sizeof kMagic);
  out[4] = kRecordsVersion;
  out[5] = kNeedsMajor;
  out[6] = kNeedsMinor;
  out[7] = static_cast<std::uint8_t>(table / 8);
  out[11] = static_cast<std::uint8_t>(info.shape.rank);
  store_le(out + 16, info.frame_bytes);
  store_le(out + 24, info.record_bytes);
  store_le(out + 32, static_cast<std::uint32_t>(info.parts.size()));
  for (int i = 0; i < info.shape.rank; ++i)
    store_le(out + 40 + 8 * static_cast<std::size_t>(i), info.shape.dims[static_cast<std::size_t>(i)]);
  std::uint8_t* entry = out + table;
  for (const RecordsInfo::Part& part : info.parts) {
    store_le(entry, part.bytes);
    entry[4] = part.has_values ? 0 : 1;
    store_le(entry + 8, part.size);
    entry += kTableEntryBytes;
  }
  store_le(out + kCrcAt, header_crc(out, bytes));
}

Status read_records(const void* frame, std::size_t available, RecordsInfo* info) {
  const auto* const bytes = static_cast<const std::uint8_t*>(frame);
  if (!is_records(frame, available)) {
    FrameInfo other;
    PYF_TRY(read_header(bytes, available, &other));
    return fail(Code::corrupt, "a frame of values where one of records (a compound type) is expected");
  }
  const std::size_t table = 8 * static_cast<std::size_t>(bytes[7]);
  if (available < table || available < 40)
    return fail(Code::truncated, "truncated frame: %zu bytes, the header alone has %zu", available, table);
  if (bytes[11] > kMaxRank || table != records_table_at(bytes[11])) return corrupt("header size and rank disagree");
  const auto columns = load_le<std::uint32_t>(bytes + 32);
  if (columns == 0 || columns > kMaxColumns) return corrupt("no columns, or more than 4096");
  const std::size_t head = table + kTableEntryBytes * columns;
  if (available < head)
    return fail(Code::truncated, "truncated frame: %zu bytes, header and table alone have %zu", available, head);
  if (load_le<std::uint32_t>(bytes + kCrcAt) != header_crc(bytes, head))
    return corrupt("the header's checksum does not match");
  if (load_le<std::uint64_t>(bytes + 16) >= kMaxValueCount) return corrupt("a frame of 2^61 bytes or more");
  if (load_le<std::uint64_t>(bytes + 16) < head) return corrupt("the frame is shorter than its header");
  return read_fields(bytes, columns, info);
}

Status check_padding(const void* frame, const RecordsInfo& info) noexcept {
  const auto* const bytes = static_cast<const std::uint8_t*>(frame);
  for (const RecordsInfo::Part& part : info.parts)
    for (std::uint64_t at = part.offset + part.size; at < part.offset + padded(part.size); ++at)
      if (bytes[at] != 0) return corrupt("bytes between columns are not zero");
  return kOk;
}

}  // namespace pyfilter
