# SPDX-License-Identifier: BSD-3-Clause
"""Chunked datasets with an axis that has no values and never will: shapes such as (0,) and (0, 5) without maxshape.

HDF5 takes any chunk shape for them; h5py refuses every shape that the user gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
from h5py import h5d, h5s

from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence


def never_grows(shape: Sequence[int], limits: Sequence[int | None] | None, chunk: Sequence[int]) -> bool:
    """Return whether h5py refuses ``chunk`` for no other reason than an axis that never has a value.

    Parameters
    ----------
    shape, chunk : sequence of int
        Of the dataset to be.
    limits : sequence of int or None, optional
        Its maxshape; None where it cannot grow.
    """
    most = shape if limits is None else limits
    refused = [limit for limit, extent in zip(most, chunk, strict=True) if limit is not None and limit < extent]
    return bool(refused) and not any(refused)


def create(
    group: h5py.Group,
    name: str | None,
    shape: tuple[int, ...],
    limits: tuple[int | None, ...] | None,
    chunk: tuple[int, ...],
    **settings: Any,
) -> h5py.Dataset:
    """Create a dataset for which `never_grows`.

    h5py makes one with room for a chunk, in memory, and HDF5 one with its properties in the file.

    Parameters
    ----------
    group : h5py.Group
        Where.
    name : str or None
        None for an anonymous one.
    shape, limits, chunk
        As for `never_grows`.
    **settings
        Further arguments of ``h5py.Group.create_dataset``.

    Raises
    ------
    InvalidArgument
        If the name is taken.
    """
    if name is not None and name in group:
        message = f"{group.name} has {name!r} already: give another name, or delete it first"
        raise InvalidArgument(message)
    most = shape if limits is None else limits
    room = tuple(extent if limit == 0 else limit for limit, extent in zip(most, chunk, strict=True))
    with h5py.File("pyfilter: a model", "w", driver="core", backing_store=False) as memory:
        model = memory.create_dataset(None, shape=(0,) * len(shape), maxshape=room, chunks=chunk, **settings)
        properties, access, kind = model.id.get_create_plist(), model.id.get_access_plist(), model.id.get_type()
        space = h5s.create_simple(shape, tuple(h5s.UNLIMITED if limit is None else limit for limit in most))
        made = h5d.create(group.id, None, kind, space, dcpl=properties, dapl=access)
    dataset = h5py.Dataset(made)
    if name is not None:
        group[name] = dataset
    return dataset
