# SPDX-License-Identifier: BSD-3-Clause
"""Where chunks are stored, and their bytes: the same whether HDF5 is asked chunk by chunk, once, or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless, errors
from pyfilter._chunks import layout, stored
from pyfilter._chunks.layout import Region
from pyfilter._chunks.stored import StoredChunks
from pyfilter._lib import hdf5, host

from .support import field

BOUND = Cuszp2(absolute=1e-3)
SHAPE, CHUNK = (70, 33, 12), (8, 5, 12)
REGIONS: list[Region] = [
    tuple(slice(0, extent) for extent in SHAPE),
    (slice(9, 41), slice(4, 6), slice(3, 4)),
    (slice(69, 70), slice(0, 33), slice(0, 12)),
    (slice(8, 8), slice(0, 33), slice(0, 12)),
]


def room_for(box: stored.StoredBox) -> stored.Frames:
    """Return memory for the chunks of a box, 3 bytes between them."""
    ends = np.cumsum(box.sizes + 3)
    return stored.Frames(np.zeros(int(ends[-1]) if len(ends) else 0, "u1"), ends - box.sizes - 3, box.sizes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with chunks written, not written, and stored without their filter."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", SHAPE, "f4", chunks=CHUNK, fillvalue=-9, **BOUND)
        dataset[:48] = field(SHAPE)[:48]
        raw = np.arange(np.prod(CHUNK), dtype="f4").tobytes()
        dataset.id.write_direct_chunk((64, 10, 0), raw, 1)
    return path


@pytest.fixture(params=["one by one", "in one pass", "in one pass by h5py"])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_MIN_CHUNKS_FOR_INDEX", 10**9 if request.param == "one by one" else 0)
    if request.param == "in one pass by h5py":  # as where HDF5 has no such call
        monkeypatch.setattr(hdf5, "chunk_locations", lambda *given: None)


@pytest.mark.parametrize("region", REGIONS, ids=str)
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.usefixtures("ask")
def test_places_are_those_that_hdf5_tells(path: Path, region: Region, mode: str) -> None:
    with h5py.File(path, mode) as file:
        dataset = file["a"]
        places = StoredChunks(dataset, CHUNK, region)
        origins = list(layout.origins(SHAPE, CHUNK, region))
        infos = [dataset.id.get_chunk_info_by_coord(origin) for origin in origins]
        expected = [
            (None, 0, 0) if info.byte_offset is None else (info.byte_offset, info.size, info.filter_mask)
            for info in infos
        ]
        assert [places.find(origin) for origin in origins] == expected
        box = places.of_box(region)
        assert box.offsets.tolist() == [-1 if offset is None else offset for offset, _, _ in expected]
        assert (box.sizes.tolist(), box.masks.tolist()) == ([one[1] for one in expected], [one[2] for one in expected])
        into = room_for(box)
        places.read(region, box, into)
        for number, (origin, info) in enumerate(zip(origins, infos, strict=True)):
            if info.byte_offset is not None:
                assert into[number].tobytes() == dataset.id.read_direct_chunk(origin)[1]


@pytest.mark.usefixtures("ask")
def test_what_is_not_flushed_yet_is_found(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("a", (300, 64), "f4", chunks=(1, 64), **BOUND)
        dataset[:200] = 1
        found = StoredChunks(dataset, (1, 64), (slice(0, 300), slice(0, 64))).of_box((slice(0, 300), slice(0, 64)))
        assert (found.offsets >= 0).tolist() == [True] * 200 + [False] * 100
        np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])


@pytest.mark.usefixtures("ask")
def test_a_read_only_file_is_read_as_by_hdf5(path: Path, threads: int) -> None:
    with h5py.File(path) as file:
        assert StoredChunks(file["a"], CHUNK, REGIONS[0]).descriptor is not None
        for selection in (np.s_[...], np.s_[5:60, 7:31, 2:5], np.s_[66], np.s_[50:60]):
            np.testing.assert_array_equal(pyfilter.read(file["a"], selection), file["a"][selection])


def test_nothing_is_believed_of_a_chunk_that_is_not_there() -> None:
    """For such chunks h5py gives a size and a mask that nobody set."""
    info = SimpleNamespace(byte_offset=None, size=7, filter_mask=32648)
    dataset: Any = SimpleNamespace(id=SimpleNamespace(get_chunk_info_by_coord=lambda origin: info))
    assert stored.place_of(dataset, (0,)) == (None, 0, 0)


def test_large_chunks_are_read_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    region = REGIONS[0]
    pieces: list[int] = []
    plain = host.read_ranges

    def note(descriptor: int, ranges: Any, threads: int) -> None:
        pieces.append(len(ranges))
        plain(descriptor, ranges, threads)

    monkeypatch.setattr(host, "read_ranges", note)
    with h5py.File(path) as file, StoredChunks(file["a"], CHUNK, region) as places:
        box = places.of_box(region)
        expected, found = room_for(box), room_for(box)
        places.read(region, box, expected)
        monkeypatch.setattr(stored, "_PIECE_BYTES", 100)
        places.read(region, box, found)
        assert found.buffer.tobytes() == expected.buffer.tobytes()
    written = box.sizes[box.offsets >= 0]
    assert pieces == [len(written), int((-(-written // 100)).sum())]
    assert pieces[1] > 3 * pieces[0]


def test_what_the_system_does_not_read_at_once_is_read_by_and_by(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network's file system may give less than it is asked for, or fail once."""

    def nothing(descriptor: int, ranges: Any, threads: int) -> None:
        ranges["done"] = 0

    def short(descriptor: int, buffers: Any, offset: int) -> int:
        data = os.pread(descriptor, min(100, len(buffers[0])), offset)
        buffers[0][: len(data)] = data
        return len(data)

    with h5py.File(path) as file, StoredChunks(file["a"], CHUNK, REGIONS[0]) as places:
        box = places.of_box(REGIONS[0])
        expected, found = room_for(box), room_for(box)
        places.read(REGIONS[0], box, expected)
        monkeypatch.setattr(host, "read_ranges", nothing)
        monkeypatch.setattr(os, "preadv", short)
        places.read(REGIONS[0], box, found)
    assert found.buffer.tobytes() == expected.buffer.tobytes()


@pytest.mark.parametrize(
    "options",
    [{"mode": "r+"}, {"mode": "r", "driver": "core"}, {"mode": "r", "driver": "stdio"}, {"mode": "r", "swmr": True}],
    ids=str,
)
def test_hdf5_reads_what_only_it_may(path: Path, options: dict[str, Any]) -> None:
    with h5py.File(path, "r+", libver="latest") as file:  # so that it can be read beside a writer
        file.copy("a", "b")
    with h5py.File(path, **options) as file:
        assert StoredChunks(file["b"], CHUNK, REGIONS[0]).descriptor is None
        np.testing.assert_array_equal(pyfilter.read(file["b"]), file["b"][...])


def test_a_user_block_is_left_to_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024) as file:
        pyfilter.create_dataset(file, "a", field((64, 64)), BOUND, chunks=(8, 64))
    with h5py.File(tmp_path / "a.h5") as file:
        assert StoredChunks(file["a"], (8, 64), (slice(0, 64), slice(0, 64))).descriptor is None
        np.testing.assert_array_equal(pyfilter.read(file["a"]), file["a"][...])


def test_a_file_that_ends_early_is_an_error(path: Path) -> None:
    with h5py.File(path) as file:
        places = StoredChunks(file["a"], CHUNK, REGIONS[0])
        box = places.of_box(REGIONS[0])
        os.truncate(path, int(box.offsets.max()) + 3)
        with pytest.raises(errors.TruncatedFrame, match="the file ends at byte"):
            places.read(REGIONS[0], box, room_for(box))
        with pytest.raises(errors.TruncatedFrame, match="the file ends at byte"):
            pyfilter.read(file["a"])


def test_a_file_that_was_replaced_is_read_as_it_was(path: Path) -> None:
    with h5py.File(path) as file:
        expected = file["a"][...]
        path.rename(path.with_suffix(".old"))
        path.write_bytes(b"another file")
        np.testing.assert_array_equal(pyfilter.read(file["a"]), expected)


TURNED = ((6, 40), (2, 8), (6, None))  # shape, chunk shape, largest shape: an index that HDF5 turns and names unturned


@pytest.fixture
def turned(tmp_path: Path) -> Path:
    """Return a file with datasets whose one unlimited dimension is not the first, half of their chunks written."""
    path = tmp_path / "turned.h5"
    shape, chunk, limits = TURNED
    with h5py.File(path, "w", libver="latest") as file:
        for name, how in (("ours", Cuszp2(absolute=1e-3)), ("p", pyfilter.Progressive())):
            options: Any = dict(how)
            dataset = file.create_dataset(name, shape, "f4", chunks=chunk, maxshape=limits, fillvalue=-9, **options)
            dataset[2:, 8:24] = field(shape)[2:, 8:24]
    return path


@pytest.mark.usefixtures("ask")
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_offsets_under_a_turned_index_are_not_used(turned: Path, mode: str) -> None:
    """For `H5Dchunk_iter`, `H5Dget_chunk_info` and `H5Dget_chunk_info_by_coord` chunks have other coordinates."""
    with h5py.File(turned, mode) as file:
        dataset = file["ours"]
        assert not stored.offsets_are_reliable(dataset)
        assert list(stored.origins_of(dataset)) == [(2, 8), (2, 16), (4, 8), (4, 16)]
        np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])
        assert abs(pyfilter.read(dataset, np.s_[3, 10:20]) - field(TURNED[0])[3, 10:20]).max() <= 1e-3
        with pytest.raises(errors.Unsupported, match="reports wrong chunk locations for /p"):
            pyfilter.progressive.open(file["p"])
        if mode == "r+":
            pyfilter.write(dataset, field(TURNED[0]) + 1)
            assert abs(dataset[...] - field(TURNED[0]) - 1).max() <= 1e-3
            assert abs(pyfilter.read(dataset) - field(TURNED[0]) - 1).max() <= 1e-3


@pytest.mark.parametrize("limits", [(None, 40), (6, 40), (None, None), (2, None)], ids=str)
def test_offsets_under_other_indices_are_used(tmp_path: Path, limits: tuple[int | None, ...]) -> None:
    shape = tuple(min(extent, limit or extent) for extent, limit in zip(TURNED[0], limits, strict=True))
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        dataset = file.create_dataset("a", shape, "f4", chunks=TURNED[1], maxshape=limits, **BOUND)
        dataset[-2:, 8:24] = 1
        assert stored.offsets_are_reliable(dataset)
        listed = map(tuple, stored.listed(dataset).origins.tolist())
        written = [(shape[0] - 2, 8), (shape[0] - 2, 16)]
        assert (sorted(listed), sorted(stored.origins_of(dataset))) == (written, written)


@pytest.mark.skipif(not hasattr(h5py.h5d.DatasetID, "chunk_iter"), reason="each chunk's place is asked for by itself")
def test_a_file_that_is_closed_meanwhile_is_read_to_its_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with its number, which may be another file's by then."""
    with h5py.File(path) as file:
        expected = file["a"][...]
    other = path.with_suffix(".other")
    other.write_bytes(bytes(path.stat().st_size))
    plain = stored.read_bytes
    opened: list[int] = []

    def read(descriptor: int, place: stored.Stored) -> bytes:
        if not opened:
            file.close()
            opened.extend(os.open(other, os.O_RDONLY) for _ in range(4))
        return plain(descriptor, place)

    monkeypatch.setattr(stored, "_MIN_CHUNKS_FOR_INDEX", 0)
    monkeypatch.setattr(stored, "read_bytes", read)
    before = len(list(Path("/proc/self/fd").iterdir()))
    file = h5py.File(path)
    np.testing.assert_array_equal(pyfilter.read(file["a"]), expected)
    for descriptor in opened:
        os.close(descriptor)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.usefixtures("ask")
def test_a_file_of_two_parts_with_a_user_block(tmp_path: Path) -> None:
    """Its chunks lie behind byte 2**63, as HDF5 counts."""
    values = np.arange(600, dtype="f4").reshape(60, 10)
    with h5py.File(tmp_path / "a", "w", driver="split", userblock_size=512) as file:
        dataset = file.create_dataset("a", data=values, chunks=(7, 10), **Lossless())
        np.testing.assert_array_equal(pyfilter.read(dataset), values)
        places = StoredChunks(dataset, (7, 10), (slice(0, 60), slice(0, 10)))
        assert (places.of_box((slice(0, 60), slice(0, 10))).offsets >= 0).all()


@pytest.mark.usefixtures("ask")
@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_random_datasets_are_read_as_by_hdf5(tmp_path: Path, libver: str) -> None:
    """Every kind of index; chunks written by either, not at all and unfiltered; datasets that grow and shrink."""
    random = np.random.default_rng(["earliest", "v108", "latest"].index(libver))
    for number in range(12):
        rank = int(random.integers(1, 5))
        shape = tuple(random.integers(1, 9, rank).tolist())
        chunk = tuple(int(random.integers(1, extent + 1)) for extent in shape)
        limits = tuple((None, extent, 2 * extent)[random.integers(3)] for extent in shape)
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w", libver=(libver, "latest")) as file:
            dataset = file.create_dataset("a", shape, "i4", chunks=chunk, maxshape=limits, fillvalue=-9, **Lossless())
            for _ in range(3):
                values = random.integers(0, 1000, dataset.shape, "i4")
                part = tuple(slice(*sorted(random.integers(0, extent + 1, 2).tolist())) for extent in dataset.shape)
                step = random.integers(3)
                if step == 0:
                    pyfilter.write(dataset, values)
                elif step == 1:
                    dataset[part] = values[part]
                else:
                    dataset.resize([int(random.integers(1, (most or 16) + 1)) for most in limits])
                np.testing.assert_array_equal(pyfilter.read(dataset), dataset[...])
            expected = dataset[...]
        with h5py.File(path, "r+") as file:
            at = [int(random.integers(extent)) for extent in expected.shape]
            origin = tuple(place // edge * edge for place, edge in zip(at, chunk, strict=True))
            file["a"].id.write_direct_chunk(origin, np.full(chunk, 7, "i4").tobytes(), 1)
            expected[layout.box(origin, chunk, expected.shape)] = 7
        for mode in ("r", "r+"):
            with h5py.File(path, mode) as file:
                np.testing.assert_array_equal(pyfilter.read(file["a"]), expected)
                part = tuple(slice(*sorted(random.integers(0, extent + 1, 2).tolist())) for extent in expected.shape)
                np.testing.assert_array_equal(pyfilter.read(file["a"], part), expected[part])
