# SPDX-License-Identifier: Apache-2.0
"""The orders of beton-orders(7) in Python, written from the page and not from
the C sources."""
import bisect
import itertools

M, WEYL = (1 << 64) - 1, 0x9e3779b97f4a7c15
ORDERS = {"sequential": 0, "random": 1, "quasi_random": 2, "weighted": 3,
          "bucketed": 4}


def mix(x):
    for shift, factor in (30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb):
        x = (x ^ x >> shift) * factor & M
    return x ^ x >> 31


def key(words):
    k = mix(WEYL + len(words) & M)
    for w in words:
        k = mix((k ^ w) + WEYL & M)
    return k


def permute(n, k, i):
    bits = max(6, (n - 1).bit_length())
    while n > 1:
        wa, wb = bits - bits // 2, bits // 2
        a, b = i >> wb, i & (1 << wb) - 1
        for r in range(10):
            t = mix(mix(k + WEYL * (r + 1) & M) ^ b) >> 64 - wa
            a, b, wa, wb = b, a ^ t, wb, wa
        i = a << wb | b
        if i < n:
            return i
    return 0


def resolve(text, samples, data_bytes, lists={}):
    def count(size):
        return min(max(size * samples // max(data_bytes, 1), 1), 1 << 40)
    s = dict(order="random", batch=256, seed=0, drop_last=1)
    s.update(pair.split("=") for pair in text.split(",") if pair)
    subset = str(s.get("subset", f"0-{samples}"))
    ids = lists.get(subset.split("~")[0])
    first, end = (0, len(ids)) if ids else subset.split("-")
    n = int(end) - int(first)
    if s["order"] == "weighted":
        n = int(s.get("num_samples", n))
    block = int(s.get("block", count(512 << 10)))
    window = str(s.get("window", max(min(samples, 2048 * block), 1)))
    if window[-1] == "B":
        window = count(int(window[:-3]) << 10 + 10 * "KMGT".index(window[-3]))
    bucket = int(s.get("bucket", 8 * int(s["batch"])))
    return s | {"block": block, "window": int(window), "first": int(first),
                "n": n, "ids": ids, "bucket": bucket}


def mixed(n, window, k, position):
    w = -(-n // window)
    v = position * w // n
    v += (v + 1) * n // w <= position
    start, end = v * n // w, (v + 1) * n // w
    return start + permute(end - start, key([k, 2, v]), position - start)


def sample(s, epoch, position):
    n, block = s["n"], s["block"]
    k = key([int(s["seed"]), epoch, 1, ORDERS[s["order"]]])
    if s["order"] == "weighted":        # ids are pairs: a number, its weight
        number = mix(k + WEYL * (position + 1) & M)
        sums = list(itertools.accumulate(weight for _, weight in s["ids"]))
        return s["ids"][bisect.bisect(sums, number * sums[-1] >> 64)][0]
    place = permute(n, k, position) if s["order"] == "random" else position
    if s["order"] == "bucketed":
        batch = int(s["batch"])
        rest = n % batch
        cut = key([k, 3]) * (n - rest + 1) >> 64
        if position < n - rest:
            b = permute(n // batch, k, position // batch)
            place = b * batch + position % batch
            place += rest * (place >= cut)
        else:
            place = cut + position - (n - rest)
        place = mixed(n, s["bucket"], k, place)
    if s["order"] == "quasi_random":
        place = mixed(n, s["window"], k, position)
        if place < n // block * block:
            b = permute(n // block, k, place // block)
            place = b * block + place % block
    return s["ids"][place] if s["ids"] else s["first"] + place
