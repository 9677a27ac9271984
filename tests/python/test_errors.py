# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions: one for each status code of the C library, each also a built-in one."""

from __future__ import annotations

import pickle
import re

import pytest

from pyfilter import errors

from .support import REPOSITORY


def test_every_status_code_of_the_header_has_its_exception() -> None:
    text = (REPOSITORY / "filter" / "c_api.h").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"PYF_[A-Z_]+ = (\d+)", text)} - {0}
    assert codes
    for code in codes:
        assert type(errors.from_code(code, "text")) is not errors.PyfilterError
        assert "unknown status" not in str(errors.from_code(code, "text"))


@pytest.mark.parametrize(
    ("code", "kind", "builtin"),
    [
        (10, errors.InvalidArgument, ValueError),
        (20, errors.Unsupported, TypeError),
        (30, errors.CorruptFrame, ValueError),
        (31, errors.TruncatedFrame, ValueError),
        (32, errors.TooNew, ValueError),
        (50, errors.NoMemory, MemoryError),
        (60, errors.DeviceError, RuntimeError),
    ],
)
def test_codes(code: int, kind: type[errors.PyfilterError], builtin: type[Exception]) -> None:
    error = errors.from_code(code, "text")
    assert type(error) is kind
    assert isinstance(error, builtin)
    assert str(error) == "text"


def test_an_unknown_code_is_an_internal_error() -> None:
    assert isinstance(errors.from_code(77, "odd"), errors.InternalError)
    assert "77" in str(errors.from_code(77, "odd"))


def test_a_netcdf_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(errors.NetcdfError("text", -136)))
    assert (str(error), error.code) == ("text", -136)


def test_a_missing_extra_names_it() -> None:
    assert "h5pyfilter[netcdf]" in str(errors.missing_extra("netCDF4", "netcdf"))
