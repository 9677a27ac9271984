# SPDX-License-Identifier: BSD-3-Clause
"""Help pages and usage errors of the command, and what it imports."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from pyfilter.cli import app
from pyfilter.registry import registry

from .support import clean_environment, run_script
from .test_cli import in_a_shell

COMMANDS = ("compress", "recommend", "inspect", "verify", "check", "compare", "retrieve", "args", "doctor")
#: what the command's dependencies (numpy, h5py, click, rich) bring with them
PACKAGES = {"numpy", "h5py", "click", "rich", "pygments", "markdown_it", "mdurl", "typing_extensions"}


def test_the_page_of_all_commands() -> None:
    page = in_a_shell("--help")
    assert page.returncode == 0
    assert "Usage: python -m pyfilter [OPTIONS] COMMAND [ARGS]..." in page.stdout
    assert [line.split()[1] for line in page.stdout.splitlines() if line.startswith("│")] == [
        "--version", "--help", *COMMANDS,
    ]  # fmt: skip
    assert "--help" in page.stdout
    assert page.stderr == ""


def test_without_a_command_the_page_is_shown_with_status_2() -> None:
    page = in_a_shell()
    assert page.returncode == 2
    assert page.stdout == in_a_shell("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_tells_of_every_argument_and_option(name: str) -> None:
    command = app.commands[name]
    page = in_a_shell(name, "--help")
    assert page.returncode == 0
    assert page.stderr == ""
    lines = page.stdout.splitlines()
    assert "\x1b" not in page.stdout
    for parameter in command.params:
        shown = str(parameter.metavar) if parameter.param_type_name == "argument" else max(parameter.opts, key=len)
        line = next(line for line in lines if line.startswith("│") and shown.split()[0] in line.split()[1:4])
        assert len(line.strip("│ ").partition("  ")[2]) > 5, line  # there is a text
    for line in (command.help or "").splitlines():
        assert " ".join(line.split()) in " ".join(" ".join(lines).split())


def test_a_default_is_shown() -> None:
    assert "[default: 30; x>=1]" in in_a_shell("compare", "--help").stdout
    assert "[default: history]" in in_a_shell("compress", "--help").stdout
    assert "default" not in in_a_shell("check", "--help").stdout


def test_every_codec_parameter_has_an_option() -> None:
    page = in_a_shell("compress", "--help").stdout
    for spec in registry().codecs.values():
        for parameter in spec.parameters:
            assert f"--{parameter.name.replace('_', '-')} VALUE" in page


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nosuch"], "No such command 'nosuch'."),
        (["compress"], "Missing argument 'IN... OUT'."),
        (["inspect", "no.h5"], "Invalid value for 'FILE': File 'no.h5' does not exist."),
        (["check", "/"], "Invalid value for 'FILE...': File '/' is a directory."),
        (["args", "--absolute", "x"], "Invalid value for '--absolute': 'x' is not a valid float."),
        (["compare", "a", "--threads", "0"], "Invalid value for '--threads': 0 is not in the range x>=1."),
        (["args", "--absolut", "1"], "Did you mean"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_wrong_call_is_told_and_has_status_2(words: list[str], text: str) -> None:
    done = in_a_shell(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert text in done.stderr
    assert done.stderr.startswith("Usage: python -m pyfilter")
    assert "--help' for help." in done.stderr
    assert "Traceback" not in done.stderr


def test_pages_have_colours_in_a_terminal() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pyfilter", "check", "--help"]
    env = {key: value for key, value in clean_environment(TERM="xterm-256color").items() if key != "NO_COLOR"}
    done = subprocess.run(command, stdout=theirs, env=env, check=True, timeout=60)
    os.close(theirs)
    page = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "\x1b[" in page
    assert "FILE..." in page


def test_the_command_needs_four_packages() -> None:
    script = f"""
import sys, pathlib, pyfilter.cli
site = [p for p in sys.path if p.endswith("site-packages")]
def foreign(module):
    file = getattr(module, "__file__", None)
    return file is not None and any(file.startswith(folder) for folder in site)
found = {{name.partition(".")[0] for name, module in list(sys.modules.items()) if foreign(module)}}
print(sorted(found - {PACKAGES!r} - {{"pyfilter"}}))
"""
    names = [name for name in run_script(script).stdout.strip()[1:-1].split(", ") if name]
    # what .pth files of the environment import is none of ours
    plain = run_script("import sys\nprint(sorted({name.partition('.')[0] for name in sys.modules}))").stdout
    assert [name for name in names if name not in plain] == []
