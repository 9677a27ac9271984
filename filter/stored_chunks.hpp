// SPDX-License-Identifier: BSD-3-Clause
// Reads bytes of a file.
#pragma once

#include "filter/c_api.h"

namespace pyfilter::filter {

// Reads until the range is complete, the file ends or reading fails; range.done becomes the number of bytes read.
void read_range(int file, pyf_range& range) noexcept;

}  // namespace pyfilter::filter
