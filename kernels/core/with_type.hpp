// SPDX-License-Identifier: BSD-3-Clause
// From a dtype that is known at run time to the type of its values.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/types.hpp"

namespace pyfilter {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// Calls visit<T>() for the type of a dtype's values.
template <class Visit>
auto with_type(Dtype dtype, Visit&& visit) {
  switch (dtype) {
    case Dtype::f32:
      return visit.template operator()<float>();
    case Dtype::i8:
      return visit.template operator()<std::int8_t>();
    case Dtype::u8:
      return visit.template operator()<std::uint8_t>();
    case Dtype::i16:
      return visit.template operator()<std::int16_t>();
    case Dtype::u16:
      return visit.template operator()<std::uint16_t>();
    case Dtype::i32:
      return visit.template operator()<std::int32_t>();
    case Dtype::u32:
      return visit.template operator()<std::uint32_t>();
    case Dtype::i64:
      return visit.template operator()<std::int64_t>();
    case Dtype::u64:
      return visit.template operator()<std::uint64_t>();
    default:
      return visit.template operator()<double>();
  }
}

}  // namespace pyfilter
