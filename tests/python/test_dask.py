# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.dask.to_hdf5: the same chunks as by create_dataset, blocks and chunks, failures that leave nothing."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter._chunks import blocks
from pyfilter.errors import InvalidArgument, Unsupported

from .support import field

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

SHAPE = (30, 50, 70)


def chunks_of(dataset: h5py.Dataset) -> dict[tuple[int, ...], bytes]:
    """Return the stored bytes by the coordinates of their chunks."""
    places = [dataset.id.get_chunk_info(number).chunk_offset for number in range(dataset.id.get_num_chunks())]
    return {place: dataset.id.read_direct_chunk(place)[1] for place in places}


@pytest.mark.parametrize("scheduler", ["threads", "processes", "synchronous"])
@pytest.mark.parametrize("codec", [pyfilter.Lorenzo(relative=1e-4), pyfilter.Lossless()], ids=repr)
def test_the_chunks_are_those_of_create_dataset(tmp_path: Path, scheduler: str, codec: pyfilter.Codec) -> None:
    values = field(SHAPE)
    values[3, 4:9] = 1e20
    array = da.from_array(values, chunks=(10, 50, 32))
    with dask.config.set(scheduler=scheduler):
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "deep/v", codec, chunks=(10, 25, 16), fillvalue=1e20)
    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5", "w") as other:
        pyfilter.create_dataset(other, "v", values, codec, chunks=(10, 25, 16), fillvalue=1e20)
        assert chunks_of(file["deep/v"]) == chunks_of(other["v"])
        assert pyfilter.codec_of(file["deep/v"]) == pyfilter.codec_of(other["v"])
        assert pyfilter.verify(values, file["deep/v"], codec, fill_value=np.float32(1e20)).ok
        assert pyfilter.check(file) == []
    assert [path.name for path in tmp_path.iterdir() if path.name != "b.h5"] == ["a.h5"]


def test_distributed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    values = field(SHAPE)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        array = da.from_array(values, chunks=(10, 50, 32))
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", pyfilter.Cuszp2(absolute=1e-3))
    with h5py.File(tmp_path / "a.h5") as file:
        assert pyfilter.verify(values, file["v"]).ok


@pytest.mark.parametrize("chunks", [(7, 50, 70), (10, 50, 70), ((10, 15, 5), (20, 30), 70), (30, 13, 9)])
def test_chosen_chunks_fit_the_blocks(tmp_path: Path, chunks: Any) -> None:
    values = field(SHAPE, ">f8")
    array = da.from_array(values, chunks=chunks)
    task = pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", pyfilter.Lorenzo(absolute=1e-3), compute=False)
    assert not (tmp_path / "a.h5").exists()
    task.compute()
    with h5py.File(tmp_path / "a.h5") as file:
        for sizes, edge in zip(array.chunks, file["v"].chunks, strict=True):
            assert not any(size % edge for size in sizes[:-1])
        assert file["v"].dtype == np.dtype(">f8")
        assert np.abs(file["v"][...] - values).max() <= 1e-3


def test_blocks_that_cut_chunks(tmp_path: Path) -> None:
    values = field(SHAPE)
    array = da.from_array(values, chunks=(7, 50, 70))
    codec = pyfilter.Cuszp2(absolute=1e-3)
    with pytest.raises(InvalidArgument, match=r"blocks of \(7, 7, 7, 7, 2\) along axis 0 end inside of chunks of 10"):
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", codec, chunks=(10, 20, 30))
    assert list(tmp_path.iterdir()) == []
    pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", codec, chunks=(10, 20, 30), rechunk=True)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["v"].chunks == (10, 20, 30)
        assert pyfilter.verify(values, file["v"]).ok


def test_failures_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = field(SHAPE)
    codec = pyfilter.Cuszp2(absolute=1e-3)

    def fail(block: Any, block_id: Any = None) -> Any:
        if block_id == (1, 0, 0):
            raise OSError("no such luck")
        return block

    array = da.from_array(values, chunks=(10, 50, 70)).map_blocks(fail, dtype="f4")
    with pytest.raises(OSError, match="no such luck"):
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", codec)
    assert list(tmp_path.iterdir()) == []
    good = da.from_array(values, chunks=(10, 50, 70))
    pyfilter.dask.to_hdf5(good, tmp_path / "a.h5", "v", codec)
    before = (tmp_path / "a.h5").stat().st_mtime_ns
    with pytest.raises(OSError, match="no such luck"):
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "w", codec)
    assert (tmp_path / "a.h5").stat().st_mtime_ns == before

    def fail_to_store(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pyfilter._chunks.blocks.store", fail_to_store)
    with dask.config.set(scheduler="synchronous"):
        for name in ("a.h5", "new.h5"):
            with pytest.raises(OSError, match="disk full"):
                pyfilter.dask.to_hdf5(good, tmp_path / name, "w", codec)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file) == ["v"]
        assert pyfilter.verify(values, file["v"]).ok


def test_what_is_refused(tmp_path: Path) -> None:
    codec = pyfilter.Cuszp2(absolute=1e-3)
    array = da.from_array(field(SHAPE), chunks=(10, 50, 70))
    to_hdf5 = pyfilter.dask.to_hdf5
    with pytest.raises(Unsupported, match="a dask array is needed, got ndarray"):
        to_hdf5(field(SHAPE), tmp_path / "a.h5", "v", codec)
    with pytest.raises(Unsupported, match="a codec is needed"):
        to_hdf5(array, tmp_path / "a.h5", "v", "gzip")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="cannot encode int64"):
        to_hdf5(array.astype("i8"), tmp_path / "a.h5", "v", codec)
    with pytest.raises(InvalidArgument, match="fletcher32 cannot be given"):
        to_hdf5(array, tmp_path / "a.h5", "v", codec, fletcher32=True)
    with pytest.raises(InvalidArgument, match="known extents above 0"):
        to_hdf5(array[array > 0], tmp_path / "a.h5", "v", codec)
    with pytest.raises(InvalidArgument, match="is not there"):
        to_hdf5(array, tmp_path / "no" / "a.h5", "v", codec)
    to_hdf5(array, tmp_path / "a.h5", "v", codec)
    with pytest.raises(InvalidArgument, match=r"'v' is in .* already"):
        to_hdf5(array, tmp_path / "a.h5", "v", codec)


def test_few_blocks_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads compute no further block before the frames of theirs are written."""
    made: list[int] = []
    most = 0
    written = 0
    before = blocks.store

    def source(block: Any, block_id: Any = None) -> Any:
        made.append(1)
        return block + np.float32(block_id[0])

    def store(*these: Any) -> None:
        nonlocal most, written
        time.sleep(0.01)
        most = max(most, len(made) - written)
        before(*these)
        written += 1

    array = da.zeros((64, 50, 70), chunks=(1, 50, 70), dtype="f4").map_blocks(source, dtype="f4")
    made.clear()
    monkeypatch.setattr(blocks, "store", store)
    calls: list[tuple[int, int]] = []
    with dask.config.set(scheduler="threads", num_workers=3):
        pyfilter.dask.to_hdf5(
            array, tmp_path / "a.h5", "v", pyfilter.Lossless(), progress=lambda *these: calls.append(these)
        )
    assert written == 64
    assert most <= 4
    assert calls == [(number + 1, 64) for number in range(64)]
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["v"][:, 0, 0], np.arange(64))


def test_workers_that_can_be_reached_are_asked_directly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert blocks._reachable([here]) is True
        assert blocks._reachable([here, "inproc://192.0.2.1/7/1"]) is None
    assert blocks._reachable([here]) is None  # nobody listens there now
    assert blocks._reachable(["tcp://no-such-host.invalid:1"]) is None


def test_a_cluster_gets_a_few_blocks_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    values = field((64, 20, 30))
    array = da.from_array(values, chunks=(1, 20, 30))
    most: list[int] = []
    take = blocks._take

    def counted(client: Any, batch: Any, out: Any, writer: Any) -> None:
        most.extend([len(out)] * len(batch))
        take(client, batch, out, writer)

    monkeypatch.setattr(blocks, "_take", counted)
    codec = pyfilter.Cuszp2(absolute=1e-3)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "v", codec)
        task = pyfilter.dask.to_hdf5(array, tmp_path / "b.h5", "v", codec, compute=False)
        assert not (tmp_path / "b.h5").exists()
        task.compute()
        pyfilter.dask.to_hdf5(array, tmp_path / "b.h5", "deep/w", codec)  # to a file that is there

        def fail(block: Any, block_id: Any = None) -> Any:
            if block_id[0] == 40:
                raise OSError("no such luck")
            return block

        bad = array.map_blocks(fail, dtype="f4")
        for name in ("c.h5", "b.h5"):
            with pytest.raises(OSError, match="no such luck"):
                pyfilter.dask.to_hdf5(bad, tmp_path / name, "x", codec)
        with pytest.raises(OSError, match="no such luck"):
            pyfilter.dask.to_hdf5(bad, tmp_path / "c.h5", "x", codec, compute=False).compute()
    assert max(most) <= 12
    assert len(most) >= 128  # compute=False is done by a worker, which this list does not see
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "b.h5"]
    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5") as other:
        assert list(other) == ["deep", "v"]
        for dataset in (file["v"], other["v"], other["deep/w"]):
            assert pyfilter.verify(values, dataset).ok


def test_a_file_that_is_read_meanwhile_gets_the_dataset(tmp_path: Path) -> None:
    """A dataset made of another one of the same file."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("old", data=field(SHAPE))

    def read(block: Any, block_info: Any = None) -> Any:
        region = tuple(slice(*ends) for ends in block_info[None]["array-location"])
        with h5py.File(tmp_path / "a.h5") as file:
            return file["old"][region] * 2

    array = da.zeros(SHAPE, chunks=(10, 50, 70), dtype="f4").map_blocks(read, dtype="f4")
    pyfilter.dask.to_hdf5(array, tmp_path / "a.h5", "new", pyfilter.Lossless())
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["new"][...], file["old"][...] * 2)
