# SPDX-License-Identifier: Apache-2.0
"""A trainer for tests: takes batches until it is ended, and uses each as its
KIND demands.

    trainer.py PATH PIPELINE KIND [RANK SIZE]
"""
import sys
import time

import loading

PATH, PIPELINE, KIND = sys.argv[1:4]
RANK, WORLD = map(int, sys.argv[4:6]) if len(sys.argv) > 4 else (0, 1)
BATCH = 32


def copies_in_python(batch):
    """As who makes lists of tensors."""
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        sum(list(batch.outputs[0].bytes()[:10000]))


KINDS = {
    "greedy": lambda batch: None,
    "sleeps": lambda batch: time.sleep(0.4),
    "computes": lambda batch: time.sleep(0.1 * batch.num_samples / BATCH),
    "copies": copies_in_python,
    "straggles": lambda batch: time.sleep(0.5 if RANK == 1 else 0.1),
}


def main():
    with loading.Loader(PATH, spec=f"batch={BATCH}", pipeline=PIPELINE,
                        rank=RANK, world_size=WORLD) as loader:
        while True:
            batch = loader.next()
            if batch:
                KINDS[KIND](batch)
                loader.release(batch)


if __name__ == "__main__":
    main()
