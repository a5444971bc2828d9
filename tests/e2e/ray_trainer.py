# SPDX-License-Identifier: Apache-2.0
"""Trainers on a Ray cluster for tests: train, and print the observed values as JSON.

    ray_trainer.py CASE PATH [OPTIONS]      OPTIONS is JSON
    ray_trainer.py cluster 2,2              nodes with so many CPUs, beside a head

This is a program of its own, because ray may belong to another Python.
"""
import contextlib
import faulthandler
import functools
import json
import logging
import os
import pathlib
import random
import signal
import socket
import sys
import threading
import time

import ray
from ray.cluster_utils import Cluster

import betonfs
import betonfs.ray._loader
import betonfs.ray._team

with contextlib.suppress(ImportError):
    import ray.train
from ray_batches import OPTIONS, digest

DEADLINE = 25
STORE = 80 << 20

log = logging.getLogger("betonfs")


class Lines(logging.Handler):
    """The messages of betonfs."""

    def __init__(self):
        super().__init__()
        self.lines = []
        log.addHandler(self)
        log.setLevel(logging.INFO)

    def emit(self, record):
        self.lines.append(f"{record.levelname} {record.getMessage()}")

    def wait(self, text, count=1):
        wait_until(lambda: sum(text in line for line in self.lines) >= count,
                   f"{text!r} in {self.lines}")


def wait_until(condition, what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited too long for {what}")
        time.sleep(0.02)


def opened(path, **options):
    return betonfs.ray.Loader(path, **{**OPTIONS, "makers": 1, "local": False,
                                        **options})


def linked(loader, count):
    """Waits until the loader has so many makers."""
    wait_until(lambda: loader.stats()["makers"]["makers"] == count,
               f"{count} makers: {loader.stats()['makers']}")


# --- clusters and processes ---------------------------------------------------


@contextlib.contextmanager
def cluster(*cpus, joins=True):
    """A head with one CPU, and nodes with so many. If the trainer joins it, that is
    on the head."""
    made = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False})
    try:
        if joins:
            os.environ["BETON_RAY"] = made.address
            join()
        yield made, [add_node(made, n) for n in cpus]
    finally:
        ray.shutdown()
        made.shutdown()


def add_node(made, cpus, **options):
    return made.add_node(num_cpus=cpus, object_store_memory=STORE, **options)


def join():
    ray.init(address=os.environ["BETON_RAY"], log_to_driver=False,
             logging_level="error")


def status_of(pid):
    return dict(line.split(":", 1) for line in
                pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())


def marked(name, in_the_middle=False):
    """IDs of the processes of this test with such a command line."""
    mark, found = os.environ["BETON_RAY_MARK"].encode(), []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = path.joinpath("cmdline").read_bytes().find(name)
            if (place >= 0 if in_the_middle else place == 0) and \
                    mark in path.joinpath("environ").read_bytes():
                found.append(int(path.name))
    return found


def makers():
    return marked(b"ray::Maker")


def rss(pid):
    """Resident memory in bytes."""
    return int(status_of(pid)["VmRSS"].split()[0]) << 10


class Killer:
    """Kills `count` makers while a trainer takes `total` batches: a random one,
    soon after a random batch. Every third one is killed when its process is seen,
    so that it may not have a link yet."""

    def __init__(self, loader, count, total):
        self.loader, self.kills, self.taken = loader, 0, 0
        self.threads = []
        self.at = sorted(random.sample(range(1, total - 5), count))

    def kill(self, delay):
        time.sleep(delay)
        while True:
            with contextlib.suppress(IndexError, ProcessLookupError):
                os.kill(random.choice(makers()), signal.SIGKILL)
                self.kills += 1
                return
            time.sleep(0.01)

    def step(self):
        """Call it after each batch. Makers that were killed come back before the
        next one is killed."""
        self.taken += 1
        if self.taken not in self.at:
            return
        if self.at.index(self.taken) % 3 < 2:
            wait_until(lambda: self.loader.stats()["makers"]["makers"],
                       "a maker to come back")
        self.threads.append(threading.Thread(
            target=self.kill, args=(random.random() / 20,), daemon=True))
        self.threads[-1].start()

    def end(self):
        """Waits until all are killed, while the loader has makers."""
        for thread in self.threads:
            thread.join(DEADLINE)


class Slower(threading.Thread):
    """Lets a process run for a twentieth of the time."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.ended = pid, threading.Event()
        self.start()

    def run(self):
        try:
            while not self.ended.wait(0.005):
                os.kill(self.pid, signal.SIGSTOP)
                self.ended.wait(0.095)
                os.kill(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def end(self):
        self.ended.set()
        self.join()


def take(loader, epochs, after=lambda: None):
    """All batches of some epochs, and the longest wait for one in seconds."""
    got, longest = [], 0.0
    for _ in range(epochs):
        begin = time.monotonic()
        for batch in loader:
            longest = max(longest, time.monotonic() - begin)
            got.append(digest(batch))
            del batch
            after()
            begin = time.monotonic()
    return got, longest


# --- the cases ----------------------------------------------------------------


def case_makers_die(path, makers, kills, **options):
    join()
    with opened(path, makers=makers, prefetch=2 * makers, **options) as loader:
        linked(loader, makers)
        killer = Killer(loader, kills, 2 * loader.batches)
        got, longest = take(loader, 2, killer.step)
        killer.end()
        return {"batches": got, "longest_s": longest, "kills": killer.kills,
                "stats": loader.stats()["makers"]}


class Nodes:
    """Kills three nodes that have makers, and adds as many, while a trainer takes
    `total` batches. One of the makers is slow."""

    def __init__(self, made, nodes, loader, total):
        self.made, self.nodes, self.loader = made, nodes, loader
        self.taken = self.kills = 0
        self.at = sorted(random.sample(range(10, total - 10, 5), 3))
        self.slow = Slower(makers()[0])

    def with_makers(self):
        raylets = {int(status_of(pid)["PPid"]) for pid in makers()}
        return [node for node in self.nodes if
                node.all_processes["raylet"][0].process.pid in raylets]

    def step(self):
        self.taken += 1
        if self.taken not in self.at:
            return
        linked(self.loader, 3)
        self.slow.end()
        self.nodes.append(add_node(self.made, 2))
        node = random.choice(self.with_makers())
        self.nodes.remove(node)
        self.slow = Slower(random.choice(makers()))
        threading.Thread(target=self.made.remove_node, args=(node, False)).start()
        self.kills += 1


def case_nodes_die(path):
    with cluster(2, 2) as (made, nodes), opened(path, makers=3, prefetch=6) as loader:
        linked(loader, 3)
        killer = Nodes(made, nodes, loader, 2 * loader.batches)
        got, longest = take(loader, 2, killer.step)
        killer.slow.end()
        return {"batches": got, "longest_s": longest, "kills": killer.kills,
                "stats": loader.stats()["makers"]}


def case_all_dead(path):
    join()
    with opened(path, makers=2, local=False,
                maker_options={"max_restarts": 0}) as loader:
        linked(loader, 2)
        batches = iter(loader)
        got = [digest(next(batches)) for _ in range(3)]
        lines = Lines()
        for pid in makers():
            os.kill(pid, signal.SIGKILL)
        begin, longest = time.monotonic(), 0.0
        for batch in batches:
            longest = max(longest, time.monotonic() - begin)
            got.append(digest(batch))
            begin = time.monotonic()
        lines.wait("put aside", 2)
        return {"batches": got, "longest_s": longest, "lines": lines.lines,
                "stats": loader.stats()["makers"]}


def case_states(path, at, world, other):
    """`at` batches by rank 0 of `world` with makers, one by each rank of `other`
    processes without, and the rest with makers again."""
    join()
    with opened(path, rank=0, world_size=world) as loader:
        batches = iter(loader)
        first = [digest(next(batches)) for _ in range(at)]
        state = loader.state_dict()
    then = []
    for rank in range(other):
        with betonfs.Loader(path, **OPTIONS, rank=rank, world_size=other) as loader:
            loader.load_state_dict(state)
            then.append(digest(next(iter(loader))))
            after = loader.state_dict()
    with opened(path, rank=0, world_size=1) as loader:
        loader.load_state_dict(after)
        rest, _ = take(loader, 2)
    return {"first": first, "then": then, "rest": rest}


def store_bytes():
    """Bytes of shared memory of all nodes: Ray's object stores."""
    return sum(int(status_of(pid)["RssShmem"].split()[0]) << 10
               for pid in marked(b"/raylet/raylet", in_the_middle=True))


def case_sleeps(path, seconds, batch_size):
    begin = time.monotonic()
    join()
    init, store = time.monotonic(), store_bytes()
    with opened(path, makers=2, batch_size=batch_size) as loader:
        batches = iter(loader)
        next(batches)
        first = time.monotonic() - init
        linked(loader, 2)
        for _ in range(25):
            next(batches)
        time.sleep(2)
        pids = [os.getpid(), *makers()]
        before = [rss(p) for p in pids]
        made = loader.stats()["makers"]
        time.sleep(seconds)
        return {"init_s": init - begin, "first_s": first, "before": before,
                "after": [rss(p) for p in pids], "made": made,
                "then": loader.stats()["makers"],
                "store": store_bytes() - store}


def case_grows(path):
    """A trainer that waits, and makers that are the limit at first."""
    betonfs.ray._team._DECISION = 2.0
    join()
    lines = Lines()
    pipeline = {"image": "random_resized_crop(384) | gaussian_blur(9, 2)"
                         " | float | chw"}
    with opened(path, makers="auto", local=False, pipeline=pipeline) as loader:
        end = time.monotonic() + DEADLINE
        most = 0
        while time.monotonic() < end and not any(
                "one more does not help" in line for line in lines.lines):
            for _ in loader:
                most = max(most, loader.stats()["makers"]["makers"])
        return {"lines": lines.lines, "most": most,
                "actors": len(loader._team._actors)}


def case_mistakes(path):
    join()
    found = []
    for wrong in [{"makers": -1}, {"makers": "many"}, {"makers": 1.5},
                  {"makers": True}, {"maker_options": 5},
                  {"maker_options": {"num_cpu": 1}},
                  {"maker_options": {"num_cpus": "two"}}, {"local": "yes"},
                  {"maker_options": {"num_cpus": -1}}, {"bach_size": 5}]:
        try:
            opened(path, **wrong).close()
        except Exception as e:
            found.append([str(wrong), type(e).__name__, str(e)])
        else:
            found.append([str(wrong), None, None])
    time.sleep(1)
    return {"found": found, "makers": makers()}


def case_no_cluster(path):
    # Others may be running on this machine.
    from ray._private import services
    services.find_gcs_addresses = functools.cache(set)
    try:
        opened(path)
    except Exception as e:
        return {"error": type(e).__name__, "text": str(e)}


def case_only_here(path):
    """The makers cannot open the dataset."""
    join()
    lines = Lines()
    with opened(path, makers=2, local=False) as loader:
        lines.wait("put aside", 2)
        got, longest = take(loader, 2)
        return {"batches": got, "lines": lines.lines,
                "stats": loader.stats()["makers"], "makers": makers()}


def case_relative(path):
    join()
    with opened(path) as loader:
        linked(loader, 1)
        got, _ = take(loader, 1)
        return {"batches": got, "stats": loader.stats()["makers"]}


def case_other_pipeline(path):
    join()
    lines, team = Lines(), betonfs.ray._loader.Team

    def other(core, arguments, *more):
        arguments["pipeline"] = {"image": "center_crop(12) | float | chw",
                                 "blob": "blob", "score": "score"}
        return team(core, arguments, *more)
    betonfs.ray._loader.Team = other
    with opened(path) as loader:
        lines.wait("put aside")
        got, _ = take(loader, 2)
        return {"batches": got, "lines": lines.lines}


def case_other_version(path, package):
    """A node has another version of the package."""
    with cluster() as (made, _):
        add_node(made, 1, env_vars={"PYTHONPATH": package})
        lines = Lines()
        with opened(path) as loader:
            lines.wait("put aside")
            got, _ = take(loader, 2)
        return {"batches": got, "lines": lines.lines}


def case_ends(path):
    """Copies, closes and drops loaders. All makers end."""
    import pickle
    join()
    found = {}
    loader = opened(path, makers=2)
    linked(loader, 2)
    batches = iter(loader)
    got = [digest(next(batches)) for _ in range(3)]
    with pickle.loads(pickle.dumps(loader)) as copy:
        linked(copy, 2)
        rest, _ = take(copy, 1)
    found["copied"] = got + rest
    wait_until(lambda: len(makers()) == 2, "the makers of the copy to end")
    loader.close()
    loader.close()
    wait_until(lambda: not makers(), "the makers of a closed loader to end")
    try:
        next(batches)
    except Exception as e:
        found["closed"] = f"{type(e).__name__}: {e}"
    loader = opened(path, makers=2)
    next(iter(loader))
    linked(loader, 2)
    del loader, batches
    wait_until(lambda: not makers(), "the makers of a dropped loader to end")
    # Before any maker is there.
    opened(path, makers=2).close()
    time.sleep(3)
    wait_until(lambda: not makers(), "the makers of a short loader to end")
    wait_until(lambda: not [t for t in threading.enumerate()
                            if t.name == "betonfs maker"], "threads to end")
    return found


def case_several(path):
    """Two loaders at once, two ranks in one process, and set_epoch()."""
    join()
    with opened(path) as train, opened(path, train=False, seed=None,
                                       makers=1) as val:
        linked(train, 1)
        linked(val, 1)
        both = [[digest(a), digest(b)] for a, b in zip(train, val, strict=True)]
    with opened(path, rank=0, world_size=2) as a, \
            opened(path, rank=1, world_size=2) as b:
        linked(a, 1)
        linked(b, 1)
        a.set_epoch(5)
        b.set_epoch(5)
        ranks = [take(loader, 1)[0] for loader in (a, b)]
        sent = a.stats()["makers"]["batches"] + b.stats()["makers"]["batches"]
    return {"both": both, "ranks": ranks, "sent": sent}


def files_and_threads(pid):
    return [len(os.listdir(f"/proc/{pid}/{what}")) for what in ("fd", "task")]


def case_strangers(path):
    """Programs without the key connect to a maker."""
    join()
    with opened(path, local=False) as loader:
        linked(loader, 1)
        batches = iter(loader)
        got = [digest(next(batches)) for _ in range(2)]
        host, port, pid, _ = ray.get(loader._team._actors[0].address.remote())
        before = files_and_threads(pid)
        begin = time.monotonic()
        silent, wrong, slow = (
            [socket.create_connection((host, port)) for _ in range(20)]
            for _ in range(3))
        for s in wrong:
            s.sendall(os.urandom(32))
        for s in wrong:
            s.settimeout(DEADLINE)
            with contextlib.suppress(ConnectionResetError):
                assert s.recv(1) == b""
        refused = time.monotonic() - begin
        got += [digest(b) for b in batches]
        longest = take(loader, 1)[1]

        def are_closed():
            """Sends a byte more on each slow connection."""
            left = 0
            for s in slow:
                try:
                    s.send(b"x", socket.MSG_DONTWAIT)
                    left += 1
                except OSError:
                    pass
            time.sleep(0.5)
            return not left
        wait_until(are_closed, "the end of slow connections")
        ended = time.monotonic() - begin
        for s in silent:
            s.settimeout(DEADLINE)
            assert s.recv(1) == b""
        wait_until(lambda: files_and_threads(pid)[0] <= before[0],
                   "files to be closed")
        # Ray has started one or two of its own.
        wait_until(lambda: files_and_threads(pid)[1] <= before[1] + 3,
                   "threads to end")
        return {"batches": got, "refused_s": refused, "longest_s": longest,
                "ended_s": ended, "stats": loader.stats()["makers"]}


def work(settings):
    """A worker of Ray Train."""
    torch = sys.modules.get("torch")
    context = ray.train.get_context()
    with opened(settings["path"]) as loader:
        place = [loader.rank, loader.world_size]
        linked(loader, 1)
        got, _ = take(loader, 2)
        node = ray.get_runtime_context().get_node_id()
        found = {"place": place, "batches": got, "node": node,
                 "is_distributed": bool(torch and torch.distributed.is_initialized()),
                 "stats": loader.stats()["makers"]}
    # Its file appears as a whole.
    path = pathlib.Path(settings["out"]) / str(context.get_world_rank())
    path.with_suffix(".new").write_text(json.dumps(found))
    path.with_suffix(".new").rename(path)


def case_train(path, out, with_torch):
    """Two workers of Ray Train, in placement groups, and their makers."""
    join()
    if with_torch:
        from ray.train.torch import TorchTrainer as Trainer
    else:
        from ray.train.v2.api.data_parallel_trainer import (
            DataParallelTrainer as Trainer)
    Trainer(work, train_loop_config={"path": str(path), "out": out},
            scaling_config=ray.train.ScalingConfig(num_workers=2),
            run_config=ray.train.RunConfig(storage_path=f"{out}/train")).fit()
    return [json.loads((pathlib.Path(out) / str(rank)).read_text())
            for rank in range(2)]


def run_cluster(cpus):
    with cluster(*map(int, cpus.split(",")), joins=False) as (made, _):
        print(made.address, flush=True)
        sys.stdin.read()


def main():
    case, path, *more = sys.argv[1:]
    if case == "cluster":
        run_cluster(path)
        return
    # If a case hangs, its stacks are in the error of the test.
    faulthandler.dump_traceback_later(70, exit=True)
    out = globals()[f"case_{case}"](path, **json.loads(*more or ["{}"]))
    print("\nRESULT", json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
