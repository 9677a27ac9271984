// SPDX-License-Identifier: BSD-3-Clause
// Part of fake_libraries.c: types that a test describes (test_fake_records.py), compounds and arrays above all.

struct fake_type {
  int type_class, members;
  size_t size;
  hid_t member[4];  // the fourth stands for all that follow, each 4 bytes behind the one before
  size_t offset[4];
  const char* name[4];
  hid_t super;
  int rank, variable;  // the latter: of text
  uint64_t dims[32];
} fake_types[8];  // of the ids from 200 on; those below are the numbers of fake_libraries.c

static const struct fake_type* described(hid_t type) {
  static struct fake_type numbers;
  const size_t sizes[5] = {4, 8, 1, 1, 2};  // of pairs of ids
  if (type >= 200) return &fake_types[type - 200];
  numbers.type_class = type <= 4;
  numbers.size = type <= 10 ? sizes[(type - 1) / 2] : type <= 12 ? 2 : type <= 16 ? 4 : 8;
  return &numbers;
}
static unsigned at_most_3(unsigned member) { return member < 3 ? member : 3; }

int H5Tget_class(hid_t type) { return described(type)->type_class; }
size_t H5Tget_size(hid_t type) { return described(type)->size; }
int H5Tget_nmembers(hid_t type) { return described(type)->members; }
hid_t H5Tget_member_type(hid_t type, unsigned member) {
  return fails("H5Tget_member_type") ? -1 : described(type)->member[at_most_3(member)];
}
size_t H5Tget_member_offset(hid_t type, unsigned member) {
  return described(type)->offset[at_most_3(member)] + 4 * (member - at_most_3(member));
}
char* H5Tget_member_name(hid_t type, unsigned member) {
  const char* const name = described(type)->name[at_most_3(member)];
  return fails("H5Tget_member_name") || name == NULL ? NULL : strdup(name);
}
hid_t H5Tget_super(hid_t type) { return fails("H5Tget_super") ? -1 : described(type)->super; }
int H5Tget_array_ndims(hid_t type) { return described(type)->rank; }
int H5Tget_array_dims2(hid_t type, uint64_t* dims) {
  const struct fake_type* const array = described(type);
  if (fails("H5Tget_array_dims2")) return -1;
  memcpy(dims, array->dims, sizeof *dims * (size_t)array->rank);
  return array->rank;
}
int H5Tis_variable_str(hid_t type) { return described(type)->variable; }
