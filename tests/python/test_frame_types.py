# SPDX-License-Identifier: BSD-3-Clause
"""Element types of frames beside floats of 32 and 64 bits and integers: bit for bit, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless, errors


@pytest.mark.parametrize("effort", ["fast", "ratio"])
def test_bool(effort: str) -> None:
    for shape in ((), (0,), (1,), (33,), (50, 70)):
        values = np.random.default_rng(0).random(shape) < 0.2
        frame = pyfilter.encode(values, pyfilter.Lossless(effort=effort), fill_value=True)
        decoded = pyfilter.decode(frame)
        assert (decoded.dtype, decoded.shape) == (np.dtype(bool), shape)
        assert np.array_equal(decoded, values)
        assert np.array_equal(pyfilter.decode(frame, 0, values.size // 2), np.ravel(values)[: values.size // 2])
        assert pyfilter.verify(values, decoded, pyfilter.Lossless()).ok
    assert not pyfilter.verify(np.array([True, False]), np.array([True, True]), 0).ok
    with pytest.raises(TypeError, match="cannot encode bool"):
        pyfilter.encode(values, pyfilter.HierarchicalDelta(absolute=1))


@pytest.mark.parametrize("effort", ["fast", "ratio"])
@pytest.mark.parametrize("dtype", ["<f2", ">f2"])
def test_float16(effort: str, dtype: str) -> None:
    for shape in ((), (0,), (1,), (31,), (33,), (50, 70), (256, 256)):
        bits = np.random.default_rng(0).integers(0, 1 << 16, shape, np.uint16)
        values = bits.view("f2").astype(dtype)
        frame = pyfilter.encode(values, pyfilter.Lossless(effort=effort), fill_value=-999)
        info, decoded = pyfilter.frame_info(frame), pyfilter.decode(frame)
        assert (info.dtype, info.shape, info.big_endian) == (np.dtype("f2"), shape, dtype[0] == ">")
        assert decoded.dtype == np.dtype("f2")
        assert decoded.tobytes() == values.astype("f2").tobytes()
        assert pyfilter.verify(values, decoded, 0).ok
    with pytest.raises(TypeError, match=r"cannot encode .*(float16|f2); .*; Lossless\(\) takes it bit for bit"):
        pyfilter.encode(values, pyfilter.Progressive(absolute=1))


@pytest.mark.parametrize("effort", ["fast", "ratio"])
def test_bfloat16(effort: str, tmp_path: Path) -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    for shape in ((), (0,), (33,), (50, 70)):
        bits = np.random.default_rng(0).integers(0, 1 << 16, shape, np.uint16)
        values = bits.view(bfloat16)
        decoded = pyfilter.decode(pyfilter.encode(values, pyfilter.Lossless(effort=effort), fill_value=-999))
        assert (decoded.dtype, decoded.shape) == (bfloat16, shape)
        assert decoded.tobytes() == values.tobytes()
        assert pyfilter.verify(values, decoded, 0).ok
    with pytest.raises(TypeError, match=r"cannot encode bfloat16; .*; Lossless\(\) takes it bit for bit"):
        pyfilter.encode(values, pyfilter.Progressive(absolute=1))
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(TypeError, match="h5py stores bfloat16 as opaque"):
        pyfilter.create_dataset(file, "x", values, pyfilter.Lossless())


def test_enumerations_have_no_bound(tmp_path: Path) -> None:
    kind = h5py.enum_dtype({"RED": 0, "BLUE": 42}, basetype="i2")
    values = np.zeros((50, 50), kind)
    values[3:5] = 42
    lossy = pyfilter.HierarchicalDelta(absolute=1)
    with pytest.raises(TypeError, match=r"of an enumeration .* use Lossless\(\)"):
        pyfilter.encode(values, lossy)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(TypeError, match=r"of an enumeration .* use Lossless\(\)"):
            pyfilter.create_dataset(file, "x", values, lossy)
        assert "x" not in file
        for number, codec in enumerate((pyfilter.Lossless(), pyfilter.HierarchicalDelta(absolute=0))):
            made = pyfilter.create_dataset(file, f"x{number}", values, codec)
            assert h5py.check_enum_dtype(made.dtype) == {"RED": 0, "BLUE": 42}
            assert np.array_equal(pyfilter.read(made), values)
        mask = pyfilter.create_dataset(file, "mask", values != 0, pyfilter.Lossless(effort="ratio"))
        assert mask.dtype == np.dtype(bool)
        assert np.array_equal(pyfilter.read(mask), values != 0)
        pyfilter.write(mask, values == 0)
        assert np.array_equal(mask[...], values == 0)
        assert pyfilter.verify(values == 0, mask).ok


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(4, "V2"), np.zeros(4, "G"), np.zeros(4, "i4"), np.zeros(4, object),
        np.zeros(4, "S3"), np.zeros(4, "U3"), np.zeros(4, "M8[s]"), np.zeros(4, [("a", "f4")]), np.zeros(4, "g"),
        "text", None,
    ],
    ids=lambda values: str(getattr(values, "dtype", values)),
)  # fmt: skip
def test_other_types_are_refused_and_the_allowed_ones_named(values: Any) -> None:
    with pytest.raises(TypeError, match="float32, float64"):
        pyfilter.encode(values, Cuszp2(absolute=1.0))


def test_lossless_names_its_types() -> None:
    with pytest.raises(errors.Unsupported, match=r"float32, float64, int8, .*uint64"):
        pyfilter.encode(np.zeros(3, "S3"), Lossless())
