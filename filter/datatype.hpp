// SPDX-License-Identifier: BSD-3-Clause
// A dataset's HDF5 datatype as an element type of frames.
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

// Sets dtype and byte order of a request. Complex numbers are compound types of two floats, as h5py and netCDF4 write
// them, or HDF5 2's own class. An enumeration has the dtype of its integers, which must not change. Error: unsupported,
// with the types that the request's codec takes.
Status read_datatype(const Hdf5& hdf5, hid_t type, Request* request) noexcept;

}  // namespace pyfilter::filter
