# SPDX-License-Identifier: BSD-3-Clause
"""create_dataset, write and read: the same bytes and values as through h5py and the filter."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import pyfilter
from pyfilter import Cuszp2, Lossless, pipeline, transfer

from .support import field

BOUND = Cuszp2(absolute=1e-3)
MASKED: Any = np.ma.array(np.zeros(3), mask=True)


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with pyfilter.config(threads=request.param):
        yield request.param


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


def stored_chunks(dataset: h5py.Dataset) -> dict[tuple[int, ...], tuple[int, bytes]]:
    """Return (filter mask, bytes) of every chunk by its offset."""
    offsets = [dataset.id.get_chunk_info(index).chunk_offset for index in range(dataset.id.get_num_chunks())]
    return {offset: dataset.id.read_direct_chunk(offset) for offset in offsets}


CASES: list[tuple[tuple[int, ...], tuple[int, ...], str, Any, dict[str, Any]]] = [
    ((100, 90), (32, 40), "f4", BOUND, {}),
    ((100, 90), (32, 40), "f4", BOUND, {"fillvalue": -999.0}),
    ((100, 90), (32, 40), "f8", BOUND, {"fillvalue": np.nan}),
    ((100, 90), (32, 40), "f8", BOUND, {"fillvalue": 7.0, "fill_time": "never"}),
    ((100, 90), (32, 40), "f8", BOUND, {"fillvalue": 7.0, "fill_time": "alloc"}),
    ((100, 90), (32, 40), ">f4", BOUND, {"fillvalue": 1e20}),
    ((100, 90), (32, 40), ">f8", Lossless(), {}),
    ((100, 90), (32, 40), "f4", Cuszp2(relative=1e-3), {"fillvalue": 0.5}),
    ((100, 90), (32, 40), "f4", Cuszp2(relative=1e-3), {}),
    ((100, 90), (100, 90), "f4", Cuszp2(absolute=1e-3, block_dims=2), {}),
    ((20, 30, 40), (8, 16, 13), "f4", Cuszp2(absolute=1e-3, block_dims=3, mode="plain"), {"fillvalue": 3.0}),
    ((1000,), (64,), "f8", BOUND, {"maxshape": (None,)}),
    ((3, 4, 2, 5, 3, 4), (2, 3, 2, 2, 2, 3), "f4", BOUND, {"fillvalue": 2.0}),
    ((50, 50), (20, 20), "i2", Lossless(), {"fillvalue": -32768}),
    ((50, 50), (20, 20), ">u8", Lossless(), {"fillvalue": 2**63}),
    ((50, 50), (20, 20), "u1", Lossless(block_dims=2), {}),
]


@pytest.mark.parametrize(("shape", "chunks", "dtype", "codec", "keywords"), CASES, ids=str)
def test_direct_chunks_are_the_bytes_of_the_filter(
    file: h5py.File,
    threads: int,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    codec: pyfilter.Codec,
    keywords: dict[str, Any],
) -> None:
    if "fill_time" in keywords and h5py.version.version_tuple < (3, 9):
        pytest.skip("this h5py has no fill_time")
    values = (field(shape, "f8") * (50 if np.dtype(dtype).kind in "iu" else 1) + 60).astype(dtype)
    values[: shape[0] // 4] = keywords.get("fillvalue", 0)
    plain = file.create_dataset("plain", data=values, chunks=chunks, dtype=dtype, compression=codec, **keywords)
    direct = file.create_dataset("direct", shape, dtype=dtype, chunks=chunks, compression=codec, **keywords)
    assert pipeline.chunk_codec(direct) is not None
    pyfilter.write(direct, values)
    file.flush()
    assert stored_chunks(direct) == stored_chunks(plain)
    np.testing.assert_array_equal(pyfilter.read(plain), plain[...])


def test_create_dataset_is_h5pys_with_an_absolute_bound(file: h5py.File) -> None:
    values = field((300, 200))
    ours = pyfilter.create_dataset(
        file, "ours", values, BOUND, chunks=(64, 64), fillvalue=-1.0, attributes={"units": "K"}
    )
    theirs = file.create_dataset("theirs", data=values, chunks=(64, 64), fillvalue=-1.0, compression=BOUND)
    assert stored_chunks(ours) == stored_chunks(theirs)
    assert (ours.dtype, ours.shape, ours.chunks, ours.fillvalue) == (values.dtype, (300, 200), (64, 64), -1.0)
    assert ours.attrs["units"] == "K"
    assert pyfilter.codec_of(ours) == BOUND


def test_a_relative_bound_is_of_the_whole_array(file: h5py.File) -> None:
    values = field((300, 200))
    values[:100] *= 1e-3  # chunks of very different ranges
    values[200:220] = 1e20
    values[0, 0] = np.nan
    codec = Cuszp2(relative=1e-3, mode="plain")
    dataset = pyfilter.create_dataset(file, "a", values, codec, chunks=(50, 50), fillvalue=1e20)
    real = values[(values < 1e19)]
    bound = (float(real.max()) - float(real.min())) * 1e-3
    found = pyfilter.codec_of(dataset)
    assert isinstance(found, Cuszp2)
    assert found.mode == "plain"
    assert found.absolute == pytest.approx(bound, rel=1e-15)
    assert found.absolute is not None
    assert found.absolute <= bound
    file.flush()
    assert pyfilter.verify(values, pyfilter.read(dataset), codec, fill_value=1e20).ok


@pytest.mark.parametrize("values", [np.full((20, 30), 7.0), np.full((20, 30), np.nan), np.full((20, 30), -999.0)])
def test_without_a_range_the_relative_codec_stays(file: h5py.File, values: Any) -> None:
    dataset = pyfilter.create_dataset(file, "a", values, Cuszp2(relative=1e-3), fillvalue=-999.0)
    assert pyfilter.codec_of(dataset) == Cuszp2(relative=1e-3)
    assert pyfilter.read(dataset).tobytes() == values.tobytes()


def test_a_dataset_of_another_file_is_read_in_slabs(file: h5py.File, tmp_path: Path) -> None:
    values = field((500, 300), "f8")
    with h5py.File(tmp_path / "b.h5", "w") as other:
        other.create_dataset("x", data=values, chunks=(7, 300))
        dataset = pyfilter.create_dataset(file, "x", other["x"], Cuszp2(relative=1e-4), chunks=(64, 70))
    again = pyfilter.create_dataset(file, "y", values, Cuszp2(relative=1e-4), chunks=(64, 70))
    assert stored_chunks(dataset) == stored_chunks(again)


@pytest.mark.parametrize("chunks", [None, True])
def test_chunks_are_chosen(file: h5py.File, chunks: Any) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((1200, 1500)), BOUND, chunks=chunks)
    assert dataset.chunks != dataset.shape
    assert np.prod(dataset.chunks) * 4 <= 4 << 20
    assert pyfilter.create_dataset(file, "b", field((30, 40)), BOUND, chunks=chunks).chunks == (30, 40)


def test_unlimited_dimensions(file: h5py.File) -> None:
    values = field((5, 30, 40))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, maxshape=(None, 30, 40))
    assert dataset.maxshape == (None, 30, 40)
    dataset.resize((9, 30, 40))
    dataset[5:] = values[:4]
    assert pyfilter.create_dataset(file, "b", values, BOUND, maxshape=True).maxshape == (None, None, None)
    empty = pyfilter.create_dataset(file, "c", np.zeros((0, 30), "f4"), BOUND, maxshape=(None, 30))
    assert empty.shape == (0, 30)
    assert pyfilter.read(empty).shape == (0, 30)


def test_anonymous_and_nested(file: h5py.File) -> None:
    assert pyfilter.create_dataset(file, None, field((30, 40)), BOUND).name is None
    assert pyfilter.create_dataset(file, "g/h/a", field((30, 40)), BOUND).name == "/g/h/a"
    assert pyfilter.create_dataset(file["g"], "b", field((30, 40)), BOUND).name == "/g/b"


def test_another_type_is_converted_first(file: h5py.File) -> None:
    values = field((30, 40), "f8")
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, dtype="f4")
    assert dataset.dtype == "f4"
    assert pyfilter.verify(values.astype("f4"), pyfilter.read(dataset), BOUND).ok
    with pytest.raises(TypeError, match="float16"):
        pyfilter.create_dataset(file, "b", values, BOUND, dtype="f2")


def test_a_checksum_follows_the_codec(file: h5py.File) -> None:
    values = field((100, 90))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(32, 40), fletcher32=True)
    assert pipeline.pipeline_of(dataset).ids == (pyfilter.FILTER_ID, h5z.FILTER_FLETCHER32)
    file.flush()
    assert pyfilter.verify(values, pyfilter.read(dataset), BOUND).ok
    assert pyfilter.check(file) == []


def test_another_compressor_may_follow(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    values = field((100, 90))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((32, 40))
        dcpl.set_filter(pyfilter.FILTER_ID, h5z.FLAG_OPTIONAL, BOUND.filter_options)
        dcpl.set_filter(hdf5plugin.Zstd().filter_id, h5z.FLAG_OPTIONAL, ())
        made = h5d.create(file.id, b"a", h5t.IEEE_F32LE, h5s.create_simple((100, 90)), dcpl)
        pyfilter.write(h5py.Dataset(made), values)
    with h5py.File(tmp_path / "a.h5") as file:
        assert pipeline.chunk_codec(file["a"]) is None
        assert pyfilter.verify(values, pyfilter.read(file["a"]), BOUND).ok
        assert pyfilter.codec_of(file["a"]) == BOUND
        assert pyfilter.check(file) == []


@pytest.mark.parametrize(
    "keywords",
    [
        {"shuffle": True}, {"scaleoffset": 3}, {"compression": "gzip"}, {"compression_opts": 3},
        {"shape": (3,)}, {"dcpl": h5p.create(h5p.DATASET_CREATE)},
    ],
    ids=str,
)  # fmt: skip
def test_arguments_that_break_the_bound_are_refused(file: h5py.File, keywords: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(keywords))):
        pyfilter.create_dataset(file, "a", np.zeros(3), BOUND, **keywords)
    assert "a" not in file


@pytest.mark.parametrize(
    ("data", "codec", "keywords", "error", "text"),
    [
        (1.0, BOUND, {}, TypeError, "scalar"),
        (np.zeros(3, "i4"), BOUND, {}, TypeError, "float32, float64"),
        (["a", "b"], BOUND, {}, TypeError, "float32, float64"),
        (np.zeros(3), "cuszp2", {}, TypeError, "codec"),
        (np.zeros(3), BOUND, {"chunks": (2, 2)}, ValueError, "chunks must be"),
        (np.zeros(3), BOUND, {"chunks": (0,)}, ValueError, "chunks must be"),
        (np.zeros(3), BOUND, {"chunks": (1.5,)}, ValueError, "chunks must be"),
        (np.zeros(3), BOUND, {"chunks": False}, ValueError, "chunks must be"),
        (np.zeros(3), BOUND, {"chunks": "auto"}, ValueError, "chunks must be"),
        (np.zeros(3), BOUND, {"maxshape": (None, None)}, ValueError, "maxshape"),
        (np.zeros(3), BOUND, {"fillvalue": "x"}, (ValueError, TypeError), "."),
        (np.zeros(3), Cuszp2(relative=1e-3), {"fillvalue": "x"}, ValueError, "fill value"),
        (MASKED, BOUND, {}, ValueError, "masked"),
        (np.zeros(3), Cuszp2(absolute=1.0, block_dims=3), {}, (ValueError, OSError), "."),
    ],
)
def test_bad_arguments_are_refused_and_leave_nothing(
    file: h5py.File, data: Any, codec: Any, keywords: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        pyfilter.create_dataset(file, "a", data, codec, **keywords)
    assert list(file) == []


def test_a_name_in_use_is_left_alone(file: h5py.File) -> None:
    file["a"] = [1, 2, 3]
    with pytest.raises(ValueError, match="exists"):
        pyfilter.create_dataset(file, "a", np.zeros(3), BOUND)
    np.testing.assert_array_equal(file["a"], [1, 2, 3])


def test_a_failing_write_leaves_a_readable_file(tmp_path: Path) -> None:
    class Broken:
        """Values of which the second half cannot be read."""

        shape, dtype, size = (1 << 13, 4096), np.dtype("f4"), 1 << 25

        def __getitem__(self, region: Any) -> Any:
            if region[0].start >= 1 << 12:
                raise OSError("the disk is on fire")
            return np.ones([part.stop - part.start for part in region], "f4")

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["before"] = np.arange(5)
        dataset = file.create_dataset("a", Broken.shape, "f4", chunks=(512, 4096), compression=BOUND)
        how = pipeline.chunk_codec(dataset)
        assert how is not None
        with pytest.raises(OSError, match="fire"):
            transfer.write_chunks(dataset, how, Broken())
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["before"], np.arange(5))
        half = file["a"][: 1 << 12]
        assert np.all(np.abs(half[:512] - 1) <= 1e-3)
        assert np.all(file["a"][-512:] == 0)
        assert pyfilter.check(file) == []


SELECTIONS: list[Any] = [
    ..., (), np.s_[:], np.s_[10], np.s_[-1], np.s_[10:20], np.s_[:, 5], np.s_[..., 5], np.s_[3, ..., 4],
    np.s_[10:20, 30:31, 2:9], np.s_[50:40], np.s_[0:1, 0, 0], np.s_[99, 39, 10], np.s_[np.int32(4), 3:],
    np.s_[::3], np.s_[5:90:7, :, ::2], np.s_[[1, 5, 7]], np.s_[:, [0, 3]], np.s_[-5:, -5:-2],
]  # fmt: skip


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_read_gives_what_h5py_gives(file: h5py.File, selection: Any, threads: int) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND, chunks=(32, 16, 5))
    expected = dataset[selection]
    found = pyfilter.read(dataset, selection)
    assert type(found) is type(expected)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)
    out = np.zeros(np.shape(expected), "f8")
    assert pyfilter.read(dataset, selection, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("selection", [np.s_[100], np.s_[0, 0, 0, 0], np.s_[..., ...], np.s_["a"], np.s_[1.5]])
def test_bad_selections_are_refused_by_h5py(file: h5py.File, selection: Any) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((100, 40, 11)), BOUND)
    with pytest.raises((IndexError, ValueError, TypeError)):
        pyfilter.read(dataset, selection)


def test_read_into_views(file: h5py.File) -> None:
    values = field((60, 50))
    dataset = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(16, 50))
    for out in (np.zeros((60, 100), "f4")[:, ::2], np.zeros((60, 50), "f4", order="F"), np.zeros((60, 50), ">f8")):
        pyfilter.read(dataset, out=out)
        np.testing.assert_array_equal(out, dataset[...])
    row = np.zeros((60, 3), "f4")
    pyfilter.read(dataset, np.s_[:, 7], out=row[:, 1])
    np.testing.assert_array_equal(row[:, 1], dataset[:, 7])
    assert not row[:, [0, 2]].any()


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((60, 51)), ValueError),
        (np.zeros(3000), ValueError),
        (np.zeros((60, 50), "i4"), ValueError),
        ([[0.0] * 50] * 60, TypeError),
    ],
)
def test_an_out_that_does_not_fit_is_refused(file: h5py.File, out: Any, error: type[Exception]) -> None:
    for dataset in (
        pyfilter.create_dataset(file, "a", field((60, 50)), BOUND),
        file.create_dataset("b", data=field((60, 50))),
    ):
        with pytest.raises(error):
            pyfilter.read(dataset, out=out)


def test_unwritten_chunks_are_fill(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (100, 90), "f4", chunks=(32, 40), fillvalue=-5.0, compression=BOUND)
    np.testing.assert_array_equal(pyfilter.read(dataset), np.full((100, 90), -5, "f4"))
    dataset[40:60, 10:20] = field((20, 10))
    np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])


@pytest.mark.parametrize("dtype", ["f4", ">f4", ">i8"])
def test_raw_chunks_are_read(file: h5py.File, dtype: str) -> None:
    values = (field((64, 80), "f8") * 100).astype(dtype)
    codec = Lossless() if dtype[1:] == "i8" else BOUND
    dataset = pyfilter.create_dataset(file, "a", values, codec, chunks=(32, 40), dtype=dtype)
    dataset.id.write_direct_chunk((32, 40), values[32:, 40:].tobytes(), 1)
    np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])
    np.testing.assert_array_equal(pyfilter.read(dataset)[32:, 40:], values[32:, 40:])


def test_what_is_in_the_chunk_cache_is_read(file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", np.zeros((64, 80), "f4"), BOUND, chunks=(32, 40))
    dataset[...] = 3.0
    np.testing.assert_allclose(pyfilter.read(dataset), 3.0, atol=1e-3)
    pyfilter.write(dataset, np.full((64, 80), 5.0, "f4"))
    np.testing.assert_allclose(dataset[...], 5.0, atol=1e-3)


def test_damaged_chunks_are_errors(file: h5py.File) -> None:
    dataset = pyfilter.create_dataset(file, "a", field((64, 80)), BOUND, chunks=(32, 40))
    _, frame = dataset.id.read_direct_chunk((0, 0))
    other = pyfilter.encode(field((10, 10)), BOUND)
    for damaged in (frame[:-3], b"x" * len(frame), other, pyfilter.encode(field((32, 40), "f8"), BOUND), b""):
        dataset.id.write_direct_chunk((0, 0), damaged or b"\0", 0)
        with pytest.raises(pyfilter.errors.FrameError):
            pyfilter.read(dataset)
        np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[32:]), dataset[32:])
    dataset.id.write_direct_chunk((0, 0), b"12", 1)
    with pytest.raises(pyfilter.errors.FrameError, match="unfiltered"):
        pyfilter.read(dataset)


def test_a_frame_as_long_as_the_raw_chunk_before_it_is_read_rightly(tmp_path: Path) -> None:
    # HDF5 keeps the filter mask of a chunk that is overwritten with as many bytes
    noise = np.random.default_rng(3).integers(0, 2**32, 1000, "u4")
    fitting = []
    for count, bits in itertools.product(range(1, 7), range(32)):
        values = noise.copy()
        values[: 32 * count] >>= np.uint32(bits)
        if len(pyfilter.encode(values, Lossless())) == values.nbytes:
            fitting.append(values)
    values = fitting[0]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (1000,), "u4", chunks=(1000,), compression=Lossless())
        dataset.id.write_direct_chunk((0,), bytes(4000), 1)
        pyfilter.write(dataset, values)
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["a"], values)
        np.testing.assert_array_equal(pyfilter.read(file["a"]), values)


def test_other_datasets_are_left_to_h5py(file: h5py.File) -> None:
    values = field((60, 50))
    kinds: dict[str, dict[str, Any]] = {
        "a": {},
        "b": {"chunks": (10, 10)},
        "c": {"compression": "gzip", "shuffle": True},
    }
    for name, keywords in kinds.items():
        dataset = file.create_dataset(name, (60, 50), "f4", **keywords)
        pyfilter.write(dataset, values)
        np.testing.assert_array_equal(pyfilter.read(dataset, np.s_[3:7]), values[3:7])
    layout = h5py.VirtualLayout((60, 50), "f4")
    layout[:] = h5py.VirtualSource(file["a"])
    virtual = file.create_virtual_dataset("v", layout)
    np.testing.assert_array_equal(pyfilter.read(virtual), values)
    file["s"] = "text"
    assert pyfilter.read(file["s"], ()) == b"text"


def test_write_lets_hdf5_convert_other_types(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
    values = field((60, 50), "f8")
    pyfilter.write(dataset, values)
    assert pyfilter.verify(values.astype("f4"), pyfilter.read(dataset), 1e-3).ok
    pyfilter.write(dataset, np.arange(3000).reshape(60, 50))
    np.testing.assert_allclose(pyfilter.read(dataset), np.arange(3000).reshape(60, 50), atol=1e-3)
    pyfilter.write(dataset, values.astype(">f4"))
    assert pyfilter.verify(values.astype("f4"), pyfilter.read(dataset), 1e-3).ok


def test_write_needs_the_shape(file: h5py.File) -> None:
    dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
    with pytest.raises(ValueError, match=r"\(60, 50\).*\(50, 60\)"):
        pyfilter.write(dataset, np.zeros((50, 60)))
    with pytest.raises(ValueError, match="masked"):
        pyfilter.write(dataset, np.ma.array(np.zeros((60, 50)), mask=True))


@pytest.mark.parametrize("thing", [None, "a", np.zeros(3)])
def test_datasets_are_needed(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"h5py\.Dataset"):
        pyfilter.write(thing, np.zeros(3))
    with pytest.raises(TypeError, match=r"h5py\.Dataset"):
        pyfilter.read(thing)


def test_unfiltered_edge_chunks_are_left_to_hdf5(tmp_path: Path) -> None:
    values = field((100, 90))
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((32, 40))
        set_options = ctypes.CDLL(h5z.__file__).H5Pset_chunk_opts
        set_options.argtypes = (ctypes.c_int64, ctypes.c_uint)
        assert set_options(dcpl.id, 2) == 0  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
        dcpl.set_filter(pyfilter.FILTER_ID, h5z.FLAG_OPTIONAL, BOUND.filter_options)
        made = h5d.create(file.id, b"a", h5t.IEEE_F32LE, h5s.create_simple((100, 90)), dcpl)
        assert pipeline.chunk_codec(h5py.Dataset(made)) is None
        pyfilter.write(h5py.Dataset(made), values)
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.verify(values, pyfilter.read(file["a"]), BOUND).ok


def test_opened_again_and_written_in_part(tmp_path: Path) -> None:
    values = field((64, 80))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", values, BOUND, chunks=(32, 40), fillvalue=-999.0, maxshape=(None, 80))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["a"].resize((96, 80))
        file["a"][60:96] = values[:36]
    with h5py.File(tmp_path / "a.h5") as file:
        expected = np.concatenate([values[:60], values[:36]])
        assert pyfilter.verify(expected, pyfilter.read(file["a"]), BOUND).ok
        assert pyfilter.check(file) == []
