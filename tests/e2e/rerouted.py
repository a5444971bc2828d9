# SPDX-License-Identifier: Apache-2.0
"""Paths of datasets become URLs: the part of elsewhere.py that runs inside the
programs of a rerouted build. BETON_TEST_PREFIX is put before an absolute
path."""
import functools
import glob
import os
import signal
import sys
import urllib.parse

# Options with a file that a program writes.
WRITTEN = "--html", "--trace"


def url(path):
    """The URL of a dataset, or of those that a pattern matches, in braces. Any
    other text or object is returned."""
    if isinstance(path, (list, tuple)):
        return type(path)(map(url, path))
    if not isinstance(path, (str, os.PathLike)):
        return path
    text = os.fspath(path)
    prefix = os.environ.get("BETON_TEST_PREFIX")
    if not prefix or not isinstance(text, str):
        return path
    found = [text] if os.path.exists(text) else sorted(glob.glob(text))
    real = list(map(os.path.realpath, found))
    if not real or not all(p.endswith(".beton") and os.path.isfile(p)
                           for p in real):
        return path
    # Keys of S3 are literal.
    urls = [prefix + (p if prefix.startswith("s3:") else urllib.parse.quote(p))
            for p in real]
    return urls[0] if len(urls) == 1 else "{%s}" % ",".join(urls)


def patch(package):
    """The classes of the Python package that read a dataset."""
    for kind in package.Loader, package.Dataset:
        @functools.wraps(kind.__init__)
        def init(self, path, *args, wrapped=kind.__init__, **how):
            wrapped(self, url(path), *args, **how)
        kind.__init__ = init


def run(program, readers):
    """Becomes the program. `readers`: first arguments of the runs that read all
    datasets they name; none: each run does."""
    args = sys.argv[1:]
    if not readers or args[:1] and args[0] in readers:
        args = [arg if before in WRITTEN else url(arg)
                for before, arg in zip(["", *args], args)]
    for name in "SIGPIPE", "SIGXFSZ":       # Python ignores them
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execv(program, sys.argv[:1] + args)
