# SPDX-License-Identifier: Apache-2.0
"""tests/lint/layers.py and names.py refuse what their docstrings list: faults are
planted in a copy of the sources, and each is found."""
import pathlib
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).parents[3]


def lint(root):
    run = subprocess.run([sys.executable, TOP / "tests/lint/layers.py", root],
                         text=True, capture_output=True)
    assert not run.stderr
    return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path):
    for d in "fs", "loader", "include":
        shutil.copytree(TOP / d, tmp_path / d)
    assert lint(tmp_path) == (0, "")
    return tmp_path


def plant(tree, file, line):
    """Adds a line at the end of a file; returns the place as lint prints it."""
    text = (tree / file).read_text()
    (tree / file).write_text(text + line + "\n")
    return f"{file}:{text.count(chr(10)) + 1}: "


@pytest.mark.parametrize("file, header, why", [
    ("fs/base/util/log.c", "fs/data/engine/engine.h", "points back up"),
    ("fs/data/engine/plan.h", "loader/run/feed/feed.h", "points back up"),
    ("loader/image/jpeg/idct.c", "loader/pipeline/graph/graph.h", "points back up"),
    ("loader/image/resize/rows.c", "loader/image/codec/codec.h", "points back up"),
    ("loader/run/ring/ring.c", "loader/tools/ui/html.h", "points back up"),
    ("loader/run/loop/step.c", "loader/run/ring/turns.h", "points back up"),
    ("loader/run/link/link.c", "loader/run/ring/turns.h", "is no face"),
    ("loader/run/feed/feed.c", "fs/mount/namespace/ns.h", "is closed to loader/"),
    ("loader/tools/top/draw.c", "fs/mount/daemon/options.h", "is closed to loader/"),
    ("fs/mount/fuse/fuse_ops.c", "fs/mount/namespace/by.h", "is no face"),
    ("fs/data/engine/engine.c", "fs/data/cache/chunk.h", "is no face"),
    ("loader/run/transform/frame.c", "loader/pipeline/op/crop.h", "is no face"),
    ("fs/base/util/typed.c", "tests/unit/t.h", "is in no directory"),
])
def test_an_include_against_the_order_is_refused(tree, file, header, why):
    where = plant(tree, file, f'#include "{header}"')
    code, text = lint(tree)
    assert code == 1
    assert any(line.startswith(f"{where}{header} {why}")
               for line in text.splitlines()), text


def test_a_face_can_be_for_one_directory_alone(tree):
    plant(tree, "loader/pipeline/ops/flip.c", '#include "loader/pipeline/op/beta.h"')
    assert lint(tree) == (0, "")


@pytest.mark.parametrize("file, header", [
    ("fs/data/cache/arena.c", "fuse_lowlevel.h"),
    ("loader/image/jpeg/entropy.c", "jpeglib.h"),
    ("loader/run/transform/frame.c", "dlfcn.h"),
])
def test_a_reserved_header_is_refused(tree, file, header):
    where = plant(tree, file, f"#include <{header}>")
    code, text = lint(tree)
    assert code == 1 and text.startswith(f"{where}{header} is reserved for ")


def test_a_circle_of_rooms_is_refused(tree):
    plant(tree, "fs/data/cache/arena.h", '#include "fs/data/cache/cache.h"')
    code, text = lint(tree)
    assert code == 1 and "a circle: fs/data/cache/arena -> fs/data/cache/cache -> " in text


def test_a_directory_of_too_many_rooms_is_refused(tree):
    for i in range(20):
        (tree / f"fs/base/order/more{i}.c").write_text(
            "/* SPDX-License-Identifier: Apache-2.0 */\n")
    code, text = lint(tree)
    assert code == 1 and "fs/base/order: 25 rooms, 16 at most" in text


def test_a_new_file_needs_no_list_and_a_new_directory_does(tree):
    for name in "loader/pipeline/ops/newest.c", "fs/base/order/newest.h":
        (tree / name).write_text("/* SPDX-License-Identifier: Apache-2.0 */\n")
    assert lint(tree) == (0, "")
    (tree / "fs/attic").mkdir()
    (tree / "fs/attic/newest.c").write_text(
        "/* SPDX-License-Identifier: Apache-2.0 */\n")
    code, text = lint(tree)
    assert code == 1
    assert text == "fs/attic/newest.c: fs/attic is no directory of LAYERS\n"


def test_a_file_without_its_license_is_refused(tree):
    (tree / "fs/base/util/newest.c").write_text("int a;\n")
    code, text = lint(tree)
    assert code == 1 and text.startswith("fs/base/util/newest.c:1: the first line")


def test_a_room_of_too_many_lines_is_refused(tree):
    source, header = tree / "fs/base/order/newest.c", tree / "fs/base/order/newest.h"
    for path, lines in (source, 400), (header, 300):
        path.write_text("/* SPDX-License-Identifier: Apache-2.0 */\n" + "\n" * (lines - 1))
    assert lint(tree) == (0, "")
    header.write_text(header.read_text() + "\n")
    assert lint(tree) == (1, "fs/base/order/newest: 701 lines, 700 at most: split it\n")


def names(root):
    run = subprocess.run([sys.executable, TOP / "tests/lint/names.py", root],
                         text=True, capture_output=True)
    assert not run.stderr
    return run.returncode, run.stdout


def test_a_struct_of_two_headers_is_refused(tree):
    assert names(tree) == (0, "")
    for file in "fs/base/order/newest.h", "loader/util/newest.h":
        (tree / file).write_text("struct newest {\n\tint a;\n};\n")
    code, text = names(tree)
    assert code == 1
    assert ("struct newest is defined in several headers: "
            "fs/base/order/newest.h loader/util/newest.h\n") in text


def test_names_of_structs_in_many_files_are_counted(tree):
    (tree / "fs/base/order/newest.c").write_text(
        "".join(f"struct newest{i} {{\n\tint a;\n}};\n" for i in range(100)))
    shutil.copy(tree / "fs/base/order/newest.c", tree / "loader/util/newest.c")
    code, text = names(tree)
    assert code == 1 and " at most: " in text and "newest99" in text
