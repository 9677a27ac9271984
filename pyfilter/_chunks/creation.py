# SPDX-License-Identifier: BSD-3-Clause
"""What all functions that create a dataset check, and how they leave nothing behind if writing it fails."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyfilter.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import h5py

_REFUSED = ("compression", "compression_opts", "scaleoffset", "shuffle", "shape", "external", "dcpl")


def refuse_settings(kwargs: Mapping[str, object], shape: str, *more: str) -> None:
    """Refuse arguments of ``h5py.Group.create_dataset`` that contradict a codec; ``shape``: what gives the shape."""
    refused = [key for key in (*_REFUSED, *more) if kwargs.get(key) is not None and kwargs.get(key) is not False]
    if refused:
        message = f"{', '.join(refused)} cannot be given here: the codec is the compression, {shape}"
        raise InvalidArgument(message)


def require_chunks(source: Any) -> None:
    """Refuse values without dimensions."""
    if source.shape is None or source.shape == ():
        message = "scalar and null datasets have no chunks, so nothing can be compressed: use group.create_dataset"
        raise Unsupported(message)


@contextmanager
def removed_on_failure(group: h5py.Group, name: str | None) -> Iterator[None]:
    """Remove a dataset that was created, if writing it fails."""
    try:
        yield
    except BaseException:
        if name is not None:
            del group[name]
        raise
