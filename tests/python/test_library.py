# SPDX-License-Identifier: BSD-3-Clause
"""The compiled library as Python sees it: cd_values, and a library that is missing or wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pyfilter
from pyfilter._lib import host

from .support import clean_environment, run_script


def test_cd_values_mean_the_same_to_python_and_to_the_library() -> None:
    codec = pyfilter.Cuszp2(relative=0.25, mode="plain", block_dims=3)
    request = host.parse_cd_values(codec.filter_options)
    assert (request.codec, request.bound_mode, request.bound) == (1, 2, 0.25)
    assert bytes(request.parameters) == codec.parameter_bytes


def test_the_library_refuses_what_python_refuses() -> None:
    with pytest.raises(ValueError, match="cd_values"):
        host.parse_cd_values((7, 1, 1))


def test_without_the_library_codecs_work_and_the_rest_says_why(tmp_path: Path) -> None:
    script = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pyfilter
assert "missing" in str(caught[0].message), caught
assert pyfilter.Cuszp2(absolute=1.0).filter_options[0] == 1
encode = lambda: pyfilter.encode([1.0], pyfilter.Lossless())
for action in (encode, pyfilter.register, lambda: pyfilter.config().threads):
    try:
        action()
    except pyfilter.errors.LibraryMissing as error:
        assert sys.argv[1] in str(error), error
    else:
        raise SystemExit("no error")
"""
    nowhere = str(tmp_path / "nothing.so")
    run_script(script, nowhere, env=clean_environment(PYFILTER_LIBRARY=nowhere))


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "libh5pyfilter.so"
    wrong.write_bytes(b"no library")
    script = """
import warnings
warnings.simplefilter("ignore")
import pyfilter
try:
    pyfilter.register()
except ImportError as error:
    print(error)
"""
    assert str(wrong) in run_script(script, env=clean_environment(PYFILTER_LIBRARY=str(wrong))).stdout


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="functions of CPython")
@pytest.mark.parametrize("first", ["pyfilter", "another package"])
def test_other_packages_types_of_pythons_functions(first: str) -> None:
    """Attributes of ctypes.pythonapi are shared, and fsspec (2026.9) sets the types of one that pyfilter calls, too."""
    ours = "import pyfilter, numpy as np\n"
    theirs = """
import ctypes
make = ctypes.pythonapi.PyBytes_FromStringAndSize
make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_ssize_t), ctypes.py_object
"""
    used = """
frame = pyfilter.encode(np.arange(1000.0), pyfilter.Cuszp2(absolute=0.5))
assert abs(pyfilter.decode(frame) - np.arange(1000.0)).max() <= 0.5
assert type(make(None, 20)) is bytes
"""
    run_script((ours + theirs if first == "pyfilter" else theirs + ours) + used)
