# SPDX-License-Identifier: BSD-3-Clause
"""The command's entry: its subcommands, and how errors reach the shell.

Exit status: 0 all is well, 1 a check failed (a bound, a finding), 2 the command could not do what was asked, 128 + n
it was ended by signal n (docs/commands.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from pyfilter._hooks import signals
from pyfilter.cli import args, check, compare, compress, doctor, inspect, progress, retrieve, verify
from pyfilter.errors import PyfilterError
from pyfilter.registry import registry

app = typer.Typer(
    name="pyfilter",
    help="Error-bounded compression of floating-point data in HDF5 and netCDF-4 files.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pyfilter {registry().version}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say which release this is.")
    ] = False,
) -> None:
    pass


app.command("compress")(compress.compress)
app.command("inspect")(inspect.inspect)
app.command("verify")(verify.verify)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("retrieve")(retrieve.retrieve)
app.command("args")(args.args)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run the command line and turn errors into a line on stderr and exit status 2."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):  # not in the main thread
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, _leave)
    try:
        app()
    except (PyfilterError, OSError) as error:
        Console(stderr=True).print(f"[bold red]pyfilter:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)


def _leave(number: int, frame: object) -> None:
    """End by the signal, as a shell reports it (128 + number), after what is temporary has been removed."""
    signals.run()
    progress.show_cursor()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
