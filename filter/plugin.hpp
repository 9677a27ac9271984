// SPDX-License-Identifier: BSD-3-Clause
// Registration of the filter with a libhdf5 in this process.
#pragma once

#include "core/status.hpp"

namespace pyfilter::filter {

// `path`: a loaded libhdf5 as the loader knows it, or null for the main program's symbols.
Status register_with(const char* path) noexcept;

}  // namespace pyfilter::filter
