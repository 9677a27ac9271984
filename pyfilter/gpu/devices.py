# SPDX-License-Identifier: BSD-3-Clause
"""The argument ``devices`` of `pyfilter.write`, `read` and others: names of devices to their numbers."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from pyfilter._lib import cuda
from pyfilter.errors import InvalidArgument
from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    #: "all", "cuda" (the current one), "cuda:1", 1, or several of these
    Devices = str | int | Sequence[str | int]

ALLOWED = "'all', 'cuda', 'cuda:0', 'cuda:1', ..., numbers of devices, or a list of those"


def numbers(devices: Devices) -> tuple[int, ...]:
    """Return the numbers of the named devices.

    Raises
    ------
    InvalidArgument
        If a name is no device, the device does not exist, or is named twice.
    DeviceError
        If CUDA cannot be used.
    MissingExtra
        If CuPy is not installed.
    """
    if isinstance(devices, str) and devices == "all":
        arrays.require()
        return tuple(range(cuda.device_count()))
    try:
        several = [devices] if isinstance(devices, (str, Integral)) else list(devices)  # type: ignore[arg-type]
    except TypeError:
        several = []
    if not several or isinstance(devices, bytes) or not all(_is_one(device) for device in several):
        message = f"devices must be {ALLOWED}; got {devices!r}"
        raise InvalidArgument(message)
    arrays.require()
    found = [_number(device) for device in several]
    for position, number in enumerate(found):
        if number in found[:position]:
            message = f"devices names device {number} twice: {devices!r}"
            raise InvalidArgument(message)
    return tuple(found)


def _is_one(device: object) -> bool:
    if isinstance(device, str):
        name, _, number = device.partition(":")
        return name == "cuda" and (number.isdecimal() or device == "cuda")
    return isinstance(device, Integral) and not isinstance(device, bool) and int(device) >= 0


def _number(device: str | int) -> int:
    name = device if isinstance(device, str) else f"cuda:{int(device)}"
    number = arrays.device_number(name)
    assert number is not None
    return number
