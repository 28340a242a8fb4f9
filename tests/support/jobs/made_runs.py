"""Records of runs for tests that need no site."""

from dataclasses import replace

from lumitui.app.history.run import Provenance, Run
from lumitui.app.job.launch import Price, RankLayout
from lumitui.app.job.spec import JobSpec
from lumitui.remote.scheduler.scheduler_protocol import State

SPEC = JobSpec(
    name="vit-tiny",
    site="somewhere",
    partition="gpu",
    time="01:00:00",
    trainer="ddp",
    nodes=2,
    args=("--epochs", "10", "ä b'c"),
    env={"MIOPEN_LOG_LEVEL": "4"},
    metrics={"images_per_s": r"Images/sec: (\d+)"},
)


def a_run(run_id: str = "vit-tiny-000001", /, **changes: object) -> Run:
    run = Run(
        id=run_id,
        name="vit-tiny",
        site="somewhere",
        created=1000.0,
        parent=None,
        spec=SPEC,
        script="#!/bin/bash -l\n",
        command="sbatch job.sh",
        layout=RankLayout(2, 8, 8, 7, 8, True, ("0xfe", "0x01"), ("1-7", "0"), exact=False),
        price=Price(32.0, "GPU-hours", 16.0),
        global_batch=256,
        deepspeed_config='{"a": 1}',
        project="/home/me/project",
        job_file="job.yaml",
        folder="/scratch/me/project/runs/1",
        root="/scratch/me/project",
        token="0123456789abcdef",
        provenance=Provenance("abc123", "main", "+a patch\n", True),
        state=State.SENDING,
    )
    return replace(run, **changes)  # type: ignore[arg-type]
