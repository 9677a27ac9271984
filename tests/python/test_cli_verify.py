# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter verify`` of datasets of every type: what differs, what is missing and what cannot be compared is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .support import field
from .test_cli import BOUND, run, source, target

__all__ = ["source", "target"]  # fixtures

OTHERS = {"half", "complex", "flags", "strings", "fixed", "ragged", "records", "named", "enums", "references"}


def verify(before: Path, after: Path, status: int = 0, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("verify", before, after, "--json", *options, status=status))
    return found


@pytest.fixture
def copy(everything: Path) -> Path:
    return Path(shutil.copy(everything, everything.with_name("copy.h5")))


def test_every_dataset_of_a_compressed_copy_is_compared(everything: Path) -> None:
    after = everything.with_name("after.h5")
    run("compress", everything, after, "--absolute", "1e-3")
    found = verify(everything, after)
    with h5py.File(everything) as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(f"/{name}") if isinstance(item, h5py.Dataset) else None)
    assert set(names) - {"/hard"} | {"/zebra"} == set(found)  # two names of one dataset
    assert {path.rpartition("/")[2] for path in found} > OTHERS
    assert all(row["ok"] and row["note"] == "" for row in found.values())
    kinds = {path.rpartition("/")[2]: row["compared"] for path, row in found.items()}
    assert (kinds["zebra"], kinds["half"], kinds["integers"]) == ("bound", "bound", "bits")
    assert found["/group/inner/records"]["values"] == 10
    assert found["/group/inner/null"]["values"] == found["/group/inner/none"]["values"] == 0


def change(name: str, index: Any, value: Any) -> Callable[[h5py.File], None]:
    def change_it(file: h5py.File) -> None:
        dataset = file["group/inner"][name]
        dataset[index] = value(file) if callable(value) else value

    return change_it


def change_member(file: h5py.File) -> None:
    records = file["group/inner/records"]
    row = records[3]
    row["c"] = b"y"
    records[3] = row


def change_mixed(file: h5py.File) -> None:
    file["group/inner/mixed"][0] = (file["zebra"].ref, 5)


CHANGES = [
    ("half", change("half", (5, 6), 9.0), 5 * 64 + 6),
    ("complex", change("complex", (0, 2), 1j), 2),
    ("flags", change("flags", 17, True), 17),
    ("strings", change("strings", 1, "zwo"), 1),
    ("fixed", change("fixed", 0, b"b"), 0),
    ("ragged", change("ragged", 1, np.arange(4)), 1),
    ("scalar", change("scalar", (), 3.25), 0),
    ("records", change_member, 3),
    ("enums", change("enums", 19, 2), 19),
    ("references", change("references", 1, lambda file: file["apple"].ref), 1),
    ("references", change("references", 2, lambda file: file["apple"].ref), 2),
    ("regions", change("regions", 0, lambda file: file["zebra"].regionref[3:5, 10:21]), 0),
    ("mixed", change_mixed, 0),
]


@pytest.mark.parametrize(("name", "change_it", "index"), CHANGES, ids=[name for name, *_ in CHANGES])
def test_one_value_that_differs_is_found(
    everything: Path, copy: Path, name: str, change_it: Callable[[h5py.File], None], index: int
) -> None:
    assert all(row["ok"] for row in verify(everything, copy).values())
    with h5py.File(copy, "r+") as file:
        change_it(file)
    found = verify(everything, copy, 1)
    wrong = {path: row["first_violation"] for path, row in found.items() if not row["ok"]}
    assert wrong == {f"/group/inner/{name}": index}
    assert found[f"/group/inner/{name}"]["violations"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.array([0.0], "f2"), np.array([-0.0], "f2")),
        (np.array([np.nan, 1j]), np.array([-np.nan, 1j])),
        (np.array([(1, [2, 3])], "i4,(2,)u1"), np.array([(1, [2, 4])], "i4,(2,)u1")),
        (np.array([np.void(b"ab\0")]), np.array([np.void(b"ab\1")])),
        (np.ones(2, np.longdouble), np.ones(2, np.longdouble) + np.finfo(np.longdouble).eps),
    ],
    ids=["zeros", "nan", "array", "opaque", "long double"],
)
def test_single_bits(tmp_path: Path, before: Any, after: Any) -> None:
    paths = [tmp_path / name for name in ("a.h5", "same.h5", "b.h5")]
    for path, values in zip(paths, (before, before, after), strict=True):
        with h5py.File(path, "w") as file:
            file["x"] = values
    assert verify(paths[0], paths[1])["/x"]["ok"]
    assert not verify(paths[0], paths[2], 1)["/x"]["ok"]


def test_a_scalar_of_any_type_is_compared(tmp_path: Path) -> None:
    for name, text in (("a.h5", "one"), ("b.h5", "two")):
        with h5py.File(tmp_path / name, "w") as file:
            file["text"] = text
            row = file.create_dataset("row", (), h5py.vlen_dtype("i4"))
            row[()] = np.arange(len(text) + (text == "two"), dtype="i4")
            file["array"] = np.zeros((), "(3,)i4") + len(text)
            file["same"] = "same"
    found = verify(tmp_path / "a.h5", tmp_path / "b.h5", 1)
    assert {path: row["ok"] for path, row in found.items()} == {
        "/array": True, "/row": False, "/same": True, "/text": False,
    }  # fmt: skip


def test_padding_and_byte_order_are_no_part_of_a_value(tmp_path: Path) -> None:
    wide = np.dtype({"names": ["a", "b"], "formats": [">i2", "c16"], "offsets": [0, 16], "itemsize": 40})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.array([(1, 2j)] * 3, np.dtype([("a", "<i2"), ("b", "<c16")]))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        padded = np.full(3 * 40, 7, "u1").view(wide)
        padded["a"], padded["b"] = 1, 2j
        file.create_dataset("x", data=padded, dtype=wide)
    assert verify(tmp_path / "a.h5", tmp_path / "b.h5")["/x"]["ok"]


def test_datasets_of_one_file_only(everything: Path, copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        del file["group/inner/strings"]
        file["more/text"] = "more"
    out = run("verify", everything, copy, status=1)
    assert "/group/inner/strings: is not in B" in out
    assert "/more/text: is not in A" in out
    found = verify(everything, copy, 1)
    assert found["/more/text"] | {"ok": False, "compared": None, "values": None} == found["/more/text"]
    assert sum(not row["ok"] for row in found.values()) == 2


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (["a"], ["a", "b"], "the shape is (1,) in A and (2,) in B"),
        (np.zeros(3, "f4"), np.zeros(3), "the type is float32 in A and float64 in B"),
        (np.array([b"ab"]), np.array([b"abc"]), "the type is text of 2 bytes in A and text of 3 bytes in B"),
        (["a"], np.array([b"abc"]), "the type is text of variable length in A and text of 3 bytes in B"),
        (np.zeros(1, "i4,f4"), np.zeros(1, "i4,i4"), "the type is compound of f0, f1 in A and"),
        (np.zeros(1, "?"), np.zeros(1, "i1"), "the type is bool in A and int8 in B"),
    ],
)
def test_other_types_and_shapes_are_a_difference(tmp_path: Path, before: Any, after: Any, text: str) -> None:
    for name, values in (("a.h5", before), ("b.h5", after)):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = values
            file["y"] = field((50, 50))
    assert f"/x: {text}" in run("verify", tmp_path / "a.h5", tmp_path / "b.h5", status=1)
    assert verify(tmp_path / "a.h5", tmp_path / "b.h5", 1)["/y"]["ok"]


def test_a_group_in_the_place_of_a_dataset(everything: Path, copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        del file["apple"]
        file["apple/core"] = 1.0
    found = verify(everything, copy, 1)
    assert (found["/apple"]["note"], found["/apple/core"]["note"]) == ("is no dataset in B", "is not in A")


def test_what_cannot_be_compared_has_a_row_and_a_status_of_its_own(everything: Path, copy: Path) -> None:
    for path in (everything, copy):
        with h5py.File(path, "r+") as file:
            dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            dcpl.set_chunk((4,))
            dcpl.set_filter(333, h5py.h5z.FLAG_OPTIONAL, ())
            space = h5py.h5s.create_simple((4,))
            closed = h5py.h5d.create(file.id, b"closed", h5py.h5t.NATIVE_FLOAT, space, dcpl)
            closed.write_direct_chunk((0,), b"who knows")
    out = run("verify", everything, copy, status=3)
    assert "/closed: not compared: filter 333 is not known to h5py's HDF5" in out
    found = verify(everything, copy, 3)
    assert (found["/closed"]["ok"], found["/closed"]["compared"]) == (None, None)
    assert all(row["ok"] for path, row in found.items() if path != "/closed")
    with h5py.File(copy, "r+") as file:
        file["group/inner/flags"][3] = True
    verify(everything, copy, 1)


def test_a_damaged_chunk_hides_no_other_dataset(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            for inner in ("first", "second"):
                file.create_dataset(inner, data=field((50, 50)), chunks=(50, 50), **BOUND)
            if name == "b.h5":
                frame = bytearray(file["first"].id.read_direct_chunk((0, 0))[1])
                frame[5] ^= 1
                file["first"].id.write_direct_chunk((0, 0), bytes(frame))
    found = verify(tmp_path / "a.h5", tmp_path / "b.h5", 3)
    assert found["/first"]["note"].startswith("not compared: ")
    assert (found["/first"]["ok"], found["/second"]["ok"]) == (None, True)


def test_a_bound_that_is_given_is_not_for_what_has_none(everything: Path, copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["apple"][3, 4] += 1e-3
        file["group/inner/half"][0, 0] += 0.01
        file["group/inner/flags"][0] = not file["group/inner/flags"][0]
    found = verify(everything, copy, 1, "--absolute", "0.1")
    assert (found["/apple"]["ok"], found["/apple"]["compared"]) == (True, "bound")
    assert (found["/group/inner/half"]["ok"], found["/group/inner/half"]["compared"]) == (True, "bound")
    assert (found["/group/inner/flags"]["ok"], found["/group/inner/flags"]["compared"]) == (False, "bits")


def test_files_without_datasets_say_so(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs["title"] = "empty"
    assert "nothing to compare" in run("verify", tmp_path / "a.h5", tmp_path / "b.h5")


def test_verify(source: Path, target: Path) -> None:
    found = json.loads(run("verify", source, target, "--json"))
    assert set(found) == {"/t", "/group/p", "/count"}
    assert all(item["ok"] for item in found.values())
    assert found["/t"]["bound"] == 1e-3
    assert found["/count"]["bound"] == 0
    assert "dB" in run("verify", source, target)
    run("verify", source, target, "--absolute", "1e-2")
    assert "NO" in run("verify", source, target, "--absolute", "1e-5", status=1)
    run("verify", source, target, "--relative", "1e-8", status=1)


def test_verify_finds_changes(source: Path, target: Path) -> None:
    with h5py.File(target, "r+") as file:
        file["count"][17] += 1
    found = json.loads(run("verify", source, target, "--json", status=1))
    assert (found["/count"]["ok"], found["/count"]["first_violation"]) == (False, 17)
    with h5py.File(target, "r+") as file:
        del file["count"]
    assert "/count: is not in B" in run("verify", source, target, status=1)


def test_verify_of_netcdf3(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 5000)
        file.createVariable("t", "f4", ("x",))[:] = field((5000,))
    run("compress", tmp_path / "a.nc", tmp_path / "b.nc", "--relative", "1e-3")
    assert json.loads(run("verify", tmp_path / "a.nc", tmp_path / "b.nc", "--json"))["/t"]["ok"]
