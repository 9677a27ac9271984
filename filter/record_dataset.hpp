// SPDX-License-Identifier: BSD-3-Clause
// Reads the properties of a dataset of records (a compound type), and refuses what the filter cannot handle; as
// dataset.hpp does for datasets of one element type.
#pragma once

#include <vector>

#include "filter/dataset.hpp"
#include "filter/record_type.hpp"
#include "filter/record_words.hpp"

namespace pyfilter::filter {

struct RecordDataset {
  RecordSettings settings;
  RecordColumns columns;  // fill values by read_record_fill()
  std::vector<Field> fields;
  RecordColumns stamped;  // if cd_values are the stored form, of another dataset or of this one
};

// Reads all but the fill value.
Status read_record_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, const PipelineEntry& ours, RecordDataset* dataset);
// Reads the fill value of a dataset that is being created (dataset.hpp, read_fill).
Status read_record_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, RecordDataset* dataset);

}  // namespace pyfilter::filter
