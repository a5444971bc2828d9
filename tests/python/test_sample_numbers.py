# SPDX-License-Identifier: Apache-2.0
"""Every error of betonfs.write() has the number of its sample, and keeps its
class."""
import pathlib
import re
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

INT = {"label": "int"}
BAD, N = 3, 6


class MyError(Exception):
    pass


class MyValueError(ValueError):
    pass


class TwoArguments(Exception):
    """Pickle calls its class with one."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")
        self.what = what


class Unpicklable(Exception):
    def __init__(self, text):
        super().__init__(text, lambda: None)


class MyOSError(OSError):
    def __init__(self, code, text, more):
        super().__init__(code, text)


class Other(Exception):
    """Its message comes from an attribute."""

    def __init__(self, **more):
        super().__init__()
        self.more = more

    def __str__(self):
        return f"more {self.more}"


def local_class():
    class Local(RuntimeError):
        pass
    return Local


Local = local_class()


def unknown():
    """Its class exists in the process alone."""
    return local_class()("bad")


def chained():
    try:
        raise KeyError("inner")
    except KeyError as e:
        error = MyError("outer")
        error.__cause__ = e
        return error


# A function that makes an exception -> its class, and a part of its message.
RAISED = {
    "own": (lambda: MyError("bad"), MyError, "bad"),
    "of ValueError": (lambda: MyValueError("bad"), MyValueError, "bad"),
    "builtin": (lambda: KeyError("bad"), KeyError, "bad"),
    "an OSError": (lambda: FileNotFoundError(2, "bad", "x.jpg"),
                   FileNotFoundError, "x.jpg"),
    "own OSError": (lambda: MyOSError(5, "bad", 1), MyOSError, "Errno 5"),
    "two arguments": (lambda: TwoArguments("bad", "worse"), TwoArguments,
                      "bad: worse"),
    "unpicklable": (lambda: Unpicklable("bad"), Unpicklable, "bad"),
    "attributes": (lambda: Other(a=1), Other, "more {'a': 1}"),
    "local": (lambda: Local("bad"), Local, "bad"),
    "unknown": (unknown, RuntimeError, "bad"),
    "chained": (chained, MyError, "outer"),
    "memory": (lambda: MemoryError("bad"), MemoryError, "bad"),
    "assertion": (lambda: AssertionError("bad"), AssertionError, "bad"),
    # A generator cannot pass it on.
    "StopIteration": (lambda: StopIteration("bad"), RuntimeError, ""),
}


class Indexed:
    def __init__(self, make, bad=BAD):
        self.make, self.bad = make, bad

    def __len__(self):
        return N

    def __getitem__(self, i):
        if i == self.bad:
            raise self.make()
        return {"label": i}


class Iterated:
    def __init__(self, make, bad=BAD):
        self.make, self.bad = make, bad

    def __iter__(self):
        return self

    def __next__(self):
        self.at = getattr(self, "at", -1) + 1
        if self.at == self.bad:
            raise self.make()
        return {"label": self.at}


def generator(make, bad=BAD):
    for i in range(N):
        if i == bad:
            raise make()
        yield {"label": i}


class Lazy:
    """A value that is made when it is stored."""

    def __init__(self, make):
        self.make = make

    def item(self):
        raise self.make()


def lazy(make, bad=BAD):
    return [{"label": Lazy(make) if i == bad else i} for i in range(N)]


def lazy_iterated(make, bad=BAD):
    return iter(lazy(make, bad))


def text_of(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def numbers(error):
    return set(map(int, re.findall(r"sample (\d+)", text_of(error))))


@pytest.mark.parametrize("bad", [0, BAD])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("source", [Indexed, Iterated, generator, lazy,
                                    lazy_iterated])
@pytest.mark.parametrize("what", RAISED)
def test_an_exception_of_a_dataset(tmp_path, what, source, workers, bad):
    make, kind, message = RAISED[what]
    if what == "StopIteration" and source in (Iterated, lazy, lazy_iterated):
        pytest.skip("it is the end, or no exception of a sample")
    if what == "of ValueError" and source in (lazy, lazy_iterated):
        kind, message = ValueError, "not an integer"
    samples = source(make, bad)
    with pytest.raises(kind) as caught:
        betonfs.write(tmp_path / "w.beton", samples, INT, length=N,
                      workers=workers)
    assert numbers(caught.value) == {bad}, text_of(caught.value)
    assert message in str(caught.value)
    if what == "own OSError":
        assert caught.value.errno == 5
    if what == "two arguments":
        assert caught.value.what == "bad"
    if what == "chained":
        assert "KeyError: 'inner'" in text_of(caught.value) or \
            isinstance(caught.value.__cause__, KeyError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("source", [Indexed, generator])
def test_the_first_sample_without_fields(tmp_path, source, workers):
    """write() looks at it for the types of the fields."""
    with pytest.raises(MyError) as caught:
        betonfs.write(tmp_path / "w.beton", source(lambda: MyError("bad"), 0),
                      length=N, workers=workers)
    assert numbers(caught.value) == {0}


IMAGE = {"image": "image"}


# Fields, a good value, a bad one, and a part of the message.
VALUES = {
    "int": (INT, 1, 1.5, "not an integer"),
    "float": ({"a": "float"}, 1.5, "x", "no floating-point"),
    "bytes": ({"a": "bytes"}, b"x", "x", "is text"),
    "json": ({"a": "json"}, {}, {1, 2}, "no JSON"),
    "array": ({"a": ("uint8", (2,))}, [1, 2], [1, 300], "300"),
    "shape": ({"a": ("uint8", (2,))}, [1, 2], [1], "an array of"),
    "ragged": ({"a": ("uint8", (None, 2))}, [[1, 2]], [1], "an array of"),
    "mask": ({"a": "mask"}, np.zeros((2, 2), np.uint8), 3, "height, width"),
    "frames": ({"a": "frames"}, [np.zeros((2, 2, 3), np.uint8)], 3, "list"),
    "image": (IMAGE, np.zeros((2, 2, 3), np.uint8), "x.jpg", "is a name"),
    "JPEG": (IMAGE, np.zeros((2, 2, 3), np.uint8), b"x", "no JPEG"),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", [list, iter])
@pytest.mark.parametrize("what", VALUES)
def test_a_value_that_cannot_be_stored(tmp_path, what, kind, workers):
    fields, good, bad, message = VALUES[what]
    name, = fields
    samples = [(bad if i == BAD else good,) for i in range(N)]
    with pytest.raises(ValueError, match=f"^sample {BAD} field {name}: ") as e:
        betonfs.write(tmp_path / "w.beton", kind(samples), fields, length=N,
                      workers=workers)
    assert message in str(e.value)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", [list, iter])
def test_an_image_that_pillow_cannot_load(tmp_path, kind, workers):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[:60])
    samples = [(image.open(tmp_path / "a.png") if i == BAD else
                np.zeros((2, 2, 3), np.uint8),) for i in range(N)]
    with pytest.raises(OSError) as caught:
        betonfs.write(tmp_path / "w.beton", kind(samples), IMAGE, length=N,
                      workers=workers)
    assert f"sample {BAD} field image" in text_of(caught.value)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("sample, message", [
    (3, "no dict"), ((1, 2), "2 values"), ({"b": 1}, "no field 'label'")])
@pytest.mark.parametrize("kind", [list, iter])
def test_a_sample_of_another_form(tmp_path, kind, sample, message, workers):
    samples = [sample if i == BAD else (i,) for i in range(N)]
    with pytest.raises(ValueError, match=f"^sample {BAD}: .*{message}"):
        betonfs.write(tmp_path / "w.beton", kind(samples), INT, length=N,
                      workers=workers)


def test_a_process_that_ends(tmp_path):
    import os
    with pytest.raises(RuntimeError, match=f"sample {BAD}: the process that "
                                           "makes it ended with 7"):
        betonfs.write(tmp_path / "w.beton", Indexed(lambda: os._exit(7)), INT,
                      workers=3)


def test_a_full_disk(tmp_path):
    import resource
    import signal
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, old[1]))
    try:
        with pytest.raises(betonfs.BetonError) as caught:
            betonfs.write(tmp_path / "w.beton",
                          [{"a": bytes(1 << 20)} for i in range(40)],
                          page_size=2 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert re.match(r"sample \d+: ", caught.value.strerror)
    assert list(tmp_path.iterdir()) == []
