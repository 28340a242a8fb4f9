"""probe.sh itself, under the shells that images have: what it writes, and that it never fails."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.launch.compose import compose
from lumitui.app.launch.launcher_templates import TEMPLATES
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import LUMI, job

PROBE = TEMPLATES / "job/probe.sh"
SHELLS = [words for words in (["sh"], ["bash"], ["busybox", "sh"]) if shutil.which(words[0])]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=" ".join)


def probe(shell: list[str], folder: Path, **environ: str) -> list[dict[str, object]]:
    """Run the probe; return the reports that lie in `folder`."""
    done = subprocess.run(
        [*shell, str(PROBE)],
        env={"PATH": "/usr/bin:/bin", "PROOF_DIR": str(folder)} | environ,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(path.read_text()) for path in sorted(folder.glob("rank-*"))]


@each_shell
@pytest.mark.parametrize(
    ("environ", "gpus"),
    [
        ({}, ""),
        ({"ROCR_VISIBLE_DEVICES": "0,1,2,3"}, "0,1,2,3"),
        ({"ROCR_VISIBLE_DEVICES": ""}, "none"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "none"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-1a2b,GPU-3c4d"}, "GPU-1a2b,GPU-3c4d"),
        # HIP counts in what ROCr left.
        ({"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "3,0"}, "7,4"),
        ({"ROCR_VISIBLE_DEVICES": "4", "HIP_VISIBLE_DEVICES": "0"}, "4"),
        ({"ROCR_VISIBLE_DEVICES": "4", "CUDA_VISIBLE_DEVICES": "1"}, "none"),
        # Slurm sets all of them where a site does not say whose GPUs they are.
        ({"ROCR_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "2,3"}, "2,3"),
    ],
    ids=str,
)
def test_what_limits_the_gpus_is_reported(
    shell: list[str], environ: dict[str, str], gpus: str, tmp_path: Path
) -> None:
    [report] = probe(shell, tmp_path, RANK="3", LOCAL_RANK="1", **environ)
    assert (report["rank"], report["local_rank"], report["gpus"]) == (3, 1, gpus)
    assert report["cores"] and report["host"]


@each_shell
def test_two_processes_of_one_rank_are_both_seen(shell: list[str], tmp_path: Path) -> None:
    probe(shell, tmp_path, RANK="1", LOCAL_RANK="1")
    assert len(probe(shell, tmp_path, RANK="1", LOCAL_RANK="1")) == 2


@each_shell
@pytest.mark.parametrize("rank", ["x", "-1", "1; touch /tmp/no", ""])
def test_what_is_no_rank_is_not_reported(shell: list[str], rank: str, tmp_path: Path) -> None:
    reports = probe(shell, tmp_path, RANK=rank, LOCAL_RANK="0")
    assert [item["rank"] for item in reports] == ([] if rank else [0])


# What srun says is of mpirun's daemon on this node.
DAEMON = {"SLURM_PROCID": "1", "SLURM_LOCALID": "0"}


@each_shell
@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_PROCID": "5", "SLURM_LOCALID": "1"},
        DAEMON | {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
        DAEMON | {"PMI_RANK": "5", "MPI_LOCALRANKID": "1"},
        DAEMON | {"RANK": "5", "LOCAL_RANK": "1", "PMI_RANK": "1"},
    ],
)
def test_the_rank_is_the_launchers(
    shell: list[str], environ: dict[str, str], tmp_path: Path
) -> None:
    [report] = probe(shell, tmp_path, **environ)
    assert (report["rank"], report["local_rank"]) == (5, 1)


@each_shell
def test_below_open_mpi_the_ranks_say_which_node_is_the_last(
    shell: list[str], tmp_path: Path
) -> None:
    for rank in range(34):
        # Its daemons are one step on all nodes but the first.
        environ = {"SLURM_NODEID": str(max(rank // 2 - 1, 0)), "SLURM_JOB_NUM_NODES": "17"}
        environ |= {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        found = probe(shell, tmp_path, RANK=str(rank), LOCAL_RANK=str(rank % 2), **environ)
    assert sorted(int(str(item["rank"])) for item in found) == [0, 1, 32, 33]


@each_shell
def test_it_ends_well_where_it_cannot_write(shell: list[str], tmp_path: Path) -> None:
    assert probe(shell, tmp_path / "nowhere", RANK="0", LOCAL_RANK="0") == []


@each_shell
def test_beyond_16_nodes_only_the_first_and_the_last_are_measured(
    shell: list[str], tmp_path: Path
) -> None:
    def of(nodes: int) -> list[int]:
        folder = tmp_path / str(nodes)
        folder.mkdir()
        for node in range(nodes):
            environ = {"SLURM_NODEID": str(node), "SLURM_JOB_NUM_NODES": str(nodes)}
            found = probe(shell, folder, RANK=str(node), LOCAL_RANK="0", **environ)
        return sorted(int(str(item["rank"])) for item in found)

    assert of(16) == list(range(16))
    assert of(17) == [0, 16]


def test_the_job_beyond_16_nodes_waits_for_two() -> None:
    site = Sites([BUILT_IN]).load("lumi")
    spec = parse_job(
        "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
        "time: '01:00:00'\ntrainer: ddp\nproof: strict\nnodes: 16\n",
        "t",
    )
    few = compose(spec, site)
    many = compose(changed(spec, {"nodes": 17}, "t"), site)
    assert "\nlumitui_require 16 49-55 57-63 " in few.script
    assert "\nlumitui_require 2 49-55 57-63 " in many.script


@pytest.mark.skipif(find_spec("torch") is None, reason="torchrun starts the ranks")
@pytest.mark.parametrize("given", ["", "4,5,6,7"])
def test_torchruns_virtual_local_rank_hides_no_rank(tmp_path: Path, given: str) -> None:
    programs, reports = tmp_path / "bin", tmp_path / "proof"
    programs.mkdir()
    reports.mkdir()
    # The mask that a rank is started with, as if these were its cores.
    (programs / "taskset").write_text(
        '#!/bin/sh\ncase $1 in -cp) echo "affinity list: $MASK" ;; '
        '*) MASK=$1; export MASK; shift; exec "$@" ;; esac\n'
    )
    (programs / "taskset").chmod(0o755)
    layout = compose(job(launcher="accelerate", gpus_per_node=4), LUMI).layout
    layout = replace(layout, planned_cores=("0", "1", "2", "3"), exact=given != "4,5,6,7")
    script = compose(job(launcher="accelerate", gpus_per_node=8), LUMI).script
    (start,) = set(re.findall(r"bash -c '(masks=.*?)' rank ", script))
    environ = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "PROOF_DIR": str(reports),
        "PET_VIRTUAL_LOCAL_RANK": "1",
        "CPU_BIND_MASKS": "0,1,2,3",
    }
    environ |= {"CUDA_VISIBLE_DEVICES": given} if given else {}
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4",
         "--no-python", "bash", "-c", start, "rank", "sh", str(PROBE)],
        env=environ, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(path.read_text()) for path in sorted(reports.glob("rank-*"))]
    first = int((given or "0")[0])
    assert [(one["rank"], one["local_rank"], one["cores"], one["gpus"]) for one in found] == [
        (rank, rank, str(rank), str(first + rank)) for rank in range(4)
    ]
    # Here is no driver: what it says of a GPU alone is written as on the node.
    for one in found:
        one["devices"] = one["device"] = f"0000:{LUMI.node.gpu_bus[one['rank']]}:00.0"
    assert verdict(json.dumps(found), layout).kind == "proved"
    found[2]["gpus"] = found[1]["gpus"]
    assert verdict(json.dumps(found), layout).kind == "differs"
