// SPDX-License-Identifier: BSD-3-Clause
// The three callbacks that plugin.cpp hands to HDF5, one file each.
#pragma once

#include "filter/hdf5_abi.hpp"

namespace pyfilter::filter {

extern "C" {
// Refuses (negative, with a text on the caller's error stack) a dataset that the filter cannot do. Never returns 0:
// HDF5 takes that as consent where the filter is optional.
htri_t pyfilter_can_apply(hid_t dcpl, hid_t type, hid_t space);

// Replaces what the user asked for by the stored form of cd_values, which knows the dataset.
herr_t pyfilter_set_local(hid_t dcpl, hid_t type, hid_t space);

// Encodes a chunk into a frame, or decodes one. 0 on failure, with the buffer as it was.
std::size_t pyfilter_filter(unsigned flags, std::size_t word_count, const unsigned words[], std::size_t bytes,
                            std::size_t* buffer_bytes, void** buffer);
}

}  // namespace pyfilter::filter
