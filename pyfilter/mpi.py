# SPDX-License-Identifier: BSD-3-Clause
"""Files that processes write together through MPI (h5py's driver "mpio"): what HDF5's refusal of a write means.

HDF5 writes compressed chunks of such a file only where all processes take part in each call, as collective.py has it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyfilter.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

#: what HDF5 says of such a write, in every release that has the driver
REFUSAL = "independent write with filters"

WRITE = (
    "write in all processes inside of 'with dataset.collective:', either 'pyfilter.write(dataset, array)' with the "
    "whole array in each, or 'dataset[part] = values' with a part of its own in each"
)
CREATE = (
    "give each process's part and comm=, 'pyfilter.create_dataset(group, name, part, codec, comm=comm)', or create it "
    "without values, 'dataset = group.create_dataset(name, shape, dtype, chunks=..., **codec)', then write "
    "in all processes 'with dataset.collective: dataset[part] = values'"
)


@contextmanager
def explained(name: str, advice: str) -> Iterator[None]:
    """Say of HDF5's refusal of an independent write what to do; other errors pass.

    Parameters
    ----------
    name : str
        Of the dataset.
    advice : str
        `WRITE` or `CREATE`.

    Raises
    ------
    Unsupported
        Where HDF5 refused so.
    """
    try:
        yield
    except OSError as error:
        if REFUSAL not in str(error):
            raise
        message = (
            f"{name} is compressed and its file is open with driver 'mpio', where HDF5 takes only collective writes; "
            f"this one was independent: {advice}"
        )
        raise Unsupported(message) from error
