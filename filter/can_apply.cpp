// SPDX-License-Identifier: BSD-3-Clause
// The can_apply callback (callbacks.hpp). HDF5 calls it when a dataset is created, and again before the first write
// to an opened dataset.
#include "filter/callbacks.hpp"
#include "filter/dataset.hpp"
#include "filter/guard.hpp"
#include "filter/record_dataset.hpp"

namespace pyfilter::filter {

extern "C" [[gnu::noinline]] htri_t pyfilter_can_apply(hid_t dcpl, hid_t type, hid_t) {
  const Hdf5& hdf5 = hdf5_of(PYF_RETURN_ADDRESS());
  const bool ok = guarded_callback(hdf5, "can_apply", [&] {
    PipelineEntry ours;
    PYF_TRY(open_pipeline(hdf5, dcpl, type, &ours));
    if (is_of_records(ours.words.data(), ours.word_count)) {
      RecordDataset records;
      return read_record_dataset(hdf5, dcpl, type, ours, &records);
    }
    Dataset dataset;
    return read_dataset(hdf5, dcpl, type, ours, &dataset);
  });
  return ok ? 1 : -1;
}

}  // namespace pyfilter::filter
