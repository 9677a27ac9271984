// SPDX-License-Identifier: BSD-3-Clause
// Bytes of a file.
#pragma once

#include "filter/c_api.h"

namespace pyfilter::filter {

// As far as the file goes and the system reads; `done` says how far.
void read_range(int file, pyf_range& range) noexcept;

}  // namespace pyfilter::filter
