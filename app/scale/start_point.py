"""Where a resubmitted run begins: from scratch, or from its parent's last checkpoint. Pure."""

from typing import Literal

from lumitui.app.history.attempts import saved
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.launch.deepspeed_batch import has_deepspeed, read_config
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError

Start = Literal["scratch", "checkpoint"]


def choose_start(parent: Run, launch: Launch, start: Start | None, notes: list[str]) -> Start:
    """Return where the run begins: `start`, or without it what fits how `parent` ended.

    The reason for a choice is added to `notes`.

    Raises:
        InputError: the run cannot continue from the checkpoint that is asked for.
    """
    if start == "checkpoint" and not launch.can_resume:
        raise InputError(
            "The job file does not say how the script continues.",
            "Add `resume: [--resume]` with its arguments, or use `--from scratch`.",
        )
    unfit = _unfit(parent, launch)
    if start == "checkpoint" and unfit:
        raise InputError(
            f"The checkpoint of {parent.id} cannot be continued: {unfit}.",
            "Use `--from scratch`, or keep the settings it was made with.",
        )
    failed = parent.state in (
        State.FAILED, State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED, State.OUT_OF_MEMORY
    )  # fmt: skip
    # Who cancels a chain that has saved its steps need not train them again.
    failed = failed or (parent.state is State.CANCELLED and saved(parent.attempts))
    if start is None:
        start = "scratch"
        if failed and launch.can_resume and (parent.started or parent.attempts):
            if unfit:
                notes.append(f"It starts from scratch: {unfit}.")
            else:
                start = "checkpoint"
                was = "was " if parent.state is State.CANCELLED else ""
                words = f"{parent.id} {was}{parent.state}: it continues from its last checkpoint."
                notes.append(words)
    ranks, wanted = parent.layout.world_size, launch.layout.world_size
    own_zero = launch.spec.trainer is None and has_deepspeed(launch.spec)
    if start == "checkpoint" and own_zero and ranks != wanted:
        notes.append(
            f"The checkpoint was written by {ranks} ranks: DeepSpeed loads it on {wanted} only as "
            "a universal checkpoint."
        )
    return start


def _unfit(parent: Run, launch: Launch) -> str:
    """Return why `launch` cannot continue from the checkpoint of `parent`; empty: it can.

    Only known for the bundled trainers: nothing is known about what a person's script can load.
    """
    old, new = parent.spec, launch.spec
    if new.trainer is None:
        return ""
    if new.trainer != old.trainer:
        return f"it was made by {old.trainer or old.script}, not by {new.trainer}"
    stages = [STRATEGIES[spec.strategy].zero_stage for spec in (old, new)]
    if stages[0] != stages[1]:
        return f"it is of ZeRO stage {stages[0]}, not {stages[1]}"
    divides, ranks = TRAINERS[new.trainer].divides, parent.layout.world_size
    optimizer = _optimizer(parent)
    if divides and optimizer.lower() not in divides and launch.layout.world_size != ranks:
        return (
            f"DeepSpeed divides only Adam's state among other ranks, not that of {optimizer}; "
            f"{ranks} then and {launch.layout.world_size} now"
        )
    return ""


def _optimizer(run: Run) -> str:
    """Return the optimizer of the DeepSpeed configuration that a run had."""
    config = read_config(run.deepspeed_config or "{}", "the DeepSpeed configuration")
    optimizer = config.get("optimizer")
    return str(optimizer.get("type", "none")) if isinstance(optimizer, dict) else "none"
