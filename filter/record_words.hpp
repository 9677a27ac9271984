// SPDX-License-Identifier: BSD-3-Clause
// cd_values of records (compound types; docs/cd_values.md, Records): which fields have which codec and, as stored, the
// columns of the dataset's chunks.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/records.hpp"
#include "core/status.hpp"

namespace pyfilter::filter {

inline constexpr std::size_t kMaxRecordWords = 256;  // h5py reads no more

struct FieldSettings {
  std::string name;  // "x"; of a field in a field "position.x"
  Request request;   // codec, bound and parameters only
};

struct RecordSettings {
  std::vector<FieldSettings> fields;
  std::array<std::uint8_t, kParameterBytes> others{};  // parameters of lossless, for all other fields
};

// The columns of a dataset, and for each the number of its field in the settings, from 1 on; 0: none.
struct RecordColumns {
  Records records;
  std::vector<unsigned> fields;
};

// Whether the words are of records, in the user's form or in the stored form.
[[nodiscard]] bool is_of_records(const unsigned* words, std::size_t count) noexcept;

// Parses the settings of either form, and checks codecs, bounds and parameters.
Status parse_record_settings(const unsigned* words, std::size_t count, RecordSettings* settings);
// Parses the stored form. Checks that it is well formed, but not that its codecs exist: decoding reads the frame.
Status parse_stored_records(const unsigned* words, std::size_t count, RecordColumns* columns);

// Writes the stored form.
Status stored_record_words(const RecordSettings& settings, const RecordColumns& columns, std::vector<unsigned>* words);

// Adds the name of a field to the text of a failure.
Status in_field(const std::string& name, const Status& status);

}  // namespace pyfilter::filter
