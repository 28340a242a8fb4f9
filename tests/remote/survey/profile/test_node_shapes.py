"""The node's script on the nodes of every shape: the proposed core lists are the shape's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.remote.site.core_sets import parse_cores
from lumitui.remote.site.profile import Site
from lumitui.remote.survey.profile import node_report
from lumitui.remote.survey.profile.node_facts import NodeFacts, compare
from lumitui.remote.survey.profile.node_report import NodeReport
from tests.support.places import CLUSTER, ROOT

NEEDS_ROOT = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="the mini cluster needs root on Linux (real slurmd, mounts, users)",
)
NODE = """
set -e; here=$1; . "$here/shapes/$2.sh"; ROOT=$3; . "$here/parts/driver.sh"
make_driver one; make_devices one
cores=$((SOCKETS * CORES_PER_SOCKET))
printf '%s\\n' "$GPU_CORES" $cores $THREADS_PER_CORE "$RESERVED_CORES" $GPUS
export PLACE=$(driver_place) ROOT
RUN_DIR=$ROOT unshare --mount sh -ec '
  mount --bind "$ROOT/nodes/one/driver" "$PLACE"
  mount --bind "$ROOT/nodes/one/pci" /sys/bus/pci/devices
  mount --bind "$ROOT/nodes/one/domains" /sys/devices/system/node
  exec sh "$1"' node "$4"
"""
"""A node of a shape without Slurm: what its kernel shows is seen by the script alone."""


def shapes() -> list[str]:
    """Return the shapes that know which cores are near to their GPUs."""
    files = sorted((CLUSTER / "shapes").glob("*.sh"))
    return [path.stem for path in files if "GPU_CORES='" in path.read_text()]


def site_like(cores: int, threads: int, reserved: str, gpus: int, **node: object) -> Site:
    """Return a profile that knows nothing but what Slurm says of a node."""
    shape = {"cores": cores, "threads_per_core": threads, "reserved_cores": reserved,
             "memory_gib": 1, "gpus": gpus, "gpu": "GPU", "gpu_memory_gib": 16}  # fmt: skip
    return Site.model_validate(
        {
            "name": "new",
            "title": "New",
            "work_root": "/work",
            "node": shape | node,
            "partitions": {},
            "cores_per_gpu": max(1, cores // gpus),
        }
    )


def ask(shape: str, folder: Path) -> tuple[list[str], NodeReport]:
    """Return the truth of a shape, and what the script says on one of its nodes."""
    script = ROOT / "templates" / "node.sh"
    argv = ["bash", "-c", NODE, "node", str(CLUSTER), shape, str(folder), str(script)]
    environment = os.environ | {"https_proxy": "http://192.0.2.1"}  # so that it tries no route
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    text = (folder / "node.txt").read_text()
    return done.stdout.splitlines(), node_report.read(text)


def values(found: NodeFacts) -> dict[str, object]:
    return {".".join(one.place): one.value for one in found.changes}


@NEEDS_ROOT
@pytest.mark.parametrize("shape", shapes())
def test_the_proposed_core_lists_are_the_shapes_own(shape: str, tmp_path: Path) -> None:
    (truth, cores, threads, reserved, gpus), report = ask(shape, tmp_path)
    assert report.complete
    kept = ",".join(reserved.split())
    site = site_like(int(cores), int(threads), kept, int(gpus))
    found = values(compare(report, site))
    assert found["node.gpu_cores"] == tuple(truth.split())
    proposed = found["node.gpu_bus"]
    assert isinstance(proposed, tuple) and len(proposed) == int(gpus)
    # What Slurm said already is not proposed again.
    assert not {"node.cores", "node.threads_per_core", "node.reserved_cores"} & set(found)
    taken = [core for text in truth.split() for core in parse_cores(text)]
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(
    ("cpus", "threads"),
    [
        ("0-7", ["0,1", "2,3", "4,5", "6,7"]),
        ("1-3,5-7", ["1,5", "2,6", "3,7"]),
        ("0-5", ["0,1", "2,3", "4", "5"]),
        ("0-1,3", ["0", "1", "3"]),
        ("0-1,3-7", []),
    ],
    ids=["neighbours", "an offline core", "some with one thread", "one thread", "hidden threads"],
)
def test_no_core_lists_are_proposed_if_core_n_is_not_cpu_n(cpus: str, threads: list[str]) -> None:
    gpus = "".join(f"gpu 0000:0{at}:00.0 0 {cpus} 0x10de\n" for at in (1, 2))
    groups = "".join(f"threads {one}\n" for one in threads)
    report = node_report.read(f"host n1\ndomain 0 {cpus}\n{groups}{gpus}done\n")
    found = compare(report, site_like(4, 2 if threads else 1, "", 2))
    assert "node.gpu_cores" not in values(found) and "node.gpu_bus" in values(found)
    words = "numbers a core's threads in a row, or leaves out a core"
    assert any(words in note for note in found.notes)


def test_core_lists_are_proposed_where_the_second_threads_follow_all_cores() -> None:
    gpus = "".join(f"gpu 0000:0{at}:00.0 0 0-7 0x10de\n" for at in (1, 2))
    groups = "".join(f"threads {core},{core + 4}\n" for core in range(4))
    report = node_report.read(f"host n1\ndomain 0 0-7\n{groups}{gpus}done\n")
    found = values(compare(report, site_like(4, 2, "", 2)))
    assert found["node.gpu_cores"] == ("0-1", "2-3")
