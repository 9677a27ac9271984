# SPDX-License-Identifier: BSD-3-Clause
"""Codec classes: arguments, identity, and cd_values in both directions (docs/cd_values.md)."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import struct
from decimal import Decimal
from fractions import Fraction
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Codec, Cuszp2, HierarchicalDelta, Lorenzo, Lossless

CODECS = [
    Cuszp2(absolute=1e-3),
    Cuszp2(relative=1e-4),
    Cuszp2(absolute=5e-324),
    Cuszp2(absolute=1.7976931348623157e308, mode="plain"),
    Cuszp2(relative=0.1, mode="fixed", block_dims=2),
    Cuszp2(absolute=math.pi, block_dims=3),
    HierarchicalDelta(absolute=1e-3),
    HierarchicalDelta(relative=1e-4, predictor="columns"),
    HierarchicalDelta(absolute=0.1, predictor="lorenzo3d", outliers="off"),
    Lorenzo(absolute=1e-3),
    Lorenzo(psnr=60, predictor="columns", coder="huffman"),
    Lorenzo(pointwise_relative=0.1, coder="huffman", gap_array=False),
    Lossless(),
    Lossless(block_dims=3),
]


@pytest.fixture(params=CODECS, ids=repr)
def codec(request: pytest.FixtureRequest) -> Codec:
    made: Codec = request.param
    return made


def test_repr_makes_the_same_codec(codec: Codec) -> None:
    assert eval(repr(codec), {cls.__name__: cls for cls in pyfilter.FILTERS.values()}) == codec


def test_repr_leaves_defaults_out() -> None:
    assert repr(Cuszp2(absolute=0.001)) == "Cuszp2(absolute=0.001)"
    assert repr(Lossless()) == "Lossless()"
    assert repr(HierarchicalDelta(relative=0.5, outliers="auto")) == "HierarchicalDelta(relative=0.5)"


def test_copies_are_equal(codec: Codec) -> None:
    assert copy.copy(codec) == copy.deepcopy(codec) == pickle.loads(pickle.dumps(codec)) == codec


def test_equal_codecs_have_equal_hashes(codec: Codec) -> None:
    assert {codec: 1}[copy.deepcopy(codec)] == 1
    assert len(set(CODECS)) == len(CODECS)


def test_codecs_cannot_be_changed() -> None:
    codec = Cuszp2(absolute=1e-3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        codec.absolute = 1.0  # type: ignore[misc]


def test_codecs_are_what_h5py_takes(codec: Codec) -> None:
    assert isinstance(codec, h5py.filters.FilterRefBase)
    assert dict(**codec) == {"compression": pyfilter.FILTER_ID, "compression_opts": codec.filter_options}


def test_filter_options_are_the_user_form() -> None:
    codec = Cuszp2(absolute=1e-3, mode="plain", block_dims=3)
    low, high = struct.unpack("<II", struct.pack("<d", 1e-3))
    assert codec.filter_options == (1, 1, 1, low, high, 1 | 3 << 8)
    assert Cuszp2(relative=1e-3).filter_options == (1, 1, 2, low, high, 0)
    assert Lossless().filter_options == (1, 2, 0, 0, 0, 0)
    columns = HierarchicalDelta(absolute=1e-3, predictor="columns", outliers="off")
    assert columns.filter_options == (1, 3, 1, low, high, 4 | 2 << 8)
    huffman = Lorenzo(absolute=1e-3, predictor="chain", coder="huffman", gap_array=False)
    assert huffman.filter_options == (1, 4, 1, low, high, 1 | 2 << 8 | 2 << 16)
    assert all(type(word) is int for word in codec.filter_options)


def test_cd_values_come_back(codec: Codec) -> None:
    assert Codec.from_cd_values(codec.filter_options) == codec
    assert type(codec).from_cd_values(codec.filter_options) == codec


def test_signed_words_are_taken(codec: Codec) -> None:
    signed = [word - 2**32 if word >= 2**31 else word for word in codec.filter_options]
    assert Codec.from_cd_values(signed) == codec
    assert Codec.from_cd_values(np.array(signed, dtype=np.int32)) == codec


def test_the_stored_form_is_taken(codec: Codec) -> None:
    stored = (0x31465950, *codec.filter_options[1:], 1, 0, 0, 2, 10, 0, 20, 0)
    assert Codec.from_cd_values(stored) == codec


def test_short_forms_are_taken() -> None:
    assert Codec.from_cd_values((1, 2, 0)) == Lossless()
    assert Codec.from_cd_values(Cuszp2(absolute=2.0).filter_options[:5]) == Cuszp2(absolute=2.0)


def test_block_dims_of_one_may_be_written_as_itself() -> None:
    assert Codec.from_cd_values((1, 2, 0, 0, 0, 1 << 8)) == Lossless(block_dims=1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "3 to 6"),
        ((1, 2), "3 to 6"),
        ((1, 2, 0, 0, 0, 0, 0), "3 to 6"),
        ((3, 2, 0), "version"),
        ((1, 99, 0), "99"),
        ((1, 1, 0), "mode"),
        ((1, 2, 1, 0, 1), "mode"),
        ((1, 1, 1), "words 3 and 4"),
        ((1, 1, 1, 0, 0, 0), "> 0"),
        ((1, 1, 1, 0, 0x7FF00000, 0), "inf"),
        ((1, 1, 1, 0, 0x7FF80000, 0), "nan"),
        ((1, 1, 1, 0, 0xBFF00000, 0), "-1.0"),
        ((1, 1, 1, 0, 0x3FF00000, 3), "mode of cuszp2"),
        ((1, 1, 1, 0, 0x3FF00000, 4 << 8), "block_dims"),
        ((1, 1, 1, 0, 0x3FF00000, 1 << 16), "word 5"),
        ((1, 2, 0, 0, 0, 2), "effort of lossless"),
        ((1, 2, 0, 0, 0, 1 | 2 << 8), "block_dims"),
        ((1, 2, 0, 0, 0, 1 << 16), "word 5"),
        ((1, 3, 0), "mode"),
        ((1, 3, 1, 0, 0x3FF00000, 6), "predictor of hierarchical_delta"),
        ((1, 3, 1, 0, 0x3FF00000, 3 << 8), "outliers of hierarchical_delta"),
        ((1, 3, 1, 0, 0x3FF00000, 1 << 16), "word 5"),
        ((1, 4, 1, 0, 0x3FF00000, 3 << 8), "coder of lorenzo"),
        ((1, 4, 1, 0, 0x3FF00000, 1 << 16), "gap_array of lorenzo"),
        ((1, 4, 1, 0, 0x3FF00000, 1 << 24), "word 5"),
        ((1, 2, 0, 1, 0, 0), "words 3 and 4"),
        ((0x31465950, 2, 0), "10 words"),
        ((0x31465950, 2, 0, 0, 0, 0, 1, 0, 0, 2, 5, 0), "10 words"),
        ((1, 2, 2**32), "32 bits"),
        ((1, 2, -(2**31) - 1), "32 bits"),
        ((1, 2, 0.0), "32 bits"),
        ((True, 2, 0), "32 bits"),
        (("1", 2, 0), "32 bits"),
    ],
)
def test_bad_cd_values_are_refused(words: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Codec.from_cd_values(words)


def test_cd_values_of_another_codec_are_refused() -> None:
    with pytest.raises(ValueError, match="Lossless"):
        Cuszp2.from_cd_values(Lossless().filter_options)


@pytest.mark.parametrize(
    "value",
    [
        0, 0.0, -0.0, -1, -1e-300, math.nan, math.inf, -math.inf, True, False, np.True_, "0.1", b"1", 1j, [0.1],
        np.array([0.1]), 10**400, -(10**5000), Fraction(1, 10**400), Decimal("0.1"), np.float32("inf"), object(),
    ],
    ids=lambda value: f"{type(value).__name__}",
)  # fmt: skip
@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_bad_bounds_are_refused_by_value_and_range(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be a finite number > 0 \(float64\), got ") as caught:
        Cuszp2(**{name: value})
    assert isinstance(caught.value, pyfilter.PyfilterError)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (np.int8(3), 3.0),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.5), 0.5),
        (Fraction(1, 4), 0.25),
        (5e-324, 5e-324),
    ],
)
def test_numbers_of_all_kinds_are_taken(value: Any, expected: float) -> None:
    codec = Cuszp2(absolute=value)
    assert type(codec.absolute) is float
    assert codec.absolute == expected


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2, 3), 2**53 + 3, 2**53 + 1, np.longdouble(1) / 3])
def test_a_bound_is_never_rounded_up(value: Any) -> None:
    bound = Cuszp2(absolute=value).absolute
    assert bound is not None
    exact = value if isinstance(value, np.longdouble) else Fraction(value)
    assert bound <= exact
    assert math.nextafter(bound, math.inf) > exact


@pytest.mark.parametrize("given", [{}, {"absolute": 1.0, "relative": 1.0}, {"mode": "plain"}])
def test_exactly_one_bound_is_needed(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one of absolute=, relative= or psnr="):
        Cuszp2(**given)


@pytest.mark.parametrize("mode", ["", "Outlier", "delta", None, 0, b"plain", True])
def test_bad_modes_are_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match="mode must be one of 'outlier', 'plain', 'fixed'"):
        Cuszp2(absolute=1.0, mode=mode)


@pytest.mark.parametrize("value", ["", "Chain", "lorenzo", None, 0, b"chain", True])
def test_bad_predictors_are_refused(value: Any) -> None:
    names = "'auto', 'chain', 'lorenzo2d', 'lorenzo3d', 'columns'"
    with pytest.raises(ValueError, match=f"predictor must be one of {names}"):
        HierarchicalDelta(absolute=1.0, predictor=value)
    with pytest.raises(ValueError, match="outliers must be one of 'auto', 'on', 'off'"):
        HierarchicalDelta(absolute=1.0, outliers=value)


@pytest.mark.parametrize("value", ["", "true", 1, 0, None, 1.0])
def test_bad_coders_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="coder must be one of 'rans', 'huffman'"):
        Lorenzo(absolute=1.0, coder=value)
    with pytest.raises(ValueError, match="gap_array must be True or False"):
        Lorenzo(absolute=1.0, gap_array=value)


def test_a_gap_array_is_of_huffman_streams() -> None:
    with pytest.raises(ValueError, match="gap_array=False goes with coder='huffman' only"):
        Lorenzo(absolute=1.0, gap_array=False)


@pytest.mark.parametrize("block_dims", [0, 4, -1, 1.0, "1", True, None, 10**30])
@pytest.mark.parametrize("make", [Lossless, lambda **kwargs: Cuszp2(absolute=1.0, **kwargs)])
def test_bad_block_dims_are_refused(make: Any, block_dims: Any) -> None:
    with pytest.raises(ValueError, match="block_dims must be one of 1, 2, 3"):
        make(block_dims=block_dims)


def test_arguments_are_by_name_only() -> None:
    with pytest.raises(TypeError):
        Cuszp2(1e-3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Lossless(absolute=1.0)  # type: ignore[call-arg]


def test_with_absolute_keeps_the_rest() -> None:
    assert Cuszp2(relative=0.1, mode="plain").with_absolute(2.0) == Cuszp2(absolute=2.0, mode="plain")
    chain = HierarchicalDelta(relative=0.1, predictor="chain", outliers="on")
    assert chain.with_absolute(2.0) == HierarchicalDelta(absolute=2.0, predictor="chain", outliers="on")


def test_edges_are_those_of_blocks_and_tiles() -> None:
    assert [Lossless(block_dims=n).edges for n in (1, 2, 3)] == [(32,), (8, 8), (4, 4, 4)]
    assert HierarchicalDelta(absolute=1.0, predictor="columns").edges == (1024, 4)
    assert HierarchicalDelta(absolute=1.0).edges == (8, 64, 64)
