# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 and netCDF-4 files as virtual Zarr: chunks stay in the file, and a reader fetches the chunks that it needs.

kerchunk and VirtualiZarr refuse filters that they do not list. Here our filter is added to kerchunk's translation, and
VirtualiZarr gets a parser that takes kerchunk's result. docs/patches/ has changes to both projects that would make this
unnecessary.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from kerchunk import hdf

from pyfilter import checking
from pyfilter._chunks import pipeline
from pyfilter.errors import Unsupported, missing_extra
from pyfilter.records import Compound
from pyfilter.registry import registry
from pyfilter.zarr.compressor import Compressor

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import h5py


class _Translation(hdf.SingleHdf5ToZarr):  # type: ignore[misc]  # kerchunk has no annotations
    """kerchunk's translation, which also knows our filter.

    ``declared`` are the values of the attribute ``_FillValue`` by the paths of their datasets.
    """

    declared: dict[str, Any]

    def _decode_filters(self, h5obj: h5py.Dataset) -> list[Any]:
        """Return the codecs of numcodecs for a dataset's filters."""
        found = pipeline.pipeline_of(h5obj)
        if not found.has_ours:
            others: list[Any] = super()._decode_filters(h5obj)
            return others
        if found.position != 0:
            first = pipeline.filter_name(found.ids[0])
            message = f"{h5obj.name} has the filter {first} before pyfilter: such datasets have no virtual Zarr"
            raise hdf.Hdf5FeatureNotSupported(message)
        codec = checking.codec_of(h5obj)
        if isinstance(codec, Compound):
            message = f"{h5obj.name} has records (a compound type), which have no virtual Zarr"
            raise hdf.Hdf5FeatureNotSupported(message)
        return [Compressor(codec), *super()._decode_filters(_Others(h5obj))]

    def _transfer_attrs(self, h5obj: Any, zobj: Any) -> None:
        """Keep in mind the fill values, which kerchunk's references tell as Zarr's alone."""
        if "_FillValue" in h5obj.attrs:
            self.declared[h5obj.name.strip("/")] = h5obj.attrs["_FillValue"]
        super()._transfer_attrs(h5obj, zobj)


class _Others:
    """A dataset as if our filter, and the checksum that kerchunk cuts off, were not among its filters."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._dataset = dataset
        left_out = (str(registry().filter_id), "fletcher32")
        self._filters = {key: words for key, words in dataset._filters.items() if str(key) not in left_out}

    def __getattr__(self, name: str) -> Any:
        """Return what the dataset has."""
        return getattr(self._dataset, name)


def references(
    file: str | os.PathLike[str] | io.IOBase,
    url: str | None = None,
    *,
    inline_threshold: int = 500,
    storage_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Return kerchunk's references to the chunks of an HDF5 or netCDF-4 file, pyfilter's among them.

    They are read as any of kerchunk's: ``xarray.open_dataset("reference://", engine="zarr", ...)`` or fsspec's
    ``ReferenceFileSystem``. The reader needs pyfilter to be installed, and fetches whole chunks.

    Parameters
    ----------
    file : str, path-like or file object
        The file, or a URL that fsspec opens.
    url : str, optional
        What the references name; needed for a file object, by default ``file``.
    inline_threshold : int
        Datasets of fewer bytes are put into the references themselves.
    storage_options : dict, optional
        For fsspec, to open ``file``.
    **kwargs
        Further arguments of ``kerchunk.hdf.SingleHdf5ToZarr``. Here ``error`` is "raise" by default.

    Returns
    -------
    dict
        ``{"version": 1, "refs": {...}}``.

    Raises
    ------
    TypeError
        If a file object comes without ``url`` (`pyfilter.errors.Unsupported`).
    MissingExtra
        If kerchunk is not installed.
    """
    return _translated(file, url, inline_threshold=inline_threshold, storage_options=storage_options, **kwargs)[0]


def _translated(file: Any, url: str | None, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the references of a file, and the fill values that its attributes declare."""
    if isinstance(file, io.IOBase) and url is None:
        message = "references to a file object need url=, the address that they will name"
        raise Unsupported(message)
    opened: Any = file if isinstance(file, io.IOBase) else str(file)
    translation = _Translation(opened, url if url is not None else opened, **{"error": "raise", **kwargs})
    translation.declared = {}
    try:
        if url is not None:
            translation._uri = url  # kerchunk takes the place of the file that it opens
        return translation.translate(), translation.declared
    finally:
        translation.close()


class _Reader(io.RawIOBase):
    """A reader of VirtualiZarr as a file object of Python."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place in the file."""
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        """Return the place in the file."""
        return int(self._reader.tell())

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)


class HDFParser:
    """A parser of VirtualiZarr for HDF5 and netCDF-4 files with our filter, in place of VirtualiZarr's ``HDFParser``.

    Parameters
    ----------
    group : str, optional
        The group to open; by default the root.
    drop_variables : iterable of str, optional
        Variables to leave out.

    Examples
    --------
    >>> virtualizarr.open_virtual_dataset(url, registry=registry, parser=pyfilter.zarr.HDFParser())
    """

    def __init__(self, group: str | None = None, drop_variables: Iterable[str] | None = None) -> None:
        self.group = group
        self.drop_variables = tuple(drop_variables or ())

    def __call__(self, url: str, registry: Any) -> Any:
        """Return the store of a file's variables; VirtualiZarr calls this.

        Parameters
        ----------
        url : str
            The file.
        registry : obspec_utils.registry.ObjectStoreRegistry
            Says which object store has it.

        Returns
        -------
        virtualizarr.manifests.ManifestStore
            Its chunks are those of the file.

        Raises
        ------
        MissingExtra
            If VirtualiZarr is not installed.
        """
        try:
            from obspec_utils.readers import BlockStoreReader
            from virtualizarr.manifests import ManifestStore
            from virtualizarr.parsers.kerchunk.translator import manifestgroup_from_kerchunk_refs
        except ImportError as error:
            raise missing_extra("virtualizarr", "virtual") from error
        store, path = registry.resolve(url)
        file = _Reader(BlockStoreReader(store, path))
        refs, declared = _translated(file, url, inline_threshold=0, unsupported_inline_threshold=0)
        for name, value in declared.items():
            _declare(refs["refs"], name, value)
        group = manifestgroup_from_kerchunk_refs(refs, group=self.group, skip_variables=self.drop_variables)
        return ManifestStore(group=group, registry=registry)


def _declare(refs: dict[str, Any], name: str, value: Any) -> None:
    """Put a fill value into the attributes of an array, as xarray has it in format 3."""
    from virtualizarr.parsers.utils import encode_cf_fill_value

    if f"{name}/.zarray" in refs:
        dtype = np.dtype(json.loads(refs[f"{name}/.zarray"])["dtype"])
        attributes = json.loads(refs.get(f"{name}/.zattrs", "{}"))
        attributes["_FillValue"] = encode_cf_fill_value(value, dtype)
        refs[f"{name}/.zattrs"] = json.dumps(attributes)
