// SPDX-License-Identifier: BSD-3-Clause
// A dataset's compound type as a list of fields. Fields of compounds in it are fields of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"
#include "filter/datatype.hpp"

namespace pyfilter::filter {

struct Field {
  std::string name;  // "x"; of a field in a field "position.x"; "" for bytes that belong to no field
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  ElementType element;              // none: bytes of another type (text, opaque, long double, arrays of compounds)
  std::vector<std::uint64_t> dims;  // of an array
};

// Reads the fields of a compound type, in the order of their bytes, with gaps as fields: all bytes of a record. Error:
// unsupported for types that refer to other places in the file, and for complex numbers, which are no records.
Status read_fields(const Hdf5& hdf5, hid_t type, std::vector<Field>* fields);

}  // namespace pyfilter::filter
