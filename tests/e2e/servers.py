# SPDX-License-Identifier: Apache-2.0
"""Servers for datasets behind URLs, each with its own configuration in a directory
of the test and on a free port. conftest.py imports the fixtures. A fixture
skips, with the reason, where its server is not installed."""
import contextlib
import ctypes
import http.client
import http.server
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import typing
import urllib.parse

import pytest

DEADLINE = 20       # seconds, of whatever is waited for
KEY, SECRET = "AKIDEXAMPLEBETON", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
BUCKET = "bucket"
USER, PASSWORD = "reader", "open sesame"
# The server's address behind build/standin/link.
LINK_ADDRESS = "10.99.0.1"
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()


# A server listens some time after its port was found free. So these are not of those
# that the kernel chooses, and other processes of pytest begin elsewhere.
PORTS = itertools.count(100 * os.getpid())


def free_port():
    while True:
        port = 10000 + next(PORTS) % 20000
        with contextlib.suppress(OSError), \
                socket.create_server(("127.0.0.1", port)):
            return port


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)      # PR_SET_PDEATHSIG


class Program:
    """A server program. `command` runs in the foreground, and listens on `port`
    of `host`. It is started again after stop()."""

    def __init__(self, folder, name, host, port):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name, self.host, self.port = name, host, port
        self.log = self.folder / f"{name}.out"
        self.process, self.command, self.env = None, None, None

    def start(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [str(c) for c in self.command], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=end_with_parent,
                start_new_session=True,
                env={**os.environ, **(self.env or {})})
        end = time.monotonic() + DEADLINE
        while not self.listens():
            assert self.process.poll() is None, self.printed()
            assert time.monotonic() < end, "no server: " + self.printed()
            time.sleep(0.01)
        return self

    def listens(self):
        try:
            socket.create_connection((self.host, self.port), 1).close()
        except OSError:
            return False
        return True

    def stop(self, how=signal.SIGTERM):
        if not self.process:
            return
        # nginx survives as its workers otherwise.
        send = os.killpg if how == signal.SIGKILL else os.kill
        send(self.process.pid, how)
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def printed(self):
        return self.log.read_text(errors="replace")


class Request(typing.NamedTuple):
    """One request as nginx logs it: `sent` bytes of a body."""
    method: str
    path: str
    status: int
    sent: int
    range: str
    if_match: str


class Certificate(typing.NamedTuple):
    ca: pathlib.Path
    chain: pathlib.Path
    key: pathlib.Path


def make_certificate(folder):
    """A CA, and the certificate of a server on this machine."""
    folder = pathlib.Path(folder)

    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True,
                       capture_output=True, timeout=DEADLINE)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
           "-nodes"]
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1,"
                                  f"IP:{LINK_ADDRESS}\n")
    run("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem",
        "-subj", "/CN=betonfs tests", "-days", "30")
    run("req", *new, "-keyout", "server.key", "-out", "server.csr",
        "-subj", "/CN=localhost")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey",
        "ca.key", "-CAcreateserial", "-out", "server.pem", "-days", "30",
        "-extfile", "names")
    return Certificate(folder / "ca.pem", folder / "server.pem",
                       folder / "server.key")


class Nginx(Program):
    """Serves the files below `root` with Range, ETag and If-Match. `upstream`
    serves another server's objects instead; `gate` is a function that runs
    before each request is answered, with the request's number; `rate` in bytes
    a second for each connection."""

    def __init__(self, folder, root=None, *, host="127.0.0.1", port=None,
                 tls=None, password=False, rate=None, upstream=None, gate=None,
                 workers=1, extra=""):
        super().__init__(folder, "nginx", host, port or free_port())
        self.scheme, self.is_private = "https" if tls else "http", password
        self.access = self.folder / "access"
        self.gate = Gate(gate) if gate else None
        location = [f"limit_rate {rate};" if rate else "", extra]
        if password:
            users = self.folder / "users"
            users.write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n")
            location += ["auth_basic beton;", f"auth_basic_user_file {users};"]
        if upstream:
            location += [f"proxy_pass http://{upstream.host}:{upstream.port};",
                         "proxy_set_header Host $http_host;",
                         "proxy_http_version 1.1;", "proxy_buffering off;"]
        else:
            location.append(f"root {pathlib.Path(root).resolve()};")
        config = self.folder / "nginx.conf"
        config.write_text(self.config(location, tls, workers))
        self.command = ["nginx", "-c", config, "-p", self.folder,
                        "-e", "stderr"]

    def config(self, location, tls, workers):
        files = "\n".join(
            f"{kind}_temp_path {self.folder}/{kind};" for kind in
            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        gate = self.gate and (
            "auth_request /.gate;",
            "location = /.gate { internal; proxy_pass_request_body off; "
            "proxy_set_header Content-Length ''; "
            f"proxy_pass http://127.0.0.1:{self.gate.port}; }}")
        listen = f"listen {self.host}:{self.port}"
        return f"""
daemon off;
worker_processes {workers};
{"user root;" if os.geteuid() == 0 else ""}
pid {self.folder}/pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  log_format seen escape=none '$request_method\\t$uri\\t$status\\t$body_bytes_sent\\t'
                  '$http_range\\t$http_if_match';
  access_log {self.access} seen;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  default_type application/octet-stream;
  {files}
  server {{
    {listen}{" ssl" if tls else ""};
    {f"ssl_certificate {tls.chain}; ssl_certificate_key {tls.key};"
     if tls else ""}
    {gate[1] if gate else ""}
    location / {{
      {gate[0] if gate else ""}
      {" ".join(location)}
    }}
  }}
}}
"""

    def url(self, name):
        return (f"{self.scheme}://{self.host}:{self.port}/"
                + urllib.parse.quote(name))

    def requests(self):
        """All that were answered so far."""
        if not self.access.exists():
            return []
        out = []
        for line in self.access.read_text().splitlines():
            method, path, status, sent, where, match = line.split("\t")
            if path != "/.gate":
                out.append(Request(method, path, int(status), int(sent), where,
                                   match))
        return out

    def forget(self):
        """Requests so far are not listed again."""
        if self.access.exists():
            os.truncate(self.access, 0)

    def stop(self, how=signal.SIGTERM):
        super().stop(how)
        if self.gate:
            self.gate.close()


class Gate:
    """Answers nginx's auth_request after function(number)."""

    def __init__(self, function):
        gate = self
        self.count, self.lock = 0, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with gate.lock:
                    function(gate.count)
                    gate.count += 1
                self.send_response(204)
                self.end_headers()

            do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class S3:
    """Common to S3 servers: the environment of a client, and URLs."""
    bucket = BUCKET

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://{self.host}:{self.port}",
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_CONFIG_FILE": "/dev/null",
                "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}

    def url(self, name):
        return f"s3://{self.bucket}/{name}"


class Rclone(S3, Program):
    """Objects are the files of root/BUCKET. It checks signatures, and ignores
    If-Match."""

    def __init__(self, folder, root, *, host="127.0.0.1", port=None):
        Program.__init__(self, folder, "rclone", host, port or free_port())
        self.root = pathlib.Path(root)
        (self.root / BUCKET).mkdir(parents=True, exist_ok=True)
        # Otherwise it caches the entries of a directory for minutes.
        self.command = [find_rclone(), "serve", "s3", self.root,
                        "--addr", f"{host}:{self.port}",
                        "--auth-key", f"{KEY},{SECRET}",
                        "--dir-cache-time", "0s", "--config", "/dev/null"]

    def put(self, name, path):
        replace(self.root / BUCKET / name, path)


class Moto(S3, Program):
    """Has versions and If-Match. Signatures are not checked."""

    def __init__(self, folder):
        Program.__init__(self, folder, "moto", "127.0.0.1", free_port())
        self.command = [peers_python(), "-m", "moto.server", "-p", self.port,
                        "-H", self.host]

    def call(self, method, path, body=None):
        c = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        with contextlib.closing(c):
            c.request(method, path, body, {"Authorization": self.any_signature})
            answer = c.getresponse()
            text = answer.read()
            assert answer.status < 300, text
            return answer

    any_signature = (f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/"
                     "aws4_request, SignedHeaders=host, Signature=0")

    def make_bucket(self, versions=False):
        self.call("PUT", f"/{BUCKET}")
        self.call("PUT", f"/{BUCKET}?versioning",
                  "<VersioningConfiguration><Status>"
                  + ("Enabled" if versions else "Suspended")
                  + "</Status></VersioningConfiguration>")

    def put(self, name, path):
        """The new version."""
        answer = self.call("PUT", f"/{BUCKET}/{name}",
                           pathlib.Path(path).read_bytes())
        return answer.headers.get("x-amz-version-id")


class Haproxy(Program):
    """In front of `upstream`. `rules` are lines of its configuration for each
    request, for example 'http-request return status 503 if { rand(100) lt 1 }'.
    """

    def __init__(self, folder, upstream, rules=()):
        super().__init__(folder, "haproxy", "127.0.0.1", free_port())
        self.upstream, self.scheme = upstream, "http"
        self.socket = self.folder / "control"
        config = self.folder / "haproxy.cfg"
        config.write_text(f"""
global
  stats socket {self.socket} level admin
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{self.port}
  {chr(10).join("  " + r for r in rules)}
  default_backend back
backend back
  server real {upstream.host}:{upstream.port}
""")
        self.command = ["haproxy", "-db", "-f", config]

    def url(self, name):
        return f"http://{self.host}:{self.port}/" + urllib.parse.quote(name)

    def say(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.socket))
            s.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(4096), b"")).decode()

    def set_maintenance(self, is_on):
        """Answers each request with 503 meanwhile."""
        self.say("set server back/real state "
                 + ("maint" if is_on else "ready"))


class Faulty(Program):
    """tests/e2e/faulty_server.py, with this script."""

    def __init__(self, folder, root, **script):
        super().__init__(folder, "faulty", "127.0.0.1", free_port())
        self.script = self.folder / "script.json"
        self.script.write_text(json.dumps(script))
        self.command = [sys.executable, "-u",
                        pathlib.Path(__file__).with_name("faulty_server.py"),
                        "--port", self.port, "--script", self.script, root]

    def url(self, name):
        return f"http://{self.host}:{self.port}/" + urllib.parse.quote(name)

    def ask(self, method, path, body=None):
        c = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        with contextlib.closing(c):
            c.request(method, path, body)
            return json.loads(c.getresponse().read())

    def report(self):
        """requests, bytes, faults by kind, and a list of the requests."""
        return self.ask("GET", "/.report")

    def play(self, **script):
        """Another script from now on; counting begins again."""
        self.ask("PUT", "/.script", json.dumps(script))


def replace(path, by):
    """The object at `path` is `by` from now on, with another ETag."""
    temporary = path.with_name(path.name + ".new")
    shutil.copyfile(by, temporary)
    at = time.time() + 10
    os.utime(temporary, (at, at))
    os.rename(temporary, path)


def find_rclone():
    """rclone with `serve s3`, beside PEERS_PYTHON or in PATH."""
    near = pathlib.Path(peers_python()).with_name("rclone")
    for path in (near, shutil.which("rclone")):
        if path and os.access(path, os.X_OK):
            printed = subprocess.run([path, "serve", "s3", "--help"],
                                     capture_output=True, text=True).stdout
            if "--auth-key" in printed:
                return path
    return None


def peers_python():
    return os.environ.get("PEERS_PYTHON", sys.executable)


def has_moto():
    return not subprocess.run(
        [peers_python(), "-c", "import moto.server, flask"],
        capture_output=True).returncode


def need(name):
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")


@pytest.fixture
def running(tmp_path):
    """running(class, *args, **how): a server in a directory of its own."""
    count = 0
    with contextlib.ExitStack() as stack:
        def do(kind, *args, **how):
            nonlocal count
            folder = tmp_path / f"server{count}"
            count += 1
            server = kind(folder, *args, **how)
            stack.callback(server.stop)
            return server.start()

        yield do


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    need("openssl")
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def nginx(running):
    """nginx(root, **how) -> Nginx"""
    need("nginx")
    return lambda *args, **how: running(Nginx, *args, **how)


@pytest.fixture
def rclone(running, tmp_path):
    """An S3 server: rclone.put(name, path) makes an object."""
    if not find_rclone():
        pytest.skip("no rclone with `serve s3` in PATH or beside PEERS_PYTHON")
    return running(Rclone, tmp_path / "objects")


@pytest.fixture
def moto(running):
    """An S3 server with an empty bucket; moto.make_bucket(versions=True)
    switches versions on."""
    if not has_moto():
        pytest.skip("PEERS_PYTHON names no interpreter with moto[server]")
    server = running(Moto)
    server.make_bucket()
    return server


@pytest.fixture
def haproxy(running):
    """haproxy(upstream, rules) -> Haproxy"""
    need("haproxy")
    return lambda *args, **how: running(Haproxy, *args, **how)


@pytest.fixture
def faulty(running):
    """faulty(root, **script) -> Faulty"""
    return lambda root, **script: running(Faulty, root, **script)


@pytest.fixture(scope="session")
def link():
    """link(options, server, command, **how): runs the command behind a slow
    link, with nginx or another `server` at its other end. Returns the completed
    process, and what the link counted."""
    path = BUILD / "standin/link"
    if not path.exists():
        pytest.skip(f"no {path}: make unit builds it")
    probe = subprocess.run([path, "--", "true"], capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(probe.stderr.strip())

    def do(options, server, command, **how):
        counts = server.folder / "link.json"
        done = subprocess.run(
            [path, "--json", counts, "--ready", str(server.port), "--server",
             "exec " + " ".join(str(c) for c in server.command), *options, "--",
             *map(str, command)], text=True, capture_output=True,
            stdin=subprocess.DEVNULL, **how)
        return done, json.loads(counts.read_text())

    return do
