# SPDX-License-Identifier: BSD-3-Clause
"""Compound types from Python: `Compound`, frames of structured arrays, datasets, and what the command says of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import Compound, Cuszp2, HierarchicalDelta, Lorenzo, Lossless, Particles
from pyfilter.verification import verify_records

from .test_cli import run

DTYPE = np.dtype(
    [("id", "i8"), ("x", ">f4"), ("p", "f4", (3,)), ("t", "f8"), ("n", [("a", "f4"), ("b", "f4")]), ("flag", "u1")],
    align=True,
)
CODEC = Compound({"x": Cuszp2(absolute=1e-3), "p": HierarchicalDelta(absolute=1e-2), "n": Lorenzo(relative=1e-3)})


def made(count: int = 500, dtype: np.dtype[Any] = DTYPE) -> NDArray[Any]:
    values = np.zeros(count, dtype)
    wave = np.sin(np.arange(count) / 20)
    values["id"], values["x"], values["t"] = np.arange(count), wave, 3 * wave
    values["p"] = wave[:, None] * [1, 2, 3]
    values["n"]["a"], values["n"]["b"] = 10 * wave, 100 * wave
    return values


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A file without codecs, and one with."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group/p"] = made()
    with h5py.File(tmp_path / "b.h5", "w") as file:
        pyfilter.create_dataset(file.create_group("group"), "p", made(), CODEC, chunks=(200,))
    return tmp_path / "a.h5", tmp_path / "b.h5"


# ---- the class


@pytest.mark.parametrize(
    "codec",
    [
        Compound({}),
        CODEC,
        Compound({"Größe": Cuszp2(psnr=60.0, block_dims=2), "a.b": Lossless()}, others=Lossless(effort="ratio")),
        Compound({"pos": Particles(absolute=0.5, order="chunk"), "h": pyfilter.Adaptive(pointwise_relative=0.01)}),
    ],
)
def test_cd_values_and_back(codec: Compound) -> None:
    words = codec.filter_options
    assert words[0] == 2
    assert Compound.from_cd_values(words) == codec
    assert eval(repr(Compound.from_cd_values(words)), vars(pyfilter)) == codec
    assert Compound.from_cd_values((0x32465950, *words[1:], 1 | 1 << 16, 10, 0, 1)).fields == codec.fields
    assert hash(codec) == hash(Compound(codec.fields, others=codec.others))
    with pytest.raises(ValueError, match="these are cd_values of records"):
        pyfilter.Codec.from_cd_values(words)


def test_codec_of_a_field() -> None:
    codec = Compound({"n": Cuszp2(absolute=1.0), "m": Lossless(effort="ratio")})
    assert codec.codec_of("n") == codec.codec_of("n.a") == Cuszp2(absolute=1.0)
    assert codec.codec_of("na") == Lossless()
    assert codec.codec_of("m.x") == Lossless(effort="ratio")
    assert (codec.is_lossless, Compound({"m": Lossless()}).is_lossless) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (({"x": 0.1},), "field 'x' needs a codec"),
        (([("x", Cuszp2(absolute=1.0))],), "mapping of names to codecs, got list"),
        (({"": Cuszp2(absolute=1.0)},), "text of 1 to 65535 bytes, got ''"),
        (({3: Cuszp2(absolute=1.0)},), "text of 1 to 65535 bytes, got 3"),
        (({"a\0": Cuszp2(absolute=1.0)},), "text of 1 to 65535 bytes"),
    ],
)
def test_arguments(arguments: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        Compound(*arguments)


def test_arguments_by_name() -> None:
    lossy: Any = Cuszp2(absolute=1.0)
    with pytest.raises(TypeError, match="come back bit for bit"):
        Compound({}, others=lossy)
    with pytest.raises(ValueError, match="at most 256 are allowed"):
        _ = Compound({f"a_long_name_{n}": lossy for n in range(40)}).filter_options


@pytest.mark.parametrize(
    "words", [(), (1, 2, 0), (2,), (2, 1, 0), (2, 1, 0, 65793, 0), CODEC.filter_options[:-1], (2, 1, 0, 99, 0)]
)
def test_bad_cd_values(words: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"cd_values"):
        Compound.from_cd_values(words)


# ---- frames


def test_frames_of_arrays() -> None:
    values = made()
    frame = pyfilter.encode(values, CODEC)
    assert len(frame) < 0.5 * values.nbytes
    info = pyfilter.records_info(frame)
    assert (info.shape, info.dtype.itemsize, info.frame_bytes, info.value_bytes) == (
        (500,), values.itemsize, len(frame), values.nbytes,
    )  # fmt: skip
    assert info.ratio == values.nbytes / len(frame)
    bounds = {column.offset: column.frame.error_bound for column in info.columns}
    assert [bounds[offset] for offset in (0, 8, 12, 24)] == pytest.approx([0.0, 1e-3, 1e-2, 0.0])  # rounded down
    got = pyfilter.decode(frame).view(DTYPE)
    assert np.array_equal(got["id"], values["id"])
    assert np.array_equal(got["t"], values["t"])
    assert abs(got["x"] - values["x"]).max() <= 1e-3
    assert abs(got["p"] - values["p"]).max() <= 1e-2
    for name in "ab":  # each with a range of its own
        assert 0 < abs(got["n"][name] - values["n"][name]).max() <= 1e-3 * np.ptp(values["n"][name])
    out = np.zeros(500, DTYPE)
    assert pyfilter.decode(frame, out=out) is out
    assert out.tobytes() == got.tobytes()
    spread = np.zeros(1000, DTYPE)[::2]
    assert pyfilter.decode(bytearray(frame), out=spread) is spread
    assert spread.view(f"V{DTYPE.itemsize}").tobytes() == got.tobytes()


def test_frames_of_strided_arrays() -> None:
    values = np.zeros((40, 30), DTYPE)
    values.view("V1")[...] = b"\x5a"  # padding comes back, too
    values["x"] = np.arange(1200).reshape(40, 30)
    part = values[::2, ::-1]
    assert pyfilter.decode(pyfilter.encode(part, Compound({}))).tobytes() == part.view(f"V{DTYPE.itemsize}").tobytes()
    assert pyfilter.encode(part, CODEC) == pyfilter.encode(part.view(f"V{DTYPE.itemsize}").copy().view(DTYPE), CODEC)


def test_over_an_older_frame() -> None:
    """Values that are still the decoded ones keep their error, field by field."""
    codec, values = Compound({"x": HierarchicalDelta(relative=1e-3), "t": HierarchicalDelta(relative=1e-3)}), made()
    frame = pyfilter.encode(values, codec)
    now = pyfilter.decode(frame).view(DTYPE)
    for turn in range(20):
        now["t"][turn] += turn
        values["t"][turn] = now["t"][turn]
        frame = pyfilter.encode(now, codec, over=frame)
        now = pyfilter.decode(frame).view(DTYPE)
    assert abs(now["x"] - values["x"]).max() <= 1e-3 * np.ptp(values["x"])
    assert abs(now["t"] - values["t"]).max() <= 1e-3 * np.ptp(values["t"])


def test_positions_as_a_field() -> None:
    """A field that is an array is encoded in its own shape, which particles need."""
    values = np.zeros(5000, [("id", "i4"), ("pos", "f4", (3,))])
    values["pos"] = np.random.default_rng(0).random((5000, 3))
    codec = Particles(absolute=1e-2)
    frame = pyfilter.encode(values, Compound({"pos": codec}))
    alone = pyfilter.encode(values["pos"], codec)
    assert pyfilter.records_info(frame).columns[1].frame == pyfilter.frame_info(alone)
    assert alone in frame
    assert abs(pyfilter.decode(frame).view(values.dtype)["pos"] - values["pos"]).max() <= 1e-2


def test_refused_arrays() -> None:
    values = made(10)
    frame = pyfilter.encode(values, CODEC)
    overlapping = np.dtype({"names": ["a", "b"], "formats": ["f4", "f4"], "offsets": [0, 2]})
    wrong: Any = "x"
    for refused, text in (
        (lambda: pyfilter.encode(values, Cuszp2(absolute=1.0)), "pyfilter.Compound"),
        (lambda: pyfilter.encode(values["t"], CODEC), "for structured types, got float64"),
        (lambda: pyfilter.encode(values, Compound({"q": Lossless()})), "for field 'q', but the type has id, x"),
        (lambda: pyfilter.encode(values, Compound({"n": Lossless(), "n.a": Lossless()})), "is given two codecs"),
        (lambda: pyfilter.encode(values, Compound({"id": Cuszp2(absolute=1.0)})), "'id': codec cuszp2 cannot encode"),
        (lambda: pyfilter.encode(np.zeros(3, overlapping), Compound({})), "field 'b' overlaps"),
        (lambda: pyfilter.encode(np.zeros(3, [("o", "O")]), Compound({})), "variable length, references and objects"),
        (lambda: pyfilter.encode(values, CODEC, "abc"), "is not a record"),
        (lambda: pyfilter.decode(frame, 0, 5), "decoded whole"),
        (lambda: pyfilter.decode(frame, out=np.zeros(9, DTYPE)), "out must have shape"),
        (lambda: pyfilter.decode(frame, out=wrong), r"out must be a numpy\.ndarray"),
        (lambda: pyfilter.frame_info(frame), "records_info"),
        (lambda: pyfilter.records_info(pyfilter.encode(values["t"], Lossless())), "a frame of values"),
        (lambda: pyfilter.verify(values, values, CODEC), "field by field"),
        (lambda: pyfilter.zarr.Serializer(wrong and CODEC), "Zarr arrays of records"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            refused()


# ---- files


def test_datasets(files: tuple[Path, Path]) -> None:
    values = made()
    with h5py.File(files[1]) as file:
        dataset = file["group/p"]
        codec = pyfilter.codec_of(dataset)
        assert isinstance(codec, Compound)
        assert list(codec.fields) == ["x", "p", "n.a", "n.b"]  # each with the bound of its whole field
        for name, size in (("a", 20), ("b", 200)):
            mode, bound = codec.fields[f"n.{name}"].bound
            assert mode == "absolute"
            assert 0.99e-3 * size < bound <= 1e-3 * size
        got = pyfilter.read(dataset)
        assert got.tobytes() == dataset[...].tobytes()
        assert abs(got["x"] - values["x"]).max() <= 1e-3
        assert pyfilter.check(file) == []


def test_write_into_a_dataset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("p", (500,), DTYPE, chunks=(128,), **CODEC)
        pyfilter.write(dataset, made())
        assert abs(dataset["x"] - made()["x"]).max() <= 1e-3
        again = pyfilter.create_dataset(file, "q", dataset, Compound({"x": Cuszp2(relative=1e-2)}), fillvalue=made()[3])
        assert again.fillvalue["x"] == made()["x"][3]


def test_refused_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for more, text in (
            ({"devices": "all"}, "devices cannot be given for records"),
            ({"compression": "gzip"}, "compression cannot be given here"),
            ({"guarantee": pyfilter.Guarantee(low=0, high=1)}, "guarantee cannot be given for records"),
            ({"fillvalue": 5.5j}, "is not a record|different elements"),
        ):
            with pytest.raises((TypeError, ValueError), match=text):
                pyfilter.create_dataset(file, "x", made(), CODEC, **more)
        with pytest.raises(TypeError, match="scalar and null datasets"):
            pyfilter.create_dataset(file, "x", made()[0], CODEC)
        assert list(file) == []


def test_verify_finds_every_difference(files: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = files
    found = json.loads(run("verify", before, after, "--json"))
    assert list(found) == [f"/group/p[{name}]" for name in ("id", "x", "p", "t", "n.a", "n.b", "flag")]
    assert all(row["ok"] for row in found.values())
    assert [row["compared"] for row in found.values()] == ["bits", "bound", "bound", "bits", "bound", "bound", "bits"]
    assert found["/group/p[p]"]["values"] == 1500
    with h5py.File(before) as a, h5py.File(after) as b:
        assert {
            name: result.ok for name, result in verify_records(a["group/p"], b["group/p"]).items()
        } == dict.fromkeys(("id", "x", "p", "t", "n.a", "n.b", "flag"), True)
    assert "bytes between fields are no values and are not compared" in run("verify", before, after)
    for field, change in (("id", 1), ("x", 0.01), ("t", 1e-9), ("p", 0.1)):
        wrong = Path(shutil.copy(before, tmp_path / "wrong.h5"))
        with h5py.File(wrong, "r+") as file:
            values = file["group/p"][...]
            values[field][7] += change
            file["group/p"][...] = values
        rows = json.loads(run("verify", wrong, after, "--json", status=1))
        assert [path for path, row in rows.items() if not row["ok"]] == [f"/group/p[{field}]"]
        assert rows[f"/group/p[{field}]"]["first_violation"] == (21 if field == "p" else 7)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["group/p"] = made()[["id", "x"]]
    rows = json.loads(run("verify", tmp_path / "other.h5", after, "--json", status=1))
    assert "the type is compound of id, x in A" in rows["/group/p"]["note"]


def test_a_damaged_chunk_is_not_compared(files: tuple[Path, Path]) -> None:
    before, after = files
    with h5py.File(after, "r+") as file:
        file["group/p"].id.write_direct_chunk((0,), b"\x89PYF\x09")
    rows = json.loads(run("verify", before, after, "--json", status=3))
    assert rows["/group/p"]["ok"] is None
    assert "not compared" in rows["/group/p"]["note"]


def test_inspect(files: tuple[Path, Path]) -> None:
    found = json.loads(run("inspect", files[1], "--verbose", "--json"))
    (entry,) = found["datasets"]
    assert entry["dtype"] == "compound of 6 fields"
    assert entry["codec"].startswith("Compound({'x': Cuszp2(absolute=0.001)")
    first = entry["chunk_list"][0]
    assert first["codec"] == "records"
    assert first["parameters"]["x"] == "cuszp2 0.001"
    assert first["parameters"]["id"] == "lossless"
    assert found["findings"] == []


def test_a_larger_bound_is_found(tmp_path: Path) -> None:
    values = made()
    values["x"] *= 100
    values["x"][10] = 1e4
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("p", data=values, chunks=(500,), **Compound({"x": HierarchicalDelta(relative=1e-3)}))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        some = file["p"][5:20]
        some["x"] = 0.5
        file["p"][5:20] = some
    (finding,) = pyfilter.check(tmp_path / "a.h5")
    assert (finding.dataset, finding.problem, finding.chunks) == ("/p", "larger bound", 1)


def test_compress_copies_records(files: tuple[Path, Path], tmp_path: Path) -> None:
    """``pyfilter compress`` keeps the codecs of records, and puts none on others."""
    for source, codec in zip(files, (None, Compound), strict=True):
        target = tmp_path / f"{source.stem}_out.h5"
        run("compress", source, target, "--absolute", "1e-3")
        with h5py.File(source) as a, h5py.File(target) as b:
            found = pyfilter.codec_of(b["group/p"])
            assert found == pyfilter.codec_of(a["group/p"])
            assert codec is None or isinstance(found, codec)
            assert a["group/p"][...].tobytes() == b["group/p"][...].tobytes()
