// SPDX-License-Identifier: BSD-3-Clause
// The three callbacks that plugin.cpp hands to HDF5, one file each.
#pragma once

#include "filter/hdf5_abi.hpp"

namespace pyfilter::filter {

extern "C" {
// Refuses a dataset that the filter cannot handle: returns a negative value and pushes a text onto the caller's error
// stack. Never returns 0, which HDF5 takes as consent if the filter is optional.
htri_t pyfilter_can_apply(hid_t dcpl, hid_t type, hid_t space);

// Replaces the user's cd_values by the stored form, which also has the dataset's dtype, shape and fill value.
herr_t pyfilter_set_local(hid_t dcpl, hid_t type, hid_t space);

// Encodes a chunk into a frame, or decodes a frame. Returns 0 on failure and leaves the buffer unchanged.
std::size_t pyfilter_filter(unsigned flags, std::size_t word_count, const unsigned words[], std::size_t bytes,
                            std::size_t* buffer_bytes, void** buffer);
}

}  // namespace pyfilter::filter
