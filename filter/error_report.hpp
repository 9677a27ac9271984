// SPDX-License-Identifier: BSD-3-Clause
// Reports errors to the caller's HDF5. The text is the thread's last_error(), which also stays available here, because
// HDF5 clears its stack when an optional filter fails on writing.
#pragma once

#include "core/status.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

// Pushes last_error() onto the error stack of the caller's HDF5. `where` is the callback's name. Call it last: any
// other HDF5 call would clear the stack again.
void push_error(const Hdf5& hdf5, const char* where, Code code) noexcept;

}  // namespace pyfilter::filter
