// SPDX-License-Identifier: BSD-3-Clause
// Hdf5: the functions of the libhdf5 that called us. One process may hold several (h5py's, netCDF4's, a program's own)
// whose ids are not valid in each other. So every callback calls hdf5_of() with its own return address.
#pragma once

#include "filter/hdf5_abi.hpp"

// X(name, result, parameters): functions that can_apply and set_local require.
#define PYF_HDF5_REQUIRED(X)                                                                                          \
  X(H5open, herr_t, (void))                                                                                           \
  X(H5get_libversion, herr_t, (unsigned* major, unsigned* minor, unsigned* release))                                  \
  X(H5Epush2, herr_t,                                                                                                 \
    (hid_t stack, const char* file, const char* function, unsigned line, hid_t error_class, hid_t major, hid_t minor, \
     const char* format, ...))                                                                                        \
  X(H5Pget_nfilters, int, (hid_t dcpl))                                                                               \
  X(H5Pget_filter2, int,                                                                                              \
    (hid_t dcpl, unsigned index, unsigned* flags, std::size_t* word_count, unsigned words[], std::size_t name_bytes,  \
     char name[], unsigned* config))                                                                                  \
  X(H5Pmodify_filter, herr_t,                                                                                         \
    (hid_t dcpl, int filter, unsigned flags, std::size_t word_count, const unsigned words[]))                         \
  X(H5Pget_chunk, int, (hid_t dcpl, int max_rank, hsize_t dims[]))                                                    \
  X(H5Pfill_value_defined, herr_t, (hid_t dcpl, int* status))                                                         \
  X(H5Pget_fill_value, herr_t, (hid_t dcpl, hid_t type, void* value))                                                 \
  X(H5Pget_fill_time, herr_t, (hid_t dcpl, int* fill_time))                                                           \
  X(H5Pget_attr_creation_order, herr_t, (hid_t dcpl, unsigned* order))                                                \
  X(H5Tequal, htri_t, (hid_t a, hid_t b))                                                                             \
  X(H5Tget_class, int, (hid_t type))                                                                                  \
  X(H5Tget_size, std::size_t, (hid_t type))

// Functions with a substitute for a static libhdf5 that does not export them. `clear` is hbool_t, int in older
// releases.
// Without the functions that look into types, only floats of 32 and 64 bits and integers are known.
#define PYF_HDF5_OPTIONAL(X)                                                                                  \
  X(H5Tget_nmembers, int, (hid_t type))                                                                       \
  X(H5Tget_member_type, hid_t, (hid_t type, unsigned member))                                                 \
  X(H5Tget_member_offset, std::size_t, (hid_t type, unsigned member))                                         \
  X(H5Tget_fields, herr_t,                                                                                    \
    (hid_t type, std::size_t* sign, std::size_t* exponent, std::size_t* exponent_bits, std::size_t* mantissa, \
     std::size_t* mantissa_bits))                                                                             \
  X(H5Tget_ebias, std::size_t, (hid_t type))                                                                  \
  X(H5Tget_norm, int, (hid_t type))                                                                           \
  X(H5Tget_order, int, (hid_t type))                                                                          \
  X(H5Tget_super, hid_t, (hid_t type))                                                                        \
  X(H5Tget_member_name, char*, (hid_t type, unsigned member))                                                 \
  X(H5Tget_array_ndims, int, (hid_t type))                                                                    \
  X(H5Tget_array_dims2, int, (hid_t type, hsize_t dims[]))                                                    \
  X(H5Tis_variable_str, htri_t, (hid_t type))                                                                 \
  X(H5Tclose, herr_t, (hid_t type))                                                                           \
  X(H5allocate_memory, void*, (std::size_t bytes, unsigned clear))                                            \
  X(H5resize_memory, void*, (void* memory, std::size_t bytes))                                                \
  X(H5free_memory, herr_t, (void* memory))

namespace pyfilter::filter {

class Hdf5 {
 public:
#define PYF_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  PYF_HDF5_REQUIRED(PYF_MEMBER)
  PYF_HDF5_OPTIONAL(PYF_MEMBER)
#undef PYF_MEMBER

  // All required functions are there and ids are 64-bit. Without it only decoding and encoding work.
  [[nodiscard]] bool complete() const { return complete_; }

  // Value of an id that libhdf5 keeps in a global variable ("H5T_IEEE_F32LE_g"), or -1. open() first.
  [[nodiscard]] hid_t global(const char* name) const;

  // Opens the library if it is not open: opening sets its global ids. Clears its error stack.
  [[nodiscard]] bool open() const { return complete_ && H5open() >= 0; }

 private:
  friend struct Resolver;
  void* own_symbols_ = nullptr;  // dlopen handles, kept for ever: they also pin the module
  void* program_symbols_ = nullptr;
  bool complete_ = false;
};

// The libhdf5 whose code holds `return_address`. Resolved once per module; thread-safe. Never blocks: a process may
// fork at any time. Never fails: a caller that cannot be resolved gives an Hdf5 that is not complete().
const Hdf5& hdf5_of(const void* return_address) noexcept;

// One symbol of an already loaded library file, or of the main program's scope where `path` is null.
// nullptr when it is not loaded or has no such symbol.
void* loaded_symbol(const char* path, const char* name) noexcept;

}  // namespace pyfilter::filter

// The return address of the function that this is written in. Such a function must not be inlined.
#define PYF_RETURN_ADDRESS() __builtin_extract_return_addr(__builtin_return_address(0))
