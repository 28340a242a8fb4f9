"""Runs of one training on several sizes, with metrics as a bundled trainer writes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.job.fields.mapping_fields import BatchRule, LearningRateRule, Scale
from lumitui.app.job.launch import Price, RankLayout
from lumitui.app.scale.scaling.study import Scaling, ScalingSize
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run

GROWS = Scale(batch=BatchRule(keep="per_gpu"), lr=LearningRateRule(rule="linear"))
"""The global batch grows with the nodes, and the learning rate with it."""


def lines_of(
    speeds: Sequence[float],
    ranks: int,
    batch: int,
    epoch: int,
    epochs: int = 2,
    parameters: int | None = None,
) -> list[bytes]:
    """Return the lines of metrics.jsonl of a training with a step for each of `speeds`."""
    start = {"event": "start", "world_size": ranks, "global_batch": batch}
    start |= {} if parameters is None else {"parameters": parameters}
    start |= {"train_samples": epoch, "epochs": epochs}
    steps = [
        {"step": at, "epoch": 1, "loss": 1 / at, "samples_per_s": speed, "seconds": at}
        for at, speed in enumerate(speeds, 1)
    ]
    return [json.dumps(line).encode() for line in (start, *steps)]


def trained(run_id: str, nodes: int, parent: str | None = None, **changes: object) -> Run:
    """Return a run of eight GPUs a node that has ended well after 100 seconds."""
    args = ("--batch-size", "32", "--lr", f"{0.1 * nodes:g}")
    settings = {"nodes": nodes, "site": "lumi", "partition": "standard-g", "args": args}
    settings |= {"account": "project_462000001", "scale": GROWS}
    run = a_run(
        run_id,
        parent=parent,
        created=1000.0 + nodes,
        spec=SPEC.model_copy(update=settings),
        site="lumi",
        layout=RankLayout(nodes, 8, 8, 7, 8, True, ("0xfe",) * 8, ("1-7",) * 8, exact=False),
        price=Price(4.0 * nodes, "GPU-hours", 4.0 * nodes),
        global_batch=256 * nodes,
        deepspeed_config=None,
        state=State.DONE,
        job_id=f"8{nodes}",
        started=1000.0,
        ended=1100.0,
        updated=1100.0,
        metrics_offset=1,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def train(
    history: History,
    speeds: Mapping[int, float],
    *,
    steps: int = 20,
    parameters: int | None = None,
) -> list[Run]:
    """Put runs of one lineage into history: on each number of nodes with a median speed."""
    runs: list[Run] = []
    for nodes, speed in speeds.items():
        run = trained(f"vit-{nodes}n-00000{nodes}", nodes, runs[0].id if runs else None)
        history.begin(run)
        wave = [speed * (1 + 0.02 * (at % 3 - 1)) for at in range(steps)]
        history.metrics.add(run.id, lines_of(wave, 8 * nodes, 256 * nodes, 60_000, 2, parameters))
        runs.append(history.get(run.id))
    return runs


def size_of(scaling: Scaling, nodes: int) -> ScalingSize:
    """Return the size with so many nodes."""
    return next(size for size in scaling.sizes if size.nodes == nodes)
