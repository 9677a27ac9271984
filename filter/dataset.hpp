// SPDX-License-Identifier: BSD-3-Clause
// Reads what HDF5 says of a dataset that is being created, or written to for the first time since it was opened: the
// shared work of can_apply and set_local. Refuses what the filter cannot do.
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

struct Dataset {
  Request request;     // complete: settings from cd_values, the rest from the dataset
  unsigned flags = 0;  // of our filter in the pipeline (H5Z_FLAG_OPTIONAL)
};

Status read_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept;

}  // namespace pyfilter::filter
