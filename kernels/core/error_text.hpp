// SPDX-License-Identifier: BSD-3-Clause
// The text of the last error on this thread. fail() formats it and returns the Status to hand up; no allocation.
#pragma once

#include "core/status.hpp"

namespace pyfilter {

#if defined(__GNUC__)
[[gnu::format(printf, 2, 3)]]
#endif
Status fail(Code code, const char* format, ...) noexcept;
// Puts where it happened in front of the text of a failure: "place: text". A status that is ok stays so.
Status fail_in(const char* place, const Status& status) noexcept;

}  // namespace pyfilter
