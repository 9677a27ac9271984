// SPDX-License-Identifier: BSD-3-Clause
// Property list and compound type of a dataset -> Records (record_dataset.hpp).
#include "filter/record_dataset.hpp"

#include <algorithm>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/updated_chunk.hpp"
#include "filter/cd_values.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

// "x, y, t": as many names as there is room for.
std::string list_names(const std::vector<Field>& fields) {
  std::string names;
  for (const Field& field : fields)
    if (!field.name.empty() && names.size() < 200) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

// Whether settings for `name` are for a field: it is the field's name, or that of a compound that the field is in.
bool names_field(const std::string& name, const Field& field) {
  if (field.name.size() <= name.size()) return field.name == name;
  return field.name.compare(0, name.size(), name) == 0 && field.name[name.size()] == '.';
}

// Finds the settings of each field: their numbers from 1 on, 0 for none.
Status match_names(const RecordSettings& settings, const std::vector<Field>& fields, std::vector<unsigned>* numbers) {
  numbers->assign(fields.size(), 0);
  for (std::size_t i = 0; i < settings.fields.size(); ++i) {
    const std::string& name = settings.fields[i].name;
    bool found = false;
    for (std::size_t k = 0; k < fields.size(); ++k) {
      if (fields[k].name.empty() || !names_field(name, fields[k])) continue;
      if ((*numbers)[k] != 0)
        return fail(Code::invalid_argument, "field '%.80s' is given two codecs, for '%.80s' and for '%.80s'",
                    fields[k].name.c_str(), settings.fields[(*numbers)[k] - 1].name.c_str(), name.c_str());
      (*numbers)[k] = static_cast<unsigned>(i + 1);
      found = true;
    }
    if (!found)
      return fail(Code::invalid_argument, "a codec is given for field '%.80s', but the dataset's type has: %.240s",
                  name.c_str(), list_names(fields).c_str());
  }
  return kOk;
}

Status make_column(const Field& field, unsigned number, const RecordSettings& settings, const Shape& shape,
                   Column* column) {
  if (field.element.dtype == Dtype::none) {
    if (number != 0 && settings.fields[number - 1].request.bound_mode != Bound::none)
      return fail(Code::unsupported,
                  "a bound needs numbers; it is text, opaque, an array of compounds, or of a float "
                  "type that is not known. Without a codec it is stored bit for bit");
    *column = byte_column(shape, field.bytes, settings.others);
    return kOk;
  }
  Request request;
  request.codec = registry::kExactCodec;
  request.parameters = settings.others;
  if (number != 0) request = settings.fields[number - 1].request;
  PYF_TRY(check_enum(field.element, request, "it is"));
  request.dtype = field.element.dtype;
  request.source_big_endian = field.element.big_endian;
  *column = value_column(shape, request, field.dims);
  if (column->bytes != field.bytes) return fail(Code::internal, "HDF5 did not describe the compound type");
  return check_request(column->request);
}

Status make_columns(RecordDataset* dataset) {
  std::vector<unsigned> numbers;
  RecordColumns& columns = dataset->columns;
  PYF_TRY(match_names(dataset->settings, dataset->fields, &numbers));
  for (std::size_t i = 0; i < dataset->fields.size(); ++i) {
    const Field& field = dataset->fields[i];
    Column column;
    PYF_TRY(in_field(field.name.empty() ? "(padding)" : field.name,
                     make_column(field, numbers[i], dataset->settings, columns.records.shape, &column)));
    columns.records.columns.push_back(column);
    columns.fields.push_back(column.has_values ? numbers[i] : 0);
  }
  return kOk;
}

// Sets a column's fill value from the record that is the dataset's. All elements of an array must have the same.
Status set_fill(const Field& field, const std::vector<std::uint8_t>& record, Request* request) {
  const std::size_t whole = dtype_bytes(request->dtype), width = dtype_bytes(base_dtype(request->dtype));
  const auto first = record.begin() + static_cast<std::ptrdiff_t>(field.offset);
  const auto end = first + static_cast<std::ptrdiff_t>(field.bytes);
  if (request->bound_mode != Bound::none && !std::equal(first + static_cast<std::ptrdiff_t>(whole), end, first))
    return fail(Code::unsupported, "its fill value has different elements; with a bound all must be the same");
  request->fill = bits_of(&*first, width, request->source_big_endian);
  if (is_complex(request->dtype)) request->fill_imaginary = bits_of(&*first + width, width, request->source_big_endian);
  return kOk;
}

bool same_layout(const RecordColumns& a, const RecordColumns& b) {
  return std::equal(
      a.records.columns.begin(), a.records.columns.end(), b.records.columns.begin(), b.records.columns.end(),
      [](const Column& x, const Column& y) { return x.bytes == y.bytes && x.request.dtype == y.request.dtype; });
}

}  // namespace

Status read_record_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, const PipelineEntry& ours,
                           RecordDataset* dataset) {
  if (ours.word_count > ours.words.size())
    return fail(Code::invalid_argument, "cd_values of records: %zu words given, at most %zu allowed", ours.word_count,
                ours.words.size());
  PYF_TRY(parse_record_settings(ours.words.data(), ours.word_count, &dataset->settings));
  if (is_stamped(ours.words.data(), ours.word_count))
    PYF_TRY(parse_stored_records(ours.words.data(), ours.word_count, &dataset->stamped));
  PYF_TRY(read_fields(hdf5, type, &dataset->fields));
  Records& records = dataset->columns.records;
  PYF_TRY(read_chunk_shape(hdf5, dcpl, &records.shape));
  PYF_TRY(make_columns(dataset));
  PYF_TRY(check_records(records));
  if (max_records_bytes(records) == 0) return fail(Code::unsupported, "the chunk is too large: use smaller chunks");
  std::vector<unsigned> words;  // whether they fit, before anything is written
  return stored_record_words(dataset->settings, dataset->columns, &words);
}

Status read_record_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, RecordDataset* dataset) {
  std::vector<Column>& columns = dataset->columns.records.columns;
  int status = 0, fill_time = 0;
  if (hdf5.H5Pfill_value_defined(dcpl, &status) < 0) return fail(Code::internal, "HDF5 did not report the fill value");
  if (hdf5.H5Pget_fill_time(dcpl, &fill_time) < 0) return fail(Code::internal, "HDF5 did not report the fill time");
  const bool declared = status == kFillUserDefined, hidden = !declared && fill_time == kFillTimeNever;
  const bool of_range = std::any_of(columns.begin(), columns.end(),
                                    [](const Column& column) { return follows_range(column.request.bound_mode); });
  const bool stamped = !dataset->stamped.records.columns.empty();
  if (hidden && !stamped && of_range && may_be_netcdf(hdf5, dcpl)) return hidden_fill();
  std::vector<std::uint8_t> record(hdf5.H5Tget_size(type));
  if (declared && hdf5.H5Pget_fill_value(dcpl, type, record.data()) < 0)
    return fail(Code::invalid_argument, "HDF5 cannot convert the fill value to the dataset's type");
  const bool keeps = hidden && stamped && same_layout(dataset->columns, dataset->stamped);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].has_values) continue;
    Request& request = columns[i].request;
    request.has_fill = true;
    PYF_TRY(in_field(dataset->fields[i].name, set_fill(dataset->fields[i], record, &request)));
    if (keeps) {
      request.fill = dataset->stamped.records.columns[i].request.fill;
      request.fill_imaginary = dataset->stamped.records.columns[i].request.fill_imaginary;
    }
    request.without_zeros = fill_time == kFillTimeNever && (request.fill | request.fill_imaginary) != 0 &&
                            follows_range(request.bound_mode);
  }
  return kOk;
}

}  // namespace pyfilter::filter
