# SPDX-License-Identifier: Apache-2.0
"""The examples of contrib/cluster: their commands run as they stand, with a server and
directories of the test in place of the store and the volumes. Slurm's srun and
scontrol are stand-ins. Kubernetes itself is not there; KUBERNETES_PYTHON names an
interpreter whose models check the fields."""
import contextlib
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from conftest import mounts, unmount, wait_until
from package import PACKAGE, betonfs
from servers import BUILD, end_with_parent, free_port
from nodes import end, find_python

yaml = pytest.importorskip("yaml")
ROOT = pathlib.Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "contrib/cluster"
FILES = sorted(CLUSTER.glob("*.yaml"))
DEADLINE = 120
STORE = "s3://bucket/"


def objects(name):
    """kind -> object, of a file of Kubernetes."""
    return {o["kind"]: o for o in
            filter(None, yaml.safe_load_all((CLUSTER / name).read_text()))}


@pytest.fixture(scope="module")
def www(tmp_path_factory):
    folder = tmp_path_factory.mktemp("www")
    rng = np.random.default_rng(0)
    for name, n in ("train", 300), ("val", 20):
        betonfs.write(folder / f"{name}.beton", [
            {"image": rng.integers(0, 256, (40, 40, 3), np.uint8),
             "label": i % 3} for i in range(n)], mode="raw")
    return folder


@pytest.fixture
def server(nginx, www):
    return nginx(www)


class Container:
    """A container of a pod, whose volumes are directories below `folder`, by name.
    `change` replaces texts of its commands and of its environment."""

    def __init__(self, pod, number, folder, change, kind="containers"):
        spec = pod[kind][number]
        volumes = {v["name"] for v in pod["volumes"]}
        for mount in spec["volumeMounts"]:
            assert mount["name"] in volumes, mount
            # Not a part of a longer path, or of a URL.
            change = {rf"(?<![\w/.]){mount['mountPath']}(?![\w.])":
                      str(folder / mount["name"]), **change}
            (folder / mount["name"]).mkdir(exist_ok=True)
        text = json.dumps(spec)
        for old, new in change.items():
            text = re.sub(old, new, text)
        self.spec = json.loads(text)
        self.folder = folder
        self.env = {**os.environ, "OMP_NUM_THREADS": "1",
                    "PATH": f"{BUILD}:{os.environ['PATH']}",
                    "PYTHONPATH": str(PACKAGE), "CUDA_VISIBLE_DEVICES": "",
                    **{e["name"]: e["value"] for e in self.spec.get("env", ())}}

    def start(self, log, **env):
        """Runs its command, with more variables."""
        with open(self.folder / log, "a") as out:
            return subprocess.Popen(
                self.spec["command"], env={**self.env, **env}, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=end_with_parent)

    def run(self, command):
        """The exit code of a command of the container."""
        r = subprocess.run(command, env=self.env, cwd=self.folder, text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=DEADLINE)
        print(r.stdout)
        return r.returncode


# --- the files ---------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_kubernetes_has_these_fields(path):
    exe = os.environ.get("KUBERNETES_PYTHON")
    if not exe:
        pytest.skip("KUBERNETES_PYTHON names no interpreter with kubernetes")
    r = subprocess.run(
        [exe, pathlib.Path(__file__).parents[1] / "kubernetes_models.py", path],
        capture_output=True, text=True, timeout=DEADLINE)
    assert (r.returncode, r.stdout) == (0, ""), r.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_names_of_objects_fit(path):
    """Volumes of each container exist, selectors select, accounts are there."""
    things = list(filter(None, yaml.safe_load_all(path.read_text())))
    names = {(o["kind"], o["metadata"]["name"]) for o in things}
    assert len(names) == len(things) >= 1
    for thing in things:
        template = thing.get("spec", {}).get("template")
        pod = template["spec"] if template else thing["spec"] \
            if thing["kind"] == "Pod" else None
        if pod is None:
            continue
        volumes = {v["name"] for v in pod["volumes"]}
        for c in [*pod["containers"], *pod.get("initContainers", ())]:
            assert {m["name"] for m in c["volumeMounts"]} <= volumes
        if "serviceAccountName" in pod:
            assert ("ServiceAccount", pod["serviceAccountName"]) in names
        if thing["kind"] == "DaemonSet":
            assert thing["spec"]["selector"]["matchLabels"].items() <= \
                template["metadata"]["labels"].items()


def test_the_page_lists_every_file():
    rows = re.findall(r"^\| `([\w.-]+)` \|", (CLUSTER / "README.md").read_text(),
                      re.M)
    there = {p.name for p in CLUSTER.iterdir()} - {"README.md"}
    assert len(rows) == len(set(rows)) and set(rows) == there


# --- torchrun ----------------------------------------------------------------


def check_training(folder, log, www, tiers):
    """Both epochs ended, and each node has a copy of what it read."""
    assert re.search(r"^epoch 1: loss", log, re.M), log
    assert (folder / "checkpoint.pt").exists()
    for tier in tiers:
        assert stat.S_IMODE(tier.stat().st_mode) == 0o700
        assert list(tier.glob("*.data")), list(tier.iterdir())


def test_a_job_of_kubernetes(server, www, tmp_path):
    exe = find_python()
    job = objects("kubernetes-job.yaml")["Job"]["spec"]
    service = objects("kubernetes-job.yaml")["Service"]
    pod, nodes = job["template"]["spec"], job["completions"]
    assert (job["completionMode"], job["parallelism"]) == ("Indexed", nodes)
    assert pod["subdomain"] == service["metadata"]["name"]
    port = str(free_port())
    processes = []
    with contextlib.ExitStack() as stack:
        for k in range(nodes):
            folder = tmp_path / f"node{k}"
            folder.mkdir()
            # A volume that all nodes have.
            (tmp_path / "checkpoints").mkdir(exist_ok=True)
            (folder / "checkpoints").symlink_to(tmp_path / "checkpoints")
            c = Container(pod, 0, folder, {STORE: server.url(""),
                                           r"\b29500\b": port})
            assert c.env["NODES"] == str(nodes)
            assert c.env["GPUS"] == c.spec["resources"]["limits"]["nvidia.com/gpu"]
            assert c.env["FIRST"] == "train-0.train"
            put_program(folder / "program", "kubernetes-job.yaml")
            # torchrun of the interpreter.
            path = f"{os.path.dirname(exe)}:{c.env['PATH']}"
            processes.append(c.start("log", JOB_COMPLETION_INDEX=str(k), GPUS="1",
                                     FIRST="127.0.0.1", PATH=path))
            stack.callback(end, processes[-1])
        codes = [p.wait(DEADLINE) for p in processes]
    logs = [(tmp_path / f"node{k}/log").read_text() for k in range(nodes)]
    assert not any(codes), "\n".join(logs)
    check_training(tmp_path / "checkpoints", logs[0], www,
                   [tmp_path / f"node{k}/tier/betonfs" for k in range(nodes)])


def put_program(volume, name):
    """The file of the configmap that the first lines make."""
    made = re.search(r"^#   kubectl create configmap (\S+) --from-file=(\S+)=(\S+)$",
                     (CLUSTER / name).read_text(), re.M)
    shutil.copy(ROOT / made[3], volume / made[2])


SRUN = """#!/bin/bash
# The command after the options, once for each node.
while [ "${1#-}" != "$1" ]; do shift; done
[ "$SRUN_CPUS_PER_TASK" = "$SLURM_CPUS_PER_TASK" ] || exit 9
for k in $(seq "$SLURM_JOB_NUM_NODES"); do SLURM_NODEID=$((k - 1)) "$@" & done
for k in $(seq "$SLURM_JOB_NUM_NODES"); do wait -n || exit; done
"""
SCONTROL = """#!/bin/sh
[ "$1 $2 $3" = "show hostnames localhost,other" ] && echo localhost && echo other
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_a_script_of_slurm(server, www, tmp_path):
    """All nodes are this machine."""
    exe = find_python()
    program(tmp_path / "srun", SRUN)
    program(tmp_path / "scontrol", SCONTROL)
    script = (CLUSTER / "slurm-torchrun.sbatch").read_text()
    nodes = re.search(r"^#SBATCH --nodes=(\d+)$", script, re.M)[1]
    cpus = re.search(r"^#SBATCH --cpus-per-task=(\d+)$", script, re.M)[1]
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1",
           "PATH": f"{tmp_path}:{os.path.dirname(exe)}:{os.environ['PATH']}",
           "CUDA_VISIBLE_DEVICES": "", "USER": "user",
           "SLURM_JOB_NODELIST": "localhost,other", "SLURM_JOB_NUM_NODES": nodes,
           "SLURM_JOB_ID": str(free_port()), "SLURM_CPUS_PER_TASK": cpus,
           "PROGRAM": str(ROOT / "contrib/examples/train_torchrun.py"),
           "TIER": str(tmp_path / "tier")}
    log = tmp_path / "log"
    with open(log, "w") as out:
        p = subprocess.Popen(
            ["bash", CLUSTER / "slurm-torchrun.sbatch", server.url("train.beton"),
             server.url("val.beton")], env=env, cwd=tmp_path, stdout=out,
            stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        code = p.wait(DEADLINE)
    finally:
        end(p)
    assert code == 0, log.read_text()
    check_training(tmp_path / "checkpoints", log.read_text(), www,
                   [tmp_path / "tier"])


# --- a mount for files -------------------------------------------------------


class MountOfNode:
    """The container of the DaemonSet, and the pod beside it."""

    def __init__(self, folder, server):
        things = objects("kubernetes-mount.yaml")
        folder.mkdir()
        self.daemon = Container(
            things["DaemonSet"]["spec"]["template"]["spec"], 0, folder,
            {STORE: server.url(""), "allow_other,": "", "8GiB": "64MiB"})
        self.pod = things["Pod"]["spec"]
        self.folder, self.where = folder, folder / "mnt/train"
        self.process = None

    def start(self):
        self.process = self.daemon.start("daemon.log")
        wait_until(self.answers, "the mount")

    def answers(self):
        assert self.process.poll() is None, self.printed()
        return str(self.where) in mounts() and not self.probe("startupProbe")

    def probe(self, name):
        return self.daemon.run(self.daemon.spec[name]["exec"]["command"])

    def reader(self, number=0, kind="containers"):
        c = Container(self.pod, number, self.folder, {}, kind)
        return c.run(c.spec["command"])

    def printed(self):
        return (self.folder / "daemon.log").read_text()

    def kill(self):
        """All its processes die at once, as those of a container do. Nothing
        unmounts it."""
        pid = self.process.pid
        watchers = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for each in *map(int, watchers.split()), pid:
            os.kill(each, signal.SIGKILL)
        self.process.wait()
        assert str(self.where) in mounts()

    def end(self):
        if self.process:
            end(self.process)
        if str(self.where) in mounts():
            unmount(self.where, "-z")


@pytest.fixture
def unmounted(fuse, server, tmp_path):
    """The node before its daemon starts."""
    m = MountOfNode(tmp_path / "node", server)
    yield m
    m.end()


@pytest.fixture
def node(unmounted):
    unmounted.start()
    return unmounted


@pytest.fixture
def shared_node(unmounted):
    """Other mount namespaces see its mount, as they do on a real node."""
    where = unmounted.where.parent
    if subprocess.run(["mount", "--bind", where, where],
                      capture_output=True).returncode:
        pytest.skip("this process may not mount")
    try:
        subprocess.run(["mount", "--make-shared", where], check=True)
        unmounted.start()
        yield unmounted
    finally:
        unmounted.end()
        subprocess.run(["umount", "-l", where], check=True)


def test_a_mount_for_other_pods(node):
    assert node.reader(0, "initContainers") == 0
    assert node.reader() == 0
    assert (node.folder / "tier/betonfs").is_dir()
    stop = node.daemon.spec["lifecycle"]["preStop"]["exec"]["command"]
    assert node.daemon.run(stop) == 0
    assert node.process.wait(DEADLINE) == 0
    assert node.probe("livenessProbe") != 0


def test_an_outage_does_not_restart_the_mount(node, server):
    server.stop()
    assert node.probe("livenessProbe") == 0


def test_a_busy_mount_ends_by_a_signal(node):
    stop = node.daemon.spec["lifecycle"]["preStop"]["exec"]["command"]
    with open(node.where / "dataset.json"):
        assert node.daemon.run(stop) != 0
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(DEADLINE) == 0
    assert str(node.where) not in mounts()


def test_a_killed_mount_is_replaced(node):
    node.kill()
    node.start()
    assert node.reader() == 0


# In a pod: a loader and an open file. Both continue after a line of input.
POD = """
import sys
import betonfs
where, count = sys.argv[1], 0
loader = betonfs.Loader(where, 8, tensors="numpy", pipeline={"label": "label"})
file = open(where + "/samples/000001/label")
for batch in loader:
    count += 1
    if count == 2:
        print("ready", flush=True)
        input()
print(count)
try:
    print(file.read().strip())
except OSError as e:
    print(e.strerror)
print(open(where + "/samples/000001/label").read().strip())
"""


def pod(where, *commands):
    """Runs POD in a mount namespace of its own, after other commands."""
    script = " && ".join([*commands, f'exec {sys.executable} -c "$POD" {where}'])
    return subprocess.Popen(
        ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script],
        env={**os.environ, "POD": POD, "PYTHONPATH": str(PACKAGE)}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_pods_beside_a_killed_mount(shared_node, tmp_path):
    """Loaders continue, and files are opened again; a file that is open fails. A
    pod with the mount itself as its volume does not see the next one."""
    (tmp_path / "direct").mkdir()
    pods = [pod(shared_node.where),
            pod(tmp_path / "direct", "mount --make-rprivate /",
                f"mount --bind {shared_node.where} {tmp_path}/direct")]
    for p in pods:
        assert p.stdout.readline() == "ready\n"
    shared_node.kill()
    shared_node.start()
    printed = [p.communicate("\n", DEADLINE) for p in pods]
    disconnected = os.strerror(errno.ENOTCONN)
    assert (pods[0].returncode, printed[0][0].splitlines()) == \
        (0, [str(300 // 8), disconnected, "1"]), printed[0]
    assert pods[1].returncode and disconnected in printed[1][1], printed[1]
