# SPDX-License-Identifier: BSD-3-Clause
"""Whole files compressed: faithful in everything that is not compressed, and within the bound in what is."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5, h5d, h5p, h5s, h5t, h5z

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.rewrite import Rules

from .rewriting import BOUND, compress, rows
from .support import field, run_tool

RELATIVE = Cuszp2(relative=1e-3)


def attributes(item: Any) -> dict[str, Any]:
    return {name: (item.attrs.get_id(name).dtype, item.attrs[name]) for name in item.attrs}


def test_everything_is_there_and_in_order(everything: Path) -> None:
    target, report = compress(everything)
    assert target.read_bytes()[:512] == everything.read_bytes()[:512]
    with h5py.File(everything) as before, h5py.File(target) as after:
        assert list(after) == list(before)
        assert list(after["group/inner"]) == list(before["group/inner"])
        assert list(after["group/inner"].attrs) == ["z", "a", "m"]
        compressed = [after[row.path] for row in report.compressed]
        names: list[str] = []
        before.visit(names.append)
        for name in names:
            one, two = before[name], after[name]
            assert type(one) is type(two)
            assert list(one.attrs) == list(two.attrs)
            if isinstance(one, h5py.Dataset):
                assert (one.shape, one.maxshape, one.dtype) == (two.shape, two.maxshape, two.dtype)
                assert one.id.get_type().equal(two.id.get_type()) or one.id.get_type().committed()
                if two not in compressed:
                    assert (one.chunks, one.compression, one.shuffle) == (two.chunks, two.compression, two.shuffle)


def test_values_types_and_links_are_the_same(everything: Path) -> None:
    target, _ = compress(everything)
    with h5py.File(everything) as before, h5py.File(target) as after:
        inner = after["group/inner"]
        for name in (
            "integers",
            "flags",
            "strings",
            "fixed",
            "small",
            "scalar",
            "compact",
            "records",
            "named",
            "enums",
        ):
            np.testing.assert_array_equal(inner[name][()], before["group/inner"][name][()])
        for one, two in zip(inner["ragged"], before["group/inner/ragged"], strict=True):
            np.testing.assert_array_equal(one, two)
        assert inner["null"].shape is None
        assert after["hard"] == after["zebra"]
        assert inner["up"] == after["/"]
        for name in ("soft", "dangling", "external"):
            assert vars(after.get(name, getlink=True)) == vars(before.get(name, getlink=True))
        # committed types are the file's own
        assert inner["named"].id.get_type().committed()
        assert after["kind"].attrs["note"] == "a type with an attribute"
        assert h5py.h5o.get_info(inner["named"].id.get_type()).addr == h5py.h5o.get_info(after["kind"].id).addr
        assert h5py.h5o.get_info(inner["enums"].id.get_type()).addr == h5py.h5o.get_info(after["enumerated"].id).addr
        named = after["apple"].attrs.get_id("named").get_type()
        assert h5py.h5o.get_info(named).addr == h5py.h5o.get_info(after["kind"].id).addr


def test_references_lead_to_the_same_places(everything: Path) -> None:
    target, _ = compress(everything)
    with h5py.File(target) as after:
        inner, attrs = after["group/inner"], after["apple"].attrs
        references = inner["references"][()]
        assert [after[item] if item else None for item in references] == [after["zebra"], inner, None]
        region = inner["regions"][0]
        assert after[region] == after["zebra"]
        assert after["zebra"].regionref.selection(region) == (2, 10)
        np.testing.assert_array_equal(after["zebra"][region], after["zebra"][3:5, 10:20])
        assert after[inner["mixed"][0]["r"]].name == "/apple"
        assert inner["mixed"][0]["i"] == 5
        assert after[attrs["reference"]] == after["zebra"]
        np.testing.assert_array_equal(after["zebra"][attrs["region"]], after["zebra"][:, 3].reshape(-1, 1))
        assert [after[item] for item in attrs["many"]] == [after["zebra"], after["group"]]
        dims = after["apple"].dims
        assert [(item.label, item.keys(), item[0].name) for item in dims] == [
            ("why", ["y"], "/scale_y"), ("", ["x"], "/scale_x"),
        ]  # fmt: skip
        assert h5py.h5ds.is_attached(after["apple"].id, after["scale_y"].id, 0)


def test_attributes_are_the_same(everything: Path) -> None:
    target, _ = compress(everything)
    with h5py.File(everything) as before, h5py.File(target) as after:
        one, two = attributes(before["apple"]), attributes(after["apple"])
        for name in ("text", "texts", "bytes", "numbers", "empty", "zero", "bool", "complex", "opaque", "named"):
            assert one[name][0] == two[name][0], name
            np.testing.assert_array_equal(one[name][1], two[name][1])
        for left, right in zip(one["ragged"][1], two["ragged"][1], strict=True):
            np.testing.assert_array_equal(left, right)
        for name in ("text", "texts", "bytes"):
            kinds = [item["apple"].attrs.get_id(name).get_type() for item in (before, after)]
            assert kinds[0].equal(kinds[1])


def test_only_floating_point_data_of_some_size_is_compressed(everything: Path) -> None:
    target, report = compress(everything)
    codecs = {row.path: row.codec for row in report.compressed}
    inner = [f"/group/inner/{name}" for name in ("big_endian", "sums", "complex", "half")]
    assert codecs == dict.fromkeys(["/zebra", "/apple", *inner], repr(BOUND))
    with h5py.File(everything) as before, h5py.File(target) as after:
        for path in codecs:
            assert pyfilter.codec_of(after[path]) == BOUND
            assert pyfilter.verify(before[path], after[path]).ok
        assert after["group/inner/big_endian"].maxshape == (None, 50)
        assert after["group/inner/sums"].fletcher32
        assert pyfilter.check(after) == []
    assert rows(report)["/group/inner/small"].note == "small"
    assert rows(report)["/group/inner/integers"].note == "integers"


def test_lossless_takes_integers_too(everything: Path) -> None:
    target, report = compress(everything, Rules(Lossless()))
    assert rows(report)["/group/inner/integers"].codec == "Lossless()"
    with h5py.File(everything) as before, h5py.File(target) as after:
        assert after["zebra"][()].tobytes() == before["zebra"][()].tobytes()
        np.testing.assert_array_equal(after["group/inner/integers"], np.arange(5000))


def test_h5dump_sees_no_difference_but_storage(everything: Path) -> None:
    target, _ = compress(everything, Rules(named={"apple": BOUND}))
    before = run_tool("h5dump", "-A", everything).splitlines()[1:]
    after = run_tool("h5dump", "-A", target).splitlines()[1:]
    assert [re.sub(r"(DATASET|GROUP) \d+ ", "", line) for line in after] == [
        re.sub(r"(DATASET|GROUP) \d+ ", "", line) for line in before
    ]


def test_links_without_order_and_old_formats(tmp_path: Path) -> None:
    for low in ("earliest", "v108", "latest"):
        path = tmp_path / f"{low}.h5"
        with h5py.File(path, "w", libver=(low, "latest")) as file:
            for name in ("z", "b", "a"):
                file[f"g/{name}"] = field((50, 50))
        target, _ = compress(path)
        with h5py.File(target) as file:
            assert list(file["g"]) == ["a", "b", "z"]
        run_tool("h5dump", "-d", "/g/a", target)  # HDF5 1.10 reads it


def test_creation_order_of_attributes_survives(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", data=field((50, 50)), track_order=True)
        for name in ("z", "m", "a"):
            dataset.attrs[name] = 1
    target, _ = compress(tmp_path / "a.h5")
    with h5py.File(target) as file:
        properties = file["a"].id.get_create_plist()
        assert properties.get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
        order = [h5py.h5a.open(file["a"].id, index=index, index_type=h5.INDEX_CRT_ORDER).name for index in range(3)]
        assert order == [b"z", b"m", b"a"]


def test_chunks_of_which_hdf5_tells_wrong_places_are_copied(tmp_path: Path) -> None:
    """With libver="latest", where the unlimited dimension is not the first (stored.py); copied chunk by chunk."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["kind"] = np.dtype("i4")
        file.create_dataset("a", (6, 40), file["kind"], chunks=(2, 8), maxshape=(6, None), compression="gzip")
        file["a"][2:, 8:24] = np.arange(64).reshape(4, 16)
        file["t"] = field((50, 50))
    target, _ = compress(path)
    with h5py.File(path) as before, h5py.File(target) as after:
        np.testing.assert_array_equal(after["a"][...], before["a"][...])
        assert after["a"].id.get_num_chunks() == 4


def test_a_dataset_without_a_fill_value(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    properties = h5p.create(h5p.DATASET_CREATE)
    undefine = ctypes.CDLL(h5z.__file__).H5Pset_fill_value
    undefine.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    assert undefine(properties.id, h5t.IEEE_F32BE.id, None) == 0
    with h5py.File(path, "w") as file:
        h5d.create(file.id, b"a", h5t.IEEE_F32BE, h5s.create_simple((60, 50)), properties)
        file["a"][...] = field((60, 50))
    target, report = compress(path)
    assert rows(report)["/a"].codec == repr(BOUND)
    with h5py.File(target) as file:
        assert abs(file["a"][...] - field((60, 50))).max() <= BOUND.bound[1]
