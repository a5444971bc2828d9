# SPDX-License-Identifier: Apache-2.0
"""The actor that makes batches for a trainer.

Ray starts it, restarts it, and finds a node for it. The batches themselves go
through a socket of its own, from the memory of one loader to that of the other,
because Ray's object store would copy them four times.
"""
from __future__ import annotations

import contextlib
import hmac
import logging
import os
import socket
import threading
import time
from typing import Any, NamedTuple

import ray

from .._loader import Loader as _Loader

_log = logging.getLogger("betonfs")

KEY_SIZE = 32
# Seconds in which the other side must send the key.
_PATIENCE = 10.0
# Connections at a time that have not sent it yet. Others wait.
_GUESTS_MAX = 256


def receive(connection: socket.socket, size: int, seconds: float) -> bytes:
    """Receive `size` bytes within some seconds, or less at the end of the
    stream. Raise TimeoutError, also if the bytes come one by one."""
    end = time.monotonic() + seconds
    parts = b""
    while len(parts) < size:
        connection.settimeout(max(0.001, end - time.monotonic()))
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


class Address(NamedTuple):
    """Where a maker is."""
    host: str
    port: int
    process: int
    why: str        # it cannot make batches; "" if it can

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


class Maker:
    """An actor. It opens the dataset with the arguments of a Loader, and serves
    the trainer that has its key."""

    def __init__(self, arguments: dict[str, Any], key: bytes) -> None:
        self._key = key
        self._why = ""
        self._server = socket.create_server((ray.util.get_node_ip_address(), 0))
        try:
            self._loader = MakerLoader(**arguments)
        except Exception as e:
            # If it were raised, Ray would print dozens of lines, again and again.
            self._why = str(e) or type(e).__name__
            return
        self._lock = threading.Lock()       # guards self._trainer
        self._trainer: socket.socket | None = None
        self._busy = threading.Lock()       # held while a trainer is served
        self._guests = threading.Semaphore(_GUESTS_MAX)
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self) -> Address:
        host, port = self._server.getsockname()[:2]
        return Address(str(host), int(port), os.getpid(), self._why)

    def _accept(self) -> None:
        while True:
            self._guests.acquire()
            try:
                connection, _ = self._server.accept()
            except OSError as e:
                self._guests.release()
                _log.warning("no connection was accepted: %s", e)
                time.sleep(1)
                continue
            threading.Thread(target=self._greet, args=(connection,),
                             daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        """Serve a trainer. Close the connection of any other program."""
        with connection:
            try:
                is_trainer = self._is_trainer(connection)
            except OSError:
                is_trainer = False
            finally:
                self._guests.release()
            if is_trainer:
                self._serve(connection)

    def _is_trainer(self, connection: socket.socket) -> bool:
        key = receive(connection, KEY_SIZE, _PATIENCE)
        return hmac.compare_digest(key, self._key)

    def _serve(self, connection: socket.socket) -> None:
        """Serve the trainer on its newest connection."""
        try:
            connection.settimeout(None)
            tune(connection)
            with self._lock:
                if self._trainer:
                    with contextlib.suppress(OSError):
                        self._trainer.shutdown(socket.SHUT_RDWR)
                self._trainer = connection
            with self._busy:
                self._loader.serve(connection)
        except OSError as e:
            _log.warning("the link to the trainer failed: %s", e)
        finally:
            with self._lock:
                if self._trainer is connection:
                    self._trainer = None
