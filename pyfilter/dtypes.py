# SPDX-License-Identifier: BSD-3-Clause
"""NumPy element types and their codes in the frame format."""

from __future__ import annotations

import contextlib
import importlib
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.registry import registry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.codecs.base import Codec


_BFLOAT16 = "bf16"  # by its name in registry.json; NumPy has no such type


@cache
def _codes() -> dict[tuple[str, int], int]:
    """Return (kind, bytes) -> code, of NumPy's own types."""
    kinds = {spec.code: np.dtype(spec.numpy).kind for spec in registry().dtypes.values() if spec.name != _BFLOAT16}
    return {(kinds[spec.code], spec.size_bytes): spec.code for spec in registry().dtypes.values() if spec.code in kinds}


def code_of(dtype: np.dtype[Any]) -> int | None:
    """Return the frame format's code for an element type of either byte order, None for one that has none."""
    if dtype.names is not None or dtype.subdtype is not None:
        return None
    if is_bfloat16(dtype):
        return registry().dtypes[_BFLOAT16].code
    return _codes().get((dtype.kind, dtype.itemsize))


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether this is the type bfloat16 of the package ml_dtypes."""
    return dtype.itemsize == 2 and dtype.name == "bfloat16"  # a name takes NumPy longer than a size


def from_code(code: int) -> np.dtype[Any]:
    """Return the native NumPy type for a code of the frame format.

    bfloat16 is that of the package ml_dtypes or, where it is not installed, two bytes (``V2``).
    """
    spec = registry().dtype_by_code(code)
    if spec is None:
        known = ", ".join(f"{item.code} ({item.name})" for item in registry().dtypes.values())
        message = f"element type {code} is unknown; known are {known}"
        raise InvalidArgument(message)
    if spec.name == _BFLOAT16:
        with contextlib.suppress(ImportError):
            found: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
            return found
    return np.dtype(spec.numpy)


def names(codec_name: str) -> tuple[str, ...]:
    """Return the NumPy names ("float32", ...) of the element types that a codec takes."""
    return tuple(
        "bfloat16" if name == _BFLOAT16 else np.dtype(registry().dtypes[name].numpy).name
        for name in registry().codecs[codec_name].dtypes
    )


def takes(codec_name: str, dtype: np.dtype[Any]) -> bool:
    """Whether the codec can encode values of this type (either byte order)."""
    code = code_of(dtype)
    spec = registry().dtype_by_code(code) if code is not None else None
    return spec is not None and spec.name in registry().codecs[codec_name].dtypes


def require(codec_name: str, dtype: np.dtype[Any]) -> int:
    """Return the code of a type that the codec takes.

    Raises
    ------
    Unsupported
        If it does not take the type; also a TypeError. The text names the types that it takes.
    """
    code = code_of(dtype)
    if code is None or not takes(codec_name, dtype):
        message = f"codec {codec_name} cannot encode {dtype}; it takes {', '.join(names(codec_name))}"
        if code is not None and takes(registry().exact_codec, dtype):
            message += "; Lossless() takes it bit for bit"
        if dtype.names is not None:
            message += "; a structured type needs a codec for each field: pyfilter.Compound"
        raise Unsupported(message)
    return code


def is_base(dtype: np.dtype[Any]) -> bool:
    """Whether codecs encode values of this type as they are: floats of 32 and 64 bits and integers."""
    return code_of(dtype) is not None and dtype.kind in "fiu" and (dtype.kind != "f" or dtype.itemsize >= 4)


def on_devices(dtype: np.dtype[Any]) -> bool:
    """Whether chunks of this type are moved to and from devices: all but bfloat16 and structures."""
    return code_of(dtype) is not None and dtype.kind in "biufc"


def require_exact_enum(codec: Codec, dtype: np.dtype[Any]) -> None:
    """Refuse a bound for members of an enumeration (`h5py.enum_dtype`).

    Raises
    ------
    Unsupported
        If values may change.
    """
    if h5py.check_enum_dtype(dtype) is not None and not codec.is_lossless and codec.bound != ("absolute", 0.0):
        message = f"values of an enumeration are names and must not change: use Lossless(), not {codec!r}"
        raise Unsupported(message)


def refuse_bfloat16(dtype: np.dtype[Any]) -> None:
    """Refuse to make a dataset of h5py of this type.

    Raises
    ------
    Unsupported
        If it is bfloat16: h5py stores opaque bytes.
    """
    if is_bfloat16(dtype):
        message = (
            "h5py stores bfloat16 as opaque bytes, which the filter cannot tell from others: create the dataset with "
            "an HDF5 float type (docs/howto/h5py.md), or use pyfilter.encode"
        )
        raise Unsupported(message)


def part_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the real and the imaginary part of complex numbers, any other type as it is."""
    return np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def is_big_endian(dtype: np.dtype[Any]) -> bool:
    """Whether values of this type are stored with the most significant byte first."""
    if dtype.itemsize == 1 or dtype.byteorder == "|":
        return False
    return dtype.byteorder == ">" or (dtype.byteorder == "=" and sys.byteorder == "big")


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in the byte order of this machine."""
    result: np.dtype[Any] = dtype.newbyteorder("=")
    return result


def bits_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the native unsigned integer type of the same width, of complex numbers that of one part: for patterns."""
    return np.dtype(f"u{part_of(dtype).itemsize}")


def has_pattern(values: NDArray[Any], bits: int) -> NDArray[np.bool_]:
    """Return which of the values, in this machine's byte order, have this bit pattern (`pattern`)."""
    unsigned = bits_dtype(values.dtype)
    width = 8 * unsigned.itemsize
    found = np.asarray(values.view(unsigned) == bits % (1 << width))
    if values.dtype.kind != "c":
        return found
    imaginary = values.view(unsigned)[..., 1::2] == bits >> width
    return np.asarray(found[..., 0::2] & imaginary)


def pattern(value: Any, dtype: np.dtype[Any]) -> int:
    """Return the bit pattern of one value as it is stored in an array of ``dtype``, zero-extended.

    That of a complex number has its real part in the low half.

    Raises
    ------
    InvalidArgument
        If the value is not a number of that type, or an integer type cannot hold it.
    """
    target = native(dtype)
    given = np.asarray(value)
    kinds = {"c": "fiuc", "b": "b"}.get(target.kind, "fiu")
    if given.size == 1 and (given.dtype == target or given.dtype.kind in kinds):
        with np.errstate(all="ignore"):
            stored = given.reshape(1).astype(target)
        # a float is rounded to the type, as HDF5 does; an integer type must hold the requested value exactly
        if target.kind in "fc" or is_bfloat16(target) or stored.item() == given.item():
            return int.from_bytes(stored.tobytes(), sys.byteorder)
    message = f"fill value {value!r} is not one value that {target.name} can hold"
    raise InvalidArgument(message)


def hdf5_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as HDF5 takes it for a dataset: it converts no real number to a complex one."""
    return value if value is None or dtype.kind != "c" else value_of(pattern(value, dtype), dtype)


def value_of(bits: int, dtype: np.dtype[Any]) -> np.generic:
    """Return the value whose bit pattern in ``dtype`` is ``bits``."""
    target = native(dtype)
    scalar: np.generic = np.frombuffer(bits.to_bytes(target.itemsize, sys.byteorder), dtype=target)[0]
    return scalar


def sentinel_of(bits: int, dtype: np.dtype[Any]) -> np.generic:
    """Return the fill value in a frame's header: of a part of complex numbers; float32 of floats of 16 bits."""
    if code_of(dtype) != code_of(np.dtype("f2")) and not is_bfloat16(dtype) and dtype.kind != "V":
        return value_of(bits, part_of(dtype))
    if dtype.kind == "f":
        narrow: np.generic = dtype.type(value_of(bits, np.dtype("f4")))
        return narrow
    return value_of(bits >> 16, dtype)


def plain(dtype: Any) -> np.dtype[Any]:
    """Return a NumPy type, or say that h5py's own kinds of types are not for us."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        message = f"dtype must be a NumPy number type, got {dtype!r}"
        raise Unsupported(message) from None
    return found
