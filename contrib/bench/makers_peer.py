#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure one way of decoding for a trainer, in a process of its own.

    makers_peer.py NAME FILE [OPTION]...

`makers` calls it. The trainer runs on the first CPU, and everything that works
for it on the second one: a maker, or the workers of another tool. Prints JSON:
images per second, and microseconds of CPU time per image of the trainer's machine
(`trainer_us`) and of the other one (`other_us`).
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from common import cpu_s, package

SIDE = 224
PIPELINES = {
    "uint8": f"image | random_resized_crop({SIDE}) | flip",
    "float32": f"image | random_resized_crop({SIDE}) | flip"
               " | normalize(imagenet) | float | chw"}
# loader/run/link/wire.h and <beton/batch.h>.
HELLO, NAME, ANSWER = 344, struct.Struct("<QQ"), struct.Struct("<QQqQ")
EPOCH, SPEC_OFF, SPEC_SIZE, CRC = 48, 152, 168, 172
MAKER, TRAINER = 1, 2


def pin(cpu):
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[min(cpu, len(cpus) - 1)]})


def own_cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(batches, o, other_cpu=lambda: 0.0, trainer_cpu=own_cpu):
    """Take batches, which are their sizes, for some seconds after a warm-up."""
    end = time.monotonic() + o.warm
    for _ in batches:
        if time.monotonic() > end:
            break
    begin, images = time.monotonic(), 0
    trainer, other = trainer_cpu(), other_cpu()
    for size in batches:
        images += size
        if time.monotonic() > begin + o.seconds:
            break
    seconds = time.monotonic() - begin
    return {"images_per_s": images / seconds,
            "trainer_us": 1e6 * (trainer_cpu() - trainer) / images,
            "other_us": 1e6 * (other_cpu() - other) / images}


# --- betonfs without Ray ---

def core(o, **options):
    from betonfs import _beton
    return _beton.Loader(o.file, spec=f"order=random,batch={o.batch},seed=1",
                         pipeline=PIPELINES[o.type],
                         tell=lambda level, text: print(text, file=sys.stderr),
                         **options)


def sizes(loader):
    while True:
        turn = loader.begin_epoch()
        while (batch := loader.next(None, turn)) is not None:
            yield batch.num_samples


def local(o):
    package()
    return measure(sizes(core(o, workers=1)), o)


def maker(o):
    package()
    pin(1)
    with socket.create_connection(("127.0.0.1", o.port)) as s:
        core(o, role=MAKER, workers=1).serve(s)
    return {}


def receive(s, size):
    parts = bytearray(size)
    view = memoryview(parts)
    while view:
        n = s.recv_into(view)
        if not n:
            sys.exit()
        view = view[n:]
    return parts


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def record(o, hello):
    """The answers of a real maker for the batches of one epoch."""
    near, far = socket.socketpair()
    threading.Thread(target=core(o, role=MAKER, workers=1).serve, args=(far,),
                     daemon=True).start()
    near.sendall(hello)
    receive(near, HELLO)
    answers = []
    for number in range(core(o, on_demand=True).info()["batches"]):
        near.sendall(NAME.pack(0, number))
        size = ANSWER.unpack(receive(near, ANSWER.size))[3]
        answers.append(receive(near, size))
    return answers


def answer_of(recorded, epoch):
    """The head of the recorded answer for another epoch."""
    spec_off, = struct.unpack_from("<Q", recorded, SPEC_OFF)
    spec_size, = struct.unpack_from("<I", recorded, SPEC_SIZE)
    head = recorded[:spec_off + spec_size]
    struct.pack_into("<Q", head, EPOCH, epoch)
    struct.pack_into("<I", head, CRC, 0)
    struct.pack_into("<I", head, CRC, crc32c(head))
    return head


def simulate(s, o, answers):
    """One maker that takes as long as a real one, and sends what it sends."""
    with contextlib.suppress(OSError):      # the trainer ends
        answer(s, o, answers)


def answer(s, o, answers):
    made = time.monotonic()
    while True:
        # A real maker makes a batch while it sends the one before.
        if not select.select([s], [], [], 0)[0]:
            select.select([s], [], [])
            made = time.monotonic()
        epoch, number = NAME.unpack(receive(s, NAME.size))
        body = answers[number]
        head = answer_of(body, epoch)
        made += o.batch_time
        time.sleep(max(0, made - time.monotonic()))
        s.sendall(ANSWER.pack(epoch, number, 0, len(body)))
        s.sendall(head)
        s.sendall(memoryview(body)[len(head):])


def simulated(o):
    """All simulated makers."""
    package()
    pin(1)
    links = [socket.create_connection(("127.0.0.1", o.port))
             for _ in range(o.makers)]
    hellos = [bytes(receive(s, HELLO)) for s in links]
    answers = record(o, hellos[0])
    threads = []
    for s, hello in zip(links, hellos):
        s.sendall(hello)
        threads.append(threading.Thread(target=simulate, args=(s, o, answers)))
        threads[-1].start()
    for t in threads:
        t.join()
    return {}


def children(o, names):
    """Start the other side as processes of this program."""
    options = [f"--{key}={getattr(o, key.replace('-', '_'))}" for key in
               ("batch", "type", "makers", "port", "batch-time")]
    return [subprocess.Popen([sys.executable, __file__, name, o.file, *options])
            for name in names]


def attach(loader, s):
    with contextlib.suppress(OSError):
        loader.attach(s)


def linked(o, names, links):
    package()
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    o.port = server.getsockname()[1]
    processes = children(o, names)
    pin(0)
    loader = core(o, role=TRAINER, workers=1, spare_workers=True,
                  prefetch=2 * links + 2)
    sockets = [server.accept()[0] for _ in range(links)]
    for s in sockets:
        threading.Thread(target=attach, args=(loader, s), daemon=True).start()
    while loader.stats()["makers"]["makers"] < links:
        time.sleep(0.05)
    try:
        return measure(sizes(loader), o,
                       lambda: sum(cpu_s(p.pid) for p in processes))
    finally:
        loader.close()
        for p in processes:
            p.kill()
            p.wait()


def makers(o):
    return linked(o, ["maker"] * o.makers, o.makers)


def simulation(o):
    return linked(o, ["simulated"], o.makers)


# --- on Ray ---

@contextlib.contextmanager
def cluster():
    """Two nodes, each on a CPU of its own."""
    import ray
    from ray.cluster_utils import Cluster
    more = {"include_dashboard": False, "object_store_memory": 1 << 30}
    pin(0)
    c = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **more})
    pin(1)
    c.add_node(num_cpus=1, object_store_memory=1 << 30)
    pin(0)
    ray.init(address=c.address, log_to_driver=False)
    raylet, = c.head_node.all_processes["raylet"]
    try:
        yield lambda: own_cpu() + cpu_s(raylet.process.pid)
    finally:
        ray.shutdown()
        c.shutdown()


def on_ray(o):
    package()
    os.environ["PYTHONPATH"] = str(pathlib.Path(sys.path[0]))
    import betonfs.ray
    with cluster() as cpu, betonfs.ray.Loader(
            o.file, o.batch, seed=1, pipeline=PIPELINES[o.type], makers=1,
            local=False, tensors="numpy") as loader:
        while not loader.stats()["makers"]["makers"]:
            time.sleep(0.05)
        return measure((b.num_samples for _ in iter(int, 1) for b in loader),
                       o, trainer_cpu=cpu)


def decoded(row):
    """The work of PIPELINES["uint8"] by PIL."""
    import numpy as np
    import PIL.Image
    from peer import crop_of
    import random
    image = PIL.Image.open(io.BytesIO(row)).convert("RGB")
    x, y, w, h = crop_of(*image.size)
    image = image.resize((SIDE, SIDE), PIL.Image.BILINEAR, (x, y, x + w, y + h))
    out = np.asarray(image)
    return out[:, ::-1] if random.random() < 0.5 else out


def jpegs(o):
    package()
    from betonfs import _beton
    dataset = _beton.Dataset(o.file)
    field = [f["name"] for f in dataset.fields()].index("image")
    return [dataset.read(field, i) for i in range(dataset.samples)]


def ray_data(o):
    files = jpegs(o)

    def decode(batch):
        import numpy as np
        sys.path.insert(0, str(pathlib.Path(__file__).parent))
        return {"image": np.stack([decoded(row) for row in batch["jpeg"]])}
    with cluster() as cpu:
        import ray
        os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
        # Blocks of one batch, in long epochs. A complete shuffle would take
        # longer than decoding, so only blocks are shuffled.
        rows = [{"jpeg": f} for f in files * 8]
        ray.data.DataContext.get_current().enable_progress_bars = False
        data = ray.data.from_items(
            rows, override_num_blocks=-(-len(rows) // o.batch)).materialize()

        def batches():
            while True:
                made = data.randomize_block_order().map_batches(
                    decode, batch_size=o.batch)
                for b in made.iter_batches(batch_size=o.batch):
                    yield len(b["image"])
        return measure(batches(), o, trainer_cpu=cpu)


def torch(o):
    """A DataLoader with one worker process, on the other CPU."""
    import torch
    from torch.utils.data import DataLoader, Dataset
    files = jpegs(o)

    class Files(Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, i):
            return decoded(files[i]).copy()
    pin(0)
    torch.set_num_threads(1)
    loader = DataLoader(Files(), o.batch, shuffle=True, num_workers=1,
                        persistent_workers=True, prefetch_factor=4,
                        worker_init_fn=lambda _: pin_worker())
    return measure((len(b) for _ in iter(int, 1) for b in loader), o)


def pin_worker():
    os.sched_setaffinity(0, range(os.cpu_count()))
    pin(1)


def tfdata_worker(o):
    """The dispatcher and a worker of tf.data service."""
    pin(1)
    import tensorflow as tf
    dispatcher = tf.data.experimental.service.DispatchServer(
        tf.data.experimental.service.DispatcherConfig(port=o.port))
    worker = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(
            dispatcher_address=dispatcher.target.split("://")[1]))
    worker.join()
    return {}


def tfdata(o):
    files = jpegs(o)
    with socket.create_server(("127.0.0.1", 0)) as s:
        o.port = s.getsockname()[1]
    process, = children(o, ["tfdata_worker"])
    pin(0)
    import tensorflow as tf

    def decode(jpeg):
        shape = tf.image.extract_jpeg_shape(jpeg)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            shape, tf.zeros((0, 0, 4)), area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3),
            use_image_if_no_bounding_boxes=True)
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
        image = tf.image.resize(image, (SIDE, SIDE))
        return tf.cast(tf.image.random_flip_left_right(image), tf.uint8)
    data = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files)) \
        .repeat().map(decode, num_parallel_calls=1).batch(o.batch)
    data = data.apply(tf.data.experimental.service.distribute(
        "parallel_epochs", f"grpc://127.0.0.1:{o.port}")).prefetch(2)
    try:
        return measure((len(b) for b in data.as_numpy_iterator()), o,
                       lambda: cpu_s(process.pid))
    finally:
        process.kill()
        process.wait()


CASES = {f.__name__: f for f in (local, maker, makers, simulated, simulation,
                                 on_ray, ray_data, torch, tfdata,
                                 tfdata_worker)}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("name", choices=CASES)
    p.add_argument("file")
    p.add_argument("--batch", type=int, default=250)
    p.add_argument("--type", choices=PIPELINES, default="uint8")
    p.add_argument("--makers", type=int, default=1)
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--batch-time", type=float, default=0.0)
    p.add_argument("--warm", type=float, default=2.0)
    p.add_argument("--seconds", type=float, default=5.0)
    o = p.parse_args()
    if o.name in ("local", "torch"):
        pin(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = CASES[o.name](o)
    if found:
        print(json.dumps(found), flush=True)
        os._exit(0)         # without waiting for threads of other tools


if __name__ == "__main__":
    main()
