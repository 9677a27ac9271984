# SPDX-License-Identifier: BSD-3-Clause
"""The promise in every order of writing, with chunk caches of none to all chunks (docs/reliability.md).

Sequences of create, write a part, resize, flush, close, open again, overwrite, read and repack, by h5py and netCDF4.

``PYFILTER_SEQUENCES=20000 pytest tests/orders`` draws so many sequences for each kind of file, from a new seed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import pyfilter

from .files import H5pyFile, NetcdfFile, repack, transcode
from .model import Expected

SEQUENCES = int(os.environ.get("PYFILTER_SEQUENCES", "0"))
CODECS = (
    pyfilter.Cuszp2,
    pyfilter.HierarchicalDelta,
    pyfilter.Lorenzo,
    pyfilter.Adaptive,
    pyfilter.Adaptive,
    pyfilter.Progressive,
    pyfilter.Particles,
    pyfilter.Lossless,
    pyfilter.Auto,
)
FLOATS_ONLY = (pyfilter.Progressive, pyfilter.Particles)  # not of 16 bits
BOUNDS: dict[str, tuple[float, ...]] = {
    "relative": (1e-1, 1e-2, 1e-3, 1e-5),
    "psnr": (20.0, 60.0, 90.0),
    "absolute": (1e-2, 3.0),
    "pointwise_relative": (1e-1, 1e-3),
}
FLOATS, INTEGERS = ("<f4", "<f8", ">f4", ">f8"), ("<i2", "<u1", "<i4", ">i4", "<u8", "<i8")
HALVES = ("<f2", ">f2")  # h5py's alone: netCDF has no such type
CACHES = (0, 64, 400, 1 << 20)


@st.composite
def codecs(draw: Any, dtype: str) -> pyfilter.Codec:
    """Codecs and bounds that the type goes with; those that follow the range most of all."""
    integers = np.dtype(dtype).kind != "f"
    kinds = tuple(kind for kind in CODECS if dtype not in HALVES or kind not in FLOATS_ONLY)
    kind = draw(st.sampled_from((pyfilter.HierarchicalDelta, pyfilter.Lossless) if integers else kinds))
    if kind is pyfilter.Lossless:
        return pyfilter.Lossless()
    modes = ["relative", "relative", "psnr", "absolute"]
    if kind in (pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive) and not integers:
        modes.append("pointwise_relative")
    mode = draw(st.sampled_from(modes))
    options = {}
    if kind is pyfilter.Adaptive:  # with "auto" small chunks are frames of other codecs
        options["predictor"] = draw(st.sampled_from(["regression", "interpolation", "auto"]))
    codec: pyfilter.Codec = kind(**{mode: draw(st.sampled_from(BOUNDS[mode]))}, **options)
    return codec


class Orders(RuleBasedStateMachine):
    """Sequences with a file of h5py."""

    client: type[H5pyFile] = H5pyFile
    may_resize = True

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="pyfilter-orders-"))
        self.file: H5pyFile | None = None

    def teardown(self) -> None:
        """Judge what is in the file in the end."""
        if self.file is not None:
            self.file.close()
            self.file.open()
            self.expected.judge(self.file.read())
            self.file.close()
        shutil.rmtree(self.folder)

    @initialize(data=st.data())
    def create(self, data: Any) -> None:
        """A dataset of one to some chunks."""
        dtype = data.draw(st.sampled_from(FLOATS + HALVES + INTEGERS if self.may_resize else FLOATS[:2] + INTEGERS[:3]))
        codec = data.draw(codecs(dtype))
        rank = data.draw(st.integers(1, 3))
        shape = tuple(data.draw(st.integers(1, 9)) for _ in range(rank))
        chunk = tuple(data.draw(st.integers(1, 8)) for _ in range(rank))
        if rank == 1 and data.draw(st.booleans()):
            shape, chunk = (data.draw(st.integers(30, 140)),), (data.draw(st.integers(20, 140)),)
        if isinstance(codec, pyfilter.Particles):
            shape, chunk = (*shape[:1], 3), (*chunk[:1], 3)
        integers = np.dtype(dtype).kind != "f"
        fill = data.draw(st.sampled_from((0, 7) if integers else (0.0, 6e4, 1e20, -999.0, float("nan"))))
        fill = 6e4 if dtype in HALVES and fill == 1e20 else fill
        mode, bound = codec.bound
        if mode == "absolute" and integers:
            bound = float(int(bound))
        self.dtype, self.codec = np.dtype(dtype), codec
        self.file = self.client(self.folder / "file", data.draw(st.sampled_from(CACHES)))
        start = shape if self.may_resize else (0,) * len(shape)
        self.file.create(start, chunk, dtype, fill, codec)
        self.expected = Expected(start, chunk, dtype, fill, mode, bound)

    def draw_values(self, data: Any, shape: tuple[int, ...]) -> Any:
        """Values of a range that is drawn: smaller and larger ones than before, offsets, constants, special values."""
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        scale, offset = (
            data.draw(st.sampled_from((0.0, 0.01, 1.0, 5.0, 300.0))),
            data.draw(st.sampled_from((0.0, 0.0, 1.0, 250.0))),
        )
        native = self.dtype.newbyteorder("=")
        if native.kind != "f":
            info = np.iinfo(native)
            found = rng.standard_normal(shape) * scale * 10 + offset
            return np.clip(np.rint(found), max(info.min, -(2**52)), min(info.max, 2**52)).astype(native)
        values = (rng.standard_normal(shape) * scale + offset).astype(native)
        special = data.draw(st.sampled_from((None, None, None, 0.0, float("nan"), float("inf"), 1e20)))
        if special is not None:
            with np.errstate(over="ignore"):
                values[rng.random(shape) < 0.3] = native.type(special)
        return values

    @rule(data=st.data())
    def write(self, data: Any) -> None:
        """A part: a box, every second row, or all."""
        assert self.file is not None
        where, shape = [], []
        for extent in self.expected.values.shape:
            first = data.draw(st.integers(0, max(extent - 1, 0)))
            last = extent if data.draw(st.booleans()) else data.draw(st.integers(first, extent))
            step = data.draw(st.sampled_from((1, 1, 1, 2, 3)))
            where.append(slice(first, last, step))
            shape.append(len(range(first, last, step)))
        if 0 in shape:
            return
        self._write(tuple(where), self.draw_values(data, tuple(shape)))

    @rule(data=st.data())
    def write_all(self, data: Any) -> None:
        """All of it."""
        shape = self.expected.values.shape
        if 0 not in shape:
            self._write(tuple(slice(0, extent) for extent in shape), self.draw_values(data, shape))

    @rule(data=st.data())
    def write_back(self, data: Any) -> None:
        """What was read, a part of it changed: programs do that."""
        assert self.file is not None
        if 0 in self.expected.values.shape:
            return
        values = self.file.read()
        values = np.array(values, self.dtype.newbyteorder("="))
        flat = values.reshape(-1)
        part = data.draw(st.integers(0, flat.size))
        flat[:part] = self.draw_values(data, (part,))
        self._write(tuple(slice(0, extent) for extent in values.shape), values)

    def _write(self, where: tuple[slice, ...], values: Any) -> None:
        assert self.file is not None
        stored = self.file.read(where).astype(values.dtype)
        self.file.write(where, values)
        self.expected.write(where, values, stored)

    @precondition(lambda self: isinstance(self.file, self.client))  # h5py does not know netCDF's dimensions
    @rule(data=st.data())
    def append(self, data: Any) -> None:
        """A few more along the first dimension, and values there: what a growing archive does."""
        assert self.file is not None
        shape = self.expected.values.shape
        if shape[0] > 200:
            return
        size = (
            data.draw(st.integers(1, 4)),
            *(
                max(extent, 3 if isinstance(self.codec, pyfilter.Particles) else 2) if extent == 0 else extent
                for extent in shape[1:]
            ),
        )
        longer = (shape[0] + size[0], *size[1:])
        where = tuple(slice(shape[0] if axis == 0 else 0, extent) for axis, extent in enumerate(longer))
        values = self.draw_values(data, size)
        self.file.resize(longer)
        self.file.write(where, values)
        self.expected.resize(longer)
        fill = np.full(size, self.expected.fill, values.dtype)
        self.expected.write(where, values, fill)

    @precondition(lambda self: self.may_resize)
    @rule(data=st.data())
    def resize(self, data: Any) -> None:
        """Smaller or larger: values that are cut off are gone."""
        assert self.file is not None
        shape = tuple(
            data.draw(st.integers(0 if extent < 2 else 1, extent + 3)) for extent in self.expected.values.shape
        )
        if isinstance(self.codec, pyfilter.Particles):
            shape = (*shape[:-1], 3)
        self.file.resize(shape)
        self.expected.resize(shape)

    @rule()
    def flush(self) -> None:
        """Chunks are written and stay cached."""
        assert self.file is not None
        self.file.flush()

    @rule(cache=st.sampled_from(CACHES))
    def open_again(self, cache: int) -> None:
        """With another cache."""
        assert self.file is not None
        self.file.close()
        self.file.cache = cache
        self.file.open()

    @rule()
    def pack_again(self) -> None:
        """h5repack copies chunks as they are."""
        assert self.file is not None
        self.file.close()
        repack(self.file.path)
        self.file.open()

    @precondition(lambda self: self.may_resize)
    @rule()
    def copy(self) -> None:
        """A copy of what was read is a write of all of it."""
        assert self.file is not None
        values = self.file.read().astype(self.expected.values.dtype)
        self.file.close()
        transcode(self.file.path)
        self.expected.write(tuple(slice(0, extent) for extent in values.shape), values, values)
        self.file.open()

    @rule()
    def read(self) -> None:
        """All chunks go through the cache."""
        assert self.file is not None
        if 0 not in self.expected.values.shape:
            self.expected.judge(self.file.read())


class NetcdfOrders(Orders):
    """Sequences with a file of netCDF4."""

    client = NetcdfFile
    may_resize = False

    @rule(client=st.sampled_from([H5pyFile, NetcdfFile]))
    def change_client(self, client: type[H5pyFile]) -> None:
        """The next one to write may be h5py."""
        assert self.file is not None
        self.file.close()
        self.file = client(self.file.path, self.file.cache)
        self.file.open()


@pytest.mark.parametrize("machine", [Orders, NetcdfOrders], ids=["h5py", "netcdf4"])
def test_bound_holds_in_every_order_of_writing(machine: type[Orders]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=SEQUENCES or 150,
            stateful_step_count=20,
            derandomize=SEQUENCES == 0,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
