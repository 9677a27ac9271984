# SPDX-License-Identifier: BSD-3-Clause
"""Programs of others read our files, with nothing but HDF5_PLUGIN_PATH. What is not installed is skipped."""
