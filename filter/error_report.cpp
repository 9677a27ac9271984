// SPDX-License-Identifier: BSD-3-Clause
// Pushes the last error onto the caller's HDF5 error stack (error_report.hpp).
#include "filter/error_report.hpp"

#include "core/api.hpp"
#include "registry_table.hpp"

namespace pyfilter::filter {
namespace {

// The closest minor error code of HDF5.
const char* minor_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "H5E_BADVALUE_g";
    case Code::unsupported:
      return "H5E_UNSUPPORTED_g";
    case Code::corrupt:
    case Code::truncated:
    case Code::too_new:
      return "H5E_CANTDECODE_g";
    case Code::no_space:
    case Code::no_memory:
      return "H5E_NOSPACE_g";
    case Code::ok:
    case Code::device:
    case Code::internal:
      break;
  }
  return "H5E_CANTFILTER_g";
}

}  // namespace

void push_error(const Hdf5& hdf5, const char* where, Code code) noexcept {
  if (!hdf5.complete()) return;
  const hid_t error_class = hdf5.global("H5E_ERR_CLS_g");
  const hid_t major = hdf5.global("H5E_PLINE_g");
  const hid_t minor = hdf5.global(minor_of(code));
  if (error_class <= 0 || major <= 0 || minor <= 0) return;
  // No __FILE__: error messages would contain a path of the build machine.
  hdf5.H5Epush2(kDefaultErrorStack, registry::kFilterName, where, 0, error_class, major, minor, "%s: %s",
                registry::kFilterName, last_error());
}

}  // namespace pyfilter::filter
