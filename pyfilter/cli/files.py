# SPDX-License-Identifier: BSD-3-Clause
"""Files as the subcommands take them: HDF5 and netCDF of any kind, and one dataset of such a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import checking
from pyfilter._hooks import signals
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import netcdf3
from pyfilter.rewrite.copy import is_number

if TYPE_CHECKING:
    from contextlib import ExitStack


def readable(path: Path, stack: ExitStack) -> Path:
    """Return the path of an HDF5 file with the same values: netCDF-3 is converted in a temporary folder."""
    if not netcdf3.is_netcdf3(path):
        return path
    temporary = tempfile.TemporaryDirectory(prefix="pyfilter-")
    folder = Path(stack.enter_context(temporary))
    stack.enter_context(signals.on_end(temporary.cleanup))
    netcdf3.convert(path, folder / "converted")
    return folder / "converted"


def dataset(text: str, stack: ExitStack) -> tuple[str, Any]:
    """Return the name and the values of FILE, FILE:DATASET or an .npy file.

    Without a dataset's name it is the largest one of floats, else the largest of numbers.

    Raises
    ------
    InvalidArgument
        If there is no such file or dataset.
    """
    path, inner = _split(text)
    if path.suffix == ".npy":
        if inner is not None:
            message = f"{path} holds one array: give its name alone"
            raise InvalidArgument(message)
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        return path.name, array
    file = stack.enter_context(h5py.File(readable(path, stack), "r"))
    numbers = [
        item
        for item in checking.datasets(file)
        if item.shape and is_number(item.id.get_type()) and not checking.is_bare_dimension(item)
    ]
    if inner is not None:
        found = file.get(inner)
        if not isinstance(found, h5py.Dataset):
            known = ", ".join(str(item.name) for item in numbers) or "none"
            message = f"there is no dataset {inner!r} in {path}; its datasets of numbers are {known}"
            raise InvalidArgument(message)
    elif numbers:
        found = max(numbers, key=lambda item: (item.dtype.kind == "f", item.size))
    else:
        message = f"{path} has no dataset of numbers"
        raise InvalidArgument(message)
    return f"{path.name}:{found.name}", found


def _split(text: str) -> tuple[Path, str | None]:
    """Return the file and the dataset's name in FILE:DATASET; a name of a file may have colons too."""
    if Path(text).is_file():
        return Path(text), None
    start, colon, inner = text.rpartition(":")
    if colon and inner and Path(start).is_file():
        return Path(start), inner
    message = f"there is no file {text if not colon else start!r}"
    raise InvalidArgument(message)
