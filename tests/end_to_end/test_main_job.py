"""The main job on the mini cluster: compose, send, watch, prove, resubmit at more nodes."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import TRAIN, finish, hello_job, hello_project, wait_until
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

DEEPSPEED = changed(
    parse_job(TRAIN, "train"),
    {"trainer": "deepspeed_zero", "strategy": "zero1", "args": ["--steps", "3"], "nodes": 2},
    "deepspeed",
)
FSDP = changed(
    parse_job(TRAIN, "train"),
    {"trainer": "fsdp", "strategy": "fsdp", "args": ["--steps", "3"], "nodes": 2},
    "fsdp",
)
TORCHRUN = changed(parse_job(TRAIN, "train"), {"launcher": "torchrun", "nodes": 2}, "torchrun")


def cli(home: Home, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "lumitui.app.cli.main", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=home.environ, timeout=300)


def assert_trained(runs: Runs, run: Run, world_size: int) -> None:
    log = runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, f"{run.reason}\n{log}"
    assert run.rc == 0
    summary = summarize(runs.history.metrics.of(run.id))
    assert summary.world_size == world_size
    assert summary.steps and summary.test_accuracy is not None


# A rank takes five seconds of a processor to import torch: whole nodes are for the slow tests.
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 8])
def test_srun_on_one_node_then_on_two_by_the_command_line(
    cluster_runs: Runs, home: Home, tmp_path: Path, ranks: int
) -> None:
    runs = cluster_runs
    spec = changed(parse_job(TRAIN, "train"), {"gpus_per_node": ranks}, "ranks")
    first = finish(runs, runs.send(runs.preview(spec, tmp_path)))
    assert_trained(runs, first, ranks)
    proof = runs.proof(first)
    assert (proof.kind, proof.measured) == ("proved", ranks)

    again = cli(home, "resubmit", first.id, "--nodes", "2", "--yes", "--json")
    assert again.returncode == 0, again.stderr
    second = finish(runs, runs.history.get(json.loads(again.stdout)["data"]["id"]))
    assert_trained(runs, second, 2 * ranks)
    assert second.parent == first.id
    assert second.snapshot == first.snapshot
    # Without `scale:` the global batch stays: half the samples a rank.
    assert second.global_batch == first.global_batch == 16 * ranks
    proof = runs.proof(second)
    assert (proof.kind, proof.measured) == ("proved", 2 * ranks)
    planned = dict(enumerate(second.layout.planned_cores))
    assert {(row.local_rank, row.found) for row in proof.rows} == set(planned.items())
    assert [run.id for run in runs.history.lineage(second.id)] == [first.id, second.id]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        TORCHRUN,
        DEEPSPEED,
        FSDP,
        changed(DEEPSPEED, {"launcher": "torchrun"}, "deepspeed torchrun"),
    ],
    ids=["ddp-torchrun", "zero1-srun", "fsdp-srun", "zero1-torchrun"],
)
def test_each_launcher_with_each_strategy_on_two_nodes(
    cluster_runs: Runs, tmp_path: Path, spec: JobSpec
) -> None:
    runs = cluster_runs
    # Two ranks a node: sixteen take two CPUs long to start, and are what the test above has.
    spec = changed(spec, {"gpus_per_node": 2}, "few ranks")
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)), seconds=240)
    assert_trained(runs, run, 4)
    proof = runs.proof(run)
    # torchrun binds nothing here: its ranks share the node's cores.
    kind = "proved" if spec.launcher == "srun" else "unbound"
    assert (proof.kind, proof.measured) == (kind, 4)


@pytest.mark.slow
def test_a_zero_training_goes_on_with_more_ranks(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = changed(DEEPSPEED, {"gpus_per_node": 2, "nodes": 1}, "few ranks")
    first = finish(runs, runs.send(runs.preview(spec, tmp_path)), seconds=240)
    assert_trained(runs, first, 2)
    plan = runs.plan_resubmission(
        first.id, nodes=2, start="checkpoint", settings=["args=[--steps, '5']"]
    )
    second = finish(runs, runs.resubmit(plan), seconds=240)
    assert_trained(runs, second, 4)
    steps = [point.step for point in runs.history.metrics.of(second.id) if point.loss is not None]
    assert steps == [4, 5]


@pytest.mark.both_slurms
def test_a_wrong_mask_is_found(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = hello_job(partition="standard-g", gpus_per_node=8)
    preview = runs.preview(spec, hello_project(tmp_path))
    first, second = preview.launch.layout.masks[:2]
    swapped = preview.launch.script.replace(f"{first},{second}", f"{second},{first}")
    assert swapped != preview.launch.script
    run = runs.send(replace(preview, launch=replace(preview.launch, script=swapped)))
    run = finish(runs, run)
    proof = runs.proof(run)
    assert proof.kind == "differs"
    assert [row.rank for row in proof.rows if not row.ok] == [0, 1]


def test_a_strict_proof_launches_nothing_on_wrong_cores(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = hello_job(partition="standard-g", gpus_per_node=8, proof="strict")
    preview = runs.preview(spec, hello_project(tmp_path))
    right = finish(runs, runs.send(preview))
    assert (right.state, runs.proof(right).kind) == (State.DONE, "proved")
    first, second = preview.launch.layout.masks[:2]
    swapped = preview.launch.script.replace(f"{first},{second}", f"{second},{first}")
    wrong = runs.send(replace(preview, launch=replace(preview.launch, script=swapped)))
    wrong = finish(runs, wrong)
    assert (wrong.state, wrong.rc) == (State.FAILED, 78)
    assert b'"argv"' in runs.read_log(right.id)[1]
    assert b'"argv"' not in runs.read_log(wrong.id)[1]


@pytest.mark.both_slurms
def test_a_failed_rank_is_named_with_its_exit_code(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = hello_job(env={"FAIL_RANK": "1"})
    run = finish(runs, runs.send(runs.preview(spec, hello_project(tmp_path))))
    assert (run.state, run.rc, run.failed_rank) == (State.FAILED, 7, 1)


def test_results_come_back(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    run = finish(runs, runs.send(runs.preview(hello_job(), hello_project(tmp_path / "p"))))
    fetched = runs.fetch(run.id, tmp_path / "results")
    assert {item.name for item in fetched.files} >= {"job.sh", "binding.json", "attempt-1.out"}
    assert (tmp_path / "results" / "job.sh").read_text() == run.script


# The signal reaches each `sleep` too, which may end before the shell has its own.
FOLDERS = """\
#!/bin/bash
[ -d "$MIOPEN_CUSTOM_CACHE_DIR" ] && [ -d "$MIOPEN_USER_DB_PATH" ] || exit 1
save() { sleep 1; touch "$MIOPEN_CUSTOM_CACHE_DIR/late" && echo saved; exit; }
trap save TERM
echo "cache $MIOPEN_CUSTOM_CACHE_DIR"
for second in $(seq "$1"); do sleep 1; done
"""


def test_a_job_takes_its_folders_on_the_nodes_with_it(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    (tmp_path / "folders").write_text(FOLDERS)
    (tmp_path / "folders").chmod(0o755)
    job: dict[str, object] = {"script": "folders", "proof": "off", "container": {"none": True}}
    ends, stays = (
        runs.send(runs.preview(hello_job(**job, nodes=nodes, args=[seconds]), tmp_path))
        for nodes, seconds in ((2, "0"), (1, "600"))
    )

    def cache_of(run: Run) -> set[str]:
        log = (
            runs.read_log(run.id)[1].decode() if Path(run.folder, "attempt-1.out").exists() else ""
        )
        return set(re.findall(r"cache /tmp/(\S+)", log))

    def left(run: Run) -> list[Path]:
        (name,) = cache_of(run)
        return list(cluster.root.glob(f"nodes/*/tmp/{name}"))

    def both_wait() -> bool:
        return bool(cache_of(stays)) and runs.read_log(stays.id)[1].count(b"cache ") == 2

    wait_until(both_wait, what="both ranks of the job have their folder")
    assert len(left(stays)) == 1
    runs.cancel(stays.id)
    ends = finish(runs, ends)
    assert ends.state is State.DONE, runs.read_log(ends.id)[1]
    assert left(ends) == []
    # While its ranks save, the folder of a job that is cancelled is still there.
    assert finish(runs, stays).state is State.CANCELLED
    wait_until(lambda: left(stays) == [], what="the folder is gone")
    assert runs.read_log(stays.id)[1].count(b"saved") == 2


@pytest.mark.both_slurms
def test_the_preview_is_what_the_cluster_gets(
    cluster_runs: Runs, cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    runs = cluster_runs
    project = hello_project(tmp_path / "p")
    (project / "job.yaml").write_text(
        json.dumps(hello_job().model_dump(mode="json", exclude_defaults=True))
    )
    shown = cli(home, "preview", str(project / "job.yaml"), "--script")
    assert shown.returncode == 0, shown.stderr
    run = finish(runs, runs.send(runs.preview(hello_job(), project)))
    sent = cluster.login(f"cat {run.folder}/job.sh").stdout
    assert sent == shown.stdout


def test_two_hundred_runs_cost_one_request_and_one_squeue(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    done = runs.send(runs.preview(hello_job(), hello_project(tmp_path)))
    finish(runs, done)
    submit = (
        "for name in $(seq -f many-%03g 0 199); do sbatch --parsable --hold -J $name "
        "-A project_462000001 -p small-g -t 1 --wrap true; done"
    )
    ids = cluster.login(submit, timeout=120).stdout.split()
    assert len(ids) == 200
    try:
        for number, job_id in enumerate(ids):
            run = replace(
                done,
                id=f"many-{number:03d}",
                state=State.QUEUED,
                job_id=job_id,
                folder=f"{done.root}/runs/many-{number:03d}",
                exits=0,
                rc=None,
                binding=None,
            )
            runs.history.begin(run)
        cluster.clear_calls()
        refreshed = runs.refresh("minilumi")
        calls = [call.command for call in cluster.calls()]
        assert refreshed.requests == 1
        assert calls == ["squeue"]
        assert cluster.sessions().commands == 1
    finally:
        cluster.login(f"scancel {' '.join(ids)}", timeout=60)
