#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 server that misbehaves by a script, for tests of retries.

    faulty_server.py --port PORT [--host HOST] [--script FILE] ROOT

It serves the files below ROOT with Range, ETag and If-Match. The script is a
JSON object, and each member may be missing:

    seed       of random choices (1)
    faults     a list of {"kind": KIND, ...}. The first fault that applies to a
               request is played. A fault applies to the share "share" of
               requests (0 to 1), or to the requests "at": [NUMBER...], counted
               from 0, or "from": NUMBER on, "until": NUMBER. Other members
               are parameters of the kind.
    etag       "strong" (default), "weak", "none", or the ETag of all objects
    date       false: send no Last-Modified
    queries    {QUERY: PATH}: the file PATH is sent for this query
    if_match   false: ignore If-Match
    replaced   {"at": NUMBER, "by": PATH}: from that request on, each object is
               the file PATH; or {"opening": NUMBER, "by": PATH}, which counts
               the requests without a condition, from 1
    rate       bytes a second for each connection

GET /.report returns counts, PUT /.script replaces the script and begins to
count again. Kinds are the functions below whose names begin with play_.
"""
import argparse
import asyncio
import email.utils
import gzip
import json
import os
import pathlib
import random
import socket
import struct
import urllib.parse

PIECE = 256 << 10
REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 304: "Not Modified",
           403: "Forbidden", 404: "Not Found", 412: "Precondition Failed",
           416: "Range Not Satisfiable", 429: "Too Many Requests",
           500: "Internal Server Error", 503: "Service Unavailable"}


class Reset(Exception):
    """The connection ends by RST."""


class Close(Exception):
    """The connection ends after what was sent."""


class Answer:
    """An answer as it should be; faults change it before it is sent."""

    def __init__(self, status, headers=(), path=None, first=0, size=0,
                 body=b""):
        self.status, self.headers = status, dict(headers)
        self.path, self.first, self.size = path, first, size
        self.body = body

    def head(self):
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Other')}"]
        lines += [f"{k}: {v}" for k, v in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def pieces(self):
        if not self.path:
            if self.body:
                yield self.body
            return
        with open(self.path, "rb") as f:
            f.seek(self.first)
            left = self.size
            while left and (data := f.read(min(left, PIECE))):
                left -= len(data)
                yield data


# --- kinds of faults ---

async def play_status(server, answer, fault, out):
    """Another status: "status" (503), "retry_after", "body"."""
    headers = {}
    if "retry_after" in fault:
        headers["Retry-After"] = fault["retry_after"]
    body = fault.get("body", "").encode()
    await server.send(Answer(fault.get("status", 503), headers, body=body), out)


async def play_reset(server, answer, fault, out):
    """RST after "after" bytes of the body, or without an answer."""
    if "after" in fault:
        await server.send(answer, out, only=fault["after"])
    raise Reset


async def play_close(server, answer, fault, out):
    """The connection ends without an answer."""
    raise Close


async def play_truncated(server, answer, fault, out):
    """The body ends after the share "part" of it (0.5)."""
    await server.send(answer, out,
                      only=int(answer.size * fault.get("part", 0.5)))
    raise Close


async def play_wrong_range(server, answer, fault, out):
    """Content-Range is "by" bytes off (1); the body is of those bytes."""
    by = fault.get("by", 1)
    total = os.path.getsize(answer.path)
    answer.first = max(0, min(answer.first + by, total - answer.size))
    answer.headers["Content-Range"] = (
        f"bytes {answer.first}-{answer.first + answer.size - 1}/{total}")
    await server.send(answer, out)


async def play_wrong_total(server, answer, fault, out):
    """Content-Range has another length of the object."""
    where, _, total = answer.headers["Content-Range"].partition("/")
    answer.headers["Content-Range"] = f"{where}/{int(total) + 1}"
    await server.send(answer, out)


async def play_whole(server, answer, fault, out):
    """200 and the whole object."""
    answer.status, answer.first = 200, 0
    answer.size = os.path.getsize(answer.path)
    answer.headers.pop("Content-Range", None)
    await server.send(answer, out)


async def play_stall(server, answer, fault, out):
    """Nothing for "seconds" (10) after the share "part" of the body (0.5)."""
    await server.send(answer, out, pause=(
        int(answer.size * fault.get("part", 0.5)), fault.get("seconds", 10)))


async def play_slow(server, answer, fault, out):
    """The first byte comes after "seconds" (2)."""
    await asyncio.sleep(fault.get("seconds", 2))
    await server.send(answer, out)


async def play_gzip(server, answer, fault, out):
    """Content-Encoding: gzip, though the client does not accept it."""
    body = gzip.compress(b"".join(answer.pieces()))
    answer.headers.update({"Content-Encoding": "gzip"})
    answer.path, answer.body = None, body
    await server.send(answer, out)


async def play_chunked(server, answer, fault, out):
    """Chunks, and no length."""
    await server.send(answer, out, chunked=True)


async def play_unended(server, answer, fault, out):
    """All chunks but the last, which is empty."""
    await server.send(answer, out, chunked=True, end=b"")
    await asyncio.sleep(fault.get("seconds", 10))
    raise Close


async def play_trailers(server, answer, fault, out):
    """Trailers without an end."""
    await server.send(answer, out, chunked=True, end=b"0\r\n")
    for _ in range(fault.get("lines", 10_000_000)):
        out.write(b"X-Trailer: %b\r\n" % (b"x" * 1000))
        await out.drain()
    raise Close


async def drip(out, text, seconds):
    for _ in range(int(seconds / 0.2)):
        out.write(text)
        await out.drain()
        await asyncio.sleep(0.2)
    raise Close


async def play_lines(server, answer, fault, out):
    """A head without an end, for "seconds" (60)."""
    out.write(b"HTTP/1.1 206 Partial Content\r\n")
    await drip(out, b"X: y\r\n", fault.get("seconds", 60))


async def play_redirect(server, answer, fault, out):
    """To "to", or to the same object at another name of this machine."""
    to = fault.get("to") or f"http://localhost:{server.port}{server.target}"
    await server.send(Answer(302, {"Location": to}), out)


async def play_last(server, answer, fault, out):
    """A correct answer, but the connection ends after it."""
    answer.headers["Connection"] = "close"
    await server.send(answer, out)
    raise Close


async def play_garbage(server, answer, fault, out):
    """No HTTP."""
    out.write(b"\0\xffnothing of the kind\r\n\r\n" * 3)
    raise Close


async def play_flipped(server, answer, fault, out):
    """One bit of the body is wrong."""
    body = bytearray(b"".join(answer.pieces()))
    body[len(body) // 2] ^= 1
    answer.path, answer.body = None, bytes(body)
    await server.send(answer, out)


KINDS = {name[5:]: function for name, function in globals().items()
         if name.startswith("play_")}


class Script:
    def __init__(self, text):
        self.rules = json.loads(text or "{}")
        self.random = random.Random(self.rules.get("seed", 1))
        self.requests, self.bytes, self.faults, self.seen = 0, 0, {}, []
        self.openings = 0
        for fault in self.rules.get("faults", []):
            if fault["kind"] not in KINDS:
                raise SystemExit(f"no fault {fault['kind']}")

    def fault(self, number):
        for fault in self.rules.get("faults", []):
            if "share" in fault:
                applies = self.random.random() < fault["share"]
            elif "at" in fault:
                applies = number in fault["at"]
            else:
                applies = number >= fault.get("from", 0)
            if applies and number < fault.get("until", number + 1):
                return fault
        return None

    def report(self):
        return {"requests": self.requests, "bytes": self.bytes,
                "faults": self.faults, "seen": self.seen}


class Server:
    def __init__(self, root, port, script):
        self.root, self.port = pathlib.Path(root).resolve(), port
        self.script = Script(script)
        self.target = "/"

    # --- one answer ---

    def etag(self, stat):
        kind = self.script.rules.get("etag", "strong")
        tag = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
        return {"strong": tag, "weak": "W/" + tag, "none": None}.get(kind, kind)

    def object(self, target, number):
        replaced = self.script.rules.get("replaced")
        if replaced and (number >= replaced["at"] if "at" in replaced else
                         self.script.openings >= replaced["opening"]):
            return pathlib.Path(replaced["by"])
        name, _, query = target.partition("?")
        if query in self.script.rules.get("queries", {}):
            return pathlib.Path(self.script.rules["queries"][query])
        name = urllib.parse.unquote(name).lstrip("/")
        path = (self.root / name).resolve()
        return path if path.is_relative_to(self.root) else self.root / "none"

    def answer(self, target, headers, number):
        self.script.openings += "if-match" not in headers
        path = self.object(target, number)
        if not path.is_file():
            return Answer(404)
        stat = path.stat()
        tag = self.etag(stat)
        common = {"Accept-Ranges": "bytes"}
        if self.script.rules.get("date", True):
            common["Last-Modified"] = email.utils.formatdate(stat.st_mtime,
                                                             usegmt=True)
        if tag:
            common["ETag"] = tag
        wanted = headers.get("if-match")
        if (wanted and self.script.rules.get("if_match", True)
                and wanted not in ("*", tag)):
            return Answer(412, common)
        return self.ranged(path, stat.st_size, headers.get("range"), common)

    def ranged(self, path, total, wanted, common):
        if not wanted or not wanted.startswith("bytes=") or "," in wanted:
            return Answer(200, common, path, 0, total)
        low, _, high = wanted[6:].partition("-")
        if low == "":
            first, last = max(0, total - int(high)), total - 1
        else:
            first, last = int(low), min(int(high or total), total - 1)
        if first > last:
            return Answer(416, {**common, "Content-Range": f"bytes */{total}"})
        common["Content-Range"] = f"bytes {first}-{last}/{total}"
        return Answer(206, common, path, first, last - first + 1)

    async def send(self, answer, out, only=None, pause=None, chunked=False,
                   end=b"0\r\n\r\n"):
        """`only`: so many bytes of the body. `pause`: (after bytes, seconds).
        `end`: the last bytes if it is chunked."""
        is_head = self.method == "HEAD"
        size = answer.size if answer.path else len(answer.body)
        if chunked:
            answer.headers["Transfer-Encoding"] = "chunked"
        else:
            answer.headers["Content-Length"] = size
        out.write(answer.head())
        sent, rate = 0, self.script.rules.get("rate")
        for data in () if is_head else answer.pieces():
            if only is not None:
                data = data[:only - sent]
            if pause and sent + len(data) > pause[0]:
                cut = max(0, pause[0] - sent)
                out.write(data[:cut])
                await out.drain()
                await asyncio.sleep(pause[1])
                self.script.bytes += cut
                sent, data, pause = sent + cut, data[cut:], None
            out.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked and data
                      else data)
            await out.drain()
            sent += len(data)
            self.script.bytes += len(data)
            if rate:
                await asyncio.sleep(len(data) / rate)
            if only is not None and sent >= only:
                break
        if chunked:
            out.write(end)
        await out.drain()

    # --- connections ---

    async def control(self, method, target, body, out):
        if target == "/.script" and method == "PUT":
            self.script = Script(body)
        text = json.dumps(self.script.report()).encode()
        await self.send(Answer(200, {"Content-Type": "application/json"},
                               body=text), out)

    async def serve(self, line, headers, body, out):
        self.method, target, _ = line.split(" ", 2)
        if target.startswith("/."):
            await self.control(self.method, target, body, out)
            return
        script, number = self.script, self.script.requests
        script.requests += 1
        fault = script.fault(number)
        kind = fault["kind"] if fault else None
        script.seen.append([self.method, target, headers.get("range"),
                            headers.get("if-match"), kind])
        answer = self.answer(target, headers, number)
        # Faults of the body need one.
        if not fault or (not answer.path and kind not in
                         ("status", "reset", "close", "slow", "garbage")):
            await self.send(answer, out)
            return
        script.faults[kind] = script.faults.get(kind, 0) + 1
        self.target = target
        await KINDS[kind](self, answer, fault, out)

    async def connection(self, source, out):
        # A copy, because requests of other connections overlap.
        me = Connection(self)
        try:
            while True:
                head = await source.readuntil(b"\r\n\r\n")
                line, *rest = head.decode("latin-1").rstrip().split("\r\n")
                headers = {k.strip().lower(): v.strip() for k, _, v in
                           (r.partition(":") for r in rest)}
                body = await source.readexactly(
                    int(headers.get("content-length", 0)))
                await me.serve(line, headers, body, out)
                await out.drain()
                if headers.get("connection", "").lower() == "close":
                    break
        except Reset:
            out.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            out.transport.abort()
        except (Close, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            out.close()


class Connection(Server):
    """The state of one connection; the script is the server's."""

    def __init__(self, server):
        self.server, self.root, self.port = server, server.root, server.port
        self.method, self.target = "GET", "/"

    @property
    def script(self):
        return self.server.script

    @script.setter
    def script(self, script):
        self.server.script = script


async def run(args):
    script = args.script and pathlib.Path(args.script).read_text()
    server = Server(args.root, args.port, script)
    listener = await asyncio.start_server(server.connection, args.host,
                                          args.port, limit=1 << 16,
                                          backlog=512)
    async with listener:
        await listener.serve_forever()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("root")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--script")
    asyncio.run(run(p.parse_args()))


if __name__ == "__main__":
    main()
