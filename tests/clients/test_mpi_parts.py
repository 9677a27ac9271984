# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.collective: datasets made of the parts of processes, with every codec, by 2 and 4 processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from clients.test_mpi import PROCESSES, Run, ours, run, values

__all__ = ["ours", "run", "values"]  # fixtures

CLASSES = {name: cls.__name__ for name, cls in pyfilter.FILTERS.items() if name != "particles"}
ALL = f"""
import pyfilter
from pyfilter import collective
bound = {{"absolute": 1e-3}}
codecs = {{name: getattr(pyfilter, cls)(**({{}} if name == "lossless" else bound)) for name, cls in {CLASSES}.items()}}
codecs["relative"] = pyfilter.Lorenzo(relative=1e-4)
codecs["psnr"] = pyfilter.Cuszp2(psnr=60.0)
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    for name, codec in codecs.items():
        made = pyfilter.create_dataset(file, name, values[part], codec, comm=comm, attributes={{"units": "K"}})
        assert made.shape == values.shape
    points = np.ascontiguousarray(values[part, :3])
    pyfilter.create_dataset(file, "particles", points, pyfilter.Particles(absolute=1e-3), comm=comm)
    # columns, and a process that has none
    width = values.shape[1] // max(comm.size - 1, 1)
    mine = slice(rank * width, (rank + 1) * width) if rank < comm.size - 1 else slice(0, 0)
    collective.create_dataset(file, "columns", values[:, mine], pyfilter.Lorenzo(relative=1e-4),
                              start=(0, mine.start), chunks=(20, 16), fillvalue=1e20)
    with_range = collective.create_dataset(file, "grow", values[part], pyfilter.Lossless(), maxshape=(None, 40),
                                           chunks=(16, 40))
    first = len(values)
    with_range.resize((first + comm.size, 40))
    collective.write(with_range, values[rank:rank + 1], start=(first + rank, 0))
with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as file:
    from pyfilter._chunks import detached
    calls = []
    before = detached.Detached.read
    detached.Detached.read = lambda self, key, source: calls.append(key) or before(self, key, source)
    for name in codecs:
        dataset = file[name]
        found = pyfilter.read(dataset, np.s_[part, 3:9])
        assert np.array_equal(found, dataset[part, 3:9]), name
        into = np.empty(found.shape, "f8")
        assert pyfilter.read(dataset, np.s_[part, 3:9], out=into) is into and np.array_equal(into, found)
    assert len(calls) == 2 * len(codecs)
"""


@pytest.mark.parametrize("run", PROCESSES, indirect=True)
def test_every_codec(run: Run, ours: dict[str, str], tmp_path: Path, values: np.ndarray[Any, Any]) -> None:
    assert not any(run(ALL, **ours))
    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5", "w") as other:
        assert pyfilter.check(file) == []
        for name in CLASSES:
            assert pyfilter.verify(values, file[name]).ok
            assert file[name].attrs["units"] == "K"
        for name, codec in (("relative", pyfilter.Lorenzo(relative=1e-4)), ("psnr", pyfilter.Cuszp2(psnr=60.0))):
            alone = pyfilter.create_dataset(other, name, values, codec, chunks=file[name].chunks)
            assert pyfilter.codec_of(file[name]) == pyfilter.codec_of(alone)
            assert file[name].id.read_direct_chunk((0, 0)) == alone.id.read_direct_chunk((0, 0))
        assert pyfilter.verify(values[:, :3], file["particles"]).ok
        width = file["columns"].shape[1]
        assert width in (39, 40)
        assert pyfilter.verify(values[:, :width], file["columns"], fill_value=np.float32(1e20)).ok
        grown = file["grow"][...]
        assert np.array_equal(grown[:90], values)
        assert np.array_equal(grown[90:], values[: len(grown) - 90])


REFUSED = """
import pyfilter
from pyfilter import collective
codec = pyfilter.Lorenzo(absolute=1e-3)
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    def make(name, data=values[part], codec=codec, **more):
        attempt(name, lambda: collective.create_dataset(file, name, data, codec, **more))
        assert name not in file
    make("codecs", codec=pyfilter.Lorenzo(absolute=1e-3 * (rank + 1)))
    make("types", values[part].astype("f4" if rank else "f8"))
    make("overlap", start=(0, 0))
    make("some", start=(0, 0) if rank else None)
    make("shapes", values[part][:, : 40 - rank])
    make("one", values[part].astype("c8") if rank == 1 else values[part])
    make("nothing", values[:0])
    make("filters", shuffle=True)
    attempt("devices", lambda: pyfilter.create_dataset(file, "d", values[part], codec, comm=comm, devices="all"))
    file.create_group("taken")
    attempt("taken", lambda: collective.create_dataset(file, "taken", values[part], codec))
    good = collective.create_dataset(file, "good", values[part], codec)
    attempt("beyond", lambda: collective.write(good, values[part], start=(80 * rank, 0)))
if rank == 0:
    with h5py.File(sys.argv[1]) as file:
        attempt("driver", lambda: collective.write(file["good"], values, start=(0, 0)))
comm.Barrier()
"""
TEXTS = {
    "codecs": "InvalidArgument: all processes must give the same name, codec",
    "types": "InvalidArgument: all processes must give the same name, codec",
    "overlap": "InvalidArgument: the parts of processes 0 and 1 overlap",
    "some": "InvalidArgument: start is given in some processes",
    "shapes": "InvalidArgument: parts follow each other along the first axis",
    "nothing": "InvalidArgument: no process has values",
    "filters": "InvalidArgument: shuffle cannot be given here",
    "devices": "InvalidArgument: devices cannot be given here",
}


def test_what_is_refused_in_one_process_is_in_all(run: Run, ours: dict[str, str], tmp_path: Path) -> None:
    first, second = run(REFUSED, **ours)
    for each in (first, second):
        for name, text in TEXTS.items():
            assert ": ".join(each[name]).startswith(text), (name, each[name])
        assert "taken" in each
    assert first["one"] == ["PyfilterError", f"process 1 of 2 failed: {': '.join(second['one'])}"]
    assert second["one"][0] == "Unsupported"
    assert first["beyond"] == ["PyfilterError", f"process 1 of 2 failed: {': '.join(second['beyond'])}"]
    assert "driver 'sec2'" in first["driver"][1]
    with h5py.File(tmp_path / "a.h5") as file:
        assert sorted(file) == ["good", "taken"]
        assert pyfilter.check(file) == []
