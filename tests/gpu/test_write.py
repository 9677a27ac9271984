# SPDX-License-Identifier: BSD-3-Clause
"""write and create_dataset of device arrays: the same bytes in the file as of host arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from python.support import field
from python.test_h5 import CASES, case_values, stored_chunks

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter._chunks import pipeline
from pyfilter.gpu import ranges, staging, writing

BOUND = Cuszp2(absolute=1e-3)


@pytest.fixture(params=[1, 20_000, None], ids=["batch=chunk", "batch=20k", "batch=128M"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one chunk, of a few, and of all, whose frames are packed."""
    if request.param is not None:
        monkeypatch.setattr(staging, "BATCH_BYTES", request.param)
    else:
        monkeypatch.setattr(writing, "FEW", 1)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(("shape", "chunks", "dtype", "codec", "keywords"), CASES, ids=str)
def test_chunks_are_those_of_the_host(
    cp: Any,
    file: h5py.File,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    codec: pyfilter.Codec,
    keywords: dict[str, Any],
) -> None:
    values = case_values(shape, dtype, keywords)
    host = file.create_dataset("host", shape, dtype=dtype, chunks=chunks, compression=codec, **keywords)
    device = file.create_dataset("device", shape, dtype=dtype, chunks=chunks, compression=codec, **keywords)
    assert pipeline.chunk_codec(device) is not None
    pyfilter.write(host, values)
    pyfilter.write(device, cp.asarray(values.astype(values.dtype.newbyteorder("="))))
    file.flush()
    assert stored_chunks(device) == stored_chunks(host)
    found = pyfilter.read(device, device="cuda")
    assert found.dtype == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found.get(), host[...])


GRIDS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((4096,), (512,)), ((4097,), (512,)), ((10,), (512,)), ((64, 80), (16, 80)), ((64, 80), (1, 80)),
    ((3, 64, 80), (1, 64, 80)), ((3, 64, 80), (1, 16, 80)), ((3, 64, 80), (2, 16, 80)), ((64, 80), (64, 7)),
    ((9, 10, 11), (9, 10, 11)), ((9, 10, 11), (4, 5, 6)), ((9, 10, 11), (20, 20, 20)), ((1, 1, 5), (1, 1, 2)),
    ((2,) * 13, (1, 2) + (2,) * 11),
]  # fmt: skip


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(("shape", "chunks"), GRIDS, ids=str)
def test_grids(cp: Any, file: h5py.File, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    values = field(shape)
    limits = (None,) * len(shape)
    host = pyfilter.create_dataset(file, "host", values, BOUND, chunks=chunks, maxshape=limits, fillvalue=9.0)
    device = pyfilter.create_dataset(
        file, "device", cp.asarray(values), BOUND, chunks=chunks, maxshape=limits, fillvalue=9.0
    )
    assert stored_chunks(device) == stored_chunks(host)
    np.testing.assert_array_equal(pyfilter.read(host, device="cuda").get(), host[...])


@pytest.mark.parametrize("layout", ["transposed", "strided", "part"])
def test_memory_layouts(cp: Any, file: h5py.File, layout: str) -> None:
    values = field((60, 90))
    given = cp.asarray(values)
    view, same = {
        "transposed": (given.transpose(1, 0), values.T),
        "strided": (given[::3, ::2], values[::3, ::2]),
        "part": (given[3:50, 5:77], values[3:50, 5:77]),
    }[layout]
    host = pyfilter.create_dataset(file, "host", same, BOUND, chunks=(16, 20))
    device = pyfilter.create_dataset(file, "device", view, BOUND, chunks=(16, 20))
    assert stored_chunks(device) == stored_chunks(host)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("fill", [None, 1e20, 0.0, np.nan])
def test_relative_bounds_are_resolved_as_on_the_host(
    cp: Any, file: h5py.File, dtype: str, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = field((300, 200), dtype)
    values[:100] *= 1e-3
    values[200:220] = 1e20 if fill is None or np.isnan(fill) else fill
    values[0, 0], values[0, 1], values[0, 2] = np.nan, np.inf, -np.inf
    codec = Cuszp2(relative=1e-3)
    for slab in (ranges.SLAB_BYTES, 4000):
        monkeypatch.setattr(ranges, "SLAB_BYTES", slab)
        host = pyfilter.create_dataset(file, None, values, codec, chunks=(50, 50), fillvalue=fill)
        device = pyfilter.create_dataset(file, None, cp.asarray(values), codec, chunks=(50, 50), fillvalue=fill)
        assert pyfilter.codec_of(device) == pyfilter.codec_of(host)
        assert stored_chunks(device) == stored_chunks(host)


@pytest.mark.parametrize("value", [7.0, np.nan, np.inf, -999.0])
def test_without_a_range_the_relative_codec_stays(cp: Any, file: h5py.File, value: float) -> None:
    values = np.full((20, 30), value)
    host = pyfilter.create_dataset(file, "host", values, Cuszp2(relative=1e-3), fillvalue=-999.0)
    device = pyfilter.create_dataset(file, "device", cp.asarray(values), Cuszp2(relative=1e-3), fillvalue=-999.0)
    assert pyfilter.codec_of(device) == pyfilter.codec_of(host) == Cuszp2(relative=1e-3)
    assert stored_chunks(device) == stored_chunks(host)


def test_other_types_are_converted(cp: Any, file: h5py.File) -> None:
    values = field((60, 50), "f8")
    for dtype in ("f4", ">f4", ">f8"):
        host = pyfilter.create_dataset(file, None, values, BOUND, chunks=(16, 16), dtype=dtype)
        device = pyfilter.create_dataset(file, None, cp.asarray(values), BOUND, chunks=(16, 16), dtype=dtype)
        assert stored_chunks(device) == stored_chunks(host)
        pyfilter.write(device, cp.asarray(values.astype("f4" if dtype[-1] == "8" else "f8")))
        pyfilter.write(host, values.astype("f4" if dtype[-1] == "8" else "f8"))
        file.flush()
        assert stored_chunks(device) == stored_chunks(host)


@pytest.mark.parametrize(
    "keywords",
    [
        {"compression": BOUND, "fletcher32": True, "chunks": (16, 20)},
        {"compression": "gzip", "chunks": (16, 20)},
        {"chunks": (16, 20)},
        {},
    ],
    ids=str,
)
def test_other_datasets_go_through_hdf5(cp: Any, file: h5py.File, keywords: dict[str, Any]) -> None:
    values = field((60, 50))
    host = file.create_dataset("host", (60, 50), "f4", **keywords)
    device = file.create_dataset("device", (60, 50), "f4", **keywords)
    pyfilter.write(host, values)
    pyfilter.write(device, cp.asarray(values))
    np.testing.assert_array_equal(device[...], host[...])
    np.testing.assert_array_equal(pyfilter.read(device, device="cuda").get(), host[...])
    out = cp.zeros((20, 50), "f8")
    pyfilter.read(device, np.s_[20:40], out=out)
    np.testing.assert_array_equal(out.get(), host[20:40])


def test_zstd_behind_the_codec(cp: Any, file: h5py.File) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dcpl.set_chunk((16, 20))
    dcpl.set_filter(pyfilter.FILTER_ID, 0, BOUND.filter_options)
    dcpl.set_filter(hdf5plugin.Zstd.filter_id, 0, (3,))  # netCDF4's plugin, if it is the one, needs a level
    space = h5py.h5s.create_simple((60, 50))
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"a", h5py.h5t.IEEE_F32LE, space, dcpl))
    values = field((60, 50))
    pyfilter.write(dataset, cp.asarray(values))
    assert pyfilter.verify(values, dataset[...], 1e-3).ok
    np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])


def test_empty_arrays_and_scalars(cp: Any, file: h5py.File) -> None:
    none = pyfilter.create_dataset(file, "none", cp.zeros((0, 40), "f4"), BOUND, maxshape=(None, 40))
    assert none.id.get_num_chunks() == 0
    assert pyfilter.read(none, device="cuda").shape == (0, 40)
    with pytest.raises(TypeError, match="scalar"):
        pyfilter.create_dataset(file, "scalar", cp.zeros((), "f4"), BOUND)
    scalar = file.create_dataset("plain", (), "f4")
    pyfilter.write(scalar, cp.asarray(np.float32(3)))
    assert scalar[()] == 3.0
    assert float(pyfilter.read(scalar, (), device="cuda")) == 3.0


def test_the_shape_must_be_the_datasets(cp: Any, file: h5py.File) -> None:
    dataset = file.create_dataset("a", (60, 50), "f4", chunks=(16, 16), compression=BOUND)
    with pytest.raises(ValueError, match=r"\(60, 50\).*\(50, 60\)"):
        pyfilter.write(dataset, cp.zeros((50, 60), "f4"))


def test_a_failed_dataset_is_removed(cp: Any, file: h5py.File) -> None:
    with pytest.raises(TypeError, match="cannot encode"):
        pyfilter.create_dataset(file, "a", cp.zeros((60, 50), "i4"), BOUND)
    assert "a" not in file


def test_a_frame_as_long_as_the_raw_chunk_before_it(cp: Any, tmp_path: Path) -> None:
    # HDF5 keeps the filter mask of a chunk that is overwritten with as many bytes
    noise = np.random.default_rng(3).integers(0, 2**32, 1000, "u4")
    for count, bits in np.ndindex(6, 32):
        values = noise.copy()
        values[: 32 * (count + 1)] >>= np.uint32(bits)
        if len(pyfilter.encode(values, Lossless())) == values.nbytes:
            break
    else:
        pytest.fail("no such values")
    both = np.concatenate([noise, values])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (2000,), "u4", chunks=(1000,), compression=Lossless())
        dataset.id.write_direct_chunk((1000,), bytes(4000), 1)
        pyfilter.write(dataset, cp.asarray(both))
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["a"], both)
        np.testing.assert_array_equal(pyfilter.read(file["a"], device="cuda").get(), both)


@pytest.mark.parametrize("reorder", [False, "tile", True])
def test_particles_are_written_alike(cp: Any, file: h5py.File, reorder: bool | str) -> None:
    rng = np.random.default_rng(4)
    line = np.linspace(0, 5, 5000)
    in_order = np.stack([line, line * 0.7, line * 0.3], axis=-1) + rng.normal(0, 1e-4, (5000, 3))
    position = np.concatenate([in_order, rng.normal(size=(4000, 3))]).astype("f4")  # the second chunk is not full
    velocity, number = rng.normal(size=(9000, 3)), rng.permutation(9000)
    codec, codecs = pyfilter.Particles(absolute=1e-3), {"velocity": pyfilter.Lorenzo(relative=1e-4)}
    written = {
        name: pyfilter.particles.write(
            file.create_group(name),
            position=put(position),
            codec=codec,
            codecs=codecs,
            reorder=reorder,
            chunk=5000,
            velocity=put(velocity),
            id=put(number),
        )
        for name, put in (("host", np.asarray), ("device", cp.asarray))
    }
    for path, dataset in written["host"].items():
        assert stored_chunks(written["device"][path]) == stored_chunks(dataset)
        np.testing.assert_array_equal(pyfilter.read(dataset, device="cuda").get(), dataset[...])
    kept = np.array_equal(written["device"]["id"][5000:], number[5000:])
    assert np.array_equal(written["device"]["id"][:5000], number[:5000])  # sorting it would not pay
    assert kept != bool(reorder)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)])
@pytest.mark.parametrize("maxshape", [None, True])
def test_arrays_without_values(cp: Any, file: h5py.File, shape: tuple[int, ...], maxshape: bool | None) -> None:
    values = cp.asarray(np.zeros(shape, "f4"))
    made = pyfilter.create_dataset(file, "a", values, Lossless(), maxshape=maxshape)
    pyfilter.write(made, values)
    assert made.shape == pyfilter.read(made, device="cuda").shape == shape
    assert pyfilter.read(made, np.s_[:0], device="cuda").shape == (0, *shape[1:])
