# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter doctor``: whether everything is where it must be, shown by doing it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json as json_module
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click
import h5py
import numpy as np
from rich.markup import escape

from pyfilter import checking, h5, netcdf, plugin, settings, verification
from pyfilter._hooks import foreign
from pyfilter._lib import cuda, library
from pyfilter.cli import help, options, tables
from pyfilter.cli.tables import Column
from pyfilter.codecs import Cuszp2
from pyfilter.errors import PyfilterError

if TYPE_CHECKING:
    from collections.abc import Callable


@help.command("doctor")
@options.json
def doctor(*, json: bool) -> None:
    """Show the library, its backends, each libhdf5 in this process, and whether a write and a read work.

    Exit status 1: something does not work.
    """
    if json:
        rows = _findings()
        found = [{"name": name, "text": text, "ok": good} for name, text, good in rows]
        click.echo(json_module.dumps({"ok": all(good for *_, good in rows), "findings": found}, indent=2))
        if not all(good for *_, good in rows):
            raise click.exceptions.Exit(1)
        return
    rows = _findings()
    tables.show(
        (Column("what"), Column("found")),  # never shortened: a path or an error is of no use in part
        [(f"[bold]{name}[/]", escape(text) if good else f"[bold red]{escape(text)}[/]") for name, text, good in rows],
        header=False,
    )
    if not all(good for *_, good in rows):
        raise click.exceptions.Exit(1)


def _findings() -> list[tuple[str, str, bool]]:
    path = library.path()
    rows = [_installed(), ("library", "missing" if path is None else str(path), path is not None)]
    if path is None:
        return rows
    try:
        version = library.version()
    except PyfilterError as error:
        return [*rows, ("library", str(error), False)]
    now = settings.config()
    rows += [
        ("version", version, True),
        ("cpu level", now.cpu_level, True),
        ("threads", str(now.threads), True),
        ("cuda", _cuda(now), True),
        ("plugin path", f"{plugin.VARIABLE}={os.environ.get(plugin.VARIABLE, '')}", True),
        ("h5py", f"{h5py.version.version} with HDF5 {h5py.version.hdf5_version}", True),
        _try("h5py write and read", _by_h5py),
    ]
    if importlib.util.find_spec("netCDF4") is not None:
        import netCDF4

        rows.append(("netCDF4", f"{netCDF4.__version__} with HDF5 {netCDF4.__hdf5libversion__}", True))
        rows.append(_try("netCDF4 write and read", _by_netcdf4))
    else:
        rows.append(("netCDF4", "not installed", True))
    rows += [("registered with", hdf5, True) for hdf5 in plugin.register()]
    return rows


def _installed() -> tuple[str, str, bool]:
    """Return which distribution is installed, and whether another project's has the package's name."""
    theirs = list(importlib.metadata.distributions(name=foreign.NAME))
    if theirs:
        places = ", ".join(f"{item.version} in {item.locate_file('')}" for item in theirs)
        return "distribution", f"pyfilter {places} is another project's and replaces our files: {foreign.REPAIR}", False
    ours = next(iter(importlib.metadata.distributions(name="h5pyfilter")), None)
    if ours is None:
        return "distribution", f"h5pyfilter is not installed; used from {Path(__file__).parents[1]}", True
    return "distribution", f"h5pyfilter {ours.version} in {ours.locate_file('')}", True


def _cuda(now: settings.config) -> str:
    """Return whether the CUDA library is there, and which devices can be used or why none; having none is no fault."""
    if not now.cuda:
        return library.config("cuda_problem") or "no CUDA library"
    try:
        cuda.require()
    except PyfilterError as error:
        return f"library loaded, not usable here: {error}"
    has_cupy = importlib.util.find_spec("cupy") is not None
    cupy = "with cupy" if has_cupy else "without cupy: pip install 'h5pyfilter[gpu]'"
    return f"library loaded, devices: {now.cuda_devices}, {cupy}"


def _try(name: str, action: Callable[[Path], None]) -> tuple[str, str, bool]:
    with tempfile.TemporaryDirectory(prefix="pyfilter-") as folder:
        try:
            action(Path(folder))
        except Exception as error:  # whatever it is, it is to be shown
            return name, f"{type(error).__name__}: {error}", False
    return name, "works", True


def _sample() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.sin(np.arange(40_000, dtype=np.float32) / 300).reshape(200, 200)


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


def _by_h5py(folder: Path) -> None:
    codec = Cuszp2(absolute=1e-3)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=_sample(), chunks=(100, 100), compression=codec)
        h5.create_dataset(file, "y", _sample(), codec)
    with h5py.File(folder / "a.h5", "r") as file:
        for name in ("x", "y"):
            _require(verification.verify(_sample(), file[name]).ok, "the bound does not hold")
        findings = checking.check(file)
        _require(not findings, "; ".join(map(str, findings)))


def _by_netcdf4(folder: Path) -> None:
    import netCDF4

    with netCDF4.Dataset(folder / "a.nc", "w") as file:
        for name in ("y", "x"):
            file.createDimension(name, 200)
        variable = file.createVariable("v", "f4", ("y", "x"))
        netcdf.compress(variable, Cuszp2(absolute=1e-3))
        variable[...] = _sample()
    with netCDF4.Dataset(folder / "a.nc") as file:
        _require(verification.verify(_sample(), np.asarray(file["v"][...]), 1e-3).ok, "the bound does not hold")
    findings = checking.check(folder / "a.nc")
    _require(not findings, "; ".join(map(str, findings)))
