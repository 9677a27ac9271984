# SPDX-License-Identifier: BSD-3-Clause
"""Help pages and usage errors of the command line: click's words, laid out by rich."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


class Argument(click.Argument):
    """A click argument with a help text, also under click 8.1, whose arguments have none."""

    def __init__(self, *args: Any, help: str = "", **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.text = help


class Command(click.Command):
    """A click command whose help page has a panel for its arguments and one for its options."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page, with colours where stdout is a terminal."""
        console = Console()
        with console.capture() as captured:
            _print_page(console, self, ctx)
        return captured.get().rstrip("\n")


class Group(click.Group):
    """A click group whose help page has a panel for its options and one for its commands."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page, with colours where stdout is a terminal."""
        console = Console()
        with console.capture() as captured:
            _print_page(console, self, ctx)
            names = self.list_commands(ctx)
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, _paragraphs(command)[0]) for name, command in commands if command is not None]
            _print_panel(console, "Commands", rows)
        return captured.get().rstrip("\n")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which they were added."""
        return list(self.commands)


def argument(name: str, *, help: str, **attrs: Any) -> Callable[[_Function], _Function]:
    """Return the decorator that gives a command an argument."""
    return click.argument(name, cls=Argument, help=help, **attrs)


def command(name: str) -> Callable[[Callable[..., None]], Command]:
    """Return the decorator that makes a command of a function; its docstring is the help text."""
    return click.command(name, cls=Command, context_settings={"show_default": True})


def show_error(error: click.ClickException) -> None:
    """Print an error of click on stderr: the command's usage, and the mistake in this call."""
    console = Console(stderr=True)
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is not None:
        console.print(_usage(ctx.command, ctx), soft_wrap=True)
        console.print(f"Try [blue]'{ctx.command_path} --help'[/] for help.", highlight=False, soft_wrap=True)
    panel = Panel(Text(error.format_message()), title="Error", title_align="left", border_style="red")
    console.print(panel, highlight=False)


def _usage(command: click.Command, ctx: click.Context) -> Text:
    pieces = " ".join(command.collect_usage_pieces(ctx))
    return Text.assemble(("Usage: ", "yellow"), (ctx.command_path, "bold"), f" {pieces}")


def _paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help text, a line each."""
    text = inspect.cleandoc(command.help or "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _print_page(console: Console, command: click.Command, ctx: click.Context) -> None:
    """Print a command's help page, without the commands of a group."""
    console.print()
    console.print(_usage(command, ctx))
    for number, paragraph in enumerate(_paragraphs(command)):
        console.print()
        console.print(Text(paragraph, style="dim" if number else ""))
    console.print()
    arguments = [item for item in command.get_params(ctx) if isinstance(item, Argument)]
    _print_panel(console, "Arguments", ((item.human_readable_name, item.text) for item in arguments))
    options = [item for item in command.get_params(ctx) if isinstance(item, click.Option)]
    _print_panel(console, "Options", filter(None, (item.get_help_record(ctx) for item in options)))


def _print_panel(console: Console, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Print rows of a name and its description in a frame; nothing where there are none."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column(ratio=1)
    for name, description in rows:
        table.add_row(Text(name), Text(description))
    if table.row_count:
        console.print(Panel(table, title=title, title_align="left", border_style="dim", box=box.ROUNDED))
