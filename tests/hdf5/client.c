/* SPDX-License-Identifier: BSD-3-Clause
 * A C program that uses HDF5, to be linked in several ways (test_programs.py): "write FILE" makes a dataset with our
 * filter and reads it back, "read FILE" only reads. It declares what it calls, so that it needs no headers. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int64_t hid_t;
int H5open(void);
hid_t H5Fcreate(const char*, unsigned, hid_t, hid_t);
hid_t H5Fopen(const char*, unsigned, hid_t);
int H5Fclose(hid_t);
hid_t H5Screate_simple(int, const uint64_t*, const uint64_t*);
hid_t H5Pcreate(hid_t);
int H5Pset_chunk(hid_t, int, const uint64_t*);
int H5Pset_filter(hid_t, int, unsigned, size_t, const unsigned*);
int H5Pset_fill_value(hid_t, hid_t, const void*);
hid_t H5Dcreate2(hid_t, const char*, hid_t, hid_t, hid_t, hid_t, hid_t);
hid_t H5Dopen2(hid_t, const char*, hid_t);
int H5Dwrite(hid_t, hid_t, hid_t, hid_t, hid_t, const void*);
int H5Dread(hid_t, hid_t, hid_t, hid_t, hid_t, void*);
int H5Dclose(hid_t);
extern hid_t H5T_IEEE_F32LE_g, H5P_CLS_DATASET_CREATE_ID_g;

enum { kRows = 100, kColumns = 60 };
static float values[kRows][kColumns], back[kRows][kColumns];

static void fill(void) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) values[i][j] = i % 10 == 0 ? -999.0f : sinf(0.05f * (float)i) + 0.01f * (float)j;
}

static int write_dataset(hid_t file) {
  const unsigned words[] = {1, 1, 1, 3539053052u, 1062232653u}; /* cuszp2, absolute 0.001 */
  const uint64_t dims[] = {kRows, kColumns}, chunk[] = {32, 32};
  const float missing = -999.0f;
  const hid_t plist = H5Pcreate(H5P_CLS_DATASET_CREATE_ID_g);
  H5Pset_chunk(plist, 2, chunk);
  H5Pset_fill_value(plist, H5T_IEEE_F32LE_g, &missing);
  if (H5Pset_filter(plist, 52907, 1, 5, words) < 0) return 2;
  const hid_t dataset = H5Dcreate2(file, "x", H5T_IEEE_F32LE_g, H5Screate_simple(2, dims, NULL), 0, plist, 0);
  if (dataset < 0) return 3;
  return H5Dwrite(dataset, H5T_IEEE_F32LE_g, 0, 0, 0, values) < 0 || H5Dclose(dataset) < 0 ? 4 : 0;
}

static int read_dataset(hid_t file) {
  const hid_t dataset = H5Dopen2(file, "x", 0);
  if (dataset < 0 || H5Dread(dataset, H5T_IEEE_F32LE_g, 0, 0, 0, back) < 0) return 5;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j)
      if (!(fabsf(values[i][j] - back[i][j]) <= (i % 10 == 0 ? 0.0f : 1.001e-3f))) return 6;
  return 0;
}

int main(int count, char** arguments) {
  if (count != 3) return 1;
  fill();
  H5open();
  if (strcmp(arguments[1], "write") == 0) {
    const hid_t made = H5Fcreate(arguments[2], 2, 0, 0);
    const int failure = made < 0 ? 1 : write_dataset(made);
    if (failure != 0) return failure;
    H5Fclose(made);
  }
  return read_dataset(H5Fopen(arguments[2], 0, 0));
}
