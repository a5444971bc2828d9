# SPDX-License-Identifier: Apache-2.0
"""Answers the requests of mkfs.beton, which has started this process with a
socket as descriptor 3: process.h lists them."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
import warnings
from typing import Any

import numpy as np

from ._block import Bytes, Pixels, block, shared
from ._kinds import opened
from ._source import Column, Mistake, Options, Source, picture, shortened

_SOCKET = 3
_REQUEST_MAX = 1 << 20
_ERROR_MAX = 4000


def _be_silent() -> None:
    """Messages of libraries would stand between those of mkfs.beton."""
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)


class _Server:
    def __init__(self, lane: socket.socket) -> None:
        self.lane = lane
        self.owner = os.getpid()
        self.source: Source | None = None
        self.columns: list[Column] = []

    def _answer(self, answer: dict[str, Any], fds: list[int]) -> None:
        text = json.dumps(answer).encode()
        try:
            socket.send_fds(self.lane, [text], fds)
        finally:
            for fd in fds:
                os.close(fd)

    def _describe(self, what: dict[str, Any]) -> None:
        self._answer({}, [shared([json.dumps(what).encode()])])

    def open(self, request: dict[str, Any]) -> None:
        if not request["verbose"]:
            _be_silent()
        options = Options(**{key: request[key] for key in (
            "pictures", "split", "mode", "quality", "max_resolution")})
        source = opened(sys.argv[1:], options)
        self.source, self.columns = source, list(source.columns)
        self._describe(source.described())

    def cast(self, request: dict[str, Any]) -> None:
        assert self.source is not None
        column = self.source.cast(self.columns[request["cast"]],
                                  request["type"])
        self.columns.append(column)
        self._describe(column.described(len(self.columns) - 1))

    def lanes(self, request: dict[str, Any]) -> None:
        """Fork processes with a connection each. They share the memory of the
        source, as the processes of torch's DataLoader do."""
        ends: list[int] = []
        for _ in range(request["lanes"]):
            ours, theirs = socket.socketpair(socket.AF_UNIX,
                                             socket.SOCK_SEQPACKET)
            if not os.fork():
                self.lane.close()
                ours.close()
                self.lane = theirs
                for end in ends:
                    os.close(end)
                return
            theirs.close()
            ends.append(ours.detach())
        self._answer({"lanes": len(ends)}, ends)

    def read(self, request: dict[str, Any]) -> None:
        columns = [self.columns[i] for i in request["columns"]]
        rows = request["ids"] or range(request["first"],
                                       request["first"] + request["rows"])
        assert self.source is not None
        found, errors = self.source.read(columns, rows)
        self._answer({}, [block(found, len(rows), errors)])

    def picture(self, fd: int) -> None:
        _be_silent()
        with open(fd, "rb") as file:
            data, size = picture(file)
        column = Pixels(Bytes.of([data]), np.array([size]))
        self._answer({}, [block([column], 1, {})])

    def serve(self, request: dict[str, Any], fds: list[int]) -> None:
        if "picture" in request:
            self.picture(fds[0])
            return
        for name in "open", "cast", "lanes":
            if name in request:
                getattr(self, name)(request)
                return
        self.read(request)


def _explained(e: Exception) -> str:
    if isinstance(e, Mistake):
        return str(e)
    traceback.print_exc()
    return f"{type(e).__name__}: {shortened(str(e))}"


def main() -> None:
    """Serve until the other side closes the connection."""
    # Interrupts are the other side's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    server = _Server(socket.socket(fileno=_SOCKET))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while True:
            data, fds, _, _ = socket.recv_fds(server.lane, _REQUEST_MAX, 1)
            if not data:
                break
            try:
                server.serve(json.loads(data), fds)
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as e:
                server.lane.send(json.dumps(
                    {"error": _explained(e)[:_ERROR_MAX]}).encode())
    if server.source is not None and server.owner == os.getpid():
        server.source.close()
    sys.stderr.flush()
    # Threads of libraries may still wait.
    os._exit(0)


if __name__ == "__main__":
    main()
