# SPDX-License-Identifier: BSD-3-Clause
"""Whole files compressed: faithful in everything that is not compressed, and within the bound in what is."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5, h5p

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.rewrite import Report, Row, Rules, compress_file
from pyfilter.rewrite import plan as plans
from pyfilter.rewrite.copy import FileCopy

from .support import clean_environment, field, run_tool

BOUND = Cuszp2(absolute=1e-3)
RELATIVE = Cuszp2(relative=1e-3)


def compress(source: Path, rules: Rules | None = None) -> tuple[Path, Report]:
    target = source.with_name(f"out_{source.name}")
    report = compress_file(source, target, rules or Rules(BOUND))
    assert report.ok
    assert [item.name for item in source.parent.glob(".*")] == []
    return target, report


def rows(report: Report) -> dict[str, Row]:
    return {row.path: row for row in report.rows}


def attributes(item: Any) -> dict[str, Any]:
    return {name: (item.attrs.get_id(name).dtype, item.attrs[name]) for name in item.attrs}


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
            "half",
            "complex",
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
    assert codecs == dict.fromkeys(["/zebra", "/apple", "/group/inner/big_endian", "/group/inner/sums"], repr(BOUND))
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


def test_named_datasets_and_rules(everything: Path) -> None:
    named = {"zebra": Lossless(), "/group/inner/small": RELATIVE, "group/inner/integers": Lossless(), "sums": None}
    _, report = compress(everything, Rules(BOUND, named))
    found = rows(report)
    assert found["/zebra"].codec == "Lossless()"
    assert found["/group/inner/small"].codec is not None
    assert found["/group/inner/small"].bound == pytest.approx(1e-3)
    assert found["/group/inner/integers"].codec == "Lossless()"
    assert (found["/group/inner/sums"].codec, found["/group/inner/sums"].note) == (None, "left as it is")
    assert found["/apple"].codec == repr(BOUND)
    _, only = compress(everything, Rules(named={"apple": BOUND}))
    assert [row.path for row in only.compressed] == ["/apple"]


@pytest.mark.parametrize(
    ("name", "codec", "error", "text"),
    [
        ("nothing", BOUND, ValueError, "no dataset 'nothing'"),
        ("scalar", BOUND, TypeError, "scalar"),
        ("none", BOUND, TypeError, "no values"),
        ("integers", BOUND, TypeError, "int64"),
        ("half", BOUND, TypeError, "float16"),
        ("flags", Lossless(), TypeError, "bool"),
        ("strings", Lossless(), TypeError, "type"),
    ],
)
def test_named_datasets_that_cannot_be_compressed(
    everything: Path, name: str, codec: pyfilter.Codec, error: type[Exception], text: str
) -> None:
    target = everything.with_name("out.h5")
    with pytest.raises(error, match=text):
        compress_file(everything, target, Rules(named={name: codec}))
    assert sorted(item.name for item in everything.parent.iterdir()) == ["everything.h5"]


def test_a_name_that_means_several_needs_a_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one/t"] = field((50, 50))
        file["two/t"] = field((50, 50))
    with pytest.raises(ValueError, match="'t' means 2 datasets"):
        compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(named={"t": BOUND}))
    _, report = compress(tmp_path / "a.h5", Rules(named={"two/t": BOUND}))
    assert [row.path for row in report.compressed] == ["/two/t"]


@pytest.mark.parametrize("chunks", [None, (7, 100), (64, 64)])
@pytest.mark.parametrize("filters", [{}, {"compression": "lzf"}, {"compression": BOUND}])
def test_any_storage_is_read(tmp_path: Path, chunks: Any, filters: dict[str, Any]) -> None:
    values = field((300, 400))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=chunks, **filters)
    with h5py.File(tmp_path / "a.h5") as file:
        stored = file["a"][()]
    target, _ = compress(tmp_path / "a.h5")
    with h5py.File(target) as file:
        assert pyfilter.verify(stored, file["a"], BOUND).ok


def test_external_virtual_and_sparse_datasets(tmp_path: Path) -> None:
    values = field((60, 70))
    values.tofile(tmp_path / "raw.bin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "external", (60, 70), "f4", external=[(str(tmp_path / "raw.bin"), 0, h5py.h5f.UNLIMITED)], fillvalue=5.0
        )
        file["plain"] = values
        layout = h5py.VirtualLayout((60, 70), "f4")
        layout[:] = h5py.VirtualSource(file["plain"])
        file.create_virtual_dataset("virtual", layout, fillvalue=-1.0)
        sparse = file.create_dataset("sparse", (1000, 1000), "f4", chunks=(100, 100), fillvalue=-7.0)
        sparse[150:160, 150:160] = values[:10, :10]
    target, report = compress(tmp_path / "a.h5")
    assert {row.path for row in report.compressed} == {"/external", "/plain", "/virtual", "/sparse"}
    with h5py.File(target) as file:
        for name in ("external", "virtual", "plain"):
            assert pyfilter.verify(values, file[name], BOUND).ok
        assert (file["external"].fillvalue, file["virtual"].fillvalue, file["sparse"].fillvalue) == (5, -1, -7)
        assert np.all(file["sparse"][:150] == -7.0)


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_declared_missing_values_become_the_fill_value(tmp_path: Path, attribute: str) -> None:
    values = field((100, 90))
    values[20:40] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = values
        file["a"].attrs[attribute] = np.float32(-999)
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    real = values[values > -100]
    assert rows(report)["/a"].bound == pytest.approx(float(np.ptp(real)) * 1e-3, rel=1e-5)
    with h5py.File(target) as file:
        assert file["a"].fillvalue == -999
        assert np.all(file["a"][20:40] == -999)


def test_a_missing_value_takes_the_place_of_a_fill_value_not_in_use(tmp_path: Path) -> None:
    values = field((100, 90))
    values[20:40] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, fillvalue=9.96921e36)
        file["a"].attrs["missing_value"] = [-999.0]
        file.create_dataset("b", data=values, fillvalue=9.96921e36)
        file["b"].attrs["missing_value"] = -999.0
        file["b"].attrs["_FillValue"] = np.float32(9.96921e36)
        file.create_dataset("c", data=values, fillvalue=9.96921e36)
        file["c"].attrs["missing_value"] = "none"
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    with h5py.File(target) as file:
        assert file["a"].fillvalue == -999
        assert np.all(file["a"][20:40] == -999)
        assert np.all(file["b"][20:40] == -999)
        assert file["b"].fillvalue == np.float32(9.96921e36)
    assert "missing_value" in rows(report)["/b"].note
    assert rows(report)["/b"].codec == "Lossless()"
    assert rows(report)["/c"].note == ""


def test_a_field_without_a_range_is_kept_lossless(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["constant"] = np.full((100, 90), 273.0)
        file["nothing"] = np.full((100, 90), np.nan)
        file["noise"] = np.random.default_rng(1).normal(size=(100, 90))
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    for name in ("constant", "nothing"):
        assert rows(report)[f"/{name}"].codec == "Lossless()"
        assert "equal or missing" in rows(report)[f"/{name}"].note
    with h5py.File(target) as file:
        assert np.all(file["constant"][()] == 273.0)
        assert np.all(np.isnan(file["nothing"][()]))


def test_the_input_itself_is_refused_as_output(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = field((50, 50))
    (tmp_path / "b.h5").symlink_to(tmp_path / "a.h5")
    for name in ("a.h5", "b.h5"):
        with pytest.raises(ValueError, match="input itself"):
            compress_file(tmp_path / "a.h5", tmp_path / name, Rules(BOUND))


def test_what_is_no_such_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no data", encoding="utf-8")
    with pytest.raises(OSError, match="signature"):
        compress_file(tmp_path / "a.txt", tmp_path / "b.h5", Rules(BOUND))
    with pytest.raises(FileNotFoundError):
        compress_file(tmp_path / "nothing.h5", tmp_path / "b.h5", Rules(BOUND))
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_broken_bound_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = field((100, 90))
    (tmp_path / "b.h5").write_bytes(b"older result")
    honest = plans.make_plan

    def too_tight(file: h5py.File, rules: Rules) -> list[plans.Decision]:
        decisions = honest(file, Rules(Cuszp2(absolute=1e-2)))
        file_copy = FileCopy.run

        def run_and_claim_more(self: FileCopy) -> None:
            """Write with a bound of 1e-2 and then check 1e-3."""
            file_copy(self)
            decisions[:] = honest(file, rules)

        monkeypatch.setattr(FileCopy, "run", run_and_claim_more)
        return decisions

    monkeypatch.setattr("pyfilter.rewrite.job.make_plan", too_tight)
    report = compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(BOUND))
    assert not report.ok
    assert (tmp_path / "b.h5").read_bytes() == b"older result"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_a_killed_run_leaves_the_old_result(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for index in range(8):
            file[f"v{index}"] = field((1000, 1000), seed=index)
    (tmp_path / "b.h5").write_bytes(b"older result")
    command = [
        sys.executable,
        "-m",
        "pyfilter",
        "compress",
        str(tmp_path / "a.h5"),
        str(tmp_path / "b.h5"),
        "--absolute",
        "1e-6",
    ]
    process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".b.h5.*/result")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert (tmp_path / "b.h5").read_bytes() == b"older result"


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
