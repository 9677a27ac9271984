# SPDX-License-Identifier: BSD-3-Clause
"""The process that tries filters on a sample: ``python -m pyfilter.compare.worker FOLDER``, jobs on its stdin.

Filters of others may crash, hang, or end the process with status 0; run.py sees that and starts another one. A job
and its answer are lines of JSON. Output that filters print goes to stderr.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes
from pyfilter._chunks import stored
from pyfilter.verification import Comparison

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_STEP = 1 << 20  # values that are compared at a time


class Worker:
    """Compresses one sample in as many ways as it is asked to.

    Parameters
    ----------
    folder
        Holds ``sample.npy``, ``specials.npy`` and ``sample.json`` (see run.py).
    """

    def __init__(self, folder: Path) -> None:
        self.values: NDArray[Any] = np.load(folder / "sample.npy")
        self.specials: NDArray[Any] = np.load(folder / "specials.npy")
        about = json.loads((folder / "sample.json").read_text(encoding="utf-8"))
        self.chunk = tuple(about["chunk"])
        self.fill = self.specials[0] if about["has_fill"] else None

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return what one candidate made of the sample; ``problem`` says why there is nothing else."""
        try:
            return self._measure(job)
        except Exception as error:  # a refusal by h5py, HDF5 or the filter: the text is the outcome
            return {"problem": f"refused: {_last_words(error)}"}

    def _measure(self, job: dict[str, Any]) -> dict[str, Any]:
        keywords = _keywords(job["settings"])
        out = np.empty_like(self.values)
        writing = reading = math.inf
        stored = raw = 0
        started = time.perf_counter()
        for _ in range(job["repeats"]):
            with _file() as file:
                dataset = file.create_dataset(
                    "x", self.values.shape, self.values.dtype, chunks=self.chunk, fillvalue=self.fill, **keywords
                )
                writing = min(writing, _seconds(_write, dataset, self.values))
                out.fill(0)  # its pages are there, and nothing of an earlier turn is left
                reading = min(reading, _seconds(dataset.read_direct, out))
                stored = int(dataset.id.get_storage_size())
                raw = _raw_chunks(dataset)
            if time.perf_counter() - started > job["seconds"]:
                break
        found = self._judge(out, job)
        if job["slice"] is not None:
            np.save(job["slice"]["path"], out[tuple(_index(item) for item in job["slice"]["index"])])
        return {"stored": stored, "write_seconds": writing, "read_seconds": reading, "raw_chunks": raw, **found}

    def _judge(self, out: NDArray[Any], job: dict[str, Any]) -> dict[str, Any]:
        """Return the findings of an exact comparison, and whether all ordinary values keep the bound."""
        kind, bound, pointwise = self.values.dtype, job["absolute"], job["pointwise"]
        judge = Comparison(kind, bound, list(self.specials), self.fill, pointwise)
        ordinary = Comparison(kind, bound, pointwise=pointwise)
        x, y = self.values.reshape(-1), out.reshape(-1)
        bits = dtypes.bits_dtype(kind)
        for start in range(0, x.size, _STEP):
            a, b = x[start : start + _STEP], y[start : start + _STEP]
            judge.add(a, b, start)
            chosen = np.isfinite(a)
            for special in self.specials:
                chosen &= a.view(bits) != special.view(bits)
            ordinary.add(a[chosen], b[chosen])
        return {**asdict(judge.result()), "bound_kept": ordinary.result().ok}


def _keywords(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of create_dataset for a candidate's settings."""
    if "plugin" in settings:
        import hdf5plugin

        return dict(getattr(hdf5plugin, settings["plugin"])(**settings["arguments"]))
    keywords = dict(settings)
    if "compression_opts" in keywords:
        keywords["compression_opts"] = tuple(keywords["compression_opts"])
    return keywords


def _file() -> h5py.File:
    """Return a file in memory, without a cache that chunks could be read from as they were written."""
    return h5py.File("compare.h5", "w", driver="core", backing_store=False, block_size=64 << 20, rdcc_nbytes=0)


def _write(dataset: h5py.Dataset, values: NDArray[Any]) -> None:
    dataset[...] = values
    dataset.flush()


def _seconds(action: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def _raw_chunks(dataset: h5py.Dataset) -> int:
    """Return how many chunks HDF5 stored without the filter, which it does in silence where a filter fails."""
    return int(np.count_nonzero(stored.listed(dataset).masks))


def _index(item: list[int | None] | int) -> Any:
    return item if isinstance(item, int) else slice(*item)


def _last_words(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."


def main(folder: str) -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a filter prints is no answer
    worker = Worker(Path(folder))
    for line in sys.stdin:
        answer = worker.run(json.loads(line))
        answers.write(json.dumps({key: _number(value) for key, value in answer.items()}) + "\n")
        answers.flush()


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":  # the import of the package has registered our filter
    main(sys.argv[1])
