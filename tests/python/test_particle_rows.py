# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.particles.write may sort rows, and never makes a file larger by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import Lorenzo, Particles, particles
from pyfilter.particles.rows import sorted_index

Array = NDArray[Any]
RNG = np.random.default_rng(11)
SIDE = 24


def crystal() -> Array:
    """Atoms of a face-centred lattice in the order of the lattice, which vibrate."""
    cell = np.array([[0, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]])
    corners = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)[..., ::-1]
    atoms = (corners + cell).reshape(-1, 3) * 3.6
    return np.asarray((atoms + RNG.normal(0, 0.1, atoms.shape)).astype("f4"))


def clumps(count: int) -> Array:
    """Particles of clusters in no order at all."""
    centres = RNG.uniform(0, SIDE * 3.6, (40, 3))
    return np.asarray((centres[RNG.integers(0, 40, count)] + RNG.normal(0, 1.5, (count, 3))).astype("f4"))


CRYSTAL = crystal()
COUNT = len(CRYSTAL)
CLUMPS = clumps(COUNT)
BOUND = 1e-3 * SIDE * 3.6


def stored(made: dict[str, h5py.Dataset]) -> int:
    return sum(dataset.id.get_storage_size() for dataset in made.values())


def both_ways(file: h5py.File, reorder: bool | str, **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write fields with the order kept, and with rows that may be sorted."""
    return (
        particles.write(file.create_group("kept"), **fields),
        particles.write(file.create_group("sorted"), reorder=reorder, **fields),
    )


@pytest.mark.parametrize("reorder", ["tile", True])
@pytest.mark.parametrize("chunk", [None, 10_000])
@pytest.mark.parametrize("dtype", ["f4", ">f8"])
def test_a_crystal_keeps_its_order(tmp_path: Path, reorder: bool | str, chunk: int | None, dtype: str) -> None:
    position = CRYSTAL.astype(dtype)
    codec = Particles(absolute=BOUND)
    moved = position[sorted_index(position, codec, "tile" if reorder == "tile" else "chunk", COUNT)]
    assert len(pyfilter.encode(moved, codec)) > 1.03 * len(pyfilter.encode(position, codec))
    with h5py.File(tmp_path / "p.h5", "w") as f:
        kept, made = both_ways(f, reorder, position=position, codec=Particles(relative=1e-3), chunk=chunk)
        assert stored(made) == stored(kept)
        assert made["position"].attrs["pyfilter_particle_order"] == "kept"
        assert np.array_equal(particles.read(f["sorted"])["position"], particles.read(f["kept"])["position"])


@pytest.mark.parametrize("reorder", ["tile", True])
def test_each_chunk_by_itself(tmp_path: Path, reorder: bool | str) -> None:
    """Rows of the crystal stay, those of the clumps are sorted; the last chunk is not full."""
    position = np.concatenate([CRYSTAL, CLUMPS, CRYSTAL, CLUMPS[: COUNT // 3]])
    number = RNG.permutation(len(position)).astype("u8")
    fields = {"position": position, "codec": Particles(absolute=BOUND), "chunk": COUNT, "id": number}
    with h5py.File(tmp_path / "p.h5", "w") as f:
        kept, made = both_ways(f, reorder, **fields)
        assert stored(made) < stored(kept)
        assert made["position"].attrs["pyfilter_particle_order"] == ("tile" if reorder == "tile" else "chunk")
        found = particles.read(f["sorted"])
        where, given = np.argsort(found["id"]), np.argsort(number)
        assert np.abs(found["position"][where].astype("f8") - position[given]).max() <= BOUND
        for first, moves in ((0, False), (COUNT, True), (2 * COUNT, False), (3 * COUNT, True)):
            rows = slice(first, first + COUNT)
            assert np.array_equal(found["id"][rows], number[rows]) != moves
            assert np.array_equal(np.sort(found["id"][rows]), np.sort(number[rows]))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("reorder", ["tile", True])
@pytest.mark.parametrize("relative", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("chunk", [None, 7000])
def test_no_file_is_larger(
    tmp_path: Path, columns: bool, reorder: bool | str, relative: float, chunk: int | None
) -> None:
    """All fields count: sorting makes positions smaller and may make others larger."""
    with h5py.File(tmp_path / "p.h5", "w") as f:
        for name, position in (("crystal", CRYSTAL), ("clumps", CLUMPS), ("both", np.concatenate([CLUMPS, CRYSTAL]))):
            fields: dict[str, Any] = {
                "position": {axis: position[:, i].copy() for i, axis in enumerate("xyz")} if columns else position,
                "codec": Particles(relative=relative),
                "codecs": {"velocity": Lorenzo(relative=relative)},
                "velocity": np.cumsum(position, axis=0) if name == "clumps" else position[:, ::-1] * 7,
                "type": (np.arange(len(position)) // 1000).astype("u1"),
                "chunk": chunk,
            }
            f.create_group(name)
            kept, made = both_ways(f[name], reorder, **fields)
            assert stored(made) <= stored(kept)


def test_fields_in_order_may_cost_more_than_sorting_saves(tmp_path: Path) -> None:
    """Rows stay where other fields would lose by it more than positions gain, and are sorted else."""
    with h5py.File(tmp_path / "p.h5", "w") as f:
        for name, number, order in (
            ("in order", np.arange(COUNT), "kept"),
            ("in no order", RNG.permutation(COUNT), "chunk"),
            ("none", None, "chunk"),
        ):
            others = {} if number is None else {"id": number, "halo": number // 7}
            f.create_group(name)
            kept, made = both_ways(f[name], True, position=CLUMPS, codec=Particles(absolute=BOUND), **others)
            assert {dataset.attrs["pyfilter_particle_order"] for dataset in made.values()} == {order}
            assert json.loads(f[name]["sorted"].attrs["pyfilter_particles"])["order"] == order
            assert stored(made) == stored(kept) if order == "kept" else stored(made) < stored(kept)
