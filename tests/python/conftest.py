# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures that several files use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter._chunks import transfer

from .support import field


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(
        transfer, "_MIN_BYTES_FOR_THREADS", 0
    )  # else the small chunks of tests would stay in one thread
    with pyfilter.config(threads=request.param):
        yield request.param


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    """An HDF5 file with one of everything that h5py can make."""
    path = tmp_path / "everything.h5"
    with h5py.File(path, "w", track_order=True, userblock_size=512) as file:
        file.create_dataset("zebra", data=field((100, 90)), chunks=(32, 40), compression="gzip", shuffle=True)
        file["apple"] = field((60, 70), "f8")
        file["zebra"].attrs["units"] = "K"
        group = file.create_group("group/inner", track_order=True)
        for name in ("z", "a", "m"):
            group.attrs[name] = name * 3
        group.create_dataset("big_endian", data=field((40, 50)).astype(">f4"), maxshape=(None, 50))
        group.create_dataset("sums", data=field((64, 64)), chunks=(16, 16), fletcher32=True)
        group.create_dataset("half", data=field((64, 64)).astype("f2"))
        group.create_dataset("complex", data=field((64, 64)).astype("c8"))
        group.create_dataset("integers", data=np.arange(5000))
        group.create_dataset("flags", data=np.arange(5000) % 2 == 0)
        group.create_dataset("strings", data=["one", "zwei", "trois"])
        group.create_dataset("fixed", data=np.array([b"a", b"bc"]))
        group.create_dataset(
            "ragged", data=np.array([np.arange(3), np.arange(5)], dtype=object), dtype=h5py.vlen_dtype("i4")
        )
        group.create_dataset("small", data=[1.0, 2.0])
        group.create_dataset("scalar", data=3.5)
        group.create_dataset("null", data=h5py.Empty("f4"))
        group.create_dataset("none", shape=(0, 40), dtype="f4", maxshape=(None, 40))
        group.create_dataset("compact", data=np.arange(10.0))
        group["records"] = np.array([(1, 2.5, b"x")] * 10, dtype=[("a", ">i2"), ("b", "f8"), ("c", "S3")])
        file["kind"] = np.dtype([("a", "i4"), ("b", "f8")])
        file["kind"].attrs["note"] = "a type with an attribute"
        group.create_dataset("named", data=np.ones(200, file["kind"].dtype), dtype=file["kind"], chunks=(50,))
        file["enumerated"] = h5py.enum_dtype({"A": 1, "B": 2}, "i1")
        group.create_dataset("enums", data=np.ones(20, "i1"), dtype=file["enumerated"])
        # links of every kind
        file["hard"] = file["zebra"]
        group["up"] = file
        file["soft"] = h5py.SoftLink("/group/inner/small")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["external"] = h5py.ExternalLink("other.h5", "/x")
        file["käse"] = [1, 2, 3]
        # references of every kind
        group.create_dataset(
            "references", data=np.array([file["zebra"].ref, group.ref, h5py.Reference()], dtype=h5py.ref_dtype)
        )
        group.create_dataset(
            "regions", data=np.array([file["zebra"].regionref[3:5, 10:20]], dtype=h5py.regionref_dtype)
        )
        mixed = np.dtype([("r", h5py.ref_dtype), ("i", "i4")])
        group.create_dataset("mixed", data=np.array([(file["apple"].ref, 5)], dtype=mixed))
        attrs = file["apple"].attrs
        attrs["reference"] = file["zebra"].ref
        attrs["region"] = file["zebra"].regionref[:, 3]
        attrs["many"] = np.array([file["zebra"].ref, file["group"].ref], dtype=h5py.ref_dtype)
        attrs["text"] = "naïve"
        attrs["texts"] = ["one", "zwei"]
        attrs["bytes"] = np.bytes_("plain")
        attrs["numbers"] = np.arange(6, dtype=">i2").reshape(2, 3)
        attrs["empty"] = h5py.Empty("f4")
        attrs["zero"] = np.zeros((0, 3))
        attrs["bool"] = True
        attrs["complex"] = 1 + 2j
        attrs["opaque"] = np.void(b"\0\1\2")
        attrs.create("ragged", np.array([np.arange(3), np.arange(1)], dtype=object), dtype=h5py.vlen_dtype("i8"))
        attrs.create("named", np.zeros(2, file["kind"].dtype), dtype=file["kind"])
        # dimension scales
        for name in ("x", "y"):
            file[f"scale_{name}"] = np.linspace(0, 1, 60 if name == "y" else 70)
            file[f"scale_{name}"].make_scale(name)
        file["apple"].dims[0].attach_scale(file["scale_y"])
        file["apple"].dims[1].attach_scale(file["scale_x"])
        file["apple"].dims[0].label = "why"
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(512))
    return path
