# SPDX-License-Identifier: BSD-3-Clause
"""Error-bounded compression of floating-point data for HDF5 and netCDF-4.

Importing the package makes the filter known to every libhdf5 of the process. h5py, netCDF4 and xarray then write and
read compressed files like any others. docs/tutorial.md is a tour.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyfilter import errors, gpu, plugin
from pyfilter._hooks import foreign as _foreign
from pyfilter.checking import Finding, check, codec_of
from pyfilter.codecs import (
    FILTERS,
    Adaptive,
    Auto,
    Codec,
    Cuszp2,
    HierarchicalDelta,
    Lorenzo,
    Lossless,
    Particles,
    Progressive,
)
from pyfilter.errors import PyfilterError
from pyfilter.frames import decode, encode, frame_info, records_info
from pyfilter.guarantees import Guarantee
from pyfilter.h5 import create_dataset, read, write
from pyfilter.headers import FrameInfo
from pyfilter.plugin import register
from pyfilter.records import Compound, RecordsInfo
from pyfilter.regions import Region
from pyfilter.registry import registry as _registry
from pyfilter.settings import config
from pyfilter.verification import Verification, verify

if TYPE_CHECKING:
    from pyfilter import collective, dask, netcdf, particles, progressive, xarray, zarr
    from pyfilter.recommendation import Recommendation, recommend

__version__ = _registry().version

#: the HDF5 filter's id, one for all codecs
FILTER_ID = _registry().filter_id
#: the folder to put in HDF5_PLUGIN_PATH for h5dump, ncdump and others
PLUGIN_PATH = plugin.plugin_folder()

_LAZY = ("collective", "dask", "netcdf", "particles", "progressive", "xarray", "zarr")
_OF_RECOMMENDATION = ("Recommendation", "recommend")

plugin.install()
_foreign.warn(list(__path__))


def __getattr__(name: str) -> Any:
    """Import the modules for other packages when they are first used."""
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _OF_RECOMMENDATION:
        return getattr(importlib.import_module(f"{__name__}.recommendation"), name)
    for codec in FILTERS.values():  # one that is being added, without a line above
        if codec.__name__ == name:
            return codec
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


__all__ = [
    "FILTERS",
    "FILTER_ID",
    "PLUGIN_PATH",
    "Adaptive",
    "Auto",
    "Codec",
    "Compound",
    "Cuszp2",
    "Finding",
    "FrameInfo",
    "Guarantee",
    "HierarchicalDelta",
    "Lorenzo",
    "Lossless",
    "Particles",
    "Progressive",
    "PyfilterError",
    "Recommendation",
    "RecordsInfo",
    "Region",
    "Verification",
    "__version__",
    "check",
    "codec_of",
    "collective",
    "config",
    "create_dataset",
    "dask",
    "decode",
    "encode",
    "errors",
    "frame_info",
    "gpu",
    "netcdf",
    "particles",
    "progressive",
    "read",
    "recommend",
    "records_info",
    "register",
    "verify",
    "write",
    "xarray",
    "zarr",
]
