# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.gpu on machines without a device or without CuPy, and its Python side on the model of a device."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2
from pyfilter._lib import cuda
from pyfilter.cli import doctor
from pyfilter.gpu import is_device_array

from .support import REPOSITORY, clean_environment, field, run_script

BOUND = Cuszp2(absolute=1e-3)


class Fake:
    """Looks like an array on a device."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}  # noqa: RUF012


class OnDevice:
    """An array of the DLPack protocol on some kind of device."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack__(self, **keywords: Any) -> Any:
        raise BufferError

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


class Gradient:
    """As PyTorch's tensors that require a gradient."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("use detach()")


def devices() -> int:
    return cuda.device_count()


def test_what_is_a_device_array() -> None:
    assert is_device_array(Fake())
    assert is_device_array(OnDevice(2))
    assert is_device_array(OnDevice(13))
    for thing in (
        OnDevice(1), OnDevice(3), OnDevice(10), Gradient(), np.zeros(3), np.float32(1), [1.0], 1.0, None, b"", "a",
        h5py.Empty("f4"), object(), OnDevice, memoryview(b""),
    ):  # fmt: skip
        assert not is_device_array(thing)


def test_importing_pyfilter_imports_no_cupy() -> None:
    script = "import sys, numpy, pyfilter as p; p.encode(numpy.zeros(9), p.Lossless()); print('cupy' in sys.modules)"
    assert run_script(script).stdout.split() == ["False"]


def test_without_cupy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # what import then raises has no name
    fake: Any = Fake()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (3,), "f4", chunks=(3,), compression=BOUND)
        for action in (
            lambda: pyfilter.encode(fake, BOUND),
            lambda: pyfilter.decode(fake),
            lambda: pyfilter.frame_info(fake),
            lambda: pyfilter.decode(pyfilter.encode(field((9,)), BOUND), out=fake),
            lambda: pyfilter.decode(pyfilter.encode(field((9,)), BOUND), device="cuda"),
            lambda: pyfilter.write(dataset, fake),
            lambda: pyfilter.create_dataset(file, "b", fake, BOUND),
            lambda: pyfilter.read(dataset, out=fake),
            lambda: pyfilter.read(dataset, device="cuda"),
        ):
            with pytest.raises(pyfilter.errors.MissingExtra, match="cupy"):
                action()
        assert "b" not in file


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="cupy is installed")
def test_the_extra_is_named_where_cupy_is_not_installed() -> None:
    fake: Any = Fake()
    with pytest.raises(ImportError, match=r"h5pyfilter\[gpu\]"):
        pyfilter.encode(fake, BOUND)


@pytest.mark.skipif(devices() > 0, reason="there is a device")
def test_without_a_device_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyfilter.gpu.arrays.import_cupy", lambda: None)
    fake: Any = Fake()
    with pytest.raises(pyfilter.errors.DeviceError, match=r"CUDA"):
        pyfilter.encode(fake, BOUND)
    with pytest.raises(RuntimeError, match=r"CUDA"):
        cuda.require()
    assert pyfilter.gpu.device_count() == pyfilter.config().cuda_devices == 0
    pyfilter.gpu.release_memory()  # nothing there, nothing wrong


def test_doctor_says_what_cuda_can_do() -> None:
    said = doctor._cuda(pyfilter.config())
    if not pyfilter.config().cuda:
        assert "no CUDA library" in said or "CUDA library cannot be loaded" in said
    elif devices() == 0:
        assert re.match("library loaded, not usable here: .*CUDA", said)
    else:
        assert re.match(r"library loaded, devices: \d+, with", said)


def test_names_of_devices(tmp_path: Path) -> None:
    frame = pyfilter.encode(field((9,)), BOUND)
    assert isinstance(pyfilter.decode(frame, device="cpu"), np.ndarray)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "a", field((9, 9)), BOUND)
        np.testing.assert_array_equal(pyfilter.read(dataset, device="cpu"), dataset[...])
        with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
            pyfilter.read(dataset, device="gpu")
        with pytest.raises(ValueError, match="not both"):
            pyfilter.read(dataset, out=np.zeros((9, 9)), device="cpu")


def test_a_fault_is_an_exception() -> None:
    if not pyfilter.config().cuda:
        with pytest.raises(pyfilter.errors.DeviceError, match="CUDA library"):
            cuda.check_fault(0)
        return
    cuda.check_fault(0)
    with pytest.raises(pyfilter.errors.CorruptFrame, match="directory"):
        cuda.check_fault(1)
    with pytest.raises(pyfilter.errors.InternalError):
        cuda.check_fault(4_000_000_000)


def test_the_python_side_on_a_model_of_a_device() -> None:
    """All of tests/gpu that needs no true device: shapes, offsets, batches, errors."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(REPOSITORY / "tests" / "gpu")],
        env=clean_environment(PYFILTER_TEST_GPU="model"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=REPOSITORY,
    )
    assert result.returncode == 0, result.stdout[-4000:]
    assert " passed" in result.stdout
