// SPDX-License-Identifier: BSD-3-Clause
// A dataset's HDF5 datatype as an element type of frames.
#pragma once

#include "core/status.hpp"
#include "core/types.hpp"
#include "filter/caller.hpp"

namespace pyfilter::filter {

// A datatype that HDF5 made for us, closed at the end.
class MadeType {
 public:
  MadeType(const Hdf5& hdf5, hid_t type) : hdf5_(hdf5), type_(type) {}
  ~MadeType() {
    if (type_ >= 0) hdf5_.H5Tclose(type_);
  }
  MadeType(const MadeType&) = delete;
  MadeType& operator=(const MadeType&) = delete;

  [[nodiscard]] hid_t id() const { return type_; }  // negative: HDF5 could not make it

 private:
  const Hdf5& hdf5_;
  hid_t type_;
};

struct ElementType {
  Dtype dtype = Dtype::none;  // none: not a type of frames
  bool big_endian = false;
  bool is_enum = false;  // members of an enumeration (h5py's bool is one) are names, not magnitudes

  bool operator==(const ElementType&) const = default;
};

// The element type of a datatype that is a number, an enumeration, or HDF5 2's class of complex numbers.
ElementType element_type(const Hdf5& hdf5, hid_t type);
// A compound type of two equal floats without gaps, whatever the names of its members; none for others.
ElementType complex_pair(const Hdf5& hdf5, hid_t type);
// "compound": the name of a datatype's class.
const char* class_name(const Hdf5& hdf5, hid_t type);

// Refuses a bound for an enumeration; `subject` begins the sentence, as "it is".
Status check_enum(const ElementType& type, const Request& request, const char* subject) noexcept;

// Sets dtype and byte order of a request. Complex numbers are compound types of two floats, as h5py and netCDF4 write
// them, or HDF5 2's own class. An enumeration has the dtype of its integers, which must not change. Error: unsupported,
// with the types that the request's codec takes.
Status read_datatype(const Hdf5& hdf5, hid_t type, Request* request) noexcept;

}  // namespace pyfilter::filter
