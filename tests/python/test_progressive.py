# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.progressive: what is read, what it costs, over a file and over HTTP; formulas; the command."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z
from http_ranges import Ranges, serving

import pyfilter
from pyfilter import Progressive, errors, progressive
from pyfilter.progressive.expression import Expression

from .support import clean_environment, field

SHAPE, CHUNKS = (40, 50, 70), (32, 32, 64)
FILL = 1e20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three velocities, one field with missing values, one that is not progressive."""
    file = tmp_path_factory.mktemp("progressive") / "a.h5"
    with h5py.File(file, "w") as out:
        for seed, name in enumerate(("vx", "vy", "vz")):
            out.create_dataset(name, data=field(SHAPE, "f4", seed) - 1, chunks=CHUNKS, **Progressive())
        holes = field(SHAPE, "f8", 5)
        holes[10:20], holes[30:, 40:] = np.nan, FILL
        out.create_dataset("t", data=holes, chunks=CHUNKS, fillvalue=FILL, **Progressive(absolute=1e-6))
        part = out.create_dataset("part", SHAPE, "f4", chunks=CHUNKS, fillvalue=7.0, **Progressive())
        part[:20, :20] = 1.0
        out.create_dataset("lorenzo", data=holes, chunks=CHUNKS, **pyfilter.Lorenzo(absolute=1e-3))
        sums = {"data": holes, "chunks": CHUNKS, "fletcher32": True}
        out.create_dataset("checked", **sums, **Progressive())
    return file


def error(read: Any, exact: Any) -> float:
    """The largest error of ordinary values; the others must be exact."""
    special = ~np.isfinite(exact) | (exact == FILL)
    assert np.array_equal(read[special], exact[special], equal_nan=True)
    return float(np.abs(read.astype(np.longdouble) - exact)[~special].max(initial=0))


@pytest.mark.parametrize("name", ["vx", "t", "part"])
def test_read_and_refine(path: Path, name: str) -> None:
    with h5py.File(path) as file:
        exact = file[name][...]
        stored = file[name].id.get_storage_size()
        with progressive.open(file[name]) as reader:
            before = 0
            for tolerance in (0.5, 1e-2, 1e-2, 1e-4, None):
                values = reader.refine(tolerance)
                assert values.dtype == exact.dtype
                assert error(values, exact) <= reader.max_error + (1e-6 if name == "t" else 0)
                assert reader.max_error <= (tolerance or 1e-6)
                if tolerance == 1e-2 and before:
                    assert reader.bytes_read >= before
                before = reader.bytes_read
            assert before <= stored
            assert np.array_equal(values, exact, equal_nan=True)
            assert reader.read(1.0) is not None
            assert reader.bytes_read == before  # what is here is not fetched again
        with progressive.open(str(path), name) as reader:
            coarse = reader.read(1e-2)
            assert error(coarse, exact) <= 1e-2 + 1e-6
            if name == "vx":
                assert reader.bytes_read < 0.4 * stored


def test_selections(path: Path) -> None:
    with h5py.File(path) as file, progressive.open(file["t"]) as reader:
        exact = file["t"][...]
        for selection in (np.s_[3:38, 5, 20:], np.s_[-1], np.s_[..., 2:4], np.s_[5:5], np.s_[:, :, -3], (), ...):
            values = reader.read(1e-3, selection)
            assert values.shape == exact[selection].shape
            assert error(values, exact[selection]) <= 1e-3 + 1e-6
    with h5py.File(path) as file, progressive.open(file["vx"]) as reader:
        reader.read(None, np.s_[:32, :32, :64])
        assert reader.bytes_read == file["vx"].id.get_chunk_info(0).size


def test_out(path: Path) -> None:
    with progressive.open(path, "t") as reader, progressive.open(path, "part") as part:
        for selection in (..., np.s_[3:38, 5, 20:], np.s_[-1], np.s_[1, 2, 3], np.s_[5:5]):
            expected = reader.read(1e-3, selection)
            for dtype in ("f8", ">f8"):
                out = np.zeros(np.shape(expected), dtype)
                assert reader.read(1e-3, selection, out=out) is out
                np.testing.assert_array_equal(out, expected)
        out = np.zeros(SHAPE[::-1], "f8").T[::1]
        part.refine(0.1, out=out)
        np.testing.assert_array_equal(out, part.read(0.1))
        out = np.zeros((20, 25, 35))
        np.testing.assert_array_equal(reader.read(0.1, level=1, out=out), reader.read(0.1, level=1))
        locked = np.zeros(SHAPE)
        locked.flags.writeable = False
        for wrong in (np.zeros(SHAPE[1:]), np.zeros(SHAPE, "f4"), locked):
            with pytest.raises(ValueError, match="out must be writeable"):
                reader.read(0.1, out=wrong)
        with pytest.raises(TypeError, match="out must be a numpy"):
            reader.read(0.1, out=[0.0])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="not both"):
            reader.read(0.1, out=np.zeros(SHAPE), device="cuda")


def test_levels(path: Path) -> None:
    with h5py.File(path) as file:
        for name in ("vx", "t"):
            exact, costs = file[name][...], []
            for level in range(4):
                with progressive.open(file[name]) as reader:
                    values = reader.read(1e-3, level=level)
                    every = (slice(None, None, 1 << level),) * 3
                    assert values.shape == exact[every].shape
                    assert error(values, exact[every]) <= reader.max_error + 1e-6 <= 1e-3 + 1e-6
                    costs.append(reader.bytes_read)
            assert costs == sorted(costs, reverse=True)
            assert costs[1] < costs[0]


@pytest.fixture
def served(path: Path) -> Iterator[tuple[str, Ranges]]:
    pytest.importorskip("aiohttp")
    pytest.importorskip("fsspec")
    with serving(path, "a.h5") as place:
        yield place


def test_over_http(path: Path, served: tuple[str, Ranges]) -> None:
    url, sent = served
    with h5py.File(path) as file:
        exact = file["vx"][...]
    with progressive.open(url, "vx") as reader:
        index = sum(size for _, size in sent)  # what HDF5 read to find the chunks
        coarse = reader.read(1e-2)
        assert error(coarse, exact) <= reader.max_error <= 1e-2
        assert sum(size for _, size in sent) - index == reader.bytes_read
        coarse_bytes = reader.bytes_read
        fine = reader.refine(1e-4)
        assert error(fine, exact) <= reader.max_error <= 1e-4
        assert sum(size for _, size in sent) - index == reader.bytes_read > coarse_bytes
    with progressive.open(str(path), "vx") as local:
        local.read(1e-2)
        assert local.bytes_read == coarse_bytes
    with pytest.raises(errors.InvalidArgument, match="no dataset 'nothing'"):
        progressive.open(url, "nothing")


def test_refusals(path: Path, tmp_path: Path) -> None:
    with h5py.File(path) as file:
        with pytest.raises(errors.InvalidArgument, match="not of Progressive"):
            progressive.open(file["lorenzo"])
        with pytest.raises(errors.Unsupported, match="filters behind"):
            progressive.open(file["checked"])
        with progressive.open(file["vx"]) as reader:
            for wrong, text in (
                ({"tolerance": -1}, "tolerance must be a number >= 0"),
                ({"tolerance": float("nan")}, "tolerance must be a number >= 0"),
                ({"tolerance": "fine"}, "tolerance must be a number >= 0.* got 'fine'"),
                ({"selection": np.s_[::2]}, "slices without steps"),
                ({"selection": np.s_["a":"b"]}, "slices without steps; got slice\\('a', 'b'"),
                ({"out": np.broadcast_to(np.float32(0), SHAPE)}, "float32, read-only"),
                ({"selection": np.s_[99]}, "integers in range"),
                ({"selection": np.s_[0, 0, 0, 0]}, "does not fit 3 dimensions"),
                ({"level": -1}, "level must be an integer"),
                ({"level": 1, "selection": np.s_[1:]}, "for whole datasets"),
                ({"level": 9}, "not multiples of 512"),
            ):
                with pytest.raises(errors.InvalidArgument, match=text):
                    reader.read(**wrong)
            with pytest.raises(errors.InvalidArgument, match="tolerance must be a number >= 0"):
                reader.cost(-1)
            with pytest.raises(errors.InvalidArgument, match="device must be"):
                reader.read(device="gpu")
    with pytest.raises(errors.InvalidArgument, match=r"give the dataset.s name too"):
        progressive.open(str(path))
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        plain = file.create_dataset("x", data=np.zeros((10, 10)), chunks=(5, 5))
        with pytest.raises(errors.Unsupported, match="not compressed with pyfilter"):
            progressive.open(plain)


def test_the_file_that_is_open_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that has its name by now, seen from here; and none where its bytes are elsewhere."""

    def make(path: str, added: float) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=field((32, 40)) + added, chunks=(16, 40), **Progressive(absolute=1e-3))

    monkeypatch.chdir(tmp_path)
    for name, added in (("a.h5", 0), ("b.h5", 9), ("c/a.h5", 9)):
        Path(name).parent.mkdir(exist_ok=True)
        make(name, added)
    with h5py.File("a.h5") as file:
        monkeypatch.chdir(tmp_path / "c")
        with progressive.open(file["a"]) as reader:
            np.testing.assert_array_equal(reader.read(), file["a"][...])
        Path("../b.h5").replace("../a.h5")
        monkeypatch.chdir(tmp_path)
        with progressive.open(file["a"]) as reader:
            np.testing.assert_array_equal(reader.read(), file["a"][...])
    with h5py.File("a.h5") as file:
        left = progressive.open(file["a"])
    with h5py.File("a.h5", "r+"):  # a reader does not keep a file locked
        left.close()
    with h5py.File("a.h5", "r+", driver="core", backing_store=False) as file:
        pyfilter.write(file["a"], field((32, 40)))
        with pytest.raises(errors.Unsupported, match="open with HDF5's driver 'core'"):
            progressive.open(file["a"])
    with h5py.File("a.h5", driver="stdio") as file, progressive.open(file["a"]) as reader:
        np.testing.assert_array_equal(reader.read(), file["a"][...])


@pytest.mark.parametrize("other", [pyfilter.Cuszp2(absolute=1e-3), Progressive()], ids=str)
def test_a_frame_of_another_shape_is_an_error_each_time(tmp_path: Path, other: pyfilter.Codec) -> None:
    """Also where it has as many values, and the first error was not the end."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "a", field((32, 40)), Progressive(), chunks=(16, 40))
        dataset.id.write_direct_chunk((0, 0), bytes(pyfilter.encode(field((40, 16)), other)))
        with progressive.open(dataset) as reader:
            for _ in range(2):
                with pytest.raises(errors.CorruptFrame, match=r"float32 \(40, 16\) in a chunk of float32 \(16, 40\)"):
                    reader.read()
            reader.read(selection=np.s_[16:])  # the other chunk is as it was


@pytest.mark.parametrize("kind", ["never", "undefined", "nan"])
def test_what_was_never_written_is_what_hdf5_gives(tmp_path: Path, kind: str) -> None:
    value = np.array(0x7FC01234 if kind == "nan" else 0x40E00000, "u4").view("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_chunk((16, 16))
        properties.set_fill_value(value)
        if kind == "never":
            properties.set_fill_time(h5d.FILL_TIME_NEVER)
        if kind == "undefined":
            undefine = ctypes.CDLL(h5z.__file__).H5Pset_fill_value
            undefine.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
            assert undefine(properties.id, h5t.IEEE_F32LE.id, None) == 0
        codec = Progressive()
        properties.set_filter(codec.filter_id, h5z.FLAG_OPTIONAL, codec.filter_options)
        made = h5d.create(file.id, b"a", h5t.IEEE_F32LE, h5s.create_simple((32, 32)), properties)
        dataset = h5py.Dataset(made)
        dataset[:16, :16] = 1.5
        with progressive.open(dataset) as reader:
            found = reader.read()
        assert found.tobytes() == dataset[...].tobytes() == pyfilter.read(dataset).tobytes()
        assert reader.is_missing(np.array([7, 1], "f4")).tolist() == [kind == "never", False]


@pytest.mark.parametrize("strategy", ["cp", "ma", "mape"])
def test_formulas_keep_their_tolerance(path: Path, strategy: str) -> None:
    part = np.s_[:32, :32, :64]  # one chunk: "ma" takes many rounds
    with h5py.File(path) as file:
        exact = sum(file[name][part].astype(np.longdouble) ** 2 for name in ("vx", "vy", "vz"))
        costs = []
        for tolerance in (1.0, 1e-2, 1e-4):
            sources = [file[name] for name in ("vx", "vy", "vz")]
            found = progressive.retrieve(sources, "vx**2 + vy**2 + vz**2", tolerance, strategy, part)
            assert found.complete
            assert np.abs(found.values - exact).max() <= found.max_error <= tolerance
            costs.append(found.bytes_read)
        assert costs == sorted(costs)
        assert costs[0] < costs[-1]


DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
WORLD = {"u": ("cesm_u_3d_f32", np.s_[:]), "t": ("cesm_t_3d_f32", np.s_[:])}
FLOW = {"u": ("turbulence_u_3d_f32", np.s_[:64]), "w": ("turbulence_w_3d_f64", np.s_[:])}


@pytest.mark.parametrize(
    ("names", "text"),
    [(FLOW, "u**2 + w**2"), (FLOW, "sqrt(u**2 + w**2)"), (FLOW, "abs(u * w)"), (WORLD, "u / sqrt(t)")],
    ids=["energy", "speed", "stress", "climate"],
)
def test_formulas_of_real_fields(names: dict[str, tuple[str, Any]], text: str, tmp_path: Path) -> None:
    """True error <= estimated <= requested; "ma", which takes many rounds, is tested on small fields."""
    paths = {name: DATA / f"{file}.npy" for name, (file, _) in names.items()}
    if not all(path.exists() for path in paths.values()):
        pytest.skip("no fields in ../shared/data")
    fields = {name: np.load(path)[names[name][1]] for name, path in paths.items()}
    exact = Expression(text).value({name: values.astype(np.longdouble) for name, values in fields.items()})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values in fields.items():
            chunks = tuple(min(64, extent) for extent in values.shape)
            file.create_dataset(name, data=values, chunks=chunks, **Progressive())
        for strategy in ("cp", "mape"):
            costs = []
            for relative in (1e-1, 1e-3, 1e-5):
                tolerance = relative * float(np.ptp(exact))
                found = progressive.retrieve({name: file[name] for name in fields}, text, tolerance, strategy)
                assert found.complete
                true = float(np.abs(found.values - exact).max())
                # what is near-lossless is within 2^-28 of the magnitude, and the formula's own rounding counts, too
                assert true <= found.max_error <= tolerance
                costs.append(found.bytes_read)
            assert costs == sorted(costs)
            assert costs[0] < 0.5 * costs[-1]


@pytest.mark.parametrize("name", ["cesm_t_3d_f32", "foam_v_fill_3d_f32", "pop_t_nan_2d_f32", "rtm_late_3d_f32"])
def test_real_fields_keep_their_tolerance(name: str, tmp_path: Path) -> None:
    if not (DATA / f"{name}.npy").exists():
        pytest.skip("no fields in ../shared/data")
    exact = np.load(DATA / f"{name}.npy")
    fill = np.float32(1e35) if "fill" in name else None
    ordinary = np.isfinite(exact) & (np.abs(exact) < 1e19)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=exact, chunks=exact.shape, fillvalue=fill, **Progressive())
        with progressive.open(file["x"]) as reader:
            for relative in (1e-1, 1e-2, 1e-4, 1e-6):
                tolerance = relative * float(np.ptp(exact[ordinary]))
                values = reader.refine(tolerance)
                worst = np.abs(values.astype(np.longdouble) - exact)[ordinary].max()
                assert worst <= reader.max_error <= tolerance
                assert np.array_equal(values[~ordinary], exact[~ordinary], equal_nan=True)


def test_formulas_with_missing_values(path: Path) -> None:
    with h5py.File(path) as file:
        t, v = file["t"][...].astype(np.longdouble), file["vx"][...].astype(np.longdouble)
        found = progressive.retrieve({"v": file["vx"], "t": file["t"]}, "sqrt(abs(t * v) + 1) / (v**2 + 2)", 1e-3)
        exact = np.sqrt(np.abs(t * v) + 1) / (v**2 + 2)
        ordinary = np.isfinite(t) & (t != FILL)
        assert found.complete
        # 1e-6: what is stored of t is that far from what was written, and its errors count too
        assert np.abs(found.values - exact)[ordinary].max() <= found.max_error <= 1e-3
        assert np.isnan(found.values[np.isnan(t).astype(bool)]).all()
        # where a divisor may be 0 there is no bound: all is read, and it is said
        wild = progressive.retrieve({"x": file["vx"]}, "1 / (x - x)", 1e-3, "cp", np.s_[:2, :2, :2])
        assert not wild.complete
        assert wild.max_error == np.inf


def test_expressions_bound_their_errors() -> None:
    """Against formulas of exact fractions' neighbours: random points, random true values within the errors."""
    rng = np.random.default_rng(1)
    texts = (
        "x + y - 3",
        "x * y",
        "x / (y + 5)",
        "x**3 - y**2",
        "sqrt(abs(x)) * -y",
        "(x - y)**4",
        "abs(x - 0.1) ** 0.5",
    )
    for text in texts:
        expression = Expression(text)
        for scale in (1e-8, 1e-2, 0.7):
            x, y = rng.normal(size=(2, 4000))
            errors_ = {"x": scale, "y": scale * 2}
            near = {"x": x + rng.uniform(-1, 1, 4000) * scale, "y": y + rng.uniform(-1, 1, 4000) * scale * 2}
            bound = expression.error({"x": x, "y": y}, errors_)
            wide = {name: values.astype(np.longdouble) for name, values in near.items()}
            truth = eval(text, {"sqrt": np.sqrt, "abs": np.abs}, wide)
            assert (np.abs(truth - expression.value({"x": x, "y": y})) <= bound).all(), text
            if scale == 1e-8:
                assert np.median(bound) < 1e-5


@pytest.mark.parametrize(
    "text", ["", "x +", "x % y", "log(x)", "x ** y", "x ** -1", "x ** 2.5", "[x]", "'a'", "x if y else 1", "f.x", "1j"]
)
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="qoi"):
        Expression(text)


def test_formulas_that_do_not_fit(path: Path) -> None:
    with h5py.File(path) as file:
        for arguments, text in (
            (([file["vx"]], "vx + vy", 1.0), "1 datasets for the names vx, vy"),
            (({"vx": file["vx"]}, "vx + vy", 1.0), "no dataset for vy"),
            (([file["vx"]], "vx", 0.0), "tolerance must be a finite number > 0"),
            (([file["vx"]], "vx", 1.0, "best"), "strategy must be one of 'cp', 'ma', 'mape'"),
        ):
            with pytest.raises(errors.InvalidArgument, match=text):
                progressive.retrieve(*arguments)


def test_the_command(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pyfilter", "retrieve", f"{path}:vx"]
    run = partial(subprocess.run, env=clean_environment(), capture_output=True, text=True, check=True)
    done = run([*command, "-t", "0.1", "-t", "1e-3", "-o", str(tmp_path / "v.npy"), "--json"])
    reads = json.loads(done.stdout)["reads"]
    assert [read["tolerance"] for read in reads] == [0.1, 1e-3]
    assert reads[0]["bytes"] < reads[1]["bytes"]
    with h5py.File(path) as file:
        assert np.abs(np.load(tmp_path / "v.npy") - file["vx"][...]).max() <= 1e-3
    assert "all" in run(command).stdout
    wrong = subprocess.run([*command[:-1], str(path)], env=clean_environment(), capture_output=True, check=False)
    assert wrong.returncode == 2
