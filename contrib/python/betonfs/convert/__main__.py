# SPDX-License-Identifier: Apache-2.0
"""The command python -m betonfs.convert."""
from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence

from .. import __version__
from .._writer import write
from . import _huggingface, _torchvision
from ._plan import Field, Samples, fields_of
from ._source import Mistake, Source

PROGRAM = "betonfs.convert"
JOBS_MAX, SIDE_MAX = 4096, 0xffff
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

DESCRIPTION = """\
Make a dataset file (.beton) of a dataset that a Python library reads and that
is on this machine. Nothing is downloaded.

SOURCE is one of:
  DIR                           a directory that save_to_disk() of Hugging Face
                                datasets wrote
  hf://NAME[:SPLIT][?config=C]  a dataset of the Hugging Face Hub that
                                load_dataset() has stored in the local cache
  torchvision://CLASS?root=DIR  a dataset of torchvision, with the arguments of
                                its class, for example &train=1

mkfs.beton reads all other sources, for example directories of images,
WebDataset, Parquet, CSV, HDF5 and LMDB, and it is faster."""

EPILOG = """\
TYPE is image, int, float, bytes, json, mask, png, frames, class (texts become
numbers of classes), array (of one shape) or list (arrays of any length).

Examples:
  python -m betonfs.convert rows/ train.beton
  python -m betonfs.convert --split=train --fields=image=img,label \\
      hf://uoft-cs/cifar10 train.beton
  python -m betonfs.convert --mode=raw \\
      'torchvision://CIFAR10?root=data&train=1' train.beton
  python -m betonfs.convert --dry-run 'torchvision://OxfordIIITPet?root=data' \\
      pets.beton

The exit status is 0 if the dataset was made, 1 after a failure, and 2 if the
command is wrong."""

# Ends of names -> what mkfs.beton calls them.
MKFS = {
    ".beton": "a dataset", ".tar": "a WebDataset archive", ".csv": "a table",
    ".tsv": "a table", ".jsonl": "a table", ".ndjson": "a table",
    ".parquet": "a table", ".npy": "an array", ".npz": "an archive of arrays",
    ".h5": "an HDF5 file", ".hdf5": "an HDF5 file",
    ".tfrecord": "a TFRecord file", ".tfrecords": "a TFRecord file",
    ".lmdb": "an LMDB database", ".mdb": "an LMDB database",
    ".mds": "a shard of MDS",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise Mistake(f"{message} (see --help)", 2)


def _number(least: int, most: int) -> object:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or \
                not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"{text}: expected a number from {least} to {most}")
        return int(text)
    return parse


def _size(text: str) -> int:
    unit = UNITS.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isascii() or not digits.isdigit():
        raise argparse.ArgumentTypeError(f"{text}: expected a size, such as "
                                         "16M")
    return int(digits) * unit


def _parser() -> argparse.ArgumentParser:
    p = _Parser(prog=f"python -m {PROGRAM}", allow_abbrev=False,
                usage=f"python -m {PROGRAM} [OPTION]... SOURCE OUT.beton",
                formatter_class=argparse.RawDescriptionHelpFormatter,
                description=DESCRIPTION, epilog=EPILOG, add_help=False)
    p.add_argument("source", metavar="SOURCE", help=argparse.SUPPRESS)
    p.add_argument("out", metavar="OUT.beton", help=argparse.SUPPRESS)
    o = p.add_argument_group("Options")

    def add(*names: str, **how: object) -> None:
        o.add_argument(*names, **how)   # type: ignore[arg-type]
    add("--mode", choices=("keep", "jpg", "raw"), metavar="keep|jpg|raw",
        help="Store images as JPEG (jpg) or as pixels (raw), or JPEG files of "
        "the source unchanged and other images as JPEG (keep) (default: keep; "
        "jpg if you give --quality)")
    add("--quality", type=_number(1, 100), metavar="Q",
        help="Set the JPEG quality, from 1 to 100 (default: 90)")
    add("--max-resolution", type=_number(1, SIDE_MAX), default=0, metavar="N",
        help="Shrink images whose longer side exceeds N pixels")
    add("--fields", metavar="NAME[:TYPE][=SOURCE],...",
        help="Store these fields in this order, renamed from the column SOURCE "
        "and converted to TYPE (default: all columns)")
    add("--columns", dest="fields", help=argparse.SUPPRESS)
    add("--split", metavar="NAME",
        help="Read this split of the source, for example train")
    add("--limit", type=_number(1, 1 << 40), metavar="N",
        help="Take only the first N samples (default: all)")
    add("--page-size", type=_size, default=0, metavar="SIZE",
        help="Set the page size, a power of two from 2M to 2G (default: 8M)")
    add("-j", "--jobs", type=_number(1, JOBS_MAX), metavar="N",
        help="Use N processes; the dataset is the same for any N (default: one "
        "per usable CPU)")
    add("--append", action="store_true",
        help="Add the samples to the end of OUT.beton, which exists")
    add("--overwrite", action="store_true", help="Replace OUT.beton")
    add("-n", "--dry-run", action="store_true",
        help="Print the fields and the number of samples, and write nothing")
    add("-q", "--quiet", action="store_true",
        help="Print errors only")
    add("-v", "--verbose", action="store_true",
        help="Print the traceback of an error, too")
    add("-h", "--help", action="help", help="Print this help")
    add("-V", "--version", action="version", version=f"betonfs {__version__}",
        help="Print the version")
    return p


# --- the source ---

def _refuse(source: str, out: str) -> None:
    """Raise the Mistake for a source that is not ours."""
    if "://" in source:
        raise Mistake(f"{source}: a source is a directory, hf://NAME or "
                      "torchvision://CLASS", 2)
    end = os.path.splitext(source)[1].lower()
    if end in MKFS:
        raise Mistake(f"{source}: mkfs.beton reads {MKFS[end]}: mkfs.beton "
                      f"{source} {out}", 2)
    if end == ".arrow":
        raise Mistake(f"{source}: a file of a Hugging Face dataset; give the "
                      "directory that save_to_disk() wrote, or hf://NAME", 2)
    if not os.path.lexists(source):
        raise Mistake(f"{source}: No such file or directory; datasets of "
                      "libraries are hf://NAME and "
                      "torchvision://CLASS?root=DIR", 2)
    if os.path.isfile(os.path.join(source, "dataset_info.json")):
        raise Mistake(f"{source}: a directory of the cache of load_dataset(); "
                      "give hf://NAME, or the directory that save_to_disk() "
                      "wrote", 2)
    if os.path.isdir(source):
        raise Mistake(f"{source}: save_to_disk() did not write it; mkfs.beton "
                      "reads directories of images, of MDS and of LitData: "
                      f"mkfs.beton {source} {out}", 2)
    raise Mistake(f"{source}: neither a directory of save_to_disk(), hf://NAME "
                  "nor torchvision://CLASS; try mkfs.beton", 2)


def _open(source: str, split: str | None, out: str) -> Source:
    if source.startswith(_huggingface.SCHEME):
        return _huggingface.cached(source, split)
    if source.startswith(_torchvision.SCHEME):
        return _torchvision.opened(source, split, out)
    if _huggingface.is_saved(source):
        return _huggingface.saved(source, split)
    _refuse(source, out)
    raise AssertionError


# --- the work ---

def _print_plan(o: argparse.Namespace, source: Source,
                fields: Sequence[Field], n: int) -> None:
    images = f", images as {o.mode}" if any(
        field.type in ("image", "frames") for field in fields) else ""
    print(f"{o.out}: {n} of {len(source)} samples of {source.title}{images}, "
          f"pages of {(o.page_size or 8 << 20) >> 20} MiB")
    for field in fields:
        print(f"  {field.name:16} {field.described()}")


def _print_result(o: argparse.Namespace, fields: Sequence[Field], n: int,
                  seconds: float) -> None:
    classes = next((len(f.classes) for f in fields if f.classes), 0)
    named = f" of {classes} classes" if classes else ""
    added = " added" if o.append else ""
    print(f"{o.out}: {n} samples{added}{named}, {os.path.getsize(o.out)} "
          f"bytes, {seconds:.1f} s ({n / max(seconds, 1e-9):.0f}/s)")


def _convert(o: argparse.Namespace) -> None:
    begin = time.monotonic()
    if not (o.append or o.overwrite or o.dry_run) and os.path.lexists(o.out):
        raise Mistake(f"{o.out} exists; --overwrite replaces it, and --append "
                      "adds to it")
    o.mode = o.mode or ("jpg" if o.quality else "keep")
    source = _open(o.source, o.split, o.out)
    fields = fields_of(source, o.fields)
    n = min(len(source), o.limit or len(source))
    if o.dry_run:
        _print_plan(o, source, fields, n)
        return
    keep = o.max_resolution if o.mode == "keep" else None
    written = write(
        o.out, Samples(source, fields, n, keep),
        {field.name: field.type for field in fields},
        mode="raw" if o.mode == "raw" else "jpg", quality=o.quality or 90,
        max_resolution=o.max_resolution, page_size=o.page_size,
        classes={f.name: f.classes for f in fields if f.classes},
        workers=o.jobs or len(os.sched_getaffinity(0)),
        progress=not o.quiet and sys.stderr.isatty(), overwrite=o.overwrite,
        append=o.append)
    if not o.quiet:
        _print_result(o, fields, written, time.monotonic() - begin)


def _line_of(error: Exception, out: str) -> str:
    """An error in one line, with the sample's number."""
    text = str(error.strerror if isinstance(error, OSError) and error.strerror
               else error).partition("\n")[0]
    if not isinstance(error, (ValueError, OSError)):
        text = f"{type(error).__name__}: {text}"
    places = [note.partition("\n")[0].partition(",")[0]
              for note in getattr(error, "__notes__", ())]
    if places and not text.startswith("sample "):
        text = f"{max(places, key=len)}: {text}"
    text = text.replace("page_size=", "--page-size=")
    return text if out in text else f"{out}: {text}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    verbose = False
    try:
        o = _parser().parse_args(arguments)
        verbose = o.verbose
        _convert(o)
        sys.stdout.flush()
        return 0
    except Mistake as e:
        if verbose and e.__cause__:
            traceback.print_exception(e.__cause__)
        print(f"{PROGRAM}: {e}", file=sys.stderr)
        return e.status
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        if verbose:
            traceback.print_exc()
        print(f"{PROGRAM}: {_line_of(e, o.out)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
