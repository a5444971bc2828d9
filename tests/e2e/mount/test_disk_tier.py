"""The disk tier of a mount: what was read from a server is read from the disk
by later mounts, whatever ends the one before."""
import hashlib
import os
import random
import re
import time

import pytest

import make

SIZE = 65000    # of a sample, in a page of 64 KiB
ORDER = "batches/order=random,batch=20,seed=%d/0"


class Tier:
    """Mounts a URL with a tier and counts what the server sends."""

    def __init__(self, daemon, nginx, folder, samples):
        root = folder / "root"
        root.mkdir()
        rng = random.Random(5)
        self.path = root / "a.beton"
        make.Dataset(self.path, [("blob", make.BYTES)],
                     [{"blob": rng.randbytes(SIZE)} for _ in range(samples)],
                     1 << 16)
        self.daemon, self.server = daemon, nginx(root)
        self.folder = folder / "tier"
        self.size = self.path.stat().st_size

    def mount(self, *options):
        self.server.forget()
        return self.daemon(
            self.server.url("a.beton"), "-o",
            ",".join((f"disk={self.folder}", "cache_size=64M", *options)))

    def sent(self):
        return sum(r.sent for r in self.server.requests()) / self.size


@pytest.fixture
def tier(daemon, nginx, tmp_path, request):
    return Tier(daemon, nginx, tmp_path, getattr(request, "param", 400))


def epoch(where, seed):
    """The number of batches, and the checksum of their bytes."""
    sums = hashlib.sha256()
    batches = sorted((where / (ORDER % seed)).iterdir())
    for batch in batches:
        sums.update(batch.read_bytes())
    return len(batches), sums.hexdigest()


def local(mount, path, seed):
    return epoch(mount(path), seed)


def settle(tier, share=1.0):
    """Waits until the tier has what was read."""
    end = time.monotonic() + 10
    data, = tier.folder.glob("*.data")
    while data.stat().st_blocks * 512 < share * tier.size:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_second_mount_reads_the_disk(tier, mount):
    right = local(mount, tier.path, 1)
    d = tier.mount()
    assert epoch(d.where, 1) == right
    assert 0.95 < tier.sent() < 1.10
    settle(tier)
    assert d.end(readers=True) == 0
    d = tier.mount()
    assert epoch(d.where, 1) == right
    assert epoch(d.where, 2) == local(mount, tier.path, 2)
    assert tier.sent() < 0.1    # the header, on every mount
    assert d.end(readers=True) == 0
    assert not re.search("damaged|denied|permitted", d.printed())


def test_a_killed_mount_loses_nothing_that_was_written(tier, mount):
    right = local(mount, tier.path, 1)
    sent = 0
    for _ in range(4):
        d = tier.mount()
        path = d.where / (ORDER % 1)
        for batch in sorted(path.iterdir())[:random.randrange(20)]:
            batch.read_bytes()
        sent += tier.sent()
        d.process.kill()
        d.end(readers=True)
    d = tier.mount()
    assert epoch(d.where, 1) == right
    settle(tier)
    d.process.kill()
    d.end(readers=True)
    d = tier.mount()
    assert epoch(d.where, 1) == right
    assert tier.sent() < 0.1
    assert d.end(readers=True) == 0


@pytest.mark.parametrize("tier", [2100], indirect=True)
def test_half_a_tier_keeps_half(tier, mount):
    right = local(mount, tier.path, 1)
    for i in range(3):
        d = tier.mount("disk_size=66M")
        assert epoch(d.where, 1) == right
        assert i == 0 or tier.sent() < 0.55
        assert "full" not in d.printed()
        assert d.end(readers=True) == 0


def test_two_mounts_share_a_tier(tier, mount):
    right = local(mount, tier.path, 1)
    first = tier.mount()
    assert epoch(first.where, 1) == right
    settle(tier)
    second = tier.mount()
    assert epoch(second.where, 1) == right
    assert tier.sent() < 0.1
    assert first.end(readers=True) == 0 and second.end(readers=True) == 0


def test_flipped_bits_are_read_again(tier, mount):
    right = local(mount, tier.path, 1)
    d = tier.mount()
    epoch(d.where, 1)
    settle(tier)
    assert d.end(readers=True) == 0
    data, = tier.folder.glob("*.data")
    with open(data, "r+b") as f:
        f.seek(tier.size // 2)
        byte = f.read(1)
        f.seek(tier.size // 2)
        f.write(bytes((byte[0] ^ 1,)))
    d = tier.mount()
    assert epoch(d.where, 1) == right
    assert d.end(readers=True) == 0
    assert len(re.findall("is damaged", d.printed())) == 1


def test_a_directory_of_all_users_is_refused(tier):
    tier.folder.mkdir()
    tier.folder.chmod(0o777)
    with pytest.raises(AssertionError, match="other users may write"):
        tier.mount()


# --- objects that only look equal --------------------------------------------


@pytest.fixture
def twins(tmp_path):
    """Two datasets of one size and one time whose bytes differ."""
    root = tmp_path / "root"
    root.mkdir()
    paths = [root / "a.beton", root / "b.beton"]
    for seed, path in enumerate(paths):
        rng = random.Random(seed)
        make.Dataset(path, [("blob", make.BYTES)],
                     [{"blob": rng.randbytes(SIZE)} for _ in range(60)], 1 << 16)
        os.utime(path, (1.6e9, 1.6e9))
    assert paths[0].stat().st_size == paths[1].stat().st_size
    return paths


def through(daemon, tier, url, *options):
    d = daemon(url, "-o", ",".join((f"disk={tier}", "cache_size=64M", *options)))
    found = epoch(d.where, 1)
    assert d.end(readers=True) == 0
    return found, d.printed()


@pytest.mark.parametrize("how", [{"etag": "none", "date": False},
                                 {"etag": "none"}, {"etag": "weak"},
                                 {"etag": '"1"'}], ids=str)
def test_objects_of_two_queries(daemon, mount, faulty, twins, tmp_path, how):
    server = faulty(twins[0].parent, if_match=False,
                    queries={f"id={i}": str(p) for i, p in enumerate(twins)},
                    **how)
    for i, path in enumerate(twins):
        found, _ = through(daemon, tmp_path / "tier", server.url("get") + f"?id={i}")
        assert found == local(mount, path, 1)


@pytest.mark.parametrize("how", [{"etag": "none", "date": False},
                                 {"etag": "none"}, {"etag": "weak"}], ids=str)
def test_a_replaced_object_without_an_etag(daemon, mount, faulty, twins, tmp_path,
                                           how):
    """Its bytes have no name that outlives the process."""
    rights = [local(mount, path, 1) for path in twins]
    server = faulty(twins[0].parent, **how)
    for _ in range(2):
        found, text = through(daemon, tmp_path / "tier", server.url("a.beton"))
        assert found == rights[0]
        assert "of use to this process only" in text
    os.replace(twins[1], twins[0])
    found, _ = through(daemon, tmp_path / "tier", server.url("a.beton"))
    assert found == rights[1]


def test_two_servers_with_one_etag(daemon, mount, faulty, twins, tmp_path):
    for path in twins:
        root = tmp_path / path.stem
        root.mkdir()
        server = faulty(root, etag='"1"')
        path.rename(root / "x.beton")
        found, _ = through(daemon, tmp_path / "tier", server.url("x.beton"))
        assert found == local(mount, root / "x.beton", 1)


def test_a_url_that_is_signed_again(daemon, faulty, twins, tmp_path):
    """Parameters that only sign a request do not name another object."""
    server = faulty(twins[0].parent)
    url = server.url("a.beton") + "?x=1&X-Amz-Signature=%d&X-Amz-Date=2020%d"
    right, _ = through(daemon, tmp_path / "tier", url % (1, 1))
    server.play()
    found, _ = through(daemon, tmp_path / "tier", url % (2, 2))
    assert found == right
    assert server.report()["bytes"] < 0.2 * twins[0].stat().st_size
