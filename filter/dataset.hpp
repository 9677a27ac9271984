// SPDX-License-Identifier: BSD-3-Clause
// Reads what HDF5 says of a dataset, and refuses what the filter cannot do: the shared work of can_apply and set_local.
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

struct Dataset {
  Request request;     // settings from cd_values, the rest from the dataset; fill by read_fill()
  unsigned flags = 0;  // of our filter in the pipeline (H5Z_FLAG_OPTIONAL)
};

// A dataset that is being created, or written to for the first time since it was opened. All but the fill value.
Status read_dataset(const Hdf5& hdf5, hid_t dcpl, hid_t type, Dataset* dataset) noexcept;

// The fill value of a dataset that is being created. Not for the property list of an opened one, which can_apply may
// get: HDF5 2.2 crashes in H5Pget_fill_value on it.
Status read_fill(const Hdf5& hdf5, hid_t dcpl, hid_t type, Request* request) noexcept;

}  // namespace pyfilter::filter
