# SPDX-License-Identifier: BSD-3-Clause
"""Zarr arrays whose chunks are frames of pyfilter: formats 2 and 3, NCZarr, virtual Zarr (docs/howto/zarr.md).

    configuration.py  codecs as JSON and back
    work.py           threads and memory for chunks in flight
    parts.py          selections inside of a chunk
    stored.py         format 3, reading alone: the codec of virtual stores
    serializer.py     format 3: the codec "pyfilter" of zarr-python (needs zarr)
    compressor.py     format 2: the codec "pyfilter" of numcodecs (needs numcodecs alone)
    arrays.py         create_array: a bound relative to the whole array; encoding for xarray
    virtual.py        HDF5 files as virtual Zarr, by kerchunk and VirtualiZarr

Names are imported when they are first used, so that each needs only the packages that it is about.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyfilter.errors import missing_extra

if TYPE_CHECKING:
    from pyfilter.zarr.arrays import create_array, encoding
    from pyfilter.zarr.compressor import Compressor
    from pyfilter.zarr.serializer import Serializer
    from pyfilter.zarr.virtual import HDFParser, references

_MODULES = {
    "Compressor": "compressor",
    "HDFParser": "virtual",
    "Serializer": "serializer",
    "create_array": "arrays",
    "encoding": "arrays",
    "references": "virtual",
}


def __getattr__(name: str) -> Any:
    """Import a name's module when the name is first used."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("pyfilter"):
            raise
        raise missing_extra(error.name, "virtual" if error.name == "kerchunk" else "zarr") from error
    return getattr(module, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


__all__ = ["Compressor", "HDFParser", "Serializer", "create_array", "encoding", "references"]
