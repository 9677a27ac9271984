# SPDX-License-Identifier: BSD-3-Clause
"""Quantities of interest: values derived from several datasets, to a tolerance of their own.

The datasets are read as precisely as the quantity needs; three strategies choose how precisely (HP-MDR, section 6.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter.errors import InvalidArgument
from pyfilter.progressive.expression import Expression
from pyfilter.progressive.opening import open as open_reader
from pyfilter.progressive.reader import Reader

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.gpu.devices import Devices

STRATEGIES = ("cp", "ma", "mape")
_DECAY = 1.5  # of the errors of variables, in strategy cp
_NEAR = 10.0  # mape goes on as ma does where the estimate is within so many tolerances


@dataclass(frozen=True)
class Retrieved:
    """The result of `retrieve`.

    Attributes
    ----------
    values : numpy.ndarray
        The quantity, float64. NaN or infinite where a variable or the formula is.
    max_error : float
        A proven bound of its errors: at most the tolerance, unless the datasets hold no more (`complete` is False).
    complete : bool
        Whether the tolerance is reached.
    variables : dict
        The datasets' values that it was computed from, by name.
    errors : dict
        The largest error of each.
    bytes_read : int
        Bytes of chunks that this call fetched.
    rounds : int
        How often the error was estimated.
    """

    values: NDArray[np.float64]
    max_error: float
    complete: bool
    variables: dict[str, NDArray[Any]]
    errors: dict[str, float]
    bytes_read: int
    rounds: int


def retrieve(
    sources: Mapping[str, Any] | Sequence[Any],
    qoi: str,
    tolerance: float,
    strategy: str = "mape",
    selection: Any = ...,
    *,
    devices: Devices | None = None,
) -> Retrieved:
    """Compute a formula of several datasets within a tolerance, from as few bytes as that needs.

    Parameters
    ----------
    sources : mapping or sequence
        Datasets or readers of one shape, by the names that the formula has; or in the order in which the names come
        in it.
    qoi : str
        The formula, such as ``"vx**2 + vy**2 + vz**2"``: numbers, names, ``+ - * /``, powers, ``sqrt``, ``abs``.
    tolerance : float
        The largest error of the formula's value, in its unit.
    strategy : {"cp", "ma", "mape"}
        How the variables' errors are chosen. "cp": shrunk together until the worst point keeps the tolerance (few
        rounds, more bytes). "ma": a step of a table at a time (few bytes, many rounds). "mape": in proportion while far
        from the tolerance, then by steps.
    selection : index, optional
        Part of the datasets, as for `Reader.read`.
    devices : "all", str, int or a list of those, optional
        CUDA devices that decode in place of the CPU, as for `Reader.read`; formulas are the CPU's.

    Returns
    -------
    Retrieved
        Values, the bound of their errors, and the bytes fetched.

    Raises
    ------
    ValueError
        If the formula, the names, the tolerance or the strategy are invalid, or a device does not exist
        (`pyfilter.errors.InvalidArgument`).
    """
    expression = Expression(qoi)
    if strategy not in STRATEGIES:
        message = f"strategy must be one of {', '.join(map(repr, STRATEGIES))}, got {strategy!r}"
        raise InvalidArgument(message)
    wanted = float(tolerance)
    if not (math.isfinite(wanted) and wanted > 0.0):
        message = f"tolerance must be a finite number > 0 in the unit of the formula, got {tolerance!r}"
        raise InvalidArgument(message)
    named = _named(sources, expression)
    readers: dict[str, Reader] = {}
    opened: list[Reader] = []
    try:
        for name, source in named.items():
            if isinstance(source, Reader):
                readers[name] = source
            else:
                readers[name] = open_reader(source)
                opened.append(readers[name])
        shapes = {name: reader.shape for name, reader in readers.items()}
        if len(set(shapes.values())) > 1:
            message = f"the datasets must have one shape, these have {shapes}"
            raise InvalidArgument(message)
        return _search(expression, readers, wanted, strategy, selection, devices)
    finally:
        for reader in opened:
            reader.close()


def _named(sources: Mapping[str, Any] | Sequence[Any], expression: Expression) -> dict[str, Any]:
    if isinstance(sources, (Reader, h5py.Dataset)):
        sources = [sources]
    if not isinstance(sources, Mapping):
        if len(sources) != len(expression.names):
            message = f"{len(sources)} datasets for the names {', '.join(expression.names)} of {expression.text!r}"
            raise InvalidArgument(message)
        return dict(zip(expression.names, sources, strict=True))
    missing = [name for name in expression.names if name not in sources]
    if missing:
        message = f"no dataset for {', '.join(missing)} of {expression.text!r}; given: {', '.join(map(str, sources))}"
        raise InvalidArgument(message)
    return {name: sources[name] for name in expression.names}


def _search(
    expression: Expression,
    readers: dict[str, Reader],
    tolerance: float,
    strategy: str,
    selection: Any,
    devices: Devices | None,
) -> Retrieved:
    before = {name: reader.bytes_read for name, reader in readers.items()}
    wanted = {name: reader.first_error(selection) for name, reader in readers.items()}
    variables: dict[str, NDArray[Any]] = {}
    errors: dict[str, float] = {}
    rounds = 0
    while True:
        rounds += 1
        for name, reader in readers.items():
            if name not in errors or wanted[name] < errors[name]:
                variables[name] = reader.read(wanted[name], selection, devices=devices)
                errors[name] = reader.max_error
        missing = np.zeros((), np.bool_)
        for name, reader in readers.items():
            missing = missing | reader.is_missing(variables[name])
        points = expression.error(variables, errors, missing)
        worst = float(points.max()) if points.size else 0.0
        # a reader whose tables have no smaller error is left out
        least = {name: reader.next_error(errors[name], selection) for name, reader in readers.items()}
        exhausted = all(not least[name] < errors[name] for name in readers)
        if worst <= tolerance or exhausted:
            break  # each round before took a step of some table, so there is an end
        if strategy == "cp":
            wanted = _shrink(expression, variables, errors, points, tolerance)
        elif strategy == "mape" and worst > _NEAR * tolerance and math.isfinite(worst):
            wanted = {name: error / (worst / tolerance) for name, error in errors.items()}
        else:
            wanted = least
        # at least one variable must get a smaller error
        if all(not wanted[name] < errors[name] or not least[name] < errors[name] for name in readers):
            wanted = least
    read = sum(reader.bytes_read - before[name] for name, reader in readers.items())
    values = expression.value(variables)
    return Retrieved(values, worst, worst <= tolerance, variables, errors, read, rounds)


def _shrink(
    expression: Expression,
    variables: Mapping[str, NDArray[Any]],
    errors: Mapping[str, float],
    points: NDArray[np.float64],
    tolerance: float,
) -> dict[str, float]:
    """Return errors of the variables with which the currently worst point keeps the tolerance."""
    at = np.unravel_index(int(points.argmax()), points.shape)
    here = {name: np.asarray(values[at]) for name, values in variables.items()}
    smaller = dict(errors)
    for _ in range(2000):
        smaller = {name: error / _DECAY for name, error in smaller.items()}
        if float(expression.error(here, smaller)) <= tolerance:
            break
    return smaller
