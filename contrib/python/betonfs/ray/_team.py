# SPDX-License-Identifier: Apache-2.0
"""The makers of a trainer: starts them, links them, and replaces links that
end."""
from __future__ import annotations

import errno
import logging
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError
from typing import Any

import ray

from .. import _beton
from .._checks import shown
from ._maker import KEY_SIZE, Address, Maker, tune

_log = logging.getLogger("betonfs")

# Seconds between two looks at what a thread waits for.
_TICK = 0.2
# Seconds to connect to a maker.
_PATIENCE = 10.0
# Seconds after which a machine that does not acknowledge a request is lost.
_SILENCE = 8.0
# Options of an actor that choose its node.
_PLACING = ("scheduling_strategy", "label_selector", "placement_group")
# Seconds after which makers that have not started are reported.
_PENDING = 15.0
# The longest delay, in seconds, before a maker that failed several times without
# a batch is linked again.
_DELAY_MAX = 30.0
# makers="auto": seconds between two decisions, the share of its time that the
# trainer waits at least, and the gain of samples per second that another maker
# must bring.
_DECISION = 5.0
_WAITS = 0.01
_GAIN = 1.03
_AUTO_MAX = 256


def _elsewhere() -> dict[str, Any]:
    """Options that keep makers off this node, if other ones have CPUs."""
    own = ray.get_runtime_context().get_node_id()
    others = [n for n in ray.nodes() if n["Alive"] and n["NodeID"] != own
              and n["Resources"].get("CPU", 0) >= 1]
    if not others:
        return {}
    return {"label_selector": {"ray.io/node-id": f"!in({own})"}}


def maker_class(options: object) -> tuple[Any, int]:
    """Return the class of actors with these options of the user, and the number
    of threads that decode in each."""
    if not isinstance(options, Mapping):
        raise TypeError(f"maker_options={shown(options)}: a dict of options of "
                        'Ray\'s actors, such as {"num_cpus": 4}')
    placing = {} if any(name in options for name in _PLACING) else \
        {"scheduling_strategy": "SPREAD", **_elsewhere()}
    own = {"num_cpus": 1, "max_restarts": -1, "max_task_retries": -1,
           **placing, **options}
    try:
        if "name" in options:
            raise ValueError('"name" would be the same for all makers')
        made = ray.remote(Maker).options(**own)
        return made, max(1, int(own["num_cpus"] or 1))
    except (TypeError, ValueError) as e:
        raise type(e)(f"maker_options: {e}") from None


class Team:
    """Makers of one loader. It refers to the loader's core only, so that a loader
    without references ends."""

    def __init__(self, core: _beton.Loader, arguments: Mapping[str, Any],
                 makers: int | str, actors: tuple[Any, int]) -> None:
        self._core = core
        self._key = secrets.token_bytes(KEY_SIZE)
        self._ended = threading.Event()
        self._actors: list[Any] = []
        self._threads: list[threading.Thread] = []
        self._started = 0           # makers that had an address at least once
        self._class, workers = actors
        self._arguments = {**arguments, "workers": workers}
        for _ in range(1 if makers == "auto" else int(makers)):
            self._add()
        if makers == "auto":
            self._start(self._grow)
        self._start(self._report_pending)

    def _start(self, function: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True,
                                  name="betonfs maker")
        self._threads.append(thread)
        thread.start()

    def _add(self) -> None:
        actor = self._class.remote(self._arguments, self._key)
        self._actors.append(actor)
        self._start(self._run, actor)

    def close(self) -> None:
        """End the loader and all makers."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._core.close()
        # If a thread calls Ray after ray.shutdown(), Ray ends the process.
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)
        if not ray.is_initialized():
            return
        for actor in self._actors:
            try:
                ray.kill(actor)
            except Exception as e:      # Ray may be ending, too
                _log.debug("a maker was not ended: %s", e)

    # --- one maker ---

    def _address(self, actor: Any) -> Address | None:
        """Wait until the maker has started. None: the team or Ray has ended."""
        if not ray.is_initialized():
            return None
        # Not ray.wait(), because after ray.shutdown() it starts a cluster.
        wanted = actor.address.remote().future()
        while not self._ended.is_set() and ray.is_initialized():
            try:
                found: Address = wanted.result(_TICK)
                return found
            except TimeoutError:
                pass
        return None

    def _link(self, address: Address) -> None:
        _log.info("the maker %s joins", address)
        with socket.create_connection(address[:2], _PATIENCE) as connection:
            tune(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT,
                                  int(1000 * _SILENCE))
            connection.sendall(self._key)
            connection.settimeout(None)
            self._core.attach(connection)

    def _batches(self) -> int:
        makers = self._core.stats()["makers"]
        return int(makers["batches"])

    def _run(self, actor: Any) -> None:
        """Keep the maker linked."""
        failures, before, is_new = 0, 0, True
        address: Address | None = None
        while not self._ended.is_set():
            try:
                address = self._address(actor)
                if address is None:
                    return
                self._started += is_new
                is_new = False
                if address.why:
                    self._put_aside(actor, address, address.why)
                    return
                before = self._batches()
                self._link(address)
            except Exception as e:
                if self._ended.is_set() or self._core.closed:
                    return
                if self._is_useless(e):
                    self._started += is_new
                    self._put_aside(actor, address, self._reason(e))
                    return
                failures = 0 if self._batches() > before else failures + 1
                self._report_lost(address, e, failures < 2)
            self._ended.wait(min(_TICK * 2**min(failures, 10), _DELAY_MAX))

    @staticmethod
    def _is_useless(error: Exception) -> bool:
        return isinstance(error, (ray.exceptions.RayTaskError,
                                  ray.exceptions.ActorDiedError)) or \
            getattr(error, "errno", 0) in (errno.EPROTO, errno.EREMOTEIO)

    @staticmethod
    def _reason(error: Exception) -> str:
        text = str(getattr(error, "cause", None) or error).strip()
        # The last line of a traceback, without the name of the error's class.
        return re.sub(r"^[\w.]+: ", "", text.splitlines()[-1])

    def _report_lost(self, address: Address | None, error: Exception,
                     is_news: bool) -> None:
        left = int(self._core.stats()["makers"]["makers"])
        _log.log(logging.INFO if left or not is_news else logging.WARNING,
                 "the maker %s was lost: %s: %s", address or "without an address",
                 error, f"{left} are left" if left else
                 "this machine makes all batches until a maker joins")

    @staticmethod
    def _put_aside(actor: Any, address: Address | None, why: str) -> None:
        _log.warning("a maker is put aside%s: %s",
                     f", {address}" if address else "", why)
        try:
            ray.kill(actor)
        except Exception as e:
            _log.debug("a maker was not ended: %s", e)

    # --- their number ---

    def _report_pending(self) -> None:
        if self._ended.wait(_PENDING) or self._started >= len(self._actors):
            return
        _log.warning(
            "%d of %d makers have not started: either Ray still starts them, or no "
            "node has what they ask for, see `ray status`; %s makes their batches",
            len(self._actors) - self._started, len(self._actors),
            "another maker or this machine" if self._started else "this machine")

    def _grow(self) -> None:
        """Ask for one more maker as long as the trainer waits and each one more
        makes it faster."""
        rate = 0.0
        while not self._ended.is_set() and len(self._actors) < _AUTO_MAX:
            waits, now = self._look()
            if self._started < len(self._actors) or waits <= _WAITS:
                continue
            if now <= rate * _GAIN:
                _log.info("makers: %d; one more does not help, so the network "
                          "or this machine is the limit", len(self._actors))
                return
            if not ray.is_initialized():
                return
            rate = now
            self._add()

    def _look(self) -> tuple[float, float]:
        """Return the share of the time that the trainer waits, and its samples
        per second."""
        before, begin = self._core.stats()["throughput"], time.monotonic()
        if self._ended.wait(_DECISION):
            return 0.0, 0.0
        after = self._core.stats()["throughput"]
        seconds = time.monotonic() - begin
        return ((after["wait_s"] - before["wait_s"]) / seconds,
                (after["samples"] - before["samples"]) / seconds)
