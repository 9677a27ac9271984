# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of pyfilter: one for each family of status codes (filter/c_api.h), and a few of the Python side.

Each is also the built-in exception that a caller without knowledge of pyfilter would catch.
"""

from __future__ import annotations


class PyfilterError(Exception):
    """Base of everything that pyfilter raises on purpose."""


class InvalidArgument(PyfilterError, ValueError):
    """An argument is out of range, or arguments do not go together."""


class Unsupported(PyfilterError, TypeError):
    """An element type, a rank or a kind of object that cannot be taken."""


class FrameError(PyfilterError, ValueError):
    """Bytes that cannot be decoded."""


class CorruptFrame(FrameError):
    """The bytes are not a frame, or contradict themselves."""


class TruncatedFrame(FrameError):
    """The frame ends before its time."""


class TooNew(FrameError):
    """The frame was written by a newer release; the message names the one needed."""


class NoSpace(PyfilterError, BufferError):
    """A buffer given to the library is too small."""


class NoMemory(PyfilterError, MemoryError):
    """The library could not allocate memory."""


class DeviceError(PyfilterError, RuntimeError):
    """The accelerator failed, or is asked for and not there."""


class InternalError(PyfilterError, RuntimeError):
    """A fault inside the library: please report it."""


class LibraryMissing(PyfilterError, ImportError):
    """The compiled library is not there or does not fit this package."""


class MissingExtra(PyfilterError, ImportError):
    """An optional dependency is needed; the message names the extra that installs it."""


class NetcdfError(PyfilterError, RuntimeError):
    """netCDF-C refused a call; ``code`` is its (negative) error number."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[NetcdfError], tuple[str, int]]:
        """Pickle with both arguments."""
        return type(self), (str(self), self.code)


_BY_CODE: dict[int, type[PyfilterError]] = {
    10: InvalidArgument,
    20: Unsupported,
    30: CorruptFrame,
    31: TruncatedFrame,
    32: TooNew,
    40: NoSpace,
    50: NoMemory,
    60: DeviceError,
    90: InternalError,
}


def from_code(code: int, message: str) -> PyfilterError:
    """Return the exception for a status code of the C library (nothing for 0: that is success)."""
    kind = _BY_CODE.get(code)
    if kind is None:
        return InternalError(f"unknown status {code}: {message}")
    return kind(message or f"status {code}")


def missing_extra(module: str, extra: str) -> MissingExtra:
    """Return the error for an optional module that cannot be imported."""
    return MissingExtra(f"{module} is needed here and not installed: pip install 'h5pyfilter[{extra}]'")
