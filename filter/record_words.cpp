// SPDX-License-Identifier: BSD-3-Clause
// Parses and writes cd_values of records (record_words.hpp).
#include "filter/record_words.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "filter/cd_values.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

constexpr unsigned kLayoutVersion = 2;
constexpr unsigned kStamp = 0x32465950;  // "PYF2"
constexpr std::size_t kMostNameBytes = 0xFFFF;
constexpr unsigned kBigEndian = 1u << 8, kHasFill = 1u << 9, kWithoutZeros = 1u << 10, kArray = 1u << 11,
                   kKnownBits = 0xFFFF0FFFu;

// Takes words one after the other; past the end they are 0.
class Reader {
 public:
  Reader(const unsigned* words, std::size_t count) : next_(words), left_(count) {}

  unsigned word() {
    if (left_ == 0) {
      complete_ = false;
      return 0;
    }
    --left_;
    return *next_++;
  }
  std::uint64_t wide() {
    const std::uint64_t low = word();
    return std::uint64_t{word()} << 32 | low;
  }
  // `bytes` bytes, the lowest of a word first, and zeros up to a whole word.
  std::string text(std::size_t bytes) {
    std::string found;
    for (std::size_t at = 0; at < bytes && complete_; at += 4) {
      const unsigned four = word();
      for (std::size_t k = 0; k < 4; ++k) {
        const auto byte = static_cast<char>(four >> 8 * k & 0xFF);
        if (at + k < bytes)
          found.push_back(byte);
        else
          complete_ = complete_ && byte == 0;
      }
    }
    return found;
  }
  [[nodiscard]] std::size_t left() const { return left_; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  const unsigned* next_;
  std::size_t left_;
  bool complete_ = true;
};

Status malformed(const char* what) { return fail(Code::corrupt, "cd_values of records: %s", what); }

// The settings, which both forms begin with. Codecs are not checked.
Status read_settings(Reader& reader, RecordSettings* settings) {
  *settings = {};
  const unsigned count = reader.word(), others = reader.word();
  set_parameters(others, settings->others);
  if (count > kMaxRecordWords) return malformed("more fields than words");
  for (unsigned i = 0; i < count; ++i) {
    FieldSettings field;
    const unsigned head = reader.word();
    field.request.codec = static_cast<std::uint8_t>(head & 0xFF);
    field.request.bound_mode = static_cast<Bound>(head >> 8 & 0xFF);
    field.request.bound = std::bit_cast<double>(reader.wide());
    set_parameters(reader.word(), field.request.parameters);
    field.name = reader.text(head >> 16);
    if (!reader.complete()) return malformed("they end within a field, or a name is not padded with zeros");
    if (field.name.empty()) return malformed("a field without a name");
    settings->fields.push_back(std::move(field));
  }
  return reader.complete() ? kOk : malformed("too few words");
}

// Checks a field's codec and bound, as cd_values of a dataset of this one type are checked.
Status check_field(const FieldSettings& field) {
  Request checked;
  const Words words = user_words(field.request);
  PYF_TRY(in_field(field.name, parse_words(words.values.data(), words.count, &checked)));
  if (field.request.bound_mode == Bound::none && std::bit_cast<std::uint64_t>(field.request.bound) != 0)
    return in_field(field.name, fail(Code::invalid_argument, "a bound of %g without a mode", field.request.bound));
  return kOk;
}

std::size_t fill_words(Dtype dtype) { return dtype_bytes(base_dtype(dtype)) > 4 ? 2 : 1; }

Status read_value_column(Reader& reader, unsigned head, const RecordSettings& settings, const Shape& shape,
                         Column* column) {
  const unsigned field = head >> 16;
  Request request;
  request.codec = registry::kExactCodec;
  request.parameters = settings.others;
  if (field != 0) request = settings.fields[field - 1].request;
  request.dtype = static_cast<Dtype>(head & 0xFF);
  if (dtype_bytes(request.dtype) == 0) return malformed("an unknown dtype");
  request.source_big_endian = (head & kBigEndian) != 0;
  request.without_zeros = (head & kWithoutZeros) != 0;
  request.has_fill = true;  // 0 if the words have none: HDF5 then pads edge chunks with zeros
  std::vector<std::uint64_t> dims;
  if ((head & kArray) != 0) {
    const unsigned rank = reader.word();
    if (rank == 0 || rank > static_cast<unsigned>(kMaxRank)) return malformed("an array of rank 0, or above 32");
    for (unsigned i = 0; i < rank; ++i) dims.push_back(reader.word());
  }
  if ((head & kHasFill) != 0) {
    const auto part = [&] { return fill_words(request.dtype) == 2 ? reader.wide() : reader.word(); };
    request.fill = part();
    if (is_complex(request.dtype)) request.fill_imaginary = part();
    const std::size_t bits = 8 * dtype_bytes(base_dtype(request.dtype));
    if (bits < 64 && (request.fill | request.fill_imaginary) >> bits != 0)
      return malformed("a fill value that does not fit its dtype");
  }
  *column = value_column(shape, request, dims);
  return kOk;
}

Status read_columns(Reader& reader, const RecordSettings& settings, RecordColumns* columns) {
  const unsigned head = reader.word(), rank = head & 0xFF, count = head >> 16;
  if (rank > static_cast<unsigned>(kMaxRank) || count == 0 || (head & 0xFF00) != 0 || count > reader.left())
    return malformed("the rank is above 32, there are no columns, or too few words");
  Records& records = columns->records;
  records.shape.rank = static_cast<int>(rank);
  for (unsigned i = 0; i < rank; ++i) {
    records.shape.dims[i] = reader.wide();
    if (records.shape.dims[i] == 0) return malformed("a chunk dimension of 0");
  }
  for (unsigned i = 0; i < count; ++i) {
    const unsigned word = reader.word();
    if ((word & ~kKnownBits) != 0 || word >> 16 > settings.fields.size()) return malformed("a column's word");
    Column column;
    if ((word & 0xFF) != 0)
      PYF_TRY(read_value_column(reader, word, settings, records.shape, &column));
    else if (word != 0)
      return malformed("bytes with a field's settings");
    else
      column = byte_column(records.shape, reader.word(), settings.others);
    if (column.bytes == 0) return malformed("a column without bytes, or of 2^32 and more");
    records.columns.push_back(std::move(column));
    columns->fields.push_back(word >> 16);
  }
  if (!reader.complete() || reader.left() != 0) return malformed("too few words, or too many");
  if (records_value_bytes(records) == 0) return malformed("chunks of 2^64 bytes or more");
  return kOk;
}

void put_wide(std::vector<unsigned>* words, std::uint64_t value) {
  words->push_back(static_cast<unsigned>(value));
  words->push_back(static_cast<unsigned>(value >> 32));
}

void put_text(std::vector<unsigned>* words, const std::string& text) {
  for (std::size_t at = 0; at < text.size(); at += 4) {
    unsigned word = 0;
    for (std::size_t k = 0; k < 4 && at + k < text.size(); ++k)
      word |= unsigned{static_cast<unsigned char>(text[at + k])} << 8 * k;
    words->push_back(word);
  }
}

// Dims of a column's own, behind those of the records. Its shape may have fewer dims of the records.
std::vector<std::uint64_t> own_dims(const Records& records, const Column& column) {
  std::vector<std::uint64_t> dims;
  std::uint64_t bytes = dtype_bytes(column.request.dtype);
  const Shape& shape = column.request.shape;
  const bool is_array = shape.rank > records.shape.rank || bytes != column.bytes;
  for (int i = shape.rank; is_array && i > 0 && (bytes != column.bytes || i > records.shape.rank); --i) {
    dims.insert(dims.begin(), shape.dims[static_cast<std::size_t>(i - 1)]);
    bytes *= dims.front();
  }
  return dims;
}

void put_column(const Records& records, const Column& column, unsigned field, std::vector<unsigned>* words) {
  if (!column.has_values) {
    words->push_back(0);
    words->push_back(column.bytes);
    return;
  }
  const Request& request = column.request;
  const std::vector<std::uint64_t> dims = own_dims(records, column);
  const bool has_fill = (request.fill | request.fill_imaginary) != 0;
  words->push_back(static_cast<unsigned>(request.dtype) | (request.source_big_endian ? kBigEndian : 0) |
                   (has_fill ? kHasFill : 0) | (request.without_zeros ? kWithoutZeros : 0) |
                   (dims.empty() ? 0 : kArray) | field << 16);
  if (!dims.empty()) words->push_back(static_cast<unsigned>(dims.size()));
  for (const std::uint64_t dim : dims) words->push_back(static_cast<unsigned>(dim));
  if (!has_fill) return;
  const auto put = [&](std::uint64_t part) {
    if (fill_words(request.dtype) == 2)
      put_wide(words, part);
    else
      words->push_back(static_cast<unsigned>(part));
  };
  put(request.fill);
  if (is_complex(request.dtype)) put(request.fill_imaginary);
}

}  // namespace

Status in_field(const std::string& name, const Status& status) {
  char place[96];
  std::snprintf(place, sizeof place, "field '%.80s'", name.c_str());
  return fail_in(place, status);
}

bool is_of_records(const unsigned* words, std::size_t count) noexcept {
  return count > 0 && words != nullptr && (words[0] == kLayoutVersion || words[0] == kStamp);
}

Status parse_record_settings(const unsigned* words, std::size_t count, RecordSettings* settings) {
  Reader reader(words, count);
  const bool stored = reader.word() == kStamp;
  PYF_TRY(read_settings(reader, settings));
  if (!stored && reader.left() != 0)
    return fail(Code::invalid_argument, "cd_values of records: %zu words behind the last field", reader.left());
  for (const FieldSettings& field : settings->fields) PYF_TRY(check_field(field));
  return kOk;
}

Status parse_stored_records(const unsigned* words, std::size_t count, RecordColumns* columns) {
  *columns = {};
  Reader reader(words, count);
  if (reader.word() != kStamp) return malformed("not in the stored form");
  RecordSettings settings;
  PYF_TRY(read_settings(reader, &settings));
  return read_columns(reader, settings, columns);
}

Status stored_record_words(const RecordSettings& settings, const RecordColumns& columns, std::vector<unsigned>* words) {
  const Records& records = columns.records;
  *words = {kStamp, static_cast<unsigned>(settings.fields.size()), parameter_word(settings.others)};
  for (const FieldSettings& field : settings.fields) {
    if (field.name.size() > kMostNameBytes) return malformed("a name of more than 65535 bytes");
    const Words user = user_words(field.request);
    words->push_back(unsigned{field.request.codec} | static_cast<unsigned>(field.request.bound_mode) << 8 |
                     static_cast<unsigned>(field.name.size()) << 16);
    words->insert(words->end(), user.values.begin() + 3, user.values.begin() + 6);
    put_text(words, field.name);
  }
  words->push_back(static_cast<unsigned>(records.shape.rank) | static_cast<unsigned>(records.columns.size()) << 16);
  for (int i = 0; i < records.shape.rank; ++i) put_wide(words, records.shape.dims[static_cast<std::size_t>(i)]);
  for (std::size_t i = 0; i < records.columns.size(); ++i)
    put_column(records, records.columns[i], columns.fields[i], words);
  if (words->size() > kMaxRecordWords || records.columns.size() > 0xFFFF)
    return fail(Code::unsupported,
                "the type has too many fields: %zu words of cd_values would be stored, allowed: %zu. Fewer fields with "
                "codecs, shorter names, or fewer fields in all are needed",
                words->size(), kMaxRecordWords);
  return kOk;
}

}  // namespace pyfilter::filter
