// SPDX-License-Identifier: BSD-3-Clause
// The text of the last error on this thread. fail() formats it and returns the Status to hand up; no allocation.
#pragma once

#include "core/status.hpp"

namespace pyfilter {

#if defined(__GNUC__)
[[gnu::format(printf, 2, 3)]]
#endif
Status fail(Code code, const char* format, ...) noexcept;

}  // namespace pyfilter
