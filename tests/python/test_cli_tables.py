# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the command: one line a row and names whole, in pipes and in a terminal of 80 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import h5py
import pytest

from pyfilter import HierarchicalDelta
from pyfilter.cli import tables
from pyfilter.cli.tables import Column

from .support import clean_environment, field

LONG = "/ocean/monthly_means/potential_temperature_of_the_sea"
NAMES = [LONG, "/ocean/monthly_means/salinity", "/t"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(paths[0], "w") as before, h5py.File(paths[1], "w") as after:
        for name in NAMES:
            before[name] = field((50, 60))
            codec = HierarchicalDelta(absolute=1e-3, predictor="lorenzo2d")
            after.create_dataset(name, data=field((50, 60)), chunks=(50, 60), **codec)
        before["text"] = after["text"] = ["a", "b"]
    return paths


def piped(*arguments: object, columns: str = "80") -> list[str]:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pyfilter", *map(str, arguments)],
        env=clean_environment(COLUMNS=columns), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def in_a_terminal(*arguments: object, columns: int = 80) -> list[str]:
    """Run the command in a terminal of its own and return the lines that it prints, without colours."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {key: value for key, value in clean_environment(TERM="xterm").items() if key not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "pyfilter", *map(str, arguments)],
        env=env, stdin=follower, stdout=follower, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(follower)
    printed = b""
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        printed += part
    os.close(leader)
    assert process.wait(120) == 0, printed
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed.decode()).replace("\r", "").splitlines()


def arguments_of(command: str, before: Path, after: Path) -> list[str | Path]:
    """Return what makes a command show a table of the files."""
    if command == "inspect":
        return [after]
    if command == "verify":
        return [before, after]
    return [before, before.with_name("c.h5"), "--absolute", "1e-3", "--codec", "hierarchical_delta"]


@pytest.mark.parametrize("command", ["inspect", "verify", "compress"])
@pytest.mark.parametrize("columns", ["20", "80"])
def test_in_a_pipe_each_row_is_one_whole_line(files: tuple[Path, Path], command: str, columns: str) -> None:
    arguments = arguments_of(command, *files)
    lines = piped(command, *arguments, columns=columns)
    for name in NAMES:
        (row,) = (line for line in lines if line.split()[0] == name)
        assert "HierarchicalDelta" in row
        assert len(row.split()) >= 6
        assert "…" not in row
    assert not any(line.startswith("left out") for line in lines)


@pytest.mark.parametrize("command", ["inspect", "verify", "compress"])
def test_in_80_columns_each_row_is_one_line_and_names_are_whole(files: tuple[Path, Path], command: str) -> None:
    arguments = arguments_of(command, *files)
    lines = in_a_terminal(command, *arguments)
    end = next(index for index, line in enumerate(lines) if line.startswith("left out, the terminal is narrow: "))
    table = lines[:end]
    assert max(map(len, table)) <= 80
    starts = [line.split()[0] for line in table]
    assert [name for name in starts if name in NAMES] == sorted(NAMES)
    assert len(table) == 1 + len(NAMES) + (command != "compress")  # the text is no row of compress


def test_each_chunk_of_a_dataset_is_one_line(files: tuple[Path, Path]) -> None:
    lines = in_a_terminal("inspect", "-v", files[1], columns=60)
    rows = [line for line in lines if line.startswith("0, 0 ")]
    assert len(rows) == len(NAMES)
    assert all(len(row) <= 60 and "hierarchical_delta" in row for row in rows)


def test_doctor_has_one_line_for_each_finding(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20)
    for lines in (piped("doctor"), in_a_terminal("doctor")):
        assert sum(line.startswith("library ") for line in lines) == 1
        assert sum(line.startswith("plugin path ") for line in lines) == 1
        assert all(re.match(r"[a-zA-Z0-9 ]+  +\S", line) and not line.startswith(" ") for line in lines)
        assert all(line == line.rstrip() for line in lines)
    folder.mkdir()
    library = Path(clean_environment()["PYFILTER_LIBRARY"])
    shutil.copy(library, folder)
    env = clean_environment(COLUMNS="80", PYFILTER_LIBRARY=str(folder / library.name))
    result = subprocess.run(
        [sys.executable, "-m", "pyfilter", "doctor"], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert ["library", str(folder / library.name)] in [line.split() for line in result.stdout.splitlines()]


def test_a_long_text_is_shortened_before_columns_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    columns = [Column("name"), Column("text", shorten=True, drop=2), Column("number", right=True, drop=1)]
    rows = [["/a", "x" * 50, "[red]1[/]"], ["/b", "y", "22"]]
    for width, names, longest in ((80, "name text number", 50), (40, "name text number", 26), (22, "name text", 16)):
        monkeypatch.setenv("COLUMNS", str(width))
        tables.show(columns, rows)
        lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
        assert lines[0].split() == names.split()
        assert len(lines[1]) <= width
        assert len(lines[1].split()[1]) == longest
        assert ("left out" in lines[-1]) is (len(names.split()) < 3)
