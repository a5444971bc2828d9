# SPDX-License-Identifier: Apache-2.0
"""Runs under the interpreter that RAY_PYTHON names, on a Ray of this machine:
functions by name, with arguments and results as JSON."""
import hashlib
import json
import os
import pathlib
import signal
import sys
import time

import numpy as np
import ray
import ray.data

import betonfs


def of(value):
    """A digest of a value, with its type and shape, in this byte order."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    a = np.asarray(value)
    a = a.astype(a.dtype.newbyteorder("="))
    return hashlib.sha256(f"{a.dtype} {a.shape}".encode()
                          + a.tobytes()).hexdigest()


def of_loader(path, epoch, arguments):
    rows = []
    with betonfs.Loader(path, **arguments, tensors="numpy", rank=0,
                        world_size=1, epoch=epoch) as loader:
        for batch in loader:
            assert batch.epoch == epoch
            for i in range(batch.num_samples):
                rows.append({
                    "epoch": int(batch.epoch), "batch": int(batch.number),
                    "row": i, "id": int(batch.ids[i]),
                    "valid": bool(batch.valid[i]),
                    **{name: of(value[i]) for name, value in batch.items()}})
            if batch.number + 1 == loader.batches:
                break
    return rows


COLUMNS = ["epoch", "batch", "row", "id", "valid"]


def of_dataset(dataset):
    return [{k: v if k in COLUMNS else of(v) for k, v in row.items()}
            for row in dataset.take_all()]


def read(path, cases):
    """The rows of each case, twice: of a Loader, and of Ray, which sorts those
    of the first case."""
    out = []
    for epoch, arguments, remote in cases:
        dataset = betonfs.ray.read(path, epoch=epoch, override_num_blocks=3,
                                   ray_remote_args=remote,
                                   **arguments).materialize()
        rows = of_dataset(dataset if out else dataset.sort(COLUMNS[:3]))
        if out:
            rows.sort(key=lambda row: (row["batch"], row["row"]))
        out.append([of_loader(path, epoch, arguments), rows,
                    dataset.num_blocks()])
    return out


def count(path, cases):
    """The number of rows by Ray, the numbers of tasks for numbers that it asks
    for, the rows of these in advance, and those of tasks with a limit."""
    out = []
    for arguments in cases:
        dataset = betonfs.ray.read(path, **arguments)
        with betonfs.Loader(path, **arguments, tensors="numpy",
                            on_demand=True) as loader:
            source = sys.modules["betonfs.ray._source"].Batches(loader, 0)
        tasks = [source.get_read_tasks(n) for n in (1, 3, 1000)]
        out.append({
            "rows": dataset.count(), "tasks": list(map(len, tasks)),
            "known": [sum(t.metadata.num_rows for t in own) for own in tasks],
            "limited": [sum(len(block) for block in task())
                        for task in source.get_read_tasks(2, 5)]})
    return out


def failing(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as e:
        return type(e).__name__, str(e)
    return None


def read_errors(path, damaged):
    """The errors of reads that cannot work."""
    def taken(path, **arguments):
        arguments = {"pipeline": {"image": "center_crop(8)"}, **arguments}
        betonfs.ray.read(path, 4, train=False, **arguments).take_all()

    replaced = betonfs.ray.read(damaged, 4, pipeline={"label": "label"})
    wrong = {"tensors": {"tensors": "torch"}, "rank": {"rank": 1},
             "name": {"pipeline": {"id": "label"}}, "order": {"order": "up"},
             "epoch": {"epoch": -1}, "remote": {"ray_remote_args": 4}}
    found = {k: failing(taken, path, **a) for k, a in wrong.items()}
    found["damaged"] = failing(taken, damaged)
    found["missing"] = failing(taken, f"{path}.no")
    skipped = betonfs.ray.read(damaged, 4, train=False, on_error="skip",
                               pipeline={"image": "center_crop(8)"})
    found["skipped"] = [r["id"] for r in skipped.take_all() if not r["valid"]]
    os.replace(path, damaged)
    found["replaced"] = failing(replaced.take_all)
    return found


def write(source, path, *arguments, **named):
    return betonfs.ray.write(source, path, *arguments, **named)


def write_errors(source, path, wrong):
    return [failing(betonfs.ray.write, source, path, **a) for a in wrong]


def row(i):
    return {"image": np.random.default_rng(i).integers(
                0, 255, (5 + i % 3, 6, 3), np.uint8),
            "label": i % 7, "score": i / 3, "vec": np.arange(4, dtype="f4") + i,
            "blob": bytes([i % 256]) * (i % 5), "text": f"number {i}"}


FIELDS = {"image": "image", "label": "int", "score": "float",
          "vec": ("float32", (4,)), "blob": "bytes", "text": "json"}


class Rows:
    """A function of a number whose process dies once, at one of them."""

    def __init__(self, place, number):
        self.place, self.number = pathlib.Path(place), number

    def __call__(self, given):
        if not given["id"]:         # later blocks are complete before the first
            time.sleep(3)
        if given["id"] == self.number and not self.place.exists():
            self.place.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row(given["id"])


def write_rows(folder, n, blocks, shards, dies_at):
    """Write n rows by Ray and by one process. Other resources keep Ray from
    joining the tasks that make rows with those that write them."""
    betonfs.write(f"{folder}/one.beton", [row(i) for i in range(n)], FIELDS,
                  mode="raw")
    dataset = ray.data.range(n, override_num_blocks=blocks).map(
        Rows(f"{folder}/died", dies_at).__call__, num_cpus=0.5)
    options = dataset.context.execution_options
    before = options.preserve_order
    done = betonfs.ray.write(dataset, f"{folder}/ray.beton", shards,
                             fields=FIELDS, mode="raw")
    return done, before == options.preserve_order


def write_rows_errors(folder):
    def writing(dataset, **named):
        return failing(betonfs.ray.write, dataset, f"{folder}/no.beton",
                       **named)

    return {"empty": writing(ray.data.range(5).filter(lambda row: False)),
            "bad": writing(ray.data.range(5).map(lambda row: {"x": 1 / 2}),
                           fields={"x": "int"}),
            "options": writing(ray.data.range(5), options=["-v"]),
            "append": writing(ray.data.range(5), append=True),
            "list": writing([]),
            "kind": writing(5)}


if __name__ == "__main__":
    # Otherwise it takes a cluster that others have started.
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False,
             logging_level="error", object_store_memory=100 << 20,
             _temp_dir=sys.argv[1])
    ray.data.DataContext.get_current().enable_progress_bars = False
    name, arguments, named = json.load(sys.stdin)
    result = globals()[name](*arguments, **named)
    print("\n" + json.dumps(result))
