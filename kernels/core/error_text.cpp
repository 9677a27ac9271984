// SPDX-License-Identifier: BSD-3-Clause
// The per-thread text of the last error (error_text.hpp, api.hpp).
#include "core/error_text.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "core/api.hpp"

namespace pyfilter {
namespace {
thread_local char text[512] = "";
}

Status fail(Code code, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return {code, text};
}

Status fail_in(const char* place, const Status& status) noexcept {
  if (status.ok()) return status;
  char what[sizeof text];
  std::memcpy(what, text, sizeof what);
  return fail(status.code, "%s: %s", place, what);
}

const char* last_error() noexcept { return text; }

}  // namespace pyfilter
