// SPDX-License-Identifier: BSD-3-Clause
// Reads a dataset's properties from HDF5, and refuses datasets that the filter cannot handle; for can_apply and
// set_local.
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

struct Dataset {
  Request request;       // codec, bound and parameters from cd_values, the rest from the dataset; fill by read_fill()
  unsigned flags = 0;    // of our filter in the pipeline (H5Z_FLAG_OPTIONAL)
  bool stamped = false;  // cd_values are the stored form, of another dataset or of this one
  Dtype stamped_dtype = Dtype::none;  // dtype and fill value in them
  std::uint64_t stamped_fill = 0, stamped_fill_imaginary = 0;
};

// Reads all but the fill value of a dataset that is being created, or is written for the first time since it was
// opened.
Status read_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept;

// Reads the fill value of a dataset that is being created, and what its relative bound must leave out of ranges. Not
// for the property list of an opened dataset, which can_apply may get: HDF5 2.2 crashes in H5Pget_fill_value there.
Status read_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept;

}  // namespace pyfilter::filter
