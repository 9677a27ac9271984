// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes records (records.hpp): columns are gathered, encoded one after the other, and scattered again.
// One column at a time takes less memory than all at once, and for chunks that fit the cache less time.
#include "core/records.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/api.hpp"
#include "core/base_values.hpp"
#include "core/byte_order.hpp"
#include "core/error_text.hpp"
#include "core/header.hpp"
#include "core/records_header.hpp"
#include "core/request.hpp"
#include "registry_table.hpp"

namespace pyfilter {
namespace {

// Where a column's bytes lie among those of the records.
struct Place {
  std::size_t record_bytes, offset, bytes;
  std::uint64_t count;
};

// Copies a column between records and an array of its own. `Bytes` is its size, 0 if that is not known here.
template <std::size_t Bytes, class Move>
void for_each_record(const Place& place, Move&& move) {
  const std::size_t bytes = Bytes != 0 ? Bytes : place.bytes;
  std::size_t in_records = place.offset, in_column = 0;
  for (std::uint64_t i = 0; i < place.count; ++i) {
    move(in_records, in_column, bytes);
    in_records += place.record_bytes;
    in_column += bytes;
  }
}

template <class Move>
void for_each_record(const Place& place, Move&& move) {
  switch (place.bytes) {
    case 1:
      return for_each_record<1>(place, move);
    case 2:
      return for_each_record<2>(place, move);
    case 4:
      return for_each_record<4>(place, move);
    case 8:
      return for_each_record<8>(place, move);
    case 12:
      return for_each_record<12>(place, move);
    case 16:
      return for_each_record<16>(place, move);
    default:
      return for_each_record<0>(place, move);
  }
}

void gather(const Place& place, bool has_values, const std::uint8_t* records, std::uint8_t* column) {
  if (has_values)
    return for_each_record(
        place, [&](std::size_t from, std::size_t to, auto bytes) { std::memcpy(column + to, records + from, bytes); });
  for (std::size_t k = 0; k < place.bytes; ++k)
    for (std::uint64_t i = 0; i < place.count; ++i)
      column[k * place.count + i] = records[i * place.record_bytes + place.offset + k];
}

void scatter(const Place& place, bool has_values, const std::uint8_t* column, std::uint8_t* records) {
  if (has_values)
    return for_each_record(
        place, [&](std::size_t to, std::size_t from, auto bytes) { std::memcpy(records + to, column + from, bytes); });
  for (std::size_t k = 0; k < place.bytes; ++k)
    for (std::uint64_t i = 0; i < place.count; ++i)
      records[i * place.record_bytes + place.offset + k] = column[k * place.count + i];
}

Status no_memory(std::size_t bytes) { return fail(Code::no_memory, "no memory for a column of %zu bytes", bytes); }

// Adds the number of a column to the text of a failure.
Status in_column(std::size_t number, const Status& status) {
  char place[32];
  std::snprintf(place, sizeof place, "column %zu", number);
  return fail_in(place, status);
}

// Dims of the records and, behind them, of a column's own. If they are more than codecs take, the first of its own are
// multiplied together while the records have any, then the first of all.
Shape with_dims(const Shape& records, const std::vector<std::uint64_t>& dims) {
  const std::size_t most = records.rank > 0 ? kMaxRank - 1 : kMaxRank;  // of its own
  const std::size_t merged = dims.size() > most ? dims.size() - most : 0;
  std::vector<std::uint64_t> own(dims.begin() + static_cast<std::ptrdiff_t>(merged), dims.end());
  for (std::size_t i = 0; i < merged; ++i) own[0] *= dims[i];
  Shape shape;
  const int extra = std::max(0, records.rank + static_cast<int>(own.size()) - kMaxRank);  // to multiply into the first
  for (int i = 0; i < records.rank; ++i) {
    const std::uint64_t dim = records.dims[static_cast<std::size_t>(i)];
    if (i <= extra && i > 0)
      shape.dims[0] *= dim;
    else
      shape.dims[static_cast<std::size_t>(shape.rank++)] = dim;
  }
  for (const std::uint64_t dim : own) shape.dims[static_cast<std::size_t>(shape.rank++)] = dim;
  return shape;
}

// The old frames of one column, from old containers whose columns are the same.
class OldColumns {
 public:
  OldColumns(const Records& records, const OldFrames& old) {
    for (std::size_t i = 0; i < old.cached_count; ++i) add(records, old.cached[i]);
    cached_ = opened_.size();
    if (old.similar.bytes != nullptr) add(records, old.similar);
  }

  [[nodiscard]] OldFrames of(std::size_t number) const {
    OldFrames found;
    for (std::size_t i = 0; i < opened_.size(); ++i) {
      const RecordsInfo::Part& part = opened_[i].info.parts[number];
      const FrameBytes frame{static_cast<const std::uint8_t*>(opened_[i].frame.bytes) + part.offset,
                             static_cast<std::size_t>(part.size)};
      if (i < cached_)
        found.cached[found.cached_count++] = frame;
      else
        found.similar = frame;
    }
    return found;
  }

 private:
  struct Opened {
    FrameBytes frame;
    RecordsInfo info;
  };

  void add(const Records& records, const FrameBytes& frame) {
    Opened opened{frame, {}};
    if (!read_records(frame.bytes, frame.size, &opened.info).ok() || opened.info.frame_bytes != frame.size) return;
    const auto& parts = opened.info.parts;
    const bool same = std::equal(parts.begin(), parts.end(), records.columns.begin(), records.columns.end(),
                                 [](const RecordsInfo::Part& part, const Column& column) {
                                   return part.bytes == column.bytes && part.has_values == column.has_values;
                                 });
    if (same && opened.info.value_bytes == records_value_bytes(records)) opened_.push_back(std::move(opened));
  }

  std::vector<Opened> opened_;
  std::size_t cached_ = 0;
};

// Whether a column's frame is of the type and size that the container says.
Status check_column(const RecordsInfo& info, const RecordsInfo::Part& part, const FrameInfo& column) {
  if (column.frame_bytes != part.size)
    return fail(Code::corrupt, "corrupt frame: %llu bytes, the container has %llu for it",
                static_cast<unsigned long long>(column.frame_bytes), static_cast<unsigned long long>(part.size));
  if (!part.has_values && column.dtype != Dtype::u8)
    return fail(Code::corrupt, "corrupt frame: bytes of dtype %s", dtype_name(column.dtype));
  if (part.bytes % dtype_bytes(column.dtype) != 0 || column.value_bytes != info.record_count * part.bytes)
    return fail(Code::corrupt, "corrupt frame: %llu bytes of dtype %s, %llu records have %u bytes each",
                static_cast<unsigned long long>(column.value_bytes), dtype_name(column.dtype),
                static_cast<unsigned long long>(info.record_count), part.bytes);
  return kOk;
}

}  // namespace

Column value_column(const Shape& records, const Request& request, const std::vector<std::uint64_t>& dims) {
  Column column;
  column.has_values = true;
  column.request = request;
  column.request.shape = with_dims(records, dims);
  std::uint64_t bytes = dtype_bytes(request.dtype);
  for (const std::uint64_t dim : dims)
    if (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > UINT32_MAX) bytes = 0;
  column.bytes = static_cast<std::uint32_t>(bytes);
  return column;
}

Column byte_column(const Shape& records, std::uint32_t bytes, const std::array<std::uint8_t, kParameterBytes>& effort) {
  std::uint64_t count = 0;
  Column column;
  column.bytes = bytes;
  column.request.codec = registry::kExactCodec;
  column.request.dtype = Dtype::u8;
  column.request.parameters = effort;
  column.request.shape.rank = 2;
  column.request.shape.dims[0] = bytes;
  column.request.shape.dims[1] = value_count(records, &count) ? count : UINT64_MAX;
  return column;
}

std::size_t record_bytes(const Records& records) noexcept {
  std::size_t bytes = 0;
  for (const Column& column : records.columns) bytes += column.bytes;
  return bytes;
}

std::size_t records_value_bytes(const Records& records) noexcept {
  std::uint64_t count = 0, bytes = 0;
  if (!value_count(records.shape, &count) || __builtin_mul_overflow(count, record_bytes(records), &bytes)) return 0;
  return static_cast<std::size_t>(bytes);
}

Status check_records(const Records& records) noexcept {
  if (records.columns.empty() || records.columns.size() > kMaxColumns)
    return fail(Code::unsupported, "records of %zu columns, allowed: 1 to %zu", records.columns.size(), kMaxColumns);
  std::uint64_t count = 0, bytes = 0;
  if (records.shape.rank < 0 || records.shape.rank > kMaxRank || !value_count(records.shape, &count))
    return fail(Code::unsupported, "the product of the dims is 2^61 or more");
  if (__builtin_mul_overflow(count, record_bytes(records), &bytes) || bytes > kMaxChunkBytes)
    return fail(Code::unsupported, "%llu records of %zu bytes, at most %llu bytes are allowed: use smaller chunks",
                static_cast<unsigned long long>(count), record_bytes(records),
                static_cast<unsigned long long>(kMaxChunkBytes));
  for (std::size_t i = 0; i < records.columns.size(); ++i) {
    const Column& column = records.columns[i];
    std::uint64_t values = 0;
    if (column.bytes == 0) return fail(Code::unsupported, "column %zu has no bytes, or 2^32 and more", i);
    PYF_TRY(in_column(i, check_request(column.request)));
    if (!value_count(column.request.shape, &values) ||
        values * dtype_bytes(column.request.dtype) != count * column.bytes)
      return fail(Code::invalid_argument, "column %zu: its shape is not that of the records", i);
  }
  return kOk;
}

std::size_t max_records_bytes(const Records& records) noexcept {
  std::size_t bytes = records_table_at(records.shape.rank) + kTableEntryBytes * records.columns.size();
  for (const Column& column : records.columns) {
    const std::size_t most = max_frame_bytes(column.request);
    if (most == 0) return 0;
    bytes += padded(most);
  }
  return bytes;
}

bool may_move_values(const Records& records) noexcept {
  return std::any_of(records.columns.begin(), records.columns.end(),
                     [](const Column& column) { return may_move_values(column.request); });
}

Status encode_records(const Records& records, const OldFrames& old, const void* values, std::size_t value_bytes,
                      void* frame, std::size_t capacity, std::size_t* frame_bytes) {
  PYF_TRY(check_records(records));
  RecordsInfo info;
  info.shape = records.shape;
  info.record_bytes = record_bytes(records);
  if (!value_count(records.shape, &info.record_count) || value_bytes != records_value_bytes(records))
    return fail(Code::invalid_argument, "%zu bytes of values, the records have %zu", value_bytes,
                records_value_bytes(records));
  if (capacity < max_records_bytes(records))
    return fail(Code::no_space, "a buffer of %zu bytes for the frame, %zu may be needed", capacity,
                max_records_bytes(records));
  std::uint32_t widest = 0;
  for (const Column& column : records.columns) widest = std::max(widest, column.bytes);
  const auto gathered = base_memory(static_cast<std::size_t>(info.record_count) * widest);
  if (!gathered) return no_memory(static_cast<std::size_t>(info.record_count) * widest);
  const OldColumns before(records, old);
  auto* const out = static_cast<std::uint8_t*>(frame);
  std::size_t at = records_table_at(records.shape.rank) + kTableEntryBytes * records.columns.size(), offset = 0;
  for (std::size_t i = 0; i < records.columns.size(); ++i) {
    const Column& column = records.columns[i];
    const std::size_t bytes = static_cast<std::size_t>(info.record_count) * column.bytes;
    const Place place{static_cast<std::size_t>(info.record_bytes), offset, column.bytes, info.record_count};
    gather(place, column.has_values, static_cast<const std::uint8_t*>(values), gathered.get());
    if (needs_swap(column.request.source_big_endian))
      swap_values(gathered.get(), gathered.get(), bytes, dtype_bytes(base_dtype(column.request.dtype)));
    const std::size_t room = padded(max_frame_bytes(column.request));  // other columns need theirs
    std::size_t made = 0;
    PYF_TRY(
        in_column(i, encode_beside_old(column.request, before.of(i), gathered.get(), bytes, out + at, room, &made)));
    std::memset(out + at + made, 0, padded(made) - made);
    info.parts.push_back({column.bytes, column.has_values, at, made});
    at += padded(made);
    offset += column.bytes;
  }
  info.frame_bytes = at;
  write_records_header(info, out);
  *frame_bytes = at;
  return kOk;
}

Status read_column(const void* frame, const RecordsInfo& info, std::size_t number, FrameInfo* column) noexcept {
  const RecordsInfo::Part& part = info.parts[number];
  const auto* const bytes = static_cast<const std::uint8_t*>(frame);
  PYF_TRY(in_column(number, frame_info(bytes + part.offset, static_cast<std::size_t>(part.size), column)));
  return in_column(number, check_column(info, part, *column));
}

Status decode_records(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes) {
  RecordsInfo info;
  PYF_TRY(read_records(frame, frame_bytes, &info));
  PYF_TRY(check_frame_bytes(info.frame_bytes, frame_bytes));
  if (info.value_bytes != value_bytes)
    return fail(Code::invalid_argument, "a buffer of %zu bytes for records, exactly %llu are decoded", value_bytes,
                static_cast<unsigned long long>(info.value_bytes));
  PYF_TRY(check_padding(frame, info));
  std::vector<FrameInfo> columns(info.parts.size());
  std::uint32_t widest = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    PYF_TRY(read_column(frame, info, i, &columns[i]));
    widest = std::max(widest, info.parts[i].bytes);
  }
  const auto decoded = base_memory(static_cast<std::size_t>(info.record_count) * widest);
  if (!decoded) return no_memory(static_cast<std::size_t>(info.record_count) * widest);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const RecordsInfo::Part& part = info.parts[i];
    const auto bytes = static_cast<std::size_t>(columns[i].value_bytes);
    PYF_TRY(in_column(i, decode(static_cast<const std::uint8_t*>(frame) + part.offset,
                                static_cast<std::size_t>(part.size), decoded.get(), bytes)));
    if (needs_swap(columns[i].source_big_endian))
      swap_values(decoded.get(), decoded.get(), bytes, dtype_bytes(base_dtype(columns[i].dtype)));
    const Place place{static_cast<std::size_t>(info.record_bytes), offset, part.bytes, info.record_count};
    scatter(place, part.has_values, decoded.get(), static_cast<std::uint8_t*>(values));
    offset += part.bytes;
  }
  return kOk;
}

}  // namespace pyfilter
