# SPDX-License-Identifier: Apache-2.0
"""Workflows call .ci/run and nothing else, and all that they and it name
exists."""
import itertools
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CI = ROOT / ".ci/run"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


def load(path):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text())


def ci(*arguments, where=ROOT, **env):
    return subprocess.run(
        [where / ".ci/run", *arguments], capture_output=True, text=True,
        timeout=60, env={"PATH": os.environ["PATH"], **env})


def ci_jobs():
    return ci("--jobs").stdout.split()


def expand(text, job):
    """The text for each row of the job's matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    lists = {k: v for k, v in matrix.items() if k != "include"}
    rows = matrix.get("include") or [
        dict(zip(lists, values))
        for values in itertools.product(*lists.values())]
    for row in rows:
        yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}",
                     lambda m, row=row: row[m[1]], text)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_call_the_script(path):
    flow = load(path)
    assert {"name", "permissions", "jobs"} <= set(flow)
    variables = re.findall(r"^#   (\w+)=", (ROOT / "Makefile").read_text(),
                           re.M) + ["PACKAGES"]
    for job in flow["jobs"].values():
        assert set(job.get("env", {})) <= set(variables)
        runs = [step["run"] for step in job["steps"] if "run" in step]
        assert len(runs) == 1
        for line in expand(runs[0], job):
            command, *name = line.split()
            assert command == ".ci/run" and len(name) <= 1
            assert set(name) <= set(ci_jobs()), line
        for step in job["steps"]:
            assert "run" in step or re.fullmatch(
                r"actions/[a-z-]+@v\d+", step["uses"])


def test_the_matrix_has_all_systems():
    flows = [load(path) for path in WORKFLOWS]
    text = "\n".join(path.read_text() for path in WORKFLOWS)
    for name in ("debian:12", "debian:13", "ubuntu:22.04", "ubuntu:24.04",
                 "gcc", "clang", "address,undefined", "thread", "3.11",
                 "3.12", "3.13", "3.14", "3.14t"):
        assert re.search(rf"\b{re.escape(name)}\b", text), name
    called = {line.split()[1] for flow in flows
              for job in flow["jobs"].values() for step in job["steps"]
              for line in expand(step.get("run", ""), job)
              if len(line.split()) > 1}
    assert called | {"newcomer"} == set(ci_jobs())


@pytest.mark.quick
def test_names_in_the_script_exist():
    text = re.sub(r"^\s*#.*$", "", CI.read_text(), flags=re.M)
    targets = {word for line in re.findall(r"\bmake (.*)", text)
               for word in line.split()
               if re.fullmatch(r"[a-z][a-z0-9]*", word)}
    assert {"all", "unit"} <= targets
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^(?:[\w.-]+ )*{target}(?: [\w.-]+)*\s*:",
                         makefile, re.M), target
    paths = re.findall(r"(?<![\w/$.])(?:\./)?((?:contrib|tests)/[\w./*-]+)", text)
    assert len(paths) > 3
    for path in paths:
        assert list(ROOT.glob(path)), path
    listed = re.search(r"under_qemu='([^']*)'\n(?:#.*\n)*of_x86='([^']*)'",
                       CI.read_text())
    for name in (listed[1] + " " + listed[2]).split():
        assert (ROOT / f"tests/unit/test_{name}.c").exists(), name


@pytest.fixture
def tree(tmp_path):
    """A tree of the script and a README, with this test command."""
    def make(command):
        (tmp_path / ".ci").mkdir()
        (tmp_path / ".ci/run").write_text(CI.read_text())
        (tmp_path / ".ci/run").chmod(0o755)
        (tmp_path / "README.md").write_text(
            f"```\nfalse\n```\n<!-- test command -->\n```\n{command}\n```\n"
            "```\nfalse\n```\n")
        return tmp_path
    return make


def test_it_runs_the_command_of_the_readme(tree):
    where = tree("pwd && echo $WERROR-$CC")
    r = ci(where=where, CC="clang")
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines() == [
        "+ pwd && echo $WERROR-$CC", str(where), "1-clang"]


def test_it_fails_as_the_command_does(tree):
    assert ci(where=tree("(exit 7)")).returncode == 7


def test_it_misses_the_command(tree):
    where = tree("true")
    (where / "README.md").write_text("```\ntrue\n```\n")
    r = ci(where=where)
    assert r.returncode == 1 and r.stderr == "README.md: no test command\n"


def test_unknown_jobs_are_refused():
    r = ci("everything")
    assert r.returncode == 2 and "newcomer" in r.stderr


@pytest.mark.parametrize("path", FORMS, ids=lambda p: p.stem)
def test_issue_forms(path):
    form = load(path)
    if path.stem == "config":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(form)
    inputs = [x for x in form["body"] if x["type"] != "markdown"]
    ids = [x["id"] for x in inputs]
    assert len(ids) == len(set(ids))
    assert all(x["type"] == "textarea" and x["attributes"]["label"]
               for x in inputs)
    assert any(x.get("validations", {}).get("required") for x in inputs)
