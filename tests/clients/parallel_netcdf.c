/* SPDX-License-Identifier: BSD-3-Clause
 * A program of netCDF-C with MPI, as its users write them: each process writes its rows of a compressed variable
 * collectively, and reads those of the next process. `parallel_netcdf FILE independent` writes without the others.
 * Words of the filter come from the environment variable WORDS. Prints the error of netCDF where one occurs. */
#include <math.h>
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 32, kColumns = 100 };

#define CHECK(call)                                                   \
  do {                                                                \
    int code_ = (call);                                               \
    if (code_ != NC_NOERR) {                                          \
      printf("process %d: %s: %s\n", rank, #call, nc_strerror(code_)); \
      fflush(stdout);                                                 \
      MPI_Abort(MPI_COMM_WORLD, 3);                                   \
    }                                                                 \
  } while (0)

static float value(size_t row, size_t column) { return (float)(sin(row * 0.1) * 20 + cos(column * 0.05)); }

int main(int argc, char** argv) {
  int rank = 0, size = 1, file = 0, dims[2], variable = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned words[16];
  size_t count = 0;
  for (char* word = strtok(getenv("WORDS"), ","); word != NULL && count < 16; word = strtok(NULL, ","))
    words[count++] = (unsigned)strtoul(word, NULL, 10);
  const int independent = argc > 2 && strcmp(argv[2], "independent") == 0;

  CHECK(nc_create_par(argv[1], NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  CHECK(nc_def_dim(file, "row", (size_t)(kRows * size), &dims[0]));
  CHECK(nc_def_dim(file, "column", kColumns, &dims[1]));
  CHECK(nc_def_var(file, "t", NC_FLOAT, 2, dims, &variable));
  const size_t chunk[2] = {kRows * 3 / 4, kColumns}; /* chunks that processes share */
  CHECK(nc_def_var_chunking(file, variable, NC_CHUNKED, chunk));
  CHECK(nc_def_var_filter(file, variable, 52907, count, words));
  CHECK(nc_enddef(file));
  CHECK(nc_var_par_access(file, variable, independent ? NC_INDEPENDENT : NC_COLLECTIVE));
  static float rows[kRows][kColumns];
  const size_t start[2] = {(size_t)(rank * kRows), 0}, extent[2] = {kRows, kColumns};
  for (size_t row = 0; row < kRows; row++)
    for (size_t column = 0; column < kColumns; column++) rows[row][column] = value(start[0] + row, column);
  CHECK(nc_put_vara_float(file, variable, start, extent, &rows[0][0]));
  CHECK(nc_close(file));

  CHECK(nc_open_par(argv[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  CHECK(nc_inq_varid(file, "t", &variable));
  const size_t next[2] = {(size_t)((rank + 1) % size * kRows), 0};
  CHECK(nc_get_vara_float(file, variable, next, extent, &rows[0][0]));
  for (size_t row = 0; row < kRows; row++)
    for (size_t column = 0; column < kColumns; column++)
      if (fabsf(rows[row][column] - value(next[0] + row, column)) > 1e-3f) MPI_Abort(MPI_COMM_WORLD, 4);
  CHECK(nc_close(file));
  MPI_Finalize();
  return 0;
}
