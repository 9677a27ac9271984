# SPDX-License-Identifier: BSD-3-Clause
"""Drives the process that tries candidates (worker.py), and survives its death."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

import numpy as np

import pyfilter
from pyfilter._hooks import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

    from pyfilter.compare.candidates import Candidate
    from pyfilter.compare.sample import Sample

_QUICK_SECONDS = 3.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a candidate on a sample.

    Attributes
    ----------
    candidate : Candidate
        The filter that was tried.
    problem : str
        Why there are no figures: refused, crashed, took too long; empty where there are.
    ratio : float
        Bytes of the values by bytes stored.
    bits_per_value : float
        Bits stored for a value.
    write_speed, read_speed : float
        MB (1e6 bytes of values) in a second through HDF5, with compression and decompression.
    max_error : float
        Largest error of a finite value.
    psnr : float
        Peak signal-to-noise ratio in dB; infinite without any error.
    bound_kept : bool
        Every ordinary value keeps the bound, in exact arithmetic.
    specials_kept : bool
        NaN, infinities and missing values came back bit for bit, and no other value became one.
    raw_chunks : int
        Chunks that HDF5 stored without the filter, in silence.
    sample_bytes : int
        Size of the sample's values.
    slice : numpy.ndarray or None
        The part that was asked for, as it came back.
    """

    candidate: Candidate
    problem: str = ""
    ratio: float = math.nan
    bits_per_value: float = math.nan
    write_speed: float = math.nan
    read_speed: float = math.nan
    max_error: float = math.nan
    psnr: float = math.nan
    bound_kept: bool = False
    specials_kept: bool = False
    raw_chunks: int = 0
    sample_bytes: int = 0
    slice: NDArray[Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the candidate gave figures and kept the bound and the missing values."""
        return not self.problem and self.bound_kept and self.specials_kept

    @property
    def quick(self) -> bool:
        """Whether there are figures, had in a few seconds: then it may be asked for some more."""
        speeds = self.write_speed, self.read_speed
        return not self.problem and all(self.sample_bytes / 1e6 / speed < _QUICK_SECONDS for speed in speeds)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it: numbers that JSON does not have are None."""
        found: dict[str, Any] = {
            "name": self.candidate.name,
            "source": self.candidate.source,
            "bound": self.candidate.absolute,
            "pointwise_relative": self.candidate.pointwise,
            "problem": self.problem or None,
        }
        for name in ("ratio", "bits_per_value", "write_speed", "read_speed", "max_error", "psnr"):
            value = float(getattr(self, name))
            found[name] = value if math.isfinite(value) else None
        for name in ("bound_kept", "specials_kept", "raw_chunks"):
            found[name] = None if self.problem else getattr(self, name)
        return {**found, "ok": self.ok}


class Bench:
    """A sample laid out for the worker, and the worker itself; a context manager.

    Parameters
    ----------
    sample
        The values.
    timeout
        Seconds that one candidate may take.
    threads
        Threads for our filter; None for its default.
    """

    def __init__(self, sample: Sample, timeout: float = 30.0, threads: int | None = None) -> None:
        self.sample = sample
        self.timeout = timeout
        self._environment = _environment(threads)
        self._folder = tempfile.TemporaryDirectory(prefix="pyfilter-")
        self._process: subprocess.Popen[str] | None = None
        self._answers: Queue[str] = Queue()
        self._ending = signals.on_end(self._end)

    def __enter__(self) -> Self:
        """Lay the sample out."""
        self._ending.__enter__()
        folder = Path(self._folder.name)
        np.save(folder / "sample.npy", self.sample.values)
        specials = np.array(self.sample.specials, dtype=self.sample.values.dtype)
        np.save(folder / "specials.npy", specials)
        about = {"chunk": self.sample.chunk, "has_fill": self.sample.fill is not None}
        (folder / "sample.json").write_text(json.dumps(about), encoding="utf-8")
        return self

    def __exit__(self, *exception: object) -> None:
        """End the worker and remove its files."""
        self._ending.__exit__(None, None, None)
        self._end()

    def _end(self) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, candidate: Candidate, *, repeats: int = 3, index: Sequence[Any] | None = None) -> Outcome:
        """Try one candidate.

        Parameters
        ----------
        candidate
            What to try.
        repeats
            How often to measure speeds; the best counts. One is enough where half a second is over.
        index
            Integers and slices of the part of the result to bring back.
        """
        path = Path(self._folder.name) / "slice.npy"
        path.unlink(missing_ok=True)
        job = {
            "settings": candidate.settings,
            "absolute": candidate.absolute,
            "pointwise": candidate.pointwise,
            "repeats": repeats,
            "seconds": 0.5,
            "slice": None if index is None else {"path": str(path), "index": [_plain(item) for item in index]},
        }
        answer = self._ask(json.dumps(job))
        if "problem" in answer:
            return Outcome(candidate, answer["problem"])
        values = self.sample.values
        return Outcome(
            candidate,
            ratio=values.nbytes / answer["stored"] if answer["stored"] else math.inf,
            bits_per_value=8 * answer["stored"] / values.size,
            write_speed=values.nbytes / 1e6 / answer["write_seconds"],
            read_speed=values.nbytes / 1e6 / answer["read_seconds"],
            max_error=math.nan if answer["max_error"] is None else answer["max_error"],
            psnr=answer["psnr"] if answer["psnr"] is not None else (math.nan if answer["max_error"] else math.inf),
            bound_kept=answer["bound_kept"],
            specials_kept=answer["specials_kept"],
            raw_chunks=answer["raw_chunks"],
            sample_bytes=values.nbytes,
            slice=np.load(path) if index is not None else None,
        )

    def _ask(self, job: str) -> dict[str, Any]:
        process = self._process if self._process is not None else self._start()
        stdin = process.stdin
        assert stdin is not None
        try:
            stdin.write(job + "\n")
            stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except Empty:
            self._stop()
            return {"problem": f"took more than {self.timeout:.0f} s"}
        except OSError:
            line = ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        status = process.wait()
        self._stop()
        return {"problem": f"crashed: {_how_it_ended(status)}"}

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pyfilter.compare.worker", self._folder.name]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self._environment,
        )  # fmt: skip
        self._answers = Queue()
        threading.Thread(target=_listen, args=(process, self._answers), daemon=True).start()
        self._process = process
        return process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for channel in (process.stdin, process.stdout):
            if channel is not None:
                with contextlib.suppress(OSError):  # outcomes that were not delivered
                    channel.close()


def compare(
    sample: Sample,
    candidates: Sequence[Candidate],
    *,
    timeout: float = 30.0,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Outcome]:
    """Try every candidate on a sample, in a process of its own that may crash.

    Parameters
    ----------
    sample : Sample
        What to compress.
    candidates : sequence of Candidate
        With what.
    timeout : float
        Seconds for one of them.
    threads : int, optional
        For our filter; others have one thread.
    progress : callable, optional
        Called with the name of each candidate when it is done.

    Returns
    -------
    list of Outcome
        In the order of the candidates.
    """
    found = []
    with Bench(sample, timeout, threads) as bench:
        for candidate in candidates:
            found.append(bench.run(candidate))
            if progress is not None:
                progress(candidate.name)
    return found


def _listen(process: subprocess.Popen[str], answers: Queue[str]) -> None:
    """Pass lines on; an empty one says that the process has ended."""
    assert process.stdout is not None
    try:
        for line in process.stdout:
            answers.put(line)
    except ValueError:  # closed meanwhile
        pass
    answers.put("")


def _environment(threads: int | None) -> dict[str, str]:
    environment = {**os.environ, "BLOSC_NTHREADS": "1", "OMP_NUM_THREADS": "1"}
    package = str(Path(pyfilter.__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), package]))
    if threads is not None:
        environment["PYFILTER_NUM_THREADS"] = str(threads)
    return environment


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"its process ended with status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _plain(item: Any) -> Any:
    return [item.start, item.stop, item.step] if isinstance(item, slice) else int(item)
