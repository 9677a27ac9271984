// SPDX-License-Identifier: BSD-3-Clause
// Chunks of records to frames and back (record_filter.hpp).
#include "filter/record_filter.hpp"

#include <vector>

#include "core/error_text.hpp"
#include "core/records.hpp"
#include "filter/buffer.hpp"
#include "filter/decoded_chunks.hpp"
#include "filter/record_words.hpp"

namespace pyfilter::filter {
namespace {

// Fields whose decoded values may move: a chunk is recognised by them.
std::vector<SampledPart> sampled_parts(const Records& records) {
  std::vector<SampledPart> parts;
  std::size_t offset = 0;
  for (const Column& column : records.columns) {
    if (may_move_values(column.request)) parts.push_back({offset, dtype_bytes(base_dtype(column.request.dtype))});
    offset += column.bytes;
  }
  return parts;
}

// Checks that a frame has the dataset's columns, before memory is allocated for its values.
Status check_columns(const Records& records, const RecordsInfo& info, const void* frame) {
  bool same = info.parts.size() == records.columns.size() && info.value_bytes == records_value_bytes(records);
  for (std::size_t i = 0; same && i < info.parts.size(); ++i) {
    const Column& column = records.columns[i];
    FrameInfo own;
    PYF_TRY(read_column(frame, info, i, &own));
    same = info.parts[i].bytes == column.bytes && info.parts[i].has_values == column.has_values &&
           own.dtype == column.request.dtype && own.source_big_endian == column.request.source_big_endian;
  }
  if (same) return kOk;
  return fail(
      Code::corrupt,
      "corrupt chunk: its frame holds %llu bytes in records of %llu, the dataset's chunks have %zu in records of "
      "%zu, or their fields differ",
      static_cast<unsigned long long>(info.value_bytes), static_cast<unsigned long long>(info.record_bytes),
      records_value_bytes(records), record_bytes(records));
}

}  // namespace

Status encode_records_chunk(const Hdf5& hdf5, const unsigned* words, std::size_t word_count, Chunk& chunk) {
  RecordColumns columns;
  PYF_TRY(parse_stored_records(words, word_count, &columns));
  const Records& records = columns.records;
  PYF_TRY(check_records(records));
  if (chunk.bytes != records_value_bytes(records))
    return fail(Code::invalid_argument, "HDF5 gave a chunk of %zu bytes, the stored cd_values say %zu", chunk.bytes,
                records_value_bytes(records));
  Origins origins;
  if (const auto parts = sampled_parts(records); !parts.empty())
    origins = find_origins({words, word_count, *chunk.buffer, chunk.bytes, record_bytes(records), parts});
  const std::size_t capacity = max_records_bytes(records);
  return encode_in_place(hdf5, capacity, chunk, [&](void* frame, std::size_t* frame_bytes) {
    return encode_records(records, frames_of(origins), *chunk.buffer, chunk.bytes, frame, capacity, frame_bytes);
  });
}

Status decode_records_chunk(const Hdf5& hdf5, const unsigned* words, std::size_t word_count, Chunk& chunk) {
  RecordColumns columns;
  RecordsInfo info;
  PYF_TRY(parse_stored_records(words, word_count, &columns));
  PYF_TRY(read_records(*chunk.buffer, chunk.bytes, &info));
  const Records& records = columns.records;
  const std::size_t bytes = records_value_bytes(records);
  PYF_TRY(check_chunk_bytes(info.frame_bytes, chunk));
  PYF_TRY(check_columns(records, info, *chunk.buffer));
  ChunkBuffer values(hdf5, bytes);
  if (values.data() == nullptr) return fail(Code::no_memory, "no memory for %zu bytes of records", bytes);
  values.expect_all();
  PYF_TRY(decode_records(*chunk.buffer, chunk.bytes, values.data(), bytes));
  if (const auto parts = sampled_parts(records); !parts.empty())
    remember_decoded({words, word_count, values.data(), bytes, record_bytes(records), parts}, *chunk.buffer,
                     chunk.bytes);
  values.replace(chunk.buffer, chunk.buffer_bytes);
  chunk.bytes = bytes;
  return kOk;
}

}  // namespace pyfilter::filter
