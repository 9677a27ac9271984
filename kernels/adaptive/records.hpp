// SPDX-License-Identifier: BSD-3-Clause
// What an encoder keeps of a coded value until its stream is written, on CPU and GPU.
#pragma once

#include <cstdint>

#include "adaptive/tables.hpp"

namespace pyfilter {

// Zigzag number, context level, and kind of coding.
enum : std::uint32_t { kByCode = 0, kByValue = 1, kByOrigin = 2 };
KFN std::uint32_t make_record(std::uint32_t zigzag_code, std::uint32_t level, std::uint32_t how) {
  return zigzag_code | level << kCodeBits | how << 29;
}
KFN std::uint32_t number_of(std::uint32_t record) { return record & ((1u << kCodeBits) - 1); }
KFN std::uint32_t level_of_record(std::uint32_t record) { return record >> kCodeBits & 127; }
KFN std::uint32_t how_of(std::uint32_t record) { return record >> 29; }

}  // namespace pyfilter
