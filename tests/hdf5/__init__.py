# SPDX-License-Identifier: BSD-3-Clause
"""The filter where it meets HDF5: with h5py, netCDF4 and the command-line programs themselves."""
