// SPDX-License-Identifier: BSD-3-Clause
// Little-endian loads and stores at any alignment. Arrays of values are copied without
// swapping: CMakeLists.txt accepts little-endian hosts only, so a frame's bytes are the same everywhere.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"

namespace pyfilter {

static_assert(std::endian::native == std::endian::little, "big-endian hosts are not supported yet");

template <class T>
KFN T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
KFN void store_le(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace pyfilter
