# SPDX-License-Identifier: BSD-3-Clause
"""A web server of one file, which answers ranges of bytes and writes down which."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Ranges = list[tuple[int, int]]


class Handler(BaseHTTPRequestHandler):
    """Serves the bytes of a file."""

    def __init__(self, data: bytes, sent: Ranges, *arguments: Any) -> None:
        self.data, self.sent = data, sent
        super().__init__(*arguments)

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.data)))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()

    def do_GET(self) -> None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start, stop = int(first), int(last) + 1 if last else len(self.data)
        part = self.data[start:stop]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(self.data)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.sent.append((start, len(part)))  # before the client has it and looks
        self.wfile.write(part)


@contextmanager
def serving(path: Path, name: str) -> Iterator[tuple[str, Ranges]]:
    """Serve a file under a name: its URL, and the offsets and sizes of the ranges that were sent."""
    sent: Ranges = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, path.read_bytes(), sent))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{name}", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
