# SPDX-License-Identifier: BSD-3-Clause
"""registry.json, and that the classes and the compiled library are what it says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import pyfilter
from pyfilter._lib import library
from pyfilter.registry import parameter_name, registry


def test_every_codec_has_its_class_and_no_class_is_left_over() -> None:
    assert {spec.class_name for spec in registry().codecs.values()} == {
        cls.__name__ for cls in pyfilter.FILTERS.values()
    }
    for name, cls in pyfilter.FILTERS.items():
        assert registry().codecs[name].class_name == cls.__name__
        assert getattr(pyfilter, cls.__name__) is cls


@pytest.mark.parametrize("name", registry().codecs)
def test_fields_are_the_bounds_and_parameters_of_the_registry(name: str) -> None:
    spec = registry().codecs[name]
    fields = {field.name: field for field in dataclasses.fields(pyfilter.FILTERS[name])}  # type: ignore[arg-type]
    bounds = {bound for bound in spec.bounds if bound != "none"}
    assert set(fields) == bounds | {parameter.name for parameter in spec.parameters}
    for parameter in spec.parameters:
        assert parameter_name(fields[parameter.name].default) == parameter.default


def test_dtypes_have_the_size_that_numpy_gives_them() -> None:
    for spec in registry().dtypes.values():
        assert np.dtype(spec.numpy).itemsize == spec.size_bytes


def test_ids_and_codes_are_unique() -> None:
    ids = [spec.id for spec in registry().codecs.values()]
    codes = [spec.code for spec in registry().dtypes.values()]
    assert len(set(ids)) == len(ids)
    assert len(set(codes)) == len(codes)


def test_unknown_ids_are_none() -> None:
    assert registry().codec_by_id(250) is None
    assert registry().dtype_by_code(0) is None


def test_the_library_is_of_the_same_release() -> None:
    assert library.version() == registry().version == pyfilter.__version__


def test_the_filter_id_is_in_the_range_for_unregistered_filters() -> None:
    assert 32768 <= pyfilter.FILTER_ID <= 65535
