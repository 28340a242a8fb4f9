"""Rules about DeepSpeed's configuration as such: its text, its batch, who reads it."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.deepspeed_config import TRAIN
from lumitui.app.knowledge.program.step_program import configurations
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_CONFIG = "github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py"


@rule(
    "deepspeed-batch",
    "error",
    "batch sizes that do not fit the number of ranks",
    why="DeepSpeed ends unless train_batch_size is micro batch x accumulation x ranks.",
    source=f"{_CONFIG}, _batch_assertion",
)
def _batch(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        train, micro, steps = config.train, config.micro, config.accumulation
        if not run.world or not isinstance(train, int) or "auto" in (micro, steps):
            continue
        if any(type(value) is int and value < 1 for value in (train, micro, steps)):
            yield Hit(
                f"{config.file} has a batch size or an accumulation below 1: DeepSpeed ends.",
                "Write whole numbers from 1.",
                config.at(TRAIN),
            )
            continue
        share = train // run.world
        if isinstance(micro, int) and isinstance(steps, int):
            if micro * steps * run.world != train:
                yield Hit(
                    f"{TRAIN} is {train} in {config.file}, but {micro} per GPU x {steps} steps x "
                    f"{run.world} ranks are {micro * steps * run.world}: DeepSpeed ends.",
                    f"Write {TRAIN}: {micro * steps * run.world}, or leave it out.",
                    config.at(TRAIN),
                )
            continue
        part = micro if isinstance(micro, int) else steps if isinstance(steps, int) else 1
        if share < 1:
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, less than the {run.world} ranks of this "
                "job: each would get no sample.",
                f"Write {TRAIN}: {run.world}, or a multiple of it, or take fewer nodes.",
                config.at(TRAIN),
            )
        elif part < 1 or train % (run.world * part):
            each = f" x {part}" if part != 1 else ""
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, which {run.world} ranks{each} do not divide "
                "evenly: DeepSpeed ends.",
                f"Write a multiple of {run.world * max(1, part)}, like "
                f"{max(1, round(train / (run.world * max(1, part)))) * run.world * max(1, part)}.",
                config.at(TRAIN),
            )


RULES: tuple[Rule, ...] = (_batch,)
"""Every rule of this subject."""
