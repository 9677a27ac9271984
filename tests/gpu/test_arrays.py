# SPDX-License-Identifier: BSD-3-Clause
"""Whose arrays are taken, and what is said of those that are not."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field

import pyfilter
from pyfilter import Cuszp2
from pyfilter.gpu import is_device_array

BOUND = Cuszp2(absolute=1e-3)


class Interface:
    """A device array that has nothing but the interface, as Numba's have."""

    def __init__(self, owner: Any, **changes: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {**owner.__cuda_array_interface__, "strides": None, **changes}


class Dlpack:
    """A device array that has nothing but DLPack."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.owner.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.owner.device.id


@pytest.mark.parametrize("kind", [Interface, Dlpack])
def test_protocols(cp: Any, file: h5py.File, kind: Any) -> None:
    values = field((60, 50))
    given = kind(cp.asarray(values))
    assert is_device_array(given)
    frame = pyfilter.encode(given, BOUND)
    assert frame.get().tobytes() == pyfilter.encode(values, BOUND)
    expected = pyfilter.decode(frame.get())
    np.testing.assert_array_equal(pyfilter.decode(kind(frame)).get(), expected)
    dataset = pyfilter.create_dataset(file, "a", given, BOUND, chunks=(16, 50))
    out = cp.zeros((60, 50), "f4")
    wrapped = kind(out)
    assert pyfilter.read(dataset, out=wrapped) is wrapped
    np.testing.assert_array_equal(out.get(), dataset[...])
    pyfilter.decode(frame, out=kind(out))
    np.testing.assert_array_equal(out.get(), expected)


def test_read_only_memory_is_not_written(cp: Any, file: h5py.File) -> None:
    owner = cp.zeros((60, 50), "f4")
    locked = Interface(owner, data=(owner.data.ptr, True))
    assert pyfilter.encode(locked, BOUND).get().tobytes() == pyfilter.encode(np.zeros((60, 50), "f4"), BOUND)
    dataset = pyfilter.create_dataset(file, "a", field((60, 50)), BOUND)
    with pytest.raises(ValueError, match="read-only"):
        pyfilter.read(dataset, out=locked)
    with pytest.raises(ValueError, match="read-only"):
        pyfilter.decode(pyfilter.encode(field((60, 50)), BOUND), out=locked)
    assert not owner.get().any()


def test_big_endian_memory_is_refused(cp: Any) -> None:
    with pytest.raises(TypeError, match="byte order"):
        pyfilter.encode(Interface(cp.zeros((3,), "f4"), typestr=">f4"), BOUND)


@pytest.mark.device_only
def test_pytorch(cp: Any, file: h5py.File) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch sees no device")
    values = field((60, 50))
    tensor = torch.from_numpy(values).cuda()
    assert is_device_array(tensor)
    assert not is_device_array(torch.from_numpy(values))
    assert pyfilter.encode(tensor, BOUND).get().tobytes() == pyfilter.encode(values, BOUND)
    assert pyfilter.encode(tensor.T, BOUND).get().tobytes() == pyfilter.encode(values.T, BOUND)
    dataset = pyfilter.create_dataset(file, "a", tensor, BOUND, chunks=(16, 20))
    out = torch.empty((60, 50), dtype=torch.float32, device="cuda")
    assert pyfilter.read(dataset, out=out) is out
    np.testing.assert_array_equal(out.cpu().numpy(), dataset[...])
    assert torch.as_tensor(pyfilter.read(dataset, device="cuda"), device="cuda").equal(out)
    # values that another stream is still computing are waited for
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        late = tensor
        for _ in range(200):
            late = late + torch.zeros_like(tensor)
        assert pyfilter.encode(late, BOUND).get().tobytes() == pyfilter.encode(values, BOUND)
    with pytest.raises(TypeError, match="grad"):
        pyfilter.encode(tensor.clone().requires_grad_(), BOUND)
    brain = tensor.to(torch.bfloat16)
    frame = pyfilter.encode(brain, BOUND)
    assert pyfilter.frame_info(frame.get().tobytes()).dtype.name == "bfloat16"
    found = np.asarray(pyfilter.decode(frame.get().tobytes())).astype("f4")
    np.testing.assert_allclose(found, brain.float().cpu().numpy(), rtol=0, atol=1e-3)


@pytest.mark.device_only
def test_jax(cp: Any, file: h5py.File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax", exc_type=ImportError)
    try:
        device = jax.devices("gpu")[0]
    except RuntimeError:
        pytest.skip("this JAX sees no device")
    values = field((60, 50))
    given = jax.device_put(values, device)
    assert is_device_array(given)
    assert pyfilter.encode(given, BOUND).get().tobytes() == pyfilter.encode(values, BOUND)
    assert pyfilter.encode(given + 1, BOUND).get().tobytes() == pyfilter.encode(np.asarray(given + 1), BOUND)
    dataset = pyfilter.create_dataset(file, "a", given, BOUND, chunks=(16, 20))
    with pytest.raises(ValueError, match="read-only"):  # JAX's arrays never change
        pyfilter.read(dataset, out=given)
    np.testing.assert_array_equal(
        np.asarray(jax.dlpack.from_dlpack(pyfilter.read(dataset, device="cuda"))), dataset[...]
    )


@pytest.mark.device_only
def test_numba(cp: Any) -> None:
    cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)
    values = field((60, 50))
    try:
        given = cuda.to_device(values)
    except Exception as error:
        pytest.skip(f"numba cannot use the device: {error}")
    assert pyfilter.encode(given, BOUND).get().tobytes() == pyfilter.encode(values, BOUND)


@pytest.mark.device_only
def test_two_devices(cp: Any, file: h5py.File) -> None:
    if cp.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one device only")
    values = field((60, 50))
    with cp.cuda.Device(1):
        there = cp.asarray(values)
    # the current device stays what it is, the work is done where the array is
    frame = pyfilter.encode(there, BOUND)
    assert frame.device.id == 1
    assert cp.cuda.Device().id == 0
    assert frame.get().tobytes() == pyfilter.encode(values, BOUND)
    assert pyfilter.decode(frame).device.id == 1
    out = cp.zeros((60, 50), "f4")
    pyfilter.decode(frame, out=out)
    np.testing.assert_array_equal(out.get(), pyfilter.decode(frame.get()))
    dataset = pyfilter.create_dataset(file, "a", there, Cuszp2(relative=1e-3), chunks=(16, 20))
    assert pyfilter.read(dataset, device="cuda:1").device.id == 1
    pyfilter.read(dataset, out=there)
    pyfilter.read(dataset, out=out)
    np.testing.assert_array_equal(out.get(), dataset[...])
    np.testing.assert_array_equal(there.get(), dataset[...])


@pytest.mark.device_only
def test_the_current_stream_is_kept_to(cp: Any, file: h5py.File) -> None:
    values = field((2000, 500))
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        given = cp.asarray(values)
        for _ in range(50):
            given = given + 1 - 1
        expected = given.get()
        frame = pyfilter.encode(given + 0, BOUND)
        assert frame.get().tobytes() == pyfilter.encode(expected, BOUND)
        dataset = pyfilter.create_dataset(file, "a", given + 0, BOUND, chunks=(100, 500))
        out = cp.zeros((2000, 500), "f4")
        pyfilter.read(dataset, out=out)
    np.testing.assert_array_equal(out.get(), dataset[...])
    assert pyfilter.verify(expected, dataset[...], 1e-3).ok
