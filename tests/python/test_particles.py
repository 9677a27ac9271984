# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.particles: groups of fields, their order, and the layouts of openPMD, GADGET and compound tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Lorenzo, Particles, particles
from pyfilter.errors import InvalidArgument

N = 20_000
RNG = np.random.default_rng(5)
CLUMPS = RNG.uniform(0, 100, (40, 3))
POSITION = (CLUMPS[RNG.integers(0, 40, N)] + RNG.normal(0, 1.5, (N, 3))).astype("f4")
IDS = RNG.permutation(N).astype("u8")
BOUND = 0.02


def by_id(found: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.argsort(found["id"])


@pytest.mark.parametrize("reorder", [False, "tile", "chunk", True])
@pytest.mark.parametrize("chunk", [None, 6000])
def test_fields_stay_aligned(tmp_path: Path, reorder: bool | str, chunk: int | None) -> None:
    velocity = POSITION[:, ::-1] * 7
    with h5py.File(tmp_path / "p.h5", "w") as f:
        codecs = {"velocity": Lorenzo(absolute=0.5)}
        particles.write(
            f, position=POSITION, velocity=velocity, id=IDS, codec=Particles(absolute=BOUND), reorder=reorder,
            codecs=codecs, chunk=chunk,
        )  # fmt: skip
        assert pyfilter.check(f) == []
    with h5py.File(tmp_path / "p.h5") as f:
        found = particles.read(f)
        assert np.array_equal(f["position"][...], found["position"])  # plain HDF5 sees the same
        sizes = {name: f[name].id.get_storage_size() for name in f}
    where = np.argsort(IDS)
    assert np.array_equal(np.sort(found["id"]), np.arange(N))
    error = np.abs(found["position"][by_id(found)].astype("f8") - POSITION[where])
    assert error.max() <= BOUND
    assert np.abs(found["velocity"][by_id(found)].astype("f8") - velocity[where]).max() <= 0.5
    if not reorder:
        assert np.array_equal(found["id"], IDS)
    else:
        rows = chunk or N
        assert all(set(found["id"][i : i + rows]) == set(IDS[i : i + rows]) for i in range(0, N, rows))
        plain = len(pyfilter.encode(POSITION, Lorenzo(absolute=BOUND)))
        assert sizes["position"] < plain * (0.75 if reorder == "tile" else 0.7)


def test_coordinates_apart_where_that_is_smaller(tmp_path: Path) -> None:
    """Rows that keep their order are stored coordinate by coordinate where each has an order of its own."""
    along = np.linspace(0, 100, 30_000)
    scan = np.stack([along, np.cumsum(RNG.normal(0, 0.02, along.size)), np.sin(9 * along) * 40], axis=-1).astype("f4")
    bound = 0.005
    apart = sum(len(pyfilter.encode(scan[:, i].copy(), Lorenzo(absolute=bound))) for i in range(3))
    together = len(pyfilter.encode(scan, Particles(absolute=bound)))
    assert apart < 0.95 * together
    with h5py.File(tmp_path / "p.h5", "w") as f:
        made = particles.write(f, position=scan, codec=Particles(absolute=bound), chunk=len(scan))["position"]
        assert made.chunks == (len(scan), 1)
        assert made.id.get_storage_size() <= 1.01 * apart
        assert np.abs(made[...].astype("f8") - scan).max() <= bound
        assert np.array_equal(particles.read(f)["position"], made[...])
        sorted_rows = pyfilter.decode(pyfilter.encode(POSITION, Particles(absolute=BOUND, order="chunk")))
        kept = particles.write(f.create_group("g"), position=sorted_rows, codec=Particles(absolute=BOUND))["position"]
        assert kept.chunks == POSITION.shape  # sorted rows are smallest together
        assert isinstance(pyfilter.codec_of(kept), Particles)


def test_rewriting_keeps_the_order(tmp_path: Path) -> None:
    """What is sorted is stored in the order kept, so no later filter sorts it again, whatever its bound."""
    with h5py.File(tmp_path / "p.h5", "w") as f:
        made = particles.write(f, position=POSITION, id=IDS, codec=Particles(relative=1e-4), reorder=True)
        codec = pyfilter.codec_of(made["position"])
        assert isinstance(codec, Particles)
        assert codec.order == "kept"
        values = f["position"][...]
        again = f.create_dataset("again", data=values, chunks=values.shape, **Particles(absolute=0.5))
        assert np.abs(again[...].astype("f8") - values).max() <= 0.5
        frame = pyfilter.encode(values, codec)
        assert pyfilter.frame_info(frame).codec == "particles"
        assert np.array_equal(pyfilter.decode(frame), values)


def test_gadget_layout(tmp_path: Path) -> None:
    names = {"position": "Coordinates", "velocity": "Velocities", "id": "ParticleIDs"}
    with h5py.File(tmp_path / "p.h5", "w") as f:
        group = f.create_group("PartType0")
        particles.write(
            group, position=POSITION.astype("f8"), velocity=POSITION, id=IDS, names=names, reorder=True,
            codec=Particles(absolute=BOUND),
        )  # fmt: skip
        assert sorted(group) == ["Coordinates", "ParticleIDs", "Velocities"]
        found = particles.read(group, "id", "position")
        assert set(found) == {"id", "position"}
        assert np.abs(found["position"][by_id(found)] - POSITION[np.argsort(IDS)]).max() <= BOUND


def test_openpmd_layout(tmp_path: Path) -> None:
    axes = {axis: POSITION[:, i].copy() for i, axis in enumerate("xyz")}
    with h5py.File(tmp_path / "p.h5", "w") as f:
        group = f.create_group("data/0/particles/e")
        particles.write(group, position=axes, momentum=axes, id=IDS, reorder=True, codec=Particles(absolute=BOUND))
        assert group["position/x"].shape == (N,)
        found = particles.read(group)
        for axis, values in axes.items():
            assert np.abs(found["position"][axis][by_id(found)].astype("f8") - values[np.argsort(IDS)]).max() <= BOUND
            assert np.array_equal(found["momentum"][axis][by_id(found)], values[np.argsort(IDS)])


def test_compound_arrays_are_split(tmp_path: Path) -> None:
    table = np.empty(N, [("intensity", "u2"), ("time", "f8"), ("rgb", "u1", (3,))])
    table["intensity"], table["time"] = IDS % 1000, IDS / 7
    table["rgb"] = (IDS[:, None] >> np.arange(3, dtype="u8")) & 255
    with h5py.File(tmp_path / "p.h5", "w") as f:
        made = particles.write(
            f, position=POSITION[:, :2], point=table, id=IDS, reorder="tile", codec=Particles(absolute=BOUND), chunk=999
        )
        assert {"point/intensity", "point/time", "point/rgb"} < set(made)
        found = particles.read(f)
    assert np.array_equal(found["point"][by_id(found)], table[np.argsort(IDS)])


@pytest.mark.parametrize("count", [0, 1, 31, 33])
def test_few_particles(tmp_path: Path, count: int) -> None:
    with h5py.File(tmp_path / "p.h5", "w") as f:
        particles.write(f, position=POSITION[:count], id=IDS[:count], reorder=True, codec=Particles(absolute=BOUND))
        found = particles.read(f)
    where = np.argsort(IDS[:count])
    assert found["position"].shape == (count, 3)
    assert (np.abs(found["position"][by_id(found)].astype("f8") - POSITION[:count][where]) <= BOUND).all()


def test_special_coordinates_keep_their_bits(tmp_path: Path) -> None:
    values = POSITION.copy()
    values[5, 1], values[77, 0], values[9000] = np.nan, np.inf, 1e30
    with h5py.File(tmp_path / "p.h5", "w") as f:
        particles.write(f, position=values, id=IDS, reorder=True, codec=Particles(absolute=BOUND), chunk=7000)
        found = particles.read(f)
    back, wanted = found["position"][by_id(found)], values[np.argsort(IDS)]
    bits = back.view("u4") == wanted.view("u4")
    with np.errstate(invalid="ignore"):
        assert (bits | (np.abs(back.astype("f8") - wanted) <= BOUND)).all()
    assert bits[~(np.abs(wanted) < 1e20)].all()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reorder": "yes"}, "reorder must be"),
        ({"codec": Lorenzo(absolute=1.0), "reorder": True}, "reorder needs codec=Particles"),
        ({"codec": Particles(absolute=1.0, order="chunk")}, "the codec must have order='kept'"),
        ({"id": IDS[:-1]}, "a row for each particle; they have position 20000, id 19999 rows"),
        ({"codecs": {"mass": Lorenzo(absolute=1.0)}}, "no field is called mass"),
        ({"position": POSITION[:, 0]}, "2 or 3 coordinates"),
        ({"position": POSITION.astype("i4")}, "float32 or float64"),
        ({"position": {"x": POSITION[:, 0]}}, "2 or 3 coordinates"),
        ({"id": {}}, "has no columns"),
        ({"chunk": 0}, "at least 1 particle"),
        ({"names": {"id": "position"}}, "has a position already"),
    ],
)
def test_refusals(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    arguments: dict[str, Any] = {"position": POSITION, "id": IDS, "codec": Particles(absolute=1.0), **changes}
    with h5py.File(tmp_path / "p.h5", "w") as f:
        with pytest.raises(InvalidArgument, match=text):
            particles.write(f, **arguments)
        assert list(f) == []


def test_fields_that_do_not_belong_together_any_more(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "p.h5", "w") as f:
        with pytest.raises(InvalidArgument, match="has no particles"):
            particles.read(f)
        particles.write(f, position=POSITION, id=IDS, codec=Particles(absolute=1.0), reorder=True)
        with pytest.raises(InvalidArgument, match="has no mass; it has position, id"):
            particles.read(f, "mass")
        del f["id"]
        with pytest.raises(InvalidArgument, match="lacks the dataset id, which its attributes name"):
            particles.read(f)
        f["id"] = IDS
        with pytest.raises(InvalidArgument, match="out of step with the other fields"):
            particles.read(f)


def test_the_filter_sorts_only_where_told_to(tmp_path: Path) -> None:
    """With padding of the last chunk where it was, so that no row is lost."""
    with h5py.File(tmp_path / "p.h5", "w") as f:
        kept = f.create_dataset("kept", data=POSITION, chunks=(6000, 3), **Particles(absolute=BOUND))
        assert np.abs(kept[...].astype("f8") - POSITION).max() <= BOUND
        for order in ("tile", "chunk"):
            moved = f.create_dataset(order, data=POSITION, chunks=(6000, 3), **Particles(absolute=BOUND, order=order))
            assert moved.id.get_storage_size() < kept.id.get_storage_size()
            for first in range(0, N, 6000):
                back, rows = moved[first : first + 6000].astype("f8"), POSITION[first : first + 6000].astype("f8")
                for axis in range(3):  # as sets: sorted columns are within the bound of each other
                    assert np.abs(np.sort(back[:, axis]) - np.sort(rows[:, axis])).max() <= BOUND
        with pytest.raises(ValueError, match="needs positions"):
            f.create_dataset("bad", data=POSITION[:, 0], chunks=(6000,), **Particles(absolute=BOUND, order="tile"))
