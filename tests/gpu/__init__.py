# SPDX-License-Identifier: BSD-3-Clause
"""Tests on a CUDA device. `model` in PYFILTER_TEST_GPU runs them on model.py, where there is no device."""
