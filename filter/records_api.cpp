// SPDX-License-Identifier: BSD-3-Clause
// C ABI of records (c_api.h): checks arguments, translates structures, and calls core/records.hpp.
#include <algorithm>
#include <vector>

#include "core/error_text.hpp"
#include "core/records.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/guard.hpp"

namespace pyfilter::filter {
namespace {

static_assert(sizeof(pyf_records) == 40 && sizeof(pyf_records_info) == 304 && sizeof(pyf_column) == 24,
              "the ABI that ctypes mirrors");

Status need(const void* pointer, std::size_t bytes, const char* name) {
  return pointer != nullptr || bytes == 0 ? kOk : fail(Code::invalid_argument, "%s is NULL", name);
}

template <class Struct>
Status check_struct(const Struct* given, const char* name) {
  PYF_TRY(need(given, 1, name));
  if (given->struct_bytes == sizeof *given) return kOk;
  return fail(Code::invalid_argument, "%s.struct_bytes is %u, this library's is %zu: header and library do not match",
              name, given->struct_bytes, sizeof *given);
}

// The request of a column, which has the dims of a field that is an array, without a shape.
Status to_column(const pyf_request& from, const Shape& shape, std::uint32_t bytes, Column* column) {
  Request request;
  PYF_TRY(to_request(&from, &request));
  std::vector<std::uint64_t> dims(request.shape.dims.begin(), request.shape.dims.begin() + request.shape.rank);
  if (from.dtype == 0) {
    *column = byte_column(shape, bytes, request.parameters);
    return kOk;
  }
  *column = value_column(shape, request, dims);
  if (column->bytes == bytes) return kOk;
  return fail(Code::invalid_argument, "a column of %u bytes, its dtype and dims need %u", bytes, column->bytes);
}

Status to_records(const pyf_records* from, Records* to) {
  PYF_TRY(check_struct(from, "records"));
  if (from->reserved != 0) return fail(Code::invalid_argument, "records.reserved must be zero");
  if (from->rank < 0 || from->rank > kMaxRank)
    return fail(Code::invalid_argument, "records.rank is %d, allowed: 0 to %d", from->rank, kMaxRank);
  if (from->columns > kMaxColumns)
    return fail(Code::unsupported, "records of %u columns, allowed: 1 to %zu", from->columns, kMaxColumns);
  PYF_TRY(need(from->dims, static_cast<std::size_t>(from->rank), "records.dims"));
  PYF_TRY(need(from->requests, from->columns, "records.requests"));
  PYF_TRY(need(from->bytes, from->columns, "records.bytes"));
  to->shape.rank = from->rank;
  std::copy_n(from->dims, from->rank, to->shape.dims.begin());
  to->columns.resize(from->columns);
  for (std::uint32_t i = 0; i < from->columns; ++i)
    PYF_TRY(to_column(from->requests[i], to->shape, from->bytes[i], &to->columns[i]));
  return check_records(*to);
}

int call(Status status) { return static_cast<int>(status.code); }

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

extern "C" {

size_t pyf_max_records_bytes(const pyf_records* records) {
  size_t bytes = 0;
  const Status status = guarded([&] {
    Records checked;
    PYF_TRY(to_records(records, &checked));
    bytes = max_records_bytes(checked);
    return bytes != 0
               ? kOk
               : fail(Code::unsupported, "a frame of this shape may be too large for memory: use smaller chunks");
  });
  return status.ok() ? bytes : 0;
}

int pyf_encode_records(const pyf_records* records, const void* values, size_t value_bytes, const void* old,
                       size_t old_bytes, void* frame, size_t frame_capacity, size_t* frame_bytes) {
  return call(guarded([&] {
    Records checked;
    PYF_TRY(to_records(records, &checked));
    PYF_TRY(need(values, value_bytes, "values"));
    PYF_TRY(need(frame, 1, "frame"));
    PYF_TRY(need(frame_bytes, 1, "frame_bytes"));
    OldFrames frames;
    if (old != nullptr) frames.cached[frames.cached_count++] = {old, old_bytes};
    return encode_records(checked, frames, values, value_bytes, frame, frame_capacity, frame_bytes);
  }));
}

int pyf_read_records(const void* frame, size_t available, pyf_records_info* info, pyf_column* columns,
                     size_t capacity) {
  return call(guarded([&] {
    RecordsInfo found;
    PYF_TRY(check_struct(info, "info"));
    PYF_TRY(need(frame, 1, "frame"));
    PYF_TRY(need(columns, capacity, "columns"));
    PYF_TRY(read_records(frame, available, &found));
    *info = {};
    info->struct_bytes = sizeof *info;
    info->columns = static_cast<std::uint32_t>(found.parts.size());
    info->record_bytes = found.record_bytes;
    info->record_count = found.record_count;
    info->value_bytes = found.value_bytes;
    info->frame_bytes = found.frame_bytes;
    info->rank = found.shape.rank;
    std::copy_n(found.shape.dims.begin(), found.shape.rank, info->dims);
    for (std::size_t i = 0; i < std::min(capacity, found.parts.size()); ++i) {
      const RecordsInfo::Part& part = found.parts[i];
      columns[i] = {part.offset, part.size, part.bytes, part.has_values ? 1u : 0u};
    }
    return kOk;
  }));
}

int pyf_decode_records(const void* frame, size_t frame_bytes, void* values, size_t value_bytes) {
  return call(guarded([&] {
    PYF_TRY(need(frame, 1, "frame"));
    PYF_TRY(need(values, value_bytes, "values"));
    return decode_records(frame, frame_bytes, values, value_bytes);
  }));
}
}
