// SPDX-License-Identifier: BSD-3-Clause
// The set_local callback (callbacks.hpp). Idempotent: nccopy, h5repack and reused property lists pass it the
// stored form of another dataset, which may have another type, chunk or fill value.
#include <cstddef>
#include <vector>

#include "core/error_text.hpp"
#include "filter/callbacks.hpp"
#include "filter/cd_values.hpp"
#include "filter/dataset.hpp"
#include "filter/guard.hpp"
#include "filter/record_dataset.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

Status store_words(const Hdf5& hdf5, hid_t dcpl, hid_t type) {
  PipelineEntry ours;
  PYF_TRY(open_pipeline(hdf5, dcpl, type, &ours));
  std::vector<unsigned> words;
  if (is_of_records(ours.words.data(), ours.word_count)) {
    RecordDataset dataset;
    PYF_TRY(read_record_dataset(hdf5, dcpl, type, ours, &dataset));
    PYF_TRY(read_record_fill(hdf5, dcpl, type, &dataset));
    PYF_TRY(stored_record_words(dataset.settings, dataset.columns, &words));
  } else {
    Dataset dataset;
    PYF_TRY(read_dataset(hdf5, dcpl, type, ours, &dataset));
    PYF_TRY(read_fill(hdf5, dcpl, type, &dataset));
    const Words stored = stored_words(dataset.request);
    words.assign(stored.values.begin(), stored.values.begin() + static_cast<std::ptrdiff_t>(stored.count));
  }
  // Mandatory, though h5py and netCDF make the filter optional. When HDF5 writes to an existing dataset, it loads no
  // plugin and skips an optional filter that it does not know. It would silently store raw chunks.
  const unsigned flags = ours.flags & ~kFlagOptional;
  if (hdf5.H5Pmodify_filter(dcpl, static_cast<int>(registry::kFilterId), flags, words.size(), words.data()) < 0)
    return fail(Code::internal, "HDF5 refused the stored cd_values (H5Pmodify_filter)");
  return kOk;
}

}  // namespace

extern "C" [[gnu::noinline]] herr_t pyfilter_set_local(hid_t dcpl, hid_t type, hid_t) {
  const Hdf5& hdf5 = hdf5_of(PYF_RETURN_ADDRESS());
  const bool ok = guarded_callback(hdf5, "set_local", [&] { return store_words(hdf5, dcpl, type); });
  return ok ? 0 : -1;
}

}  // namespace pyfilter::filter
