# SPDX-License-Identifier: BSD-3-Clause
"""Removes temporary folders and ends child processes when a signal ends this process.

A signal's handler that raised an exception would raise it anywhere, also where h5py cannot have one (in the release of
its lock). So the command's handler (cli/main.py) runs these actions and then lets the signal end the process.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_actions: dict[int, Callable[[], object]] = {}


@contextmanager
def on_end(action: Callable[[], object]) -> Iterator[None]:
    """Have an action run by `run` while the block lasts; it is not run at the block's own end."""
    key = id(action)
    _actions[key] = action
    try:
        yield
    finally:
        _actions.pop(key, None)


def run() -> None:
    """Run every action, whatever the others do."""
    for action in list(_actions.values()):
        with contextlib.suppress(Exception):
            action()
