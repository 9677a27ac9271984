# SPDX-License-Identifier: BSD-3-Clause
"""Faults, each a function of a folder and a seed that makes it happen, asserts what must hold and says what came of it.

A few seeds are run by test_faults.py, many by `python -m faults.run` (run.py), which fills the table of
docs/reliability.md.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from python.support import clean_environment

import pyfilter

from .children import BOUND, CODECS, SHAPE, check_steps, create, step_of

CHILD = Path(__file__).with_name("children.py")
TIMEOUT = int(os.environ.get("PYFILTER_FAULT_SECONDS", "120"))  # more where programs are emulated
Scenario = Callable[[Path, int], str]
SCENARIOS: dict[str, Scenario] = {}
#: Codecs that seeds choose in turn.
CHOICE = list(CODECS)


def scenario(title: str) -> Callable[[Scenario], Scenario]:
    """Note a scenario under the name that the table shows."""

    def note(function: Scenario) -> Scenario:
        SCENARIOS[title] = function
        return function

    return note


def child(*words: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(CHILD), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment(), **options)


def command(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`pyfilter ...`"""
    full = [sys.executable, "-m", "pyfilter", *map(str, words)]
    return subprocess.run(
        full, capture_output=True, text=True, env=clean_environment(), timeout=TIMEOUT, check=False, **options
    )


def pick_codec(seed: int) -> str:
    return CHOICE[seed % len(CHOICE)]


def text_of_failure(attempt: Callable[[], object]) -> str:
    """The text of the error that an attempt gives; empty where it gives none."""
    try:
        attempt()
    except (OSError, KeyError, TypeError, RuntimeError, ValueError, pyfilter.errors.PyfilterError) as error:
        return str(error) or f"an {type(error).__name__} without a text"
    return ""


def written_file(folder: Path, seed: int, steps: int = 6, **more: Any) -> Path:
    """A finished file of some steps."""
    path = folder / "a.h5"
    keywords = {"chunks": (1, *SHAPE), **CODECS[pick_codec(seed)], **more}
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.stack([step_of(n) for n in range(steps)]), **keywords)
    return path


def killed_writer(path: Path, seed: int, how: str) -> int:
    """Let a process write steps and kill it at a random moment; return how many it had flushed."""
    draw = random.Random(seed)
    with child("write", path, pick_codec(seed), how, 100_000) as process:
        assert process.stdout is not None
        process.stdout.readline()
        threading.Timer(draw.uniform(0, 0.3), process.kill).start()
        lines = process.stdout.read().split()  # until it is dead
    assert process.returncode == -9, process.returncode
    return int(lines[-1]) if lines else 1


@scenario("kill -9 while h5py writes, file in SWMR mode, flushed after each step")
def kill_swmr_writer(folder: Path, seed: int) -> str:
    flushed = killed_writer(folder / "a.h5", seed, "swmr")
    with h5py.File(folder / "a.h5", "r", libver="latest", swmr=True) as file:
        assert file["x"].shape[0] >= flushed
        check_steps(file["x"], flushed)
    return "all that was flushed is read"


def of_ended_writer(path: Path, flushed: int) -> str:
    """What is read of a file that was open when its writer was ended: the flushed steps, or an error."""
    try:
        with h5py.File(path) as file:
            check_steps(file["x"], min(flushed, file["x"].shape[0]))
            assert file["x"].shape[0] >= flushed
    except (OSError, KeyError, RuntimeError):
        return "HDF5 refuses the file or a chunk with an error"
    return "all that was flushed is read"


@scenario("kill -9 while h5py writes, file in no special mode")
def kill_plain_writer(folder: Path, seed: int) -> str:
    """HDF5 promises nothing here once something is written after a flush; but values are right or there are none."""
    flushed = killed_writer(folder / "a.h5", seed, "plain")
    return of_ended_writer(folder / "a.h5", flushed)


@scenario("kill -9 while `pyfilter compress` writes over an older result")
def kill_compress(folder: Path, seed: int) -> str:
    source, target = folder / "in.h5", folder / "out.h5"
    with h5py.File(source, "w") as file:
        for number in range(4):
            file[f"v{number}"] = np.stack([step_of(n + number) for n in range(80)])
    target.write_bytes(b"older result")
    words = [sys.executable, "-m", "pyfilter", "compress", str(source), str(target), "--absolute", str(BOUND)]
    process = subprocess.Popen(words, env=clean_environment(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not list(folder.glob(".out.h5.*/result")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(random.Random(seed).uniform(0, 0.25))
    process.kill()
    process.wait(TIMEOUT)
    if target.read_bytes() == b"older result":
        return "the older result is there, whole"
    with h5py.File(target) as file:
        for number in range(4):
            check_steps(file[f"v{number}"], 0 if number else 80)
    return "the new result is there, whole"


def filled(folder: Path, seed: int, size: int) -> str:
    with child("fill_disk", folder / "a.h5", pick_codec(seed), size) as process:
        said = process.communicate(timeout=TIMEOUT)[0].splitlines()
    assert process.returncode == 0, process.returncode
    assert said[-1].startswith("error: "), said[-1:]
    flushed = int(said[-2])
    with h5py.File(folder / "a.h5", "r", libver="latest", swmr=True) as file:
        check_steps(file["x"], flushed)
    return "an error that names the cause; all that was flushed is read"


@scenario("file may not grow (RLIMIT_FSIZE) while h5py writes")
def file_size_limit(folder: Path, seed: int) -> str:
    return filled(folder, seed, random.Random(seed).randrange(40_000, 200_000))


@scenario("disk full (a tmpfs of 256 KiB) while h5py writes")
def full_tmpfs(folder: Path, seed: int) -> str:
    mounted = folder / "disk"
    mounted.mkdir()
    how = ["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(mounted)]
    if shutil.which("mount") is None or subprocess.run(how, capture_output=True, check=False).returncode != 0:
        return "not run: it needs to mount"
    try:
        return filled(mounted, seed, 0)
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


@scenario("file may not grow while `pyfilter compress` writes")
def compress_on_full_disk(folder: Path, seed: int) -> str:
    source, target = folder / "in.h5", folder / "out.h5"
    with h5py.File(source, "w") as file:
        file["v"] = np.random.default_rng(seed).normal(size=(100, *SHAPE)).astype("f4")
    target.write_bytes(b"older result")
    limit = random.Random(seed).randrange(1000, 400_000)
    code = (
        "import sys; from faults.children import limit_files; limit_files(int(sys.argv.pop(1)));"
        "from pyfilter.cli import main; main()"
    )
    words = [sys.executable, "-c", code, str(limit), "compress", str(source), str(target), "--absolute", "1e-6"]
    env = clean_environment()
    env["PYTHONPATH"] = f"{CHILD.parents[1]}{os.pathsep}{env['PYTHONPATH']}"
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=TIMEOUT, check=False)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "File too large" in done.stderr or "truncated" in done.stderr or "write" in done.stderr, done.stderr
    assert target.read_bytes() == b"older result"
    assert sorted(path.name for path in folder.iterdir()) == ["in.h5", "out.h5"]
    return "exit status 2, one line says why; the older result is there"


@scenario("output folder without permission to write")
def read_only_folder(folder: Path, seed: int) -> str:
    source, closed = written_file(folder, seed), folder / "closed"
    closed.mkdir(mode=0o555)

    def without_override() -> None:  # root may write anywhere, unless it gives this up
        import ctypes

        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE

    done = command("compress", source, closed / "out.h5", "--absolute", "1", preexec_fn=without_override)
    closed.chmod(0o755)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "ermission denied" in done.stderr, done.stderr
    assert list(closed.iterdir()) == []
    return "exit status 2, one line says why"


@scenario("dataset of a file that is open for reading is written to")
def write_to_read_only(folder: Path, seed: int) -> str:
    with h5py.File(written_file(folder, seed)) as file:
        assert text_of_failure(lambda: pyfilter.write(file["x"], np.zeros((6, *SHAPE), "f4")))
        assert text_of_failure(lambda: file["x"].write_direct(np.zeros((6, *SHAPE), "f4")))
        check_steps(file["x"], 6)
    return "an error; nothing changed"


@scenario("file cut short")
def truncated_file(folder: Path, seed: int) -> str:
    path = written_file(folder, seed)
    data = path.read_bytes()
    path.write_bytes(data[: random.Random(seed).randrange(len(data))])

    def read() -> None:
        with h5py.File(path) as file:
            check_steps(file["x"], 6)

    if not text_of_failure(read):
        return "all values are read"
    assert text_of_failure(lambda: pyfilter.check(path)) or pyfilter.check(path)
    return "an error says so"


def flipped(folder: Path, seed: int, **more: Any) -> tuple[Path, NDArray[Any]]:
    """A file with one to three bits of a chunk flipped, and what was in the dataset before."""
    path, draw = written_file(folder, seed, **more), random.Random(seed)
    with h5py.File(path) as file:
        before = file["x"][...]
        info = file["x"].id.get_chunk_info(draw.randrange(6))
    with path.open("r+b") as raw:
        for _ in range(draw.randrange(1, 4)):
            at = info.byte_offset + draw.randrange(info.size)
            raw.seek(at)
            byte = raw.read(1)[0]
            raw.seek(at)
            raw.write(bytes([byte ^ 1 << draw.randrange(8)]))
    return path, before


@scenario("bits flipped in a chunk, fletcher32 on the dataset")
def flips_with_checksum(folder: Path, seed: int) -> str:
    path, _ = flipped(folder, seed, fletcher32=True)
    with h5py.File(path) as file:
        assert text_of_failure(lambda: file["x"][...])
        assert text_of_failure(lambda: pyfilter.read(file["x"]))
    return "an error"


@scenario("bits flipped in a chunk, no checksum")
def flips_without_checksum(folder: Path, seed: int) -> str:
    path, before = flipped(folder, seed)
    with h5py.File(path) as file:
        if text_of_failure(lambda: file["x"][...]):
            assert text_of_failure(lambda: pyfilter.read(file["x"])), "HDF5 refuses the chunk, pyfilter.read does not"
            return "an error"
        after = file["x"][...]
        assert after.shape == before.shape
        assert np.array_equal(pyfilter.read(file["x"]), after, equal_nan=True)
        return "other values in that chunk" if (after != before).any() else "the same values"


@scenario("three processes read one file")
def several_readers(folder: Path, seed: int) -> str:
    path = written_file(folder, seed)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(child("read_all", path, 6, 5)) for _ in range(3)]
        assert [reader.communicate(timeout=TIMEOUT)[0] for reader in readers] == ["read\n"] * 3
    return "all values are read"


@scenario("a reader beside a writer (SWMR)")
def reader_beside_writer(folder: Path, seed: int) -> str:
    path = folder / "a.h5"
    with create(str(path), pick_codec(seed), swmr=True) as file, child("read_beside", path) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        for number in range(41):
            file["x"].resize(number + 1, axis=0)
            file["x"][number] = step_of(number)
            file.flush()
        looks = int(reader.communicate(timeout=TIMEOUT)[0])
    assert reader.returncode == 0
    assert looks > 0
    return "every step that it sees keeps its bound"


@scenario("eight threads encode and decode at once")
def many_threads(folder: Path, seed: int) -> str:
    values = np.stack([step_of(n + seed) for n in range(20)])
    expected = {name: pyfilter.encode(values, codec) for name, codec in CODECS.items()}
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(6):
                frame = pyfilter.encode(values, CODECS[name])
                assert frame == expected[name]
                assert np.abs(pyfilter.decode(frame) - values).max() <= BOUND
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in [*CODECS, *CODECS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return "the same bytes and values as alone"


@scenario("fork while other threads encode")
def fork_beside_threads(folder: Path, seed: int) -> str:
    with child("fork_beside_threads", seed, 3) as process:
        said = process.communicate(timeout=TIMEOUT)[0]
    assert process.returncode == 0
    expected = pyfilter.encode(np.stack([step_of(n + seed) for n in range(20)]), CODECS["lorenzo"])
    assert bytes.fromhex(said) == expected
    return "the children encode the same bytes"
