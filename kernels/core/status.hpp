// SPDX-License-Identifier: BSD-3-Clause
// Status: what every function of the library returns instead of throwing. The codes are stable; new ones are
// added with larger numbers. The text is static and names what is wrong; `detail` (core/error_text.hpp) adds values.
#pragma once

#include <cstdint>

namespace pyfilter {

enum class Code : std::int32_t {
  ok = 0,
  invalid_argument = 10,  // the caller asked for something that no data could satisfy
  unsupported = 20,       // a dtype, rank or size that this codec does not take
  corrupt = 30,           // the bytes are not a frame, or contradict themselves
  truncated = 31,         // the frame is longer than the bytes given
  too_new = 32,           // a frame format newer than this library
  no_space = 40,          // the output buffer is too small
  no_memory = 50,
  device = 60,
  internal = 90,
};

struct [[nodiscard]] Status {
  Code code = Code::ok;
  const char* text = "";

  [[nodiscard]] constexpr bool ok() const { return code == Code::ok; }
};

inline constexpr Status kOk{};

}  // namespace pyfilter

// Returns the Status of `expression` from the calling function unless it is ok.
#define PYF_TRY(expression)                              \
  do {                                                   \
    const ::pyfilter::Status pyf_status_ = (expression); \
    if (!pyf_status_.ok()) return pyf_status_;           \
  } while (false)
