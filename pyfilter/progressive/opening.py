# SPDX-License-Identifier: BSD-3-Clause
"""Opens progressive datasets for reading in part: of open files, and of files by their path or address."""

from __future__ import annotations

import os
from typing import Any

import h5py

from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.progressive.reader import Reader
from pyfilter.progressive.source import LocalSource, RemoteSource, source_of


def open(dataset: h5py.Dataset | str | os.PathLike[str], name: str | None = None, **options: Any) -> Reader:
    """Open a progressive dataset for reading in part.

    Parameters
    ----------
    dataset : h5py.Dataset, path or URL
        A dataset of a local file that is open; or a file: a path, or an address that fsspec knows (``https://``,
        ``s3://``, ``memory://``, ...). From remote files only the needed bytes are fetched. Where chunks lie is asked
        here: open the dataset again after it was written to.
    name : str, optional
        The dataset's name, where ``dataset`` is a file.
    **options
        Further arguments for fsspec's file system.

    Returns
    -------
    Reader
        Which holds the file open until it is closed; a context manager.

    Raises
    ------
    TypeError
        If the dataset is not compressed with `pyfilter.Progressive` alone, or its file is open with an HDF5 driver that
        is not for plain files (`pyfilter.errors.Unsupported`).
    ValueError
        If there is no such dataset (`pyfilter.errors.InvalidArgument`).
    """
    if isinstance(dataset, h5py.Dataset):
        if name is not None:
            message = "name is for files; leave it out where a dataset is given"
            raise InvalidArgument(message)
        return Reader(dataset, source_of(dataset.file))
    if name is None:
        message = f"{dataset} is a file: give the dataset's name too"
        raise InvalidArgument(message)
    address = os.fspath(dataset)
    if "://" not in address:
        with h5py.File(address) as file:
            return Reader(_named(file, name, address), LocalSource(address))
    try:
        import fsspec
    except ImportError as error:
        message = f"fsspec is needed to read {address}: pip install 'h5pyfilter[remote]'"
        raise Unsupported(message) from error
    filesystem, path = fsspec.core.url_to_fs(address, **options)
    with filesystem.open(path, "rb", block_size=1 << 16) as stream, h5py.File(stream) as file:
        return Reader(_named(file, name, address), RemoteSource(filesystem, path))


def _named(file: h5py.File, name: str, address: str) -> h5py.Dataset:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        message = f"{address} has no dataset {name!r}"
        raise InvalidArgument(message)
    return found
