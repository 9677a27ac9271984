# SPDX-License-Identifier: BSD-3-Clause
"""create_dataset and write: the same bytes as through h5py and the filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lorenzo, Lossless
from pyfilter._chunks import pipeline, transfer

from .support import field

BOUND = Cuszp2(absolute=1e-3)
MASKED: Any = np.ma.array(np.zeros(3), mask=True)


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
    ((100, 90), (32, 40), "f4", HierarchicalDelta(absolute=1e-3), {"fillvalue": -999.0}),
    ((100, 90), (100, 90), ">f8", HierarchicalDelta(relative=1e-3, predictor="chain"), {}),
    ((100, 90), (33, 41), "f4", HierarchicalDelta(absolute=1e-3, predictor="lorenzo2d"), {"fillvalue": np.nan}),
    ((20, 30, 40), (9, 16, 13), ">f4", HierarchicalDelta(absolute=1e-3, predictor="lorenzo3d"), {"fillvalue": 3.0}),
    ((900, 3), (256, 3), "f8", HierarchicalDelta(absolute=1e-3, predictor="columns"), {"maxshape": (None, 3)}),
    ((3, 4, 2, 5, 3, 4), (2, 3, 2, 2, 2, 3), "f4", HierarchicalDelta(absolute=1e-3, predictor="columns"), {}),
    ((100, 90), (64, 80), "f4", Lorenzo(absolute=1e-3), {"fillvalue": -999.0}),
    ((100, 90), (100, 90), ">f8", Lorenzo(relative=1e-3, predictor="lorenzo2d", coder="huffman"), {}),
    ((3, 4, 2, 5, 3, 4), (2, 3, 2, 2, 2, 3), "f4", BOUND, {"fillvalue": 2.0}),
    ((50, 50), (20, 20), "i2", Lossless(), {"fillvalue": -32768}),
    ((50, 50), (20, 20), ">u8", Lossless(), {"fillvalue": 2**63}),
    ((50, 50), (20, 20), "u1", Lossless(block_dims=2), {}),
]


def case_values(shape: tuple[int, ...], dtype: str, keywords: dict[str, Any]) -> Any:
    """Return the values of a case, a part of them the fill value; skips what this h5py cannot do."""
    if "fill_time" in keywords and h5py.version.version_tuple < (3, 12):
        pytest.skip("this h5py has no fill_time")
    values = (field(shape, "f8") * (50 if np.dtype(dtype).kind in "iu" else 1) + 60).astype(dtype)
    values[: shape[0] // 4] = keywords.get("fillvalue", 0)
    return values


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
    values = case_values(shape, dtype, keywords)
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
    half = pyfilter.create_dataset(file, "b", values, BOUND, dtype="f2")
    assert pyfilter.verify(values.astype("f2"), pyfilter.read(half), BOUND).ok
    with pytest.raises(TypeError, match="float16"):
        pyfilter.create_dataset(file, "c", values, pyfilter.Progressive(absolute=1e-3), dtype="f2")


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
    ids=lambda keywords: next(iter(keywords)),
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


@pytest.mark.parametrize("kind", [Cuszp2, pyfilter.HierarchicalDelta])
def test_psnr_is_of_the_whole_array(file: h5py.File, kind: Any) -> None:
    rng = np.random.default_rng(3)
    values = np.cumsum(rng.normal(size=(64, 500)), axis=1).astype("f4")
    values[5:9] = -999
    codec = kind(psnr=50.0)
    dataset = pyfilter.create_dataset(file, "a", values, codec, chunks=(16, 100), fillvalue=-999.0)
    ours = values[values != -999]
    spread = float(ours.max()) - float(ours.min())
    stored = pyfilter.codec_of(dataset)
    assert isinstance(stored, pyfilter.Codec)
    assert stored == codec.with_absolute(stored.bound[1])
    assert 0.999 < stored.bound[1] / (spread * 10**-2.5) <= 1
    assert pyfilter.verify(values, pyfilter.read(dataset), codec, fill_value=-999.0).psnr >= 50
    through = file.create_dataset("b", data=values, chunks=(16, 100), fillvalue=-999.0, **codec)
    assert pyfilter.codec_of(through) == codec
    assert pyfilter.verify(values, through, codec).ok


def test_pointwise_relative_bounds_in_files(file: h5py.File) -> None:
    rng = np.random.default_rng(8)
    values = (np.exp(3 * rng.normal(size=(60, 70))) * rng.choice((-1, 0, 1), (60, 70))).astype("f4")
    values[3:5] = -999
    codec = pyfilter.HierarchicalDelta(pointwise_relative=1e-3)
    whole = pyfilter.create_dataset(file, "a", values, codec, chunks=(32, 32), fillvalue=-999.0)
    through = file.create_dataset("b", data=values.astype(">f4"), chunks=(32, 32), fillvalue=-999.0, **codec)
    file.flush()
    for dataset in (whole, through):
        assert pyfilter.codec_of(dataset) == codec
        found = pyfilter.verify(values, pyfilter.read(dataset), codec, fill_value=-999.0)
        assert found.ok
        assert found.max_error > 0
        frame = dataset.id.read_direct_chunk((0, 0))[1]
        assert pyfilter.frame_info(frame).pointwise_relative
    assert np.array_equal(pyfilter.read(whole), pyfilter.read(through))
