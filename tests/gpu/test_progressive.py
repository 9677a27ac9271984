# SPDX-License-Identifier: BSD-3-Clause
"""Progressive on the device: frames and files are those of the host, and so are values read to a tolerance."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field

import pyfilter
from gpu import progressive_cases
from pyfilter import Progressive, errors, progressive
from pyfilter._lib import cuda


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", ["smooth", "NaN and infinities", "fill", "fill near"])
def test_frames_are_those_of_the_host(cp: Any, dtype: str, kind: str) -> None:
    for shape in ((5000,), (60, 70), (20, 33, 40)):
        values, fill = progressive_cases.make(kind, shape, dtype, np.random.default_rng(1))
        for codec in progressive_cases.codecs():
            frame = pyfilter.encode(values, codec, fill_value=fill)
            assert pyfilter.encode(cp.asarray(values), codec, fill_value=fill).get().tobytes() == bytes(frame)
            assert pyfilter.decode(frame, device="cuda").get().tobytes() == pyfilter.decode(frame).tobytes()


def test_files(cp: Any, file: h5py.File) -> None:
    values = field((70, 64, 32))
    for name, source in (("host", values), ("device", cp.asarray(values))):
        dataset = file.create_dataset(
            name, values.shape, "f4", chunks=(32, 32, 32), compression=Progressive(absolute=1e-4)
        )
        pyfilter.write(dataset, source)
    for i in range(file["host"].id.get_num_chunks()):
        place = file["host"].id.get_chunk_info(i).chunk_offset
        assert file["host"].id.read_direct_chunk(place) == file["device"].id.read_direct_chunk(place)
    np.testing.assert_array_equal(pyfilter.read(file["device"], device="cuda").get(), file["host"][...])


def test_tolerances(cp: Any, tmp_path: Path) -> None:
    values = field((70, 64, 32))
    values[3:9, ::7] = np.nan
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (102, 64, 32), "f4", chunks=(32, 32, 32), compression=Progressive())
        dataset[:70] = values
    with (
        progressive.open(tmp_path / "x.h5", "x") as host,
        progressive.open(tmp_path / "x.h5", "x") as reader,
    ):
        for tolerance in (0.1, 1e-3, None):
            expected, found = host.read(tolerance), reader.refine(tolerance, device="cuda")
            assert isinstance(found, cp.ndarray)
            np.testing.assert_array_equal(found.get(), expected)
            assert (reader.bytes_read, reader.max_error) == (host.bytes_read, host.max_error)
        for selection in (np.s_[5:60, 3], np.s_[..., 7]):
            np.testing.assert_array_equal(reader.read(0.01, selection, device="cuda").get(), host.read(0.01, selection))
        np.testing.assert_array_equal(reader.read(0.01, level=2, device="cuda").get(), host.read(0.01, level=2))


def test_damaged_frames_are_errors_or_values(cp: Any) -> None:
    rng = np.random.default_rng(2)
    for frame in progressive_cases.frames("f4"):
        for _ in range(20):
            broken = bytearray(frame)
            broken[int(rng.integers(8 * frame[7], len(frame)))] ^= 1 << int(rng.integers(0, 8))
            try:
                expected = pyfilter.decode(bytes(broken))
            except pyfilter.errors.FrameError:
                with pytest.raises(pyfilter.errors.FrameError):
                    pyfilter.decode(bytes(broken), device="cuda")
                continue
            assert pyfilter.decode(bytes(broken), device="cuda").get().tobytes() == expected.tobytes()


@pytest.mark.parametrize("devices", ["cuda", "all"])
def test_tolerances_through_devices(file: h5py.File, devices: str) -> None:
    """Values in host memory: the same values, bytes and errors, whatever was read before."""
    values = field((70, 64, 32))
    values[3:9, ::7] = np.nan
    values[40:70] = np.random.default_rng(1).integers(0, 2**32, (30, 64, 32), "u4").view("f4")  # stored as they are
    dataset = file.create_dataset("x", (102, 64, 32), "f4", chunks=(10, 32, 32), compression=Progressive())
    dataset[:70] = values
    with progressive.open(dataset) as host, progressive.open(dataset) as reader:
        for tolerance in (0.1, 1e-3, None):
            expected, found = host.read(tolerance), reader.refine(tolerance, devices=devices)
            np.testing.assert_array_equal(found, expected)
            assert (reader.bytes_read, reader.max_error) == (host.bytes_read, host.max_error)
        for selection in (np.s_[5:60, 3], np.s_[..., 7], np.s_[80:], np.s_[3:3]):
            np.testing.assert_array_equal(
                reader.read(0.01, selection, devices=devices), host.read(0.01, selection), strict=True
            )
        np.testing.assert_array_equal(reader.read(0.01, level=1, devices=devices), host.read(0.01, level=1))
        out = np.zeros((102, 32), "f8")
        assert reader.read(0.01, np.s_[:, 5], out=out, devices=devices) is out
        np.testing.assert_array_equal(out, host.read(0.01, np.s_[:, 5]))
        with pytest.raises(ValueError, match=r"device= .* or devices="):
            reader.read(0.1, device="cuda", devices=devices)
        with pytest.raises(ValueError, match="'cuda:77' is not there"):
            reader.read(0.1, devices=[77])


def test_formulas_through_devices(file: h5py.File) -> None:
    sets = [file.create_dataset(n, data=field((40, 30, 20), seed=i), chunks=(10, 30, 20), **Progressive())
            for i, n in enumerate("ab")]  # fmt: skip
    expected = progressive.retrieve(sets, "a**2 + b", 1e-3)
    found = progressive.retrieve(sets, "a**2 + b", 1e-3, devices="all")
    np.testing.assert_array_equal(found.values, expected.values)
    assert (found.max_error, found.bytes_read) == (expected.max_error, expected.bytes_read)


def test_failures_through_devices(file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = file.create_dataset("x", data=field((70, 64, 32)), chunks=(10, 32, 32), **Progressive())
    with progressive.open(dataset) as host, progressive.open(dataset) as reader:
        expected = host.read(0.01)
        real = cuda.progressive_decode
        calls = itertools.count()
        faults: dict[int, Exception] = {2: errors.NoMemory("no memory"), 7: errors.DeviceError("launch failure")}

        def failing(*arguments: Any) -> None:
            fault = faults.pop(next(calls), None)
            if fault is not None:
                raise fault
            real(*arguments)

        monkeypatch.setattr(cuda, "progressive_decode", failing)
        with pytest.raises(errors.DeviceError, match="launch failure"):
            reader.read(0.01, devices="all")
        calls, faults = itertools.count(), {3: errors.NoMemory("no memory")}
        with pytest.warns(RuntimeWarning, match="1 of 14 batches of chunks were decoded by the CPU: device .: no mem"):
            np.testing.assert_array_equal(reader.read(0.01, devices="all"), expected)
        # what came before the error was kept, and was not fetched again
        assert reader.bytes_read == host.bytes_read
        np.testing.assert_array_equal(reader.read(0.01, devices="all"), expected)
        assert reader.bytes_read == host.bytes_read
