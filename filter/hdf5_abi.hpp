// SPDX-License-Identifier: BSD-3-Clause
// Types and constants of HDF5's binary interface that a filter needs (H5Zpublic.h, H5PLextern.h, H5public.h). They are
// written out here because the library works with any libhdf5 from 1.10 to 2.x and is built for none of them. Functions
// and global ids are those of the calling libhdf5 (caller.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pyfilter::filter {

using hid_t = std::int64_t;  // since HDF5 1.10; 32 bits before, which caller.cpp refuses
using herr_t = int;
using htri_t = int;
using hsize_t = std::uint64_t;

inline constexpr int kFilterClassVersion = 1;      // H5Z_CLASS_T_VERS of H5Z_class2_t
inline constexpr int kPluginTypeFilter = 0;        // H5PL_TYPE_FILTER
inline constexpr unsigned kFlagOptional = 0x0001;  // H5Z_FLAG_OPTIONAL
inline constexpr unsigned kFlagReverse = 0x0100;   // H5Z_FLAG_REVERSE: decode
inline constexpr hid_t kDefaultErrorStack = 0;     // H5E_DEFAULT
inline constexpr int kFillUserDefined = 2;         // H5D_FILL_VALUE_USER_DEFINED
inline constexpr int kFillTimeNever = 1;           // H5D_FILL_TIME_NEVER
inline constexpr unsigned kOrderTracked = 0x0001;  // H5P_CRT_ORDER_TRACKED

extern "C" {
using CanApplyCallback = htri_t (*)(hid_t dcpl, hid_t type, hid_t space);
using SetLocalCallback = herr_t (*)(hid_t dcpl, hid_t type, hid_t space);
using FilterCallback = std::size_t (*)(unsigned flags, std::size_t word_count, const unsigned words[],
                                       std::size_t bytes, std::size_t* buffer_bytes, void** buffer);
}

// H5Z_class2_t, unchanged from 1.8 to 2.2.
struct FilterClass {
  int version;
  int id;
  unsigned encoder_present;
  unsigned decoder_present;
  const char* name;
  CanApplyCallback can_apply;
  SetLocalCallback set_local;
  FilterCallback filter;
};
static_assert(offsetof(FilterClass, name) == 16 && sizeof(FilterClass) == 16 + 4 * sizeof(void*));

inline constexpr int kOrderLittle = 0, kOrderBig = 1;  // H5T_order_t
inline constexpr int kNormImplied = 0;                 // H5T_NORM_IMPLIED

// H5T_class_t: the classes that the filter looks into, then the names of all in its order.
inline constexpr int kClassFloat = 1, kClassString = 3, kClassCompound = 6, kClassReference = 7, kClassEnum = 8,
                     kClassVariable = 9, kClassArray = 10, kClassComplex = 11;  // H5T_COMPLEX since HDF5 2.0
inline constexpr const char* kTypeClassNames[] = {"integer",     "float",           "time",     "string",
                                                  "bitfield",    "opaque",          "compound", "reference",
                                                  "enumeration", "variable-length", "array",    "complex"};

}  // namespace pyfilter::filter
