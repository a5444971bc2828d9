# SPDX-License-Identifier: Apache-2.0
"""Servers that the tests of credentials need: an S3 server that checks each
signature, the age of its session, and the clock; and the services that return
sessions. The module shares no code with the C sources."""
import datetime
import hashlib
import hmac
import http.server
import json
import threading
import time
import urllib.parse

EMPTY = hashlib.sha256(b"").hexdigest()


def utc(at):
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc)


def error(code, **more):
    fields = "".join(f"<{k}>{v}</{k}>" for k, v in more.items())
    return f"<Error><Code>{code}</Code>{fields}</Error>".encode()


class Keys:
    """Sessions: id -> (secret, token, the time when it expires)."""

    def __init__(self):
        self.sessions, self.count, self.lock = {}, 0, threading.Lock()

    def new(self, lifetime):
        with self.lock:
            self.count += 1
            n = self.count
            end = int(time.time() + lifetime)
            self.sessions[f"ID{n}"] = (f"SECRET{n}", f"TOKEN{n}==", end)
        return f"ID{n}"

    def revoke(self):
        """All sessions so far expire now."""
        with self.lock:
            self.sessions = {k: (s, t, 0)
                             for k, (s, t, _) in self.sessions.items()}


def hmac256(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, scope, stamp, canonical):
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac256(key, part)
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    return hmac256(key, text).hex()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A reader may close a connection at any time."""


class Server:
    """Answers with function(handler) until close()."""

    def __init__(self, answer):
        class Answering(Handler):
            def do_GET(self):
                size = int(self.headers.get("Content-Length") or 0)
                self.body = self.rfile.read(size).decode()
                answer(self)

            do_PUT = do_POST = do_GET

        self.server = Quiet(("127.0.0.1", 0), Answering)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Store(Server):
    """One object, s3://bucket/k, in `region`, at a time that differs by
    `skew` seconds. `refused` counts refusals by code."""

    def __init__(self, data, keys, region="us-east-1", skew=0):
        self.data, self.keys, self.region, self.skew = data, keys, region, skew
        self.refused, self.served, self.used = {}, 0, set()
        super().__init__(self.answer)

    def verdict(self, q):
        """A refusal as (status, code, fields), or None."""
        head = q.headers.get("Authorization") or ""
        if not head.startswith("AWS4-HMAC-SHA256 "):
            return 403, "AccessDenied", {}
        parts = dict(p.strip().split("=", 1) for p in head[17:].split(","))
        identity, scope = parts["Credential"].split("/", 1)
        day, region, service, end = scope.split("/")
        stamp = q.headers["x-amz-date"]
        if region != self.region:
            return (400, "AuthorizationHeaderMalformed",
                    {"Region": self.region})
        if identity not in self.keys.sessions:
            return 403, "InvalidAccessKeyId", {}
        secret, token, expires = self.keys.sessions[identity]
        names = parts["SignedHeaders"].split(";")
        path, _, query = q.path.partition("?")
        canonical = "\n".join([
            q.command, path, query,
            *(f"{n}:{' '.join(q.headers[n].split())}" for n in names), "",
            ";".join(names), q.headers["x-amz-content-sha256"]])
        if (parts["Signature"] != signature(secret, scope, stamp, canonical)
                or day != stamp[:8] or (service, end) != ("s3", "aws4_request")
                or not {"host", "x-amz-date"} <= set(names)
                or q.headers["x-amz-content-sha256"] != EMPTY):
            return 403, "SignatureDoesNotMatch", {}
        if q.headers.get("x-amz-security-token") != token:
            return 400, "InvalidToken", {}
        now = time.time() + self.skew
        then = datetime.datetime.strptime(
            stamp + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        if abs(now - then) > 900:
            return 403, "RequestTimeTooSkewed", {}
        if time.time() > expires:
            return 400, "ExpiredToken", {}
        self.used.add(identity)
        return None

    def answer(self, q):
        refusal = self.verdict(q)
        if refusal:
            status, code, fields = refusal
            self.refused[code] = self.refused.get(code, 0) + 1
            q.reply(status, error(code, **fields))
            return
        first, last = q.headers["Range"].split("=")[1].split("-")
        first, size = int(first), len(self.data)
        last = min(int(last), size - 1)
        self.served += 1
        q.reply(206, self.data[first:last + 1], ETag='"v1"',
                Content_Range=f"bytes {first}-{last}/{size}")


class Skewed(Store):
    """Its answers carry its own date."""

    def answer(self, q):
        q.date_time_string = lambda timestamp=None: utc(
            time.time() + self.skew).strftime("%a, %d %b %Y %H:%M:%S GMT")
        super().answer(q)


class Instance(Server):
    """The metadata service of an instance; mood(number) is called before each
    request, and may wait, or return a status instead of an answer."""

    def __init__(self, keys, lifetime, mood=lambda n: None):
        self.keys, self.lifetime, self.mood = keys, lifetime, mood
        self.count = 0
        super().__init__(self.answer)

    def answer(self, q):
        self.count += 1
        status = self.mood(self.count)
        if status:
            q.reply(status, b"")
        elif q.command == "PUT" and q.path == "/latest/api/token":
            q.reply(200, b"METADATATOKEN")
        elif q.headers.get("X-aws-ec2-metadata-token") != "METADATATOKEN":
            q.reply(401, b"")
        elif q.path.endswith("/security-credentials/"):
            q.reply(200, b"role")
        else:
            q.reply(200, json.dumps(
                {"Code": "Success", **session(self.keys, self.lifetime)})
                .encode())


def session(keys, lifetime, token="Token"):
    """A new session as JSON of a metadata service."""
    identity = keys.new(lifetime)
    secret, text, end = keys.sessions[identity]
    return {"AccessKeyId": identity, "SecretAccessKey": secret, token: text,
            "Expiration": utc(end).strftime("%Y-%m-%dT%H:%M:%SZ")}


class Sts(Server):
    """Assumes roles for the bearer of `token`, which is a list of one."""

    def __init__(self, keys, lifetime, token):
        self.keys, self.lifetime, self.token = keys, lifetime, token
        self.asked = []
        super().__init__(self.answer)

    def answer(self, q):
        form = dict(urllib.parse.parse_qsl(q.body))
        self.asked.append(form)
        if form.get("WebIdentityToken") != self.token[0]:
            q.reply(400, b"<ErrorResponse>" + error("InvalidIdentityToken")
                    + b"</ErrorResponse>")
            return
        s = session(self.keys, self.lifetime, "SessionToken")
        q.reply(200, ("<R><Credentials>" + "".join(
            f"<{k}>{v}</{k}>" for k, v in s.items())
            + "</Credentials></R>").encode())
