# SPDX-License-Identifier: BSD-3-Clause
"""How the library works: which backend, how many threads, which instruction set. Kept by the C library.

The library reads PYFILTER_BACKEND, PYFILTER_NUM_THREADS and PYFILTER_CPU by itself when it is loaded, so that
h5dump and ncdump obey them too.
"""

from __future__ import annotations

import contextlib
from numbers import Integral
from typing import TYPE_CHECKING

from pyfilter import errors
from pyfilter._lib import library

if TYPE_CHECKING:
    from types import TracebackType

BACKENDS = ("auto", "cpu", "cuda")
CPU_LEVELS = ("auto", "baseline", "avx2", "avx512")
MAX_THREADS = 1024


class config:  # used like a function: pyfilter.config(threads=2), with pyfilter.config(...):
    """Change settings for the process, for good or for the length of a ``with`` block.

    Parameters
    ----------
    backend : {"auto", "cpu", "cuda"}, optional
        Where to compute on arrays in host memory. Arrays on a device are always worked on there.
    threads : int, optional
        Threads used by one call, 1 to 1024; 0: as many as the cores that the process may use.
    cpu_level : {"auto", "baseline", "avx2", "avx512"}, optional
        The instruction set; the bytes written do not depend on it.

    Raises
    ------
    ValueError
        If a value is not allowed; nothing is changed then.
    DeviceError
        If ``backend="cuda"`` is asked where pyfilter's CUDA library or a device is missing; nothing is
        changed then.

    Examples
    --------
    >>> with pyfilter.config(threads=1):
    ...     pyfilter.encode(array, codec)
    >>> pyfilter.config().backend
    'cpu'
    """

    def __init__(self, *, backend: str | None = None, threads: int | None = None, cpu_level: str | None = None) -> None:
        changes: dict[str, str] = {}
        if backend is not None:
            changes["backend"] = _one_of("backend", backend, BACKENDS)
        if threads is not None:
            if not isinstance(threads, Integral) or isinstance(threads, bool) or not 0 <= threads <= MAX_THREADS:
                message = f"threads must be an integer from 0 (one for each core) to {MAX_THREADS}, got {threads!r}"
                raise errors.InvalidArgument(message)
            changes["threads"] = str(int(threads))
        if cpu_level is not None:
            changes["cpu_level"] = _one_of("cpu_level", cpu_level, CPU_LEVELS)
        self._before = {key: library.config(key) or "" for key in changes}
        done: list[str] = []
        try:
            for key, value in changes.items():
                library.configure(key, value)
                done.append(key)
        except errors.PyfilterError:
            self._restore(done)
            raise

    def _restore(self, keys: list[str]) -> None:
        for key in keys:
            with contextlib.suppress(errors.PyfilterError):
                library.configure(key, self._before[key])

    def __enter__(self) -> config:
        """Return the settings; they were changed when the object was made."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the previous settings."""
        self._restore(list(self._before))

    @property
    def backend(self) -> str:
        """The backend in use."""
        return library.config("backend") or "cpu"

    @property
    def threads(self) -> int:
        """The number of threads that a call may use, at least 1."""
        return int(library.config("threads") or 1)

    @property
    def cpu_level(self) -> str:
        """The instruction set in use."""
        return library.config("cpu_level") or "baseline"

    @property
    def cuda(self) -> bool:
        """Whether pyfilter's CUDA library is there; asking loads it."""
        return library.config("cuda") == "1"

    @property
    def cuda_devices(self) -> int:
        """The number of CUDA devices that can be used here; asking initialises CUDA."""
        return int(library.config("cuda_devices") or 0)

    def __repr__(self) -> str:
        """Return the settings in use."""
        return f"config(backend={self.backend!r}, threads={self.threads}, cpu_level={self.cpu_level!r})"


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        message = f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}"
        raise errors.InvalidArgument(message)
    return value
