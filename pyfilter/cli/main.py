# SPDX-License-Identifier: BSD-3-Clause
"""The command's entry: its subcommands, and how errors reach the shell.

Exit status: 0 all is well; 1 a check failed (a bound, a finding); 2 the command could not do what was asked. 128 + n
means that signal n ended it (docs/commands.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import click
from rich.console import Console
from rich.markup import escape

from pyfilter._hooks import signals
from pyfilter.cli import help, progress
from pyfilter.cli.args import args
from pyfilter.cli.check import check
from pyfilter.cli.compare import compare
from pyfilter.cli.compress import compress
from pyfilter.cli.doctor import doctor
from pyfilter.cli.inspect import inspect
from pyfilter.cli.recommend import command as recommend
from pyfilter.cli.retrieve import retrieve
from pyfilter.cli.verify import verify
from pyfilter.errors import PyfilterError
from pyfilter.registry import registry


@click.group(
    "pyfilter",
    cls=help.Group,
    help="Error-bounded compression of floating-point data in HDF5 and netCDF-4 files.",
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.version_option(
    registry().version, prog_name="pyfilter", message="%(prog)s %(version)s", help="Show the release and exit."
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Print the help page where no command is named."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(2)


for _command in (compress, recommend, inspect, verify, check, compare, retrieve, args, doctor):
    app.add_command(_command)


def main() -> None:
    """Run the command line and turn errors into a line on stderr and exit status 2."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):  # not in the main thread
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, _leave)
    try:
        sys.exit(app.main(standalone_mode=False))
    except click.ClickException as error:
        help.show_error(error)
        sys.exit(error.exit_code)
    except (PyfilterError, OSError) as error:
        Console(stderr=True).print(f"[bold red]pyfilter:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)


def _leave(number: int, frame: object) -> None:
    """End by the signal, as a shell reports it (128 + number), once temporary files are removed."""
    signals.run()
    progress.show_cursor()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
