# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster, as far as the network is concerned: network namespaces, each
with an address of its own, on one bridge. They need root. They are held by
descriptors of the test, so that none of them outlives it."""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys

import pytest

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
# The address of the server, which has the bridge.
SERVER = "10.98.0.1"


def check(result):
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def ip(*words):
    r = subprocess.run(["ip", *words], capture_output=True, text=True,
                       timeout=20)
    if r.returncode:
        raise OSError(f"ip {' '.join(words)}: {r.stderr.strip()}")


class Machine:
    """A network namespace. A process that starts within inside() stays in it."""

    def __init__(self, address):
        self.address = address
        home = current()
        try:
            check(LIBC.unshare(CLONE_NEWNET))
            self.fd = current()
            ip("link", "set", "lo", "up")
        finally:
            check(LIBC.setns(home, CLONE_NEWNET))
            os.close(home)

    @contextlib.contextmanager
    def inside(self):
        home = current()
        check(LIBC.setns(self.fd, CLONE_NEWNET))
        try:
            yield self
        finally:
            check(LIBC.setns(home, CLONE_NEWNET))
            os.close(home)

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def close(self):
        os.close(self.fd)


def current():
    """The network namespace of this thread."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Cluster:
    """`server` has the bridge; `nodes` are connected to it by eth0."""

    def __init__(self, count, close):
        def machine(address):
            m = Machine(address)
            close.callback(m.close)
            return m

        self.server = machine(SERVER)
        self.nodes = [machine(f"10.98.0.{10 + k}") for k in range(count)]
        with self.server.inside():
            ip("link", "add", "br0", "type", "bridge")
            ip("addr", "add", f"{SERVER}/24", "dev", "br0")
            ip("link", "set", "br0", "up")
            for k, node in enumerate(self.nodes):
                ip("link", "add", f"node{k}", "type", "veth", "peer", "name",
                   "eth0", "netns", node.path)
                ip("link", "set", f"node{k}", "master", "br0", "up")
        for node in self.nodes:
            with node.inside():
                ip("addr", "add", f"{node.address}/24", "dev", "eth0")
                ip("link", "set", "eth0", "up")


@pytest.fixture(scope="module")
def cluster():
    """Four nodes and a server."""
    if not shutil.which("ip"):
        pytest.skip("ip (iproute2) is not installed")
    with contextlib.ExitStack() as close:
        try:
            made = Cluster(4, close)
        except OSError as e:
            pytest.skip(f"no network namespaces with a bridge: {e}")
        yield made


def has_torch(exe):
    return not subprocess.run(
        [exe, "-c", "import importlib.util as u; "
         "raise SystemExit(u.find_spec('torch') is None)"],
        capture_output=True, timeout=100).returncode


def find_python():
    """An interpreter with torch; skips where there is none."""
    for name in "TORCHVISION_PYTHON", "RAY_PYTHON":
        exe = shutil.which(os.environ.get(name, sys.executable))
        if exe and has_torch(exe):
            return exe
    pytest.skip("torch is not installed, and neither TORCHVISION_PYTHON nor "
                "RAY_PYTHON names an interpreter with it")


def end(process):
    """All of a process group, if it did not end by itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
