# SPDX-License-Identifier: Apache-2.0
"""Read one remote dataset by one tool, for remote: prints a line of JSON.

    remote_peer.py NAME ORDER JOB       JOB is a JSON file of remote
    remote_peer.py prepare JOB          writes the peers' own formats

A tool reads all samples once, in the file's order or shuffled, as fast as it
can. `first_s` is the time until 256 samples are there, from the start of the
process; `bytes` are those of the samples."""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import time

BATCH = 256
THREADS = 32            # readers of samples from a mounted file
START = time.monotonic()


class NotHere(Exception):
    """This tool cannot run on this machine, and why."""


class Count:
    """Samples and bytes so far."""

    def __init__(self):
        self.samples, self.bytes, self.first = 0, 0, None

    def add(self, size, samples=1):
        self.samples += samples
        self.bytes += size
        if self.first is None and self.samples >= BATCH:
            self.first = time.monotonic() - START


class Job:
    def __init__(self, path, order):
        for key, value in json.loads(pathlib.Path(path).read_text()).items():
            setattr(self, key, value)
        self.order = order
        self.extents = [tuple(e) for e in self.extents]
        if order == "random":
            random.Random(7).shuffle(self.extents)

    def batches(self):
        for i in range(0, len(self.extents), BATCH):
            yield self.extents[i:i + BATCH]

    def s3_environment(self):
        return {"AWS_ACCESS_KEY_ID": self.key,
                "AWS_SECRET_ACCESS_KEY": self.secret,
                "AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region,
                "AWS_ENDPOINT_URL": self.endpoint,
                "S3_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true",
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
                "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}


# --- a file that something mounts ---

def read_file(path, job, count, readers=1):
    """The samples, by threads; a file in its order, by so many readers."""
    fd = os.open(path, os.O_RDONLY)

    def sample(extent):
        place, size = extent
        data = os.pread(fd, size, place)
        while len(data) < size:
            more = os.pread(fd, size - len(data), place + len(data))
            if not more:
                raise OSError("the file ends early")
            data += more
        return size

    # One reader of a file in its order: the kernel and the tool read ahead.
    threads = THREADS if job.order == "random" else readers
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for size in pool.map(sample, job.extents):
            count.add(size)


@contextlib.contextmanager
def mounted(command, job, name):
    """A daemon in the foreground; -> the file."""
    where = pathlib.Path(job.work) / "mnt"
    where.mkdir(exist_ok=True)
    log = open(pathlib.Path(job.work) / "mount.log", "w")
    try:
        daemon = subprocess.Popen(
            [str(c).replace("{}", str(where)) for c in command],
            stdout=log, stderr=log)
    except OSError as e:
        raise NotHere(f"{command[0]}: {e.strerror}") from e
    try:
        end = time.monotonic() + 30
        while not (where / name).exists():
            if daemon.poll() is not None or time.monotonic() > end:
                raise NotHere(pathlib.Path(log.name).read_text()[-300:])
            time.sleep(0.01)
        yield where / name
    finally:
        subprocess.run(["fusermount3", "-uz", where], check=False,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-l", where], check=False,
                       stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(10)
        daemon.terminate()
        daemon.wait()


def read_mounted(command, job, count, name=None, readers=1):
    with mounted(command, job, name or job.name) as path:
        read_file(path, job, count, readers)


def peer_s3fs(job, count):
    secret = pathlib.Path(job.work) / "s3fs.passwd"
    secret.write_text(f"{job.key}:{job.secret}")
    secret.chmod(0o600)
    read_mounted(
        ["s3fs", job.bucket, "{}", "-f", "-o", f"url={job.endpoint}", "-o",
         "use_path_request_style", "-o", f"passwd_file={secret}", "-o",
         "parallel_count=16", "-o", "multipart_size=8", "-o",
         f"endpoint={job.region}", "-o", "no_check_certificate"], job, count)


def peer_httpdirfs(job, count):
    cache = pathlib.Path(job.work) / "httpdirfs"
    cache.mkdir()
    read_mounted(
        ["httpdirfs", "-f", "--no-range-check", "--cache", f"--cache-location={cache}",
         "--max-conns", "10", job.http.rpartition("/")[0] + "/", "{}"],
        job, count)


def peer_nbdkit(job, count):
    """nbdkit's curl plugin with 16 connections; nbdfuse shows a file."""
    socket = pathlib.Path(job.work) / "nbd.socket"
    socket.unlink(missing_ok=True)
    try:
        server = subprocess.Popen(
            ["nbdkit", "-f", "-U", socket, "-r", "--threads=32", "curl",
             job.http, "timeout=60"], stderr=subprocess.DEVNULL)
    except OSError as e:
        raise NotHere(f"nbdkit: {e.strerror}") from e
    try:
        while not socket.exists():
            if server.poll() is not None:
                raise NotHere("nbdkit ended")
            time.sleep(0.01)
        read_mounted(["nbdfuse", "-r", "-C", "16", "{}/nbd",
                      f"nbd+unix:///?socket={socket}"], job, count, "nbd",
                     readers=16)
    finally:
        server.terminate()
        server.wait()


def rclone_command(job, *options):
    rclone = pathlib.Path(sys.executable).with_name("rclone")
    return [rclone if rclone.exists() else "rclone", "mount",
            f":s3:{job.bucket}", "{}", "--config", "/dev/null",
            "--s3-provider", "Other", "--s3-endpoint", job.endpoint,
            "--s3-access-key-id", job.key, "--s3-secret-access-key",
            job.secret, "--read-only", "--no-modtime", "--dir-cache-time",
            "1h", *options]


def peer_rclone(job, count):
    """16 streams of 4 MiB, as its manual proposes."""
    read_mounted(rclone_command(job, "--vfs-read-chunk-streams", "16",
                                "--vfs-read-chunk-size", "4M"), job, count)


def peer_rclone_cache(job, count):
    cache = pathlib.Path(job.work) / "rclone"
    read_mounted(rclone_command(job, "--vfs-cache-mode", "full", "--cache-dir",
                                cache), job, count)


# --- libraries ---

def import_module(name):
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as e:
        raise NotHere(str(e)) from e


def read_ranges(fs, path, job, count):
    """The next batch is asked for while one arrives, as prefetching does."""
    def get(batch):
        got = fs.cat_ranges([path] * len(batch), [p for p, _ in batch],
                            [p + s for p, s in batch])
        return [len(g) for g in got]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        batches = job.batches()
        waiting = [pool.submit(get, b) for b in itertools.islice(batches, 2)]
        while waiting:
            for size in waiting.pop(0).result():
                count.add(size)
            waiting += [pool.submit(get, b) for b in
                        itertools.islice(batches, 1)]


def peer_fsspec_http(job, count):
    fsspec = import_module("fsspec")
    read_ranges(fsspec.filesystem("http"), job.http, job, count)


def peer_fsspec_s3(job, count):
    s3fs = import_module("s3fs")
    fs = s3fs.S3FileSystem(key=job.key, secret=job.secret, client_kwargs={
        "endpoint_url": job.endpoint, "region_name": job.region},
        config_kwargs={"max_pool_connections": 64})
    # Its session cannot be created by many requests at once.
    fs.info(f"{job.bucket}/{job.name}")
    read_ranges(fs, f"{job.bucket}/{job.name}", job, count)


def s3_client(job):
    client = import_module("s3torchconnectorclient._mountpoint_s3_client")
    os.environ.update(job.s3_environment())
    module = import_module("s3torchconnector._s3client")
    config = import_module("s3torchconnector").S3ClientConfig(
        force_path_style=True)
    return client, module.S3Client(job.region, endpoint=job.endpoint,
                                   s3client_config=config)


def peer_s3torchconnector(job, count):
    """Its own readers of one object: sequential, or of ranges by threads."""
    _, client = s3_client(job)
    reader = import_module("s3torchconnector").S3ReaderConstructor
    if job.order == "sequential":
        stream = client.get_object(job.bucket, job.name,
                                   reader_constructor=reader.sequential())
        for place, size in job.extents:
            stream.seek(place)
            count.add(len(stream.read(size)))
        return

    def sample(extent):
        r = client.get_object(job.bucket, job.name, reader_constructor=(
            reader.range_based(buffer_size=0)))
        r.seek(extent[0])
        return len(r.read(extent[1]))

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for size in pool.map(sample, job.extents):
            count.add(size)


def as_is(rows):
    return rows


def consume(loader, count, field):
    for batch in loader:
        count.add(sum(len(row[field]) for row in batch), len(batch))


class Objects:
    """A dataset of torch: an object for each sample."""

    def __init__(self, job, names):
        self.job, self.names, self.client = job, names, None

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        if self.client is None:
            self.client = s3_client(self.job)[1]
        r = self.client.get_object(self.job.bucket, self.names[i])
        return {"image": r.read()}


def peer_s3torchconnector_objects(job, count):
    data = import_module("torch.utils.data")
    s3_client(job)
    names = [f"samples/{i:06}" for i in range(len(job.extents))]
    consume(data.DataLoader(Objects(job, names), BATCH, num_workers=4,
                            shuffle=job.order == "random", collate_fn=as_is,
                            prefetch_factor=4), count, "image")


def peer_litdata(job, count):
    litdata = import_module("litdata")
    os.environ.update(job.s3_environment())
    dataset = litdata.StreamingDataset(
        f"s3://{job.bucket}/litdata", cache_dir=str(
            pathlib.Path(job.work) / "litdata"),
        shuffle=job.order == "random", max_cache_size="10GB")
    consume(litdata.StreamingDataLoader(
        dataset, batch_size=BATCH, num_workers=4, collate_fn=as_is), count,
        "image")


def peer_streaming(job, count):
    streaming = import_module("streaming")
    os.environ.update(job.s3_environment())
    data = import_module("torch.utils.data")
    import_module("streaming.base.util").clean_stale_shared_memory()
    dataset = streaming.StreamingDataset(
        remote=f"s3://{job.bucket}/mds", local=str(
            pathlib.Path(job.work) / "mds"),
        shuffle=job.order == "random", batch_size=BATCH,
        predownload=4 * BATCH, num_canonical_nodes=1, download_retry=5)
    consume(data.DataLoader(dataset, BATCH, num_workers=4, collate_fn=as_is),
            count, "image")


def peer_webdataset(job, count):
    wds = import_module("webdataset")
    data = import_module("torch.utils.data")
    base = job.http.rpartition("/")[0]
    shards = [f"pipe:curl -sSf {base}/wds/{i:04}.tar" for i in
              range(job.shards)]
    dataset = wds.WebDataset(shards, shardshuffle=len(shards) if
                             job.order == "random" else False, empty_check=False)
    if job.order == "random":
        dataset = dataset.shuffle(1000)
    consume(data.DataLoader(dataset, BATCH, num_workers=4, collate_fn=as_is),
            count, "image.jpg")


def peer_curl(job, count):
    """One GET of the whole file: no loader, but what the link gives."""
    curl = subprocess.Popen(["curl", "-sSf", job.http],
                            stdout=subprocess.PIPE)
    left = iter(job.extents)
    at = 0
    for place, size in left:
        while at < place + size:
            got = len(curl.stdout.read(min(1 << 20, place + size - at)))
            if not got:
                raise OSError("curl ended early")
            at += got
        count.add(size)
    curl.stdout.close()
    curl.wait()


# --- the peers' formats ---

def samples_of(job):
    with open(job.file, "rb") as f:
        for place, size in job.extents:
            f.seek(place)
            yield f.read(size)


def prepare(job):
    """Objects, MDS, LitData's chunks and tar files beside the dataset."""
    top = pathlib.Path(job.file).parent
    (top / "samples").mkdir(exist_ok=True)
    for i, data in enumerate(samples_of(job)):
        (top / f"samples/{i:06}").write_bytes(data)
    for write in (write_litdata, write_mds, write_tars):
        try:
            write(job, top)
        except NotHere as e:
            print(f"{write.__name__}: {e}", file=sys.stderr)


def write_litdata(job, top):
    writer = import_module("litdata.streaming.writer").BinaryWriter(
        str(top / "litdata"), chunk_bytes=64 << 20)
    for i, data in enumerate(samples_of(job)):
        writer.add_item(i, {"image": data, "label": i % 1000})
    writer.done()
    writer.merge()


def write_mds(job, top):
    streaming = import_module("streaming")
    with streaming.MDSWriter(out=str(top / "mds"), columns={
            "image": "bytes"}, size_limit=64 << 20) as out:
        for data in samples_of(job):
            out.write({"image": data})


def write_tars(job, top):
    wds = import_module("webdataset")
    (top / "wds").mkdir(exist_ok=True)
    with wds.ShardWriter(str(top / "wds/%04d.tar"), maxsize=32 << 20,
                         maxcount=1 << 30) as out:
        for i, data in enumerate(samples_of(job)):
            out.write({"__key__": f"{i:06}", "image.jpg": data})


PEERS = {name[5:]: function for name, function in globals().items()
         if name.startswith("peer_")}


def cpu():
    return sum(u.ru_utime + u.ru_stime for u in (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN)))


def main():
    if sys.argv[1] == "prepare":
        prepare(Job(sys.argv[2], "sequential"))
        return
    name, order = sys.argv[1:3]
    count = Count()
    try:
        PEERS[name](Job(sys.argv[3], order), count)
    except NotHere as e:
        print(json.dumps({"not_here": str(e)}))
        return
    print(json.dumps({
        "first_s": count.first, "seconds": time.monotonic() - START,
        "samples": count.samples, "bytes": count.bytes, "cpu_s": cpu()}))


if __name__ == "__main__":
    main()
