# SPDX-License-Identifier: BSD-3-Clause
"""The compiled library as Python sees it: the two structures, and a library that is missing or wrong."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest

import pyfilter
from pyfilter import _native

from .support import REPOSITORY, clean_environment, run_script

C_TYPES: dict[str, Any] = {
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "int32_t": ctypes.c_int32,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
}


@pytest.mark.parametrize(("name", "structure"), [("pyf_request", _native.Request), ("pyf_info", _native.Info)])
def test_structures_are_those_of_the_header(name: str, structure: type[ctypes.Structure]) -> None:
    header = (REPOSITORY / "filter" / "c_api.h").read_text(encoding="utf-8")
    body = re.search(rf"typedef struct {name} {{(.*?)}} {name};", header, re.DOTALL)
    assert body is not None
    text = re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL)
    expected = []
    for kind, field, _, count in re.findall(r"(\w+) (\w+)(\[(\d+)\])?;", text):
        expected.append((field, C_TYPES[kind] * int(count) if count else C_TYPES[kind]))
    assert [tuple(item) for item in structure._fields_] == expected


def test_every_function_of_the_header_has_its_prototype() -> None:
    header = (REPOSITORY / "filter" / "c_api.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"PYF_API [^;(]*?\b(pyf_\w+)\(", header))
    assert declared == set(_native._PROTOTYPES)


def test_cd_values_mean_the_same_to_python_and_to_the_library() -> None:
    codec = pyfilter.Cuszp2(relative=0.25, mode="plain", block_dims=3)
    request = _native.parse_cd_values(codec.filter_options)
    assert (request.codec, request.bound_mode, request.bound) == (1, 2, 0.25)
    assert bytes(request.parameters) == codec.parameter_bytes


def test_the_library_refuses_what_python_refuses() -> None:
    with pytest.raises(ValueError, match="cd_values"):
        _native.parse_cd_values((7, 1, 1))


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
