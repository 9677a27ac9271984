// SPDX-License-Identifier: BSD-3-Clause
// Records (compound types; docs/format.md, section 17): a frame of a column for each field, in one container. Columns
// are in the order of their bytes in the record, and every byte of a record belongs to one column, padding too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.hpp"
#include "core/types.hpp"
#include "core/updated_chunk.hpp"

namespace pyfilter {

inline constexpr std::uint8_t kRecordsVersion = 9;  // the format version that brought records
inline constexpr std::size_t kMaxColumns = 4096;

struct Column {
  std::uint32_t bytes = 0;  // of a record
  bool has_values = false;  // else: bytes of no type that codecs know, as planes: first byte 0 of all records
  Request request;          // the column as an array of its own, in the host's byte order
};

// What to encode and how.
struct Records {
  Shape shape;
  std::vector<Column> columns;
};

// Makes a column of values: `request` lacks the shape. A field that is an array has dims of its own, behind those of
// the records. Leading dims are multiplied together if there are too many.
Column value_column(const Shape& records, const Request& request, const std::vector<std::uint64_t>& dims);
// Makes a column of `bytes` bytes that come back bit for bit, with parameters of the exact codec.
Column byte_column(const Shape& records, std::uint32_t bytes, const std::array<std::uint8_t, kParameterBytes>& effort);

// Checks every column, and that the columns make up records.
Status check_records(const Records& records) noexcept;
std::size_t record_bytes(const Records& records) noexcept;
// Largest size of a frame, and the size of its values; 0 on overflow. check_records() first.
std::size_t max_records_bytes(const Records& records) noexcept;
std::size_t records_value_bytes(const Records& records) noexcept;

// Whether encoding records again may move decoded values (updated_chunk.hpp).
bool may_move_values(const Records& records) noexcept;

// Encodes records, in the byte order of their file. Values decoded from `old` keep their error.
Status encode_records(const Records& records, const OldFrames& old, const void* values, std::size_t value_bytes,
                      void* frame, std::size_t capacity, std::size_t* frame_bytes);

// A container as its header describes it.
struct RecordsInfo {
  struct Part {
    std::uint32_t bytes = 0;  // of a record
    bool has_values = false;
    std::uint64_t offset = 0, size = 0;  // of the column's frame
  };
  Shape shape;
  std::uint64_t record_bytes = 0, record_count = 0, value_bytes = 0, frame_bytes = 0;
  std::vector<Part> parts;
};

// Whether the bytes begin as a container of this format does.
bool is_records(const void* frame, std::size_t available) noexcept;
// Reads and checks header and table; `available` may be less than the frame.
Status read_records(const void* frame, std::size_t available, RecordsInfo* info);
// Reads and checks the header of a column's frame. `frame` holds the whole container.
Status read_column(const void* frame, const RecordsInfo& info, std::size_t number, FrameInfo* column) noexcept;
// Decodes a whole frame: records in the byte order of their file.
Status decode_records(const void* frame, std::size_t frame_bytes, void* values, std::size_t value_bytes);

}  // namespace pyfilter
