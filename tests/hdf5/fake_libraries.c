// SPDX-License-Identifier: BSD-3-Clause
// A libhdf5 and a libnetcdf that report what a test tells them to (test_fake_libraries.py). The filter calls the
// functions of the module that called it, so these. FAKE_MAJOR and FAKE_MINOR are the release of both; without
// FAKE_ALL the functions that the filter can do without are missing. With FAKE_TYPES types are those of fake_types.h.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t hid_t;

const char* fake_failing = "";  // name of the function that fails
int fake_after = 0;             // so many calls of it do not
char fake_pushed[512];          // text of the last error
int64_t fake_minor;             // its minor id

// What functions report; types are numbered from 1 in the filter's order, little-endian before big-endian.
int fake_filters = 1, fake_first = 52907, fake_second = 1, fake_named = 1, fake_rank = 1, fake_fill = 0,
    fake_fill_time = 2, fake_class = 1, fake_members = 2, fake_norm = 0, fake_order = 0, fake_base = 1;
size_t fake_words = 6, fake_size = 2, fake_sign = 15, fake_exponent = 10, fake_exponent_bits = 5, fake_mantissa = 0,
       fake_mantissa_bits = 10, fake_bias = 15, fake_offset = 0, fake_gap = 4;
unsigned fake_values[300] = {1, 1, 1, 0, 0x3FF00000, 0}, fake_attributes = 0;
int fake_nc_type = 5, fake_endian = 0, fake_storage = 0, fake_no_fill = 0, fake_att_type = 5, fake_nc_rank = 1;
size_t fake_nc_filters = 1, fake_att_length = 1;
unsigned fake_nc_first = 52907;
const char* fake_nc_version;

uint64_t fake_dim = 8;        // of chunks
size_t fake_fill_bytes = 16;  // of a fill value
unsigned fake_stored[300];    // what H5Pmodify_filter got
size_t fake_stored_count;

static int fails(const char* name) { return strcmp(fake_failing, name) == 0 && fake_after-- <= 0; }

#define ID(name, value) hid_t name = value;
ID(H5T_IEEE_F32LE_g, 1) ID(H5T_IEEE_F32BE_g, 2) ID(H5T_IEEE_F64LE_g, 3) ID(H5T_IEEE_F64BE_g, 4)
ID(H5T_STD_I8LE_g, 5) ID(H5T_STD_I8BE_g, 6) ID(H5T_STD_U8LE_g, 7) ID(H5T_STD_U8BE_g, 8)
ID(H5T_STD_I16LE_g, 9) ID(H5T_STD_I16BE_g, 10) ID(H5T_STD_U16LE_g, 11) ID(H5T_STD_U16BE_g, 12)
ID(H5T_STD_I32LE_g, 13) ID(H5T_STD_I32BE_g, 14) ID(H5T_STD_U32LE_g, 15) ID(H5T_STD_U32BE_g, 16)
ID(H5T_STD_I64LE_g, 17) ID(H5T_STD_I64BE_g, 18) ID(H5T_STD_U64LE_g, 19) ID(H5T_STD_U64BE_g, 20)
ID(H5E_ERR_CLS_g, 30) ID(H5E_PLINE_g, 31) ID(H5E_BADVALUE_g, 32) ID(H5E_UNSUPPORTED_g, 33)
ID(H5E_CANTDECODE_g, 34) ID(H5E_NOSPACE_g, 35) ID(H5E_CANTFILTER_g, 36)

int H5open(void) { return fails("H5open") ? -1 : 0; }
int H5get_libversion(unsigned* major, unsigned* minor, unsigned* release) {
  *major = FAKE_MAJOR, *minor = FAKE_MINOR, *release = 0;
  return FAKE_MAJOR == 0 ? -1 : 0;
}
int H5Epush2(hid_t stack, const char* file, const char* function, unsigned line, hid_t error_class, hid_t major,
             hid_t minor, const char* format, ...) {
  (void)stack, (void)file, (void)function, (void)line, (void)error_class, (void)major;
  va_list rest;
  va_start(rest, format);
  vsnprintf(fake_pushed, sizeof fake_pushed, format, rest);
  va_end(rest);
  fake_minor = minor;
  return 0;
}
int H5Pget_nfilters(hid_t dcpl) { return (void)dcpl, fails("H5Pget_nfilters") ? -1 : fake_filters; }
int H5Pget_filter2(hid_t dcpl, unsigned index, unsigned* flags, size_t* count, unsigned* words, size_t bytes,
                   char* name, unsigned* config) {
  (void)dcpl, (void)config;
  if (fails("H5Pget_filter2") || (index == 1 && fails("second"))) return -1;
  *flags = 1;
  memcpy(words, fake_values, sizeof *words * (*count < fake_words ? *count : fake_words));
  *count = fake_words;
  snprintf(name, bytes, "%s", fake_named ? "named" : "");
  return index == 0 ? fake_first : fake_second;
}
int H5Pmodify_filter(hid_t dcpl, int filter, unsigned flags, size_t count, const unsigned* words) {
  (void)dcpl, (void)filter, (void)flags;
  if (fails("H5Pmodify_filter")) return -1;
  memcpy(fake_stored, words, sizeof *words * count);
  fake_stored_count = count;
  return 0;
}
int H5Pget_chunk(hid_t dcpl, int most, uint64_t* dims) {
  (void)dcpl;
  for (int i = 0; i < fake_rank && i < most; ++i) dims[i] = fake_dim;
  return fails("H5Pget_chunk") ? -1 : fake_rank;
}
int H5Pfill_value_defined(hid_t dcpl, int* status) {
  return (void)dcpl, *status = fake_fill, fails("H5Pfill_value_defined") ? -1 : 0;
}
int H5Pget_fill_value(hid_t dcpl, hid_t type, void* value) {
  (void)dcpl, (void)type;
  memset(value, 0x21, fake_fill_bytes);
  return fails("H5Pget_fill_value") ? -1 : 0;
}
int H5Pget_fill_time(hid_t dcpl, int* when) {
  return (void)dcpl, *when = fake_fill_time, fails("H5Pget_fill_time") ? -1 : 0;
}
int H5Pget_attr_creation_order(hid_t dcpl, unsigned* order) {
  return (void)dcpl, *order = fake_attributes, fails("H5Pget_attr_creation_order") ? -1 : 0;
}
int H5Tequal(hid_t a, hid_t b) { return fails("H5Tequal") ? -1 : a == b; }

#ifdef FAKE_TYPES
#include "fake_types.h"
#else
int H5Tget_class(hid_t type) { return (void)type, fake_class; }
size_t H5Tget_size(hid_t type) { return (void)type, fake_size; }
#endif

#ifdef FAKE_ALL
#ifndef FAKE_TYPES
int H5Tget_nmembers(hid_t type) { return (void)type, fake_members; }
hid_t H5Tget_member_type(hid_t type, unsigned member) {
  return (void)type, fails("H5Tget_member_type") ? -1 : member == 0 ? 1 : fake_base;
}
size_t H5Tget_member_offset(hid_t type, unsigned member) { return (void)type, member == 0 ? fake_offset : fake_gap; }
hid_t H5Tget_super(hid_t type) { return (void)type, fails("H5Tget_super") ? -1 : fake_base; }
#endif
int H5Tget_fields(hid_t type, size_t* sign, size_t* exponent, size_t* exponent_bits, size_t* mantissa,
                  size_t* mantissa_bits) {
  (void)type;
  *sign = fake_sign, *exponent = fake_exponent, *exponent_bits = fake_exponent_bits, *mantissa = fake_mantissa;
  *mantissa_bits = fake_mantissa_bits;
  return fails("H5Tget_fields") ? -1 : 0;
}
size_t H5Tget_ebias(hid_t type) { return (void)type, fake_bias; }
int H5Tget_norm(hid_t type) { return (void)type, fake_norm; }
int H5Tget_order(hid_t type) { return (void)type, fake_order; }
int H5Tclose(hid_t type) { return (void)type, 0; }
void* H5allocate_memory(size_t bytes, unsigned clear) {
  return (void)clear, fails("H5allocate_memory") ? NULL : malloc(bytes);
}
void* H5resize_memory(void* memory, size_t bytes) { return fails("H5resize_memory") ? NULL : realloc(memory, bytes); }
int H5free_memory(void* memory) { return free(memory), 0; }
#endif

const char* nc_inq_libvers(void) { return fake_nc_version; }
int nc_inq_vartype(int file, int variable, int* type) {
  return (void)file, (void)variable, *type = fake_nc_type, fails("nc_inq_vartype") ? -1 : 0;
}
int nc_inq_varndims(int file, int variable, int* rank) {
  return (void)file, (void)variable, *rank = fake_nc_rank, fails("nc_inq_varndims") ? -1 : 0;
}
int nc_inq_var_chunking(int file, int variable, int* storage, size_t* dims) {
  (void)file, (void)variable;
  for (int i = 0; i < fake_nc_rank; ++i) dims[i] = fake_dim;
  return *storage = fake_storage, fails("nc_inq_var_chunking") ? -1 : 0;
}
int nc_inq_var_fill(int file, int variable, int* none, void* value) {
  (void)file, (void)variable;
  memset(value, 0x21, 8);
  return *none = fake_no_fill, fails("nc_inq_var_fill") ? -1 : 0;
}
int nc_inq_att(int file, int variable, const char* name, int* type, size_t* length) {
  (void)file, (void)variable, (void)name;
  return *type = fake_att_type, *length = fake_att_length, fails("nc_inq_att") ? -1 : 0;
}
int nc_get_att(int file, int variable, const char* name, void* value) {
  (void)file, (void)variable, (void)name;
  if (fails("nc_get_att")) return -1;
  memset(value, 0x42, 4);
  return 0;
}
int nc_inq_var_endian(int file, int variable, int* endian) {
  return (void)file, (void)variable, *endian = fake_endian, fails("nc_inq_var_endian") ? -1 : 0;
}
#ifdef FAKE_ALL
int nc_inq_var_filter_ids(int file, int variable, size_t* count, unsigned* ids) {
  (void)file, (void)variable;
  if (fails("nc_inq_var_filter_ids") || (ids != NULL && fails("second"))) return -1;
  *count = fake_nc_filters;
  if (ids != NULL && fake_nc_filters != 0) ids[0] = fake_nc_first;
  return 0;
}
#endif

int H5Zregister(const void* filter) { return (void)filter, fails("H5Zregister") ? -1 : 0; }

// Calls of the filter from this module. Results are kept, so that no call is the last thing done.
int fake_check(int (*callback)(hid_t, hid_t, hid_t), hid_t dcpl, hid_t type) {
  volatile int result = callback(dcpl, type, 0);
  return result;
}
size_t fake_filter(size_t (*callback)(unsigned, size_t, const unsigned*, size_t, size_t*, void**), unsigned flags,
                   size_t bytes, size_t* buffer_bytes, void** buffer) {
  volatile size_t result = callback(flags, fake_stored_count, fake_stored, bytes, buffer_bytes, buffer);
  return result;
}
const void* fake_codec(const void* (*entry)(void)) {
  const void* volatile result = entry();
  return result;
}
int fake_modify(int (*callback)(int, int, size_t*, unsigned**, size_t*, unsigned**)) {
  size_t visible = fake_words;
  unsigned *words = fake_values, *working = NULL;
  volatile int result = callback(0, 0, &visible, &words, &fake_stored_count, &working);
  if (result == 0) memcpy(fake_stored, working, sizeof *working * fake_stored_count);
  free(working);
  return result;
}
