# SPDX-License-Identifier: BSD-3-Clause
"""Finds the codec that a variable had in its file, and warns if saving does not keep it.

xarray keeps the path of that file, the shape and the chunks. It keeps no group, and of the filter nothing (engine
netcdf4) or only the name "unknown" (engine h5netcdf).
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
from h5py import h5z

from pyfilter import checking
from pyfilter._chunks import pipeline
from pyfilter.codecs.base import Codec
from pyfilter.errors import PyfilterError
from pyfilter.records import Compound

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

# what h5py, and so xarray, calls every filter that is not its own
UNKNOWN = "unknown"

_COMPRESSIONS = ("zlib", "szip", "zstd", "bzip2", "blosc", "compression")
_LIBRARIES = frozenset({"xarray", "pyfilter"})
# what h5py has a name for
_NAMED = frozenset({h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32, h5z.FILTER_SZIP, 32000})
_SOURCES = 8

# set while to_netcdf of this package runs: it has chosen the codec of every variable, and warned where one is lost
_codecs_decided: ContextVar[bool] = ContextVar("codecs_decided", default=False)


class _Stored(NamedTuple):
    """A dataset of a file: where it is, what xarray keeps of it, and how it is compressed."""

    group: str
    name: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    codec: Codec | None
    other: bool  # a filter that is not ours and that xarray does not name


def stored_codecs(dataset: Any, skip: Container[str] = (), *, group: str | None = None) -> dict[str, Codec]:
    """Return the codecs of the variables in the files that they were read from, for those that have one.

    Parameters
    ----------
    dataset : xarray.Dataset
        A dataset that was read, and perhaps cut since.
    skip : container of str
        Variables to leave out.
    group : str, optional
        The group to prefer where several in the file have such a variable; xarray does not keep it.
    """
    found: dict[str, Codec] = {}
    for name, variable in dataset.variables.items():
        codec = None if name in skip else codec_before(str(name), variable.encoding, group)
        if codec is not None:
            found[str(name)] = codec
    return found


def codec_before(name: str, encoding: Mapping[str, Any], group: str | None = None) -> Codec | None:
    """Return the codec that a variable had, None where it had none or nothing says which.

    Warns where the file does not say which of several it is, and where another filter than ours is not kept.
    """
    sizes, shape = encoding.get("chunksizes"), encoding.get("original_shape")
    unknown = encoding.get("compression") == UNKNOWN
    source = encoding.get("source")
    matches = [
        item
        for item in (_datasets_in(source) if sizes is not None else ())
        if item.name == name and item.shape == shape and item.chunks == tuple(sizes or ())
    ]
    if group is not None and any(item.group == group for item in matches):
        matches = [item for item in matches if item.group == group]
    codecs = {item.codec for item in matches if not unknown or item.codec is not None or item.other}
    if len(codecs) > 1:
        message = (
            f"{source} has several variables {name!r} with different compression, and xarray does not say "
            "which one this is: it is saved uncompressed unless codecs= says otherwise"
        )
        warnings.warn(message, UserWarning, stacklevel=user_level())
        return None
    codec = next(iter(codecs), None)
    if codec is None and unknown:
        message = (
            f"variable {name!r} was compressed in {source} by a filter that xarray calls {UNKNOWN!r} and pyfilter "
            "does not know, or the file is gone: it is saved uncompressed unless codecs= or encoding= says otherwise"
        )
        warnings.warn(message, UserWarning, stacklevel=user_level())
    return codec


def warn_of_lost_codec(name: str, encoding: Mapping[str, Any]) -> None:
    """Warn where a variable had a codec, and xarray itself is about to save it without compression."""
    if _codecs_decided.get() or encoding.get("chunksizes") is None or any(encoding.get(key) for key in _COMPRESSIONS):
        return
    shape, chunks = encoding.get("original_shape"), tuple(encoding["chunksizes"])
    codecs = {
        item.codec
        for item in _datasets_in(encoding.get("source"))
        if item.codec is not None and (item.name, item.shape, item.chunks) == (name, shape, chunks)
    }
    if codecs:
        message = (
            f"variable {name!r} was compressed by {' or '.join(sorted(map(repr, codecs)))} in {encoding['source']}, "
            "which xarray does not keep: it is saved uncompressed. pyfilter.xarray.to_netcdf(dataset, path) keeps "
            f"the codec. To drop it, give codecs={{{name!r}: None}} there, or an encoding= of the variable here"
        )
        warnings.warn(message, UserWarning, stacklevel=user_level())


@contextlib.contextmanager
def codecs_decided() -> Iterator[None]:
    """Do not warn of variables that lose a codec in the block: the caller has chosen all codecs."""
    token = _codecs_decided.set(True)
    try:
        yield
    finally:
        _codecs_decided.reset(token)


def _datasets_in(source: object) -> tuple[_Stored, ...]:
    """Return the compressed datasets of a file; none where it is gone, no HDF5 file, or open for writing."""
    if not isinstance(source, (str, os.PathLike)):
        return ()
    try:
        status = Path(source).stat()
        return _read(os.fspath(source), status.st_ino, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):  # ValueError: a path with a null byte
        return ()


@lru_cache(maxsize=_SOURCES)
def _read(source: str, *version: int) -> tuple[_Stored, ...]:
    """Read what the datasets of a file are compressed by; ``version`` changes when the file does."""
    found = []
    with h5py.File(source, "r") as file:
        for item in checking.datasets(file):
            if item.chunks is None:
                continue
            group, _, name = str(item.name).rpartition("/")
            try:
                codec = checking.codec_of(item)
            except PyfilterError:  # of a later release: nothing that could be asked for here
                codec = None
            if isinstance(codec, Compound):  # records: xarray has no variables of them
                continue
            other = codec is None and not _NAMED.issuperset(pipeline.pipeline_of(item).ids)
            found.append(_Stored(group or "/", name, item.shape, item.chunks, codec, other))
    return tuple(found)


def user_level() -> int:
    """Return the ``stacklevel`` of the line outside of xarray and pyfilter, for a warning by who calls this."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        level, frame = level + 1, frame.f_back
    return level
