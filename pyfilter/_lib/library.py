# SPDX-License-Identifier: BSD-3-Clause
"""Finds and loads libh5pyfilter.so, turns its status codes into exceptions, and keeps its settings."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyfilter import errors
from pyfilter._hooks import foreign
from pyfilter._lib import abi

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY_NAME = "libh5pyfilter.so"


def _candidates() -> Iterator[Path]:
    """Yield the places where the library may be, in the order of their precedence."""
    import pyfilter

    override = os.environ.get("PYFILTER_LIBRARY")
    if override:
        yield Path(override)
        return  # no other file is used in place of the one named
    for folder in pyfilter.__path__:  # two entries in an editable install: the source tree and site-packages
        yield Path(folder) / "lib" / LIBRARY_NAME
    import importlib.metadata  # slow to import, and rarely needed

    try:
        installed = importlib.metadata.distribution("h5pyfilter").locate_file(f"pyfilter/lib/{LIBRARY_NAME}")
    except importlib.metadata.PackageNotFoundError:
        return
    yield Path(str(installed))


@cache
def path() -> Path | None:
    """Return the library's file, None where it is not found. PYFILTER_LIBRARY names another file."""
    return next((candidate.resolve() for candidate in _candidates() if candidate.is_file()), None)


@cache
def load() -> ctypes.CDLL:
    """Return the loaded library with its prototypes set.

    Raises
    ------
    LibraryMissing
        If there is no library, it cannot be loaded, or it belongs to another release.
    """
    if not foreign.initialised():
        raise errors.LibraryMissing(foreign.REMOVED)
    file = path()
    if file is None:
        places = ", ".join(str(place) for place in _candidates())
        message = f"pyfilter's compiled library is missing (looked for {places}); reinstall h5pyfilter"
        raise errors.LibraryMissing(message)
    try:
        loaded = ctypes.CDLL(str(file))
        abi.declare(loaded)
    except (OSError, AttributeError) as error:
        message = f"pyfilter's compiled library {file} cannot be used: {error}"
        raise errors.LibraryMissing(message) from error
    found = int(loaded.pyf_abi_version())
    if found != abi.ABI_VERSION:
        message = f"{file} has interface version {found}, this package needs {abi.ABI_VERSION}; reinstall h5pyfilter"
        raise errors.LibraryMissing(message)
    return loaded


def check(code: int) -> None:
    """Raise the exception for a status code other than 0."""
    if code != 0:
        message = load().pyf_last_error()
        raise errors.from_code(code, message.decode("utf-8", "replace") if message else "")


def version() -> str:
    """Return the release of the compiled library."""
    return str(load().pyf_version().decode("ascii"))


def configure(key: str, value: str) -> None:
    """Set one of the library's settings."""
    check(load().pyf_configure(key.encode(), value.encode()))


def config(key: str) -> str | None:
    """Return the value of a setting in use, None for a key that the library does not know."""
    value = load().pyf_config(key.encode())
    return None if value is None else str(value.decode())


def register(file: str) -> None:
    """Register the filter with a libhdf5 that is loaded already, by the file's path."""
    check(load().pyf_register(os.fsencode(file)))
