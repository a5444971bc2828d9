# SPDX-License-Identifier: Apache-2.0
"""The actor that makes batches for a trainer.

Ray starts it, restarts it, and finds a node for it. The batches themselves go
through a socket of its own, from the memory of one loader to that of the other,
because Ray's object store would copy them four times.
"""
from __future__ import annotations

import hmac
import logging
import os
import socket
import threading
from typing import Any

import ray

from .._loader import Loader as _Loader

_log = logging.getLogger("betonfs")

KEY_SIZE = 32
# Seconds in which the other side must send the key.
_PATIENCE = 10.0


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive `size` bytes, or less at the end of the stream."""
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            break
        parts += part
    return parts


def tune(connection: socket.socket) -> None:
    """Notice within seconds that the other machine has gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


class MakerLoader(_Loader):
    """The loader of a maker. Only its link uses its batches."""

    _role = 1

    def serve(self, connection: socket.socket) -> None:
        """Make batches until the trainer closes the connection."""
        try:
            self._core.serve(connection)
        finally:
            if self._core.has_messages:
                self._core.tell()


class Maker:
    """An actor. It opens the dataset with the arguments of a Loader, and serves
    the trainer that has its key."""

    def __init__(self, arguments: dict[str, Any], key: bytes) -> None:
        self._key = key
        self._loader = MakerLoader(**arguments)
        self._busy = threading.Lock()
        self._server = socket.create_server((ray.util.get_node_ip_address(), 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self) -> tuple[str, int, int]:
        """The address and port of the socket, and the process ID."""
        host, port = self._server.getsockname()[:2]
        return str(host), int(port), os.getpid()

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._greet, args=(connection,),
                             daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        """Serve a trainer. Close the connection of any other program."""
        with connection:
            try:
                connection.settimeout(_PATIENCE)
                key = receive(connection, KEY_SIZE)
                if not hmac.compare_digest(key, self._key):
                    return
                connection.settimeout(None)
                tune(connection)
                with self._busy:
                    self._loader.serve(connection)
            except OSError as e:
                _log.warning("the link to the trainer failed: %s", e)
