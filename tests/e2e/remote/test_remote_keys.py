# SPDX-License-Identifier: Apache-2.0
"""Credentials and signatures against servers that check them."""
import contextlib
import json
import os
import random
import subprocess
import time

import pytest

import keystore
import make
from conftest import BUILD, DEADLINE, unmount
from servers import KEY, SECRET, Nginx, need

BETON, READER = BUILD / "beton", BUILD / "test_remote_reader"
ODD_KEYS = 500
# Seconds of reading with short sessions.
SECONDS = float(os.environ.get("BETON_SESSIONS", "6"))
LIFETIME = min(60, SECONDS / 2)


def environment(tmp_path, **variables):
    """No credentials but these."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("AWS_", "AZURE_")) and "proxy" not in
             k.lower()}
    return {**clean, "HOME": str(tmp_path), "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            **{k: str(v) for k, v in variables.items()}}


def info(url, env, *args):
    return subprocess.run([BETON, "info", "--json", *args, url], env=env,
                          text=True, capture_output=True, timeout=60)


def sizes(urls, env):
    """The size of each object, or -errno."""
    done = subprocess.run([READER], input="".join(u + "\n" for u in urls),
                          env=env, text=True, capture_output=True,
                          timeout=DEADLINE + len(urls))
    assert not done.returncode and not done.stderr, done.stderr
    return [int(n) for n in done.stdout.split()]


def check_reads(url, env, expected):
    done = info(url, env)
    assert not done.returncode, (url, done.stderr)
    got = json.loads(done.stdout)
    assert got["samples"] == expected, (url, got)
    return done.stderr


@pytest.fixture
def closing():
    with contextlib.ExitStack() as stack:
        def do(server):
            stack.callback(server.close)
            return server

        yield do


@pytest.fixture
def numbers(tmp_path):
    return make.numbers(tmp_path / "numbers.beton", 100)


def odd_names(n, seed=1):
    """Names of files that a URL has to encode: each byte of ASCII, other
    alphabets, and texts that look encoded."""
    rng = random.Random(seed)
    fixed = ["a b", "a+b", "a%20b", "%", "%%", "%2", "%zz", "a=b&c=d", "a?b",
             "what?versionId=1?", "a#b", "a;b,c", "~", "*", "'", '"', "(a)",
             "[a]", "{a}", "a\\b", "a|b", "<a>", "^`", "$HOME", "!", "@a", ":",
             "x" * 255, "é", "e\u0301", "漢字", "😀", "\u202e", "ÿ", "..a",
             "a..", "...", " a", "-", "deep/er/ a/+/key"]
    letters = [chr(c) for c in range(33, 127) if chr(c) not in "/"] + list(
        " éß漢語😀🏳️Ωא")
    out = list(dict.fromkeys(fixed))
    while len(out) < n:
        name = "".join(rng.choices(letters, k=rng.randint(1, 60))).strip(" .")
        if name and name not in out:
            out.append(name)
    return out[:n]


def literal(name):
    """A key that ends like a query gets a '?'."""
    tail = name.rpartition("?")[2] if "?" in name else None
    mistaken = tail is not None and (not tail or "versionId=" in tail)
    return name + "?" if mistaken else name


# --- servers of others ---


def test_odd_keys(rclone, numbers, tmp_path):
    env = environment(tmp_path, **rclone.environment())
    objects = rclone.root / "bucket"
    names = odd_names(ODD_KEYS)
    for name in names:
        (objects / name).parent.mkdir(parents=True, exist_ok=True)
        if not (objects / name).exists():
            os.link(numbers.path, objects / name)
    got = sizes([f"s3://bucket/{literal(name)}" for name in names], env)
    assert got == [os.path.getsize(numbers.path)] * len(names)


def test_wrong_secret(rclone, numbers, tmp_path):
    rclone.put("a", numbers.path)
    env = environment(tmp_path, **rclone.environment())
    env["AWS_SECRET_ACCESS_KEY"] = "HUSH" + SECRET
    done = info(rclone.url("a"), env)
    assert done.returncode and "status 403" in done.stderr, done.stderr
    assert "SignatureDoesNotMatch" in done.stderr, done.stderr
    assert "HUSH" not in done.stderr and KEY not in done.stderr
    env["AWS_PROFILE"] = "none"
    done = info(rclone.url("a"), env)
    assert done.returncode and "profile none is neither" in done.stderr


def test_keys_without_files(moto, numbers, tmp_path):
    """Keys that no file system has."""
    env = environment(tmp_path, **moto.environment())
    for key, path in (("a//b", "a//b"), ("/a", "/a"), ("a/", "a/"),
                      ("x" * 1024, "x" * 1024)):
        moto.put(path, numbers.path)
        check_reads(f"s3://bucket/{key}", env, 100)


def test_versions(moto, numbers, tmp_path):
    env = environment(tmp_path, **moto.environment())
    moto.make_bucket(versions=True)
    old = moto.put("k", numbers.path)
    other = make.numbers(tmp_path / "other.beton", 7)
    new = moto.put("k", other.path)
    got = sizes(["s3://bucket/k", f"s3://bucket/k?versionId={old}",
                 f"s3://bucket/k?versionId={new}"], env)
    size = os.path.getsize(other.path)
    assert got == [size, os.path.getsize(numbers.path), size]


def test_roles_of_moto(moto, numbers, tmp_path):
    """moto's STS answers in AWS's form."""
    moto.put("k", numbers.path)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(f"""
[profile base]
aws_access_key_id = {KEY}
aws_secret_access_key = {SECRET}
[profile role]
role_arn = arn:aws:iam::123456789012:role/reader
source_profile = base
endpoint_url = http://{moto.host}:{moto.port}
s3 =
  addressing_style = path
""")
    env = environment(tmp_path, AWS_PROFILE="role")
    check_reads("s3://bucket/k", env, 100)
    (tmp_path / "token").write_text("TOKEN\n")
    env = environment(
        tmp_path, AWS_ROLE_ARN="arn:aws:iam::123456789012:role/web",
        AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token",
        AWS_ENDPOINT_URL=f"http://{moto.host}:{moto.port}")
    check_reads("s3://bucket/k", env, 100)


# --- our own servers, which are stricter ---


@pytest.fixture
def store(numbers, closing):
    """store(keys, **how) -> keystore.Store with the dataset `numbers`"""
    data = open(numbers.path, "rb").read()

    def do(keys, kind=keystore.Store, **how):
        return closing(kind(data, keys, **how))

    return do


def static(tmp_path, keys, server, **more):
    """An environment with a session of its own."""
    identity = keys.new(3600)
    secret, token, _ = keys.sessions[identity]
    return environment(tmp_path, AWS_ACCESS_KEY_ID=identity,
                       AWS_SECRET_ACCESS_KEY=secret, AWS_SESSION_TOKEN=token,
                       AWS_ENDPOINT_URL=server.url, **more)


def test_signature(store, tmp_path):
    keys = keystore.Keys()
    server = store(keys)
    assert check_reads("s3://bucket/k", static(tmp_path, keys, server),
                       100) == ""
    assert not server.refused and server.served


class Cache(Nginx):
    """Keeps slices of objects."""

    def __init__(self, folder, upstream):
        super().__init__(folder, upstream=upstream, extra="""
      slice 1m;
      proxy_cache slices;
      proxy_cache_key $uri$slice_range;
      proxy_cache_valid 206 1h;
      proxy_set_header Range $slice_range;""")

    def config(self, *args):
        text = super().config(*args).replace("proxy_buffering off;", "")
        return text.replace(
            "  sendfile on;", f"  proxy_cache_path {self.folder}/cache "
            "keys_zone=slices:1m use_temp_path=off;\n  sendfile on;")


def test_cache_between(closing, running, tmp_path):
    """A proxy that asks for other ranges breaks no signature."""
    need("nginx")
    keys = keystore.Keys()
    data = bytes(range(256)) * (20 << 10)
    server = closing(keystore.Store(data, keys))
    server.host = "127.0.0.1"
    nginx = running(Cache, server)
    env = static(tmp_path, keys, server)
    env["AWS_ENDPOINT_URL"] = f"http://{nginx.host}:{nginx.port}"
    for _ in range(2):
        done = subprocess.run([READER, "s3://bucket/k", "0.5"], env=env,
                              text=True, capture_output=True, timeout=60)
        assert not done.returncode and not done.stderr, done.stderr
    assert not server.refused and server.served <= 40


def test_region_of_the_answer(store, tmp_path):
    keys = keystore.Keys()
    server = store(keys, region="eu-west-3")
    check_reads("s3://bucket/k", static(tmp_path, keys, server), 100)
    assert server.refused == {"AuthorizationHeaderMalformed": 1}


@pytest.mark.parametrize("skew", [-7200, 86400])
def test_wrong_clock(store, tmp_path, skew):
    keys = keystore.Keys()
    server = store(keys, kind=keystore.Skewed, skew=skew)
    printed = check_reads("s3://bucket/k", static(tmp_path, keys, server), 100)
    assert server.refused == {"RequestTimeTooSkewed": 1}
    assert "the clock of this machine differs" in printed


def test_web_identity(store, closing, tmp_path):
    keys = keystore.Keys()
    token = ["first"]
    sts = closing(keystore.Sts(keys, 3600, token))
    server = store(keys)
    env = environment(tmp_path, AWS_ROLE_ARN="arn:x",
                      AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token",
                      AWS_ENDPOINT_URL=server.url,
                      AWS_ENDPOINT_URL_STS=sts.url)
    (tmp_path / "token").write_text("first\n")
    check_reads("s3://bucket/k", env, 100)
    (tmp_path / "token").write_text("other")
    done = info("s3://bucket/k", env)
    assert done.returncode and "STS: InvalidIdentityToken" in done.stderr


def test_container(store, closing, tmp_path):
    keys = keystore.Keys()
    seen = []

    def answer(q):
        seen.append(q.headers.get("Authorization"))
        q.reply(200, json.dumps(keystore.session(keys, 3600)).encode())

    pod = closing(keystore.Server(answer))
    server = store(keys)
    (tmp_path / "token").write_text("POD\n")
    env = environment(
        tmp_path, AWS_ENDPOINT_URL=server.url,
        AWS_CONTAINER_CREDENTIALS_FULL_URI=f"http://localhost:{pod.port}/v1",
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=tmp_path / "token",
)
    # The service is asked without the proxy, which does not exist.
    env |= {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    check_reads("s3://bucket/k", env, 100)
    assert seen == ["POD"]


def test_credential_process(store, tmp_path):
    keys = keystore.Keys()
    server = store(keys)
    answer = {"Version": 1, **keystore.session(keys, 3600, "SessionToken")}
    (tmp_path / "answer").write_text(json.dumps(answer))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(
        f"[default]\nendpoint_url = {server.url}\n"
        f"credential_process = sh -c 'cat \"$HOME/answer\"'\n")
    check_reads("s3://bucket/k", environment(tmp_path), 100)


@pytest.mark.parametrize("lifetime", [8, None])
def test_credential_process_of_a_mount(fuse, closing, tmp_path, lifetime):
    """A program cannot renew a session in a sandbox, so there is none. If the
    session never expires, there is nothing to renew."""
    keys = keystore.Keys()
    path = make.Dataset(tmp_path / "blobs.beton", [("blob", make.BYTES)],
                        [{"blob": bytes([i]) * 60000} for i in range(100)],
                        1 << 16).path
    server = closing(keystore.Store(open(path, "rb").read(), keys))
    answers = tmp_path / "answers"
    answers.mkdir()
    for i in range(9):
        answer = {"Version": 1,
                  **keystore.session(keys, (lifetime or 3600) + 4 * i,
                                     "SessionToken")}
        if not lifetime:
            del answer["Expiration"]
        (answers / str(i)).write_text(json.dumps(answer))
    (tmp_path / "ask").write_text(
        'cd "$HOME/answers"; f=$(ls | head -n 1); cat $f; '
        '[ $(ls | wc -l) = 1 ] || rm $f; echo >> "$HOME/asked"')
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(
        f"[default]\nendpoint_url = {server.url}\n"
        f"credential_process = sh {tmp_path}/ask\n")
    env = environment(tmp_path)
    where = tmp_path / "mnt"
    where.mkdir()

    def mount(*args):
        return subprocess.run([BUILD / "betonfs", *args, "s3://bucket/k",
                               where], env=env, text=True, timeout=60,
                              capture_output=True)
    if lifetime:
        done = mount("-o", "sandbox")
        assert done.returncode == 2, done
        assert "credential_process renews the session" in done.stderr
        assert not os.path.ismount(where)
    done = mount()
    try:
        assert not done.returncode, done.stderr
        assert ("sandbox: none, because credential_process" in done.stderr) \
            == bool(lifetime)
        options = (where / ".betonfs/options").read_text()
        assert ("sandbox=none" in options) == bool(lifetime)
        end = time.time() + (lifetime + 4 if lifetime else 0)
        n = 0
        while True:
            blob = where / "samples" / f"{n % 100:06}" / "blob.bin"
            assert blob.read_bytes() == bytes([n % 100]) * 60000
            n += 1
            if time.time() > end:
                break
            time.sleep(0.2)
        asked = (tmp_path / "asked").read_text().count("\n")
        assert asked >= (3 if lifetime else 1), asked
    finally:
        unmount(where)


def test_short_sessions(closing, tmp_path):
    """Sessions of some seconds, and a metadata service that is slow or fails:
    no read fails, while one process reads on."""
    keys = keystore.Keys()
    data = bytes(range(256)) * (8 << 12)
    server = closing(keystore.Store(data, keys))
    moods = {4: 500, 5: 503, 8: "slow", 12: 500, 13: 500, 14: 500}

    def mood(n):
        what = moods.get(n % 20)
        if what == "slow":
            time.sleep(0.8)
            return None
        return what

    imds = closing(keystore.Instance(keys, LIFETIME, mood))
    env = environment(tmp_path, AWS_EC2_METADATA_DISABLED="false",
                      AWS_EC2_METADATA_SERVICE_ENDPOINT=imds.url,
                      AWS_ENDPOINT_URL=server.url)
    done = subprocess.run([READER, "s3://bucket/k", str(SECONDS)], env=env,
                          text=True, capture_output=True,
                          timeout=SECONDS + 60)
    assert not done.returncode, done.stderr
    assert len(server.used) >= SECONDS / LIFETIME, (server.used, done.stderr)
    assert server.served > 100


def test_revoked_session(closing, tmp_path):
    """A session that ends before its time is renewed at once."""
    keys = keystore.Keys()
    server = closing(keystore.Store(bytes(range(256)) * (32 << 10), keys))
    imds = closing(keystore.Instance(keys, 3600))
    env = environment(tmp_path, AWS_EC2_METADATA_DISABLED="false",
                      AWS_EC2_METADATA_SERVICE_ENDPOINT=imds.url,
                      AWS_ENDPOINT_URL=server.url)
    with subprocess.Popen([READER, "s3://bucket/k", "2"], env=env, text=True,
                          stderr=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        while server.served < 5:
            time.sleep(0.01)
            assert p.poll() is None, p.stderr.read()
        keys.revoke()
        printed = p.communicate(timeout=60)
    assert not p.returncode, printed
    assert "ID2" in server.used and server.refused["ExpiredToken"] >= 1
