# SPDX-License-Identifier: Apache-2.0
"""Run tests with their datasets behind a server. If BETON_TEST_REMOTE is nginx or
rclone, the programs of the build and the Python package get the URL of each
dataset that a test names by its path:

    BETON_TEST_REMOTE=nginx pytest tests/e2e/mount/test_batches.py

A test that changes a dataset, or expects its path in a message, does not apply.
"""
import atexit
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile

import pytest

import servers

KIND = os.environ.get("BETON_TEST_REMOTE")
# Tests that can be about local files alone: reason -> file -> tests.
LOCAL = {
    "changes the file below a reader; test_remote_faults.py and "
    "test_remote_replaced.py do that to objects": {
        "test_by": "test_an_error_is_not_remembered",
        "test_loader": "test_a_deleted_dataset_stays_readable_while_open "
                       "test_a_file_cut_under_a_mount_gives_errors_and_true_rows",
        "test_mount": "test_a_deleted_dataset_continues "
                      "test_a_truncated_dataset_gives_errors_and_no_wrong_bytes",
        "test_shards": "test_unreadable_shards_are_errors "
                       "test_metadata_that_cannot_be_read_are_tried_again",
        "test_dataset": "test_no_other_dataset_is_opened_again",
        "test_zerocopy": "test_bad_samples_are_reported_the_same",
    },
    "is about the rights of a file; a URL is read by the user of the daemon": {
        "test_budget": "test_another_user_takes_no_share_by_the_name_of_a_job "
                       "test_a_users_files_leave_room_for_others "
                       "test_a_user_cannot_keep_all_memory_by_open_files "
                       "test_shared_memory_never_shows_a_private_batch",
        "test_datasets": "test_a_listing_of_another_user_is_not_shown "
                         "test_forbidden_datasets_do_not_open "
                         "test_groups_see_readable_datasets "
                         "test_others_get_batches_of_readable_datasets "
                         "test_others_see_no_forbidden_dataset "
                         "test_owner_and_mode_are_each_datasets_own",
        "test_joined": "test_users_that_may_read_all_files_may_read_the_mount",
        "test_mount": "test_owner_and_mode_mirror_the_dataset",
        "test_names": "test_a_user_that_names_many_takes_nothing_from_others",
        "test_zerocopy": "test_other_users_need_permissions",
    },
    "is about paths: links, odd names, and their form in lists": {
        "test_datasets": "test_a_link_keeps_a_name_to_itself "
                         "test_a_name_adds_no_line_to_the_options "
                         "test_as_many_as_there_are_numbers_for "
                         "test_listed_mounts_can_be_mounted_again "
                         "test_names_are_those_of_the_files "
                         "test_options_report_which_directory",
        "test_joined": "test_a_file_is_given_once "
                       "test_more_files_than_may_be_open "
                       "test_patterns_mount_beside_other_datasets",
        "test_commands": "test_names_of_files_control_no_terminal",
        "test_docs_guides": " ".join(
            f"test_every_block_runs[{page}]" for page in
            ("datasets", "doctor", "formats", "memory", "quickstart",
             "segmentation")),
        "test_info_html": "test_hostile_names_are_escaped",
        "test_verify": "test_no_side_file",
        # Messages show the beginning and the end of a long path.
        "test_dataset": "test_a_subset_is_of_the_loaders_dataset "
                        "test_a_name_with_a_star_is_a_file_where_it_is_one",
        "test_operate": "test_a_mount_that_hides_another_reports_it",
        "test_mount": "test_mount_attributes test_odd_paths_are_shown_whole",
        "test_python": "test_a_file_on_a_mount_may_have_any_name",
        "test_stats": "test_odd_names_are_escaped",
    },
    "is about a disk, descriptors or files, which a URL has not": {
        "test_operate": "test_a_mount_that_is_refused_reports_why_in_one_line "
                        "test_a_fake_mount_does_everything_else "
                        "test_a_lookup_that_waits_at_the_end_ends "
                        "test_a_disk_that_hangs_does_not_hold_up_the_end",
    },
    "compares caches, and the kernel caches no URL": {
        "test_verify": "test_a_loader_marks_the_samples",
    },
    "beton info samples the order of files alone": {
        "test_info_order": "test_the_order_on_disk_is_named "
                           "test_large_files_are_inspected_in_parts",
    },
    "counts reads of the kernel's page cache, or with no others between": {
        "test_stats": "test_cache_stages_are_reported "
                      "test_stages_without_a_cache "
                      "test_streams_report_where_they_are "
                      "test_the_manual_describes_these_keys_and_metrics_alone "
                      "test_the_texts_can_be_read_by_all",
    },
}
if KIND == "rclone":
    LOCAL["has many reads of a large object: rclone computes the MD5 of the "
          "whole object for each answer"] = {
        "test_budget": "test_readers_at_once_are_bounded "
                       "test_mappings_that_are_kept_are_counted",
        "test_by": "test_too_many_samples_are_refused",
        "test_delivery": "*",
    }
    LOCAL["has names with *, which URLs of s3 cannot have"] = {
        "test_dataset": "test_names_of_a_list_are_no_patterns"}
# Commands of beton that read a dataset, and write none.
READERS = "info", "show", "dump", "bench", "doctor"
# The cache of a mount without the option.
CACHE = "process" if KIND else "os"
CACHE_LINE = re.compile(
    r"(.*: )?cache process: datasets .*; the kernel caches no URLs\n")
HERE = pathlib.Path(__file__).resolve().parent


@functools.cache
def server():
    """It serves all files of this machine, to this machine."""
    if not (servers.find_rclone() if KIND == "rclone"
            else shutil.which("nginx")):
        raise pytest.UsageError(f"BETON_TEST_REMOTE={KIND}: not installed")
    folder = tempfile.mkdtemp(prefix="beton-elsewhere-")
    atexit.register(shutil.rmtree, folder, True)
    kinds = {"nginx": servers.Nginx, "rclone": servers.Rclone}
    out = kinds[KIND](folder, "/")
    atexit.register(out.stop)
    return out.start()


def prefix():
    """Before an absolute path."""
    if KIND == "nginx":
        return f"http://{server().host}:{server().port}"
    return "s3:/"


def environment():
    return server().environment() if KIND == "rclone" else {}


def as_local(printed):
    """The output of a daemon without the line about its cache, as for a file."""
    return "".join(line for line in printed.splitlines(keepends=True)
                   if not CACHE_LINE.fullmatch(line)) if KIND else printed


def reason_to_skip(item):
    # cache=os
    if re.search(r"[-[=]os\]", item.name):
        return "the kernel caches no URL"
    for reason, files in LOCAL.items():
        names = files.get(item.path.stem, "").split()
        if {item.originalname, item.name, "*"} & set(names):
            return reason
    return None


def skip_local(items):
    """Tests that do not apply to a dataset behind a server."""
    for item in items:
        reason = reason_to_skip(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason))


PATCH = """
import runpy as _runpy
import sys as _sys
_runpy.run_path("{}/rerouted.py")["patch"](_sys.modules[__name__])
"""


def link_all(folder, to, *but):
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in but:
            (to / path.name).symlink_to(path)


def write_program(path, text):
    path.write_text(f"#!{sys.executable} -IS\n{text}")
    path.chmod(0o755)


def build():
    """A copy of the build that reads datasets by their URLs, or the build
    itself. All Python programs of the tests import its package."""
    folder = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
    if not KIND or "BETON_TEST_PREFIX" in os.environ:
        return folder
    # conftest.py takes sanitizers from the name.
    copy = pathlib.Path(tempfile.mkdtemp(prefix="beton-")) / folder.name
    copy.mkdir()
    copy.parent.chmod(0o755)
    atexit.register(shutil.rmtree, copy.parent, True)
    link_all(folder, copy, "beton", "betonfs", "python")
    rerouted = (HERE / "rerouted.py").read_text()
    for name, readers in ("betonfs", ()), ("beton", READERS):
        write_program(copy / name, f"{rerouted}\n\n"
                      f"run({str(folder / name)!r}, {readers})\n")
    package = copy / "python/betonfs"
    package.mkdir(parents=True)
    of = folder / "python/betonfs"
    link_all(of, package, "__init__.py")
    if of.exists():
        (package / "__init__.py").write_text(
            (of / "__init__.py").read_text() + PATCH.format(HERE))
    os.environ.update(environment(), BUILD=str(copy),
                      BETON_TEST_PREFIX=prefix())
    return copy
