"""Histories to look at screens with: an empty one, a typical one, and one of extremes."""

import json
import math
import time
from dataclasses import replace
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Price
from lumitui.app.launch.send.code import project_files
from lumitui.remote.scheduler.cluster_overview import (
    ClusterOverview,
    Nodes,
    QueuedJob,
    Reservation,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_reports import EXACT, reports
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.places import GOLDEN

SCRIPT = (GOLDEN / "laif" / "run_ddp_srun_4.sh").read_text()
WIDE_NAME = "視覚変換器の事前学習🚀" * 9
LONG_NAME = "vision-transformer-pretraining-with-a-name-that-nobody-shortened-" * 3 + "12345"
"""200 characters."""
LUMI_JOB = {
    "site": "lumi", "account": "project_462000001", "partition": "standard-g",
    "args": ("--epochs", "10", "--batch-size", "32", "--lr", "0.001"),
}  # fmt: skip
LOG = """0: step 810 loss 0.4431 612.2 images/s
1: step 810 loss 0.4429 611.9 images/s
\x1b[33m3: UserWarning: the learning rate is high\x1b[0m
9: Traceback (most recent call last):
9:   File "train.py", line 88, in forward
9: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.
10:  12%|█▏        | 12/100\r 55%|█████▌    | 55/100
進捗 🚀 ステップ 811
"""


def made(number: int, state: State, *, nodes: int = 2, folder: Path, **changes: object) -> Run:
    """Return a run of LUMI that began `number` half hours ago."""
    began = time.time() - number * 1800
    run_id = f"vit-{nodes}n-{number * 2917 % 65521:06x}"
    layout = replace(EXACT, nodes=nodes)
    run = a_run(
        run_id, site="lumi", created=began, layout=layout, script=SCRIPT, state=state,
        spec=SPEC.model_copy(update=LUMI_JOB | {"nodes": nodes}),
        price=Price(4.0 * nodes, "GPU-hours", 4.0 * nodes), folder=str(folder / run_id),
        job_id=None if state in (State.SENDING, State.NOT_SENT) else str(8_123_000 + number),
        submitted=began + 2, attempt=1, global_batch=256 * nodes,
        snapshot="995f7811cb0970057eff1546",
    )  # fmt: skip
    if state not in (State.SENDING, State.NOT_SENT, State.REFUSED, State.QUEUED):
        now = time.time()
        started = began + 60 if state.is_final else max(began + 60, now - 1740)
        run = replace(run, started=started, updated=now)
    if state.is_final and run.started:
        run = replace(run, ended=began + 1500, rc=0 if state is State.DONE else 1)
    return replace(run, **changes)  # type: ignore[arg-type]


def begin(history: History, run: Run, *, steps: int = 0, log: str = LOG) -> None:
    """Write a run with its proof, metrics of `steps` steps, and its log."""
    history.begin(run)
    if run.started:
        folder = Path(run.folder)
        folder.mkdir(parents=True)
        (folder / "attempt-1.out").write_text(log)
        history.update(run.id, binding=json.dumps(reports(run.layout)))
    lines = [
        json.dumps({
            "step": step, "loss": 2 * math.exp(-step / 40) + 0.4 + 0.03 * math.sin(step),
            "lr": 0.001, "samples_per_s": 600.0 * run.layout.nodes + step % 7,
            "seconds": 0.4 * step,
        }).encode()
        for step in range(steps)
    ]  # fmt: skip
    size = sum(map(len, lines))
    history.metrics.add(run.id, lines, (0, size) if size else None)


def a_cluster(now: float) -> ClusterOverview:
    """Return what a large site says of itself at `now`."""
    return ClusterOverview(
        partitions=(
            Nodes("standard-g", "up", "2-00:00:00", "1-1024", 100, 23, 2505, 40, 8),
            Nodes("small-g", "up", "3-00:00:00", "1-4", 12, 31, 155, 2, 0),
            Nodes("dev-g", "up", "03:00:00", "1-32", 2, 5, 24, 1, 8),
            Nodes("largemem", "drain", "1-00:00:00", "1-infinite", 0, 0, 0, 8, 0),
        ),
        queue=(
            QueuedJob("8123001", "RUNNING", "standard-g", 4, "29:00", "1:00:00", now - 1740,
                      "None", "vit"),
            QueuedJob("8123014", "PENDING", "standard-g", 16, "0:00", "12:00:00", now + 5400,
                      "Priority", "vit-large"),
            QueuedJob("8123018", "PENDING", "dev-g", 1, "0:00", "30:00", now + 600, "Resources",
                      "debug"),
        ),
        reservations=(
            Reservation("maintenance", "INACTIVE", now + 3 * 86400, now + 3.5 * 86400, 2978, ""),
        ),
        budget=(
            "Project            |  GPU-hours used / allocated |  TB-hours used / allocated",
            "-------------------+-----------------------------+---------------------------",
            "project_462000001  |   12,340 /   20,000 (61.7%) |    8,100 /  60,000 (13.5%)",
        ),
    )  # fmt: skip


def typical(history: History, folder: Path) -> str:
    """Write what a week leaves; return the run to open."""
    parent = made(9, State.DONE, nodes=1, folder=folder, note="the baseline")
    begin(history, parent, steps=120)
    chosen = made(1, State.RUNNING, nodes=4, folder=folder, parent=parent.id)
    begin(history, chosen, steps=80)
    words = {
        State.QUEUED: "Priority", State.FAILED: "rank 9: out of GPU memory, train.py:88",
        State.REFUSED: "the account has no GPU hours left", State.TIMEOUT: "time limit of 1 hour",
    }  # fmt: skip
    for number, state in enumerate(State, start=10):
        run = made(number, state, nodes=2 ** (number % 4), folder=folder)
        begin(history, replace(run, reason=words.get(state, "")), steps=20)
    return chosen.id


CODE = """import torch


def forward(model, images):
    features = model.embed(images)
    return model.head(features.mean(dim=1))
"""


def a_failure(history: History, folder: Path, project: Path) -> str:
    """Write a run whose code raised, with the code in `project`; return it."""
    (project / "train.py").write_text(CODE)
    spec = SPEC.model_copy(update=LUMI_JOB | {"trainer": None, "script": "train.py", "nodes": 2})
    sent = project_files.collect(spec, project, folder / "hashes").manifest
    words = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x10)"
    log = (
        f"0: step 41 loss 0.9\n9: Traceback (most recent call last):\n"
        f'9:   File "/scratch/vit/code/train.py", line 6, in forward\n'
        f"9:     return model.head(features.mean(dim=1))\n9: {words}\n"
        "srun: error: nid005001: task 9: Exited with exit code 1\n"
    )
    run = made(7, State.FAILED, folder=folder, spec=spec, project=str(project), snapshot=sent.id)
    history.snapshots.remember(run.site, run.root, sent.text, sent.id)
    begin(history, run, steps=41, log=log)
    return run.id


def extreme(history: History, folder: Path, runs: int, nodes: int) -> str:
    """Write `runs` runs, some with names that no screen expects; return one of `nodes` nodes."""
    many = [made(number, State.DONE, folder=folder) for number in range(20, runs)]
    history.adopt(many)
    for number, name in enumerate((WIDE_NAME, LONG_NAME), start=1):
        run = made(number, State.FAILED, nodes=3, folder=folder, name=name)
        run = replace(run, id=f"{name}-00000{number}", reason=f"{name} " * 3, note=name)
        begin(history, replace(run, folder=str(folder / str(number))), steps=1)
    largest = made(0, State.RUNNING, nodes=nodes, folder=folder)
    largest = replace(largest, id=f"{WIDE_NAME[:40]}-000000", folder=str(folder / "largest"))
    begin(history, largest, steps=400, log=LOG * 200)
    return largest.id


def a_grid(history: History, folder: Path) -> str:
    """Write a grid over learning rates, one of them not sent; return its best run."""
    members = []
    for number, rate in enumerate((0.1, 0.03, 0.01, 0.003), start=140):
        state = State.RUNNING if rate == 0.003 else State.DONE
        run = made(number, state, folder=folder)
        begin(history, run)
        lines = [
            json.dumps({
                "step": step, "loss": (2 - rate) * math.exp(-step * rate) + 3 * rate**0.5,
                "samples_per_s": 1200.0 + number, "seconds": 0.4 * step,
            }).encode()
            for step in range(120)
        ]  # fmt: skip
        history.metrics.add(run.id, lines, (0, sum(map(len, lines))))
        members.append(SeriesMember(number, f"--lr={rate}", "", run.id))
    members.append(SeriesMember(150, "--lr=0.001", ""))
    history.series.begin(RunSeries("grid-1", "grid", "lumi", "", time.time(), tuple(members)))
    for one in members[:-1]:
        history.series.claim("grid-1", one.place, one.run or "")
    return members[2].run or ""
