"""A run made ready to go again on other nodes or with other settings. No network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lumitui.app.compose.deepspeed_batch import (
    CONFIG_FILE,
    deepspeed_of,
    has_deepspeed,
    read_config,
)
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch, LaunchFile
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.scale.rescale import Change, apply_settings, rescale
from lumitui.app.send import source
from lumitui.app.send.preview import Preview, preview_of
from lumitui.app.send.shipment import Inheritance
from lumitui.remote.errors import InputError
from lumitui.remote.scheduler.protocol import State
from lumitui.remote.site.profile import Site

Start = Literal["scratch", "checkpoint"]
CodeChoice = Literal["same", "current"]


@dataclass(frozen=True)
class Resubmission:
    """A run made ready to go again, with what changes."""

    parent: Run
    preview: Preview
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    code: CodeChoice
    start: Start
    insists: bool = False
    """Whether the person asked for the checkpoint: without one it is then refused."""

    @property
    def inheritance(self) -> Inheritance:
        """What the new run takes over from its parent."""
        continues = self.start == "checkpoint"
        return Inheritance(self.parent, self.code == "same", continues, self.insists)


@dataclass(frozen=True)
class _Config:
    """The DeepSpeed configuration that a resubmission starts from."""

    text: str | None
    ranks: int | Literal["new"]
    """For how many ranks its batch and rates are written; see `rescale`."""


def plan(
    parent: Run,
    site: Site,
    command: str,
    *,
    nodes: int | None,
    settings: Sequence[str],
    code: CodeChoice,
    start: Start | None,
    lineage: Sequence[Run] = (),
) -> Resubmission:
    """Return `parent` made ready again; see `Runs.plan_resubmission`.

    `lineage` are the runs it comes from: the first of them read the DeepSpeed configuration.
    """
    if code == "same" and parent.snapshot is None:
        raise InputError(f"{parent.id} never had its code on the site.", "Use `--code current`.")
    if code == "current":
        parent = replace(parent, spec=source.with_ship_mode(parent.spec, Path(parent.project)))
    earlier = _launch_of(parent)
    config = _config(parent, lineage, settings, code)
    scaled = rescale(
        earlier,
        site,
        nodes=nodes,
        settings=settings,
        deepspeed_config=config.text,
        config_ranks=config.ranks,
    )
    launch = scaled.launch
    notes = list(scaled.notes)
    insists = start == "checkpoint"
    start = _start(parent, launch, start, notes)
    job_file = Path(parent.job_file) if parent.job_file else None
    project = Path(parent.project)
    preview = preview_of(launch, site, command, project, job_file, ships_code=code == "current")
    return Resubmission(parent, preview, scaled.changes, tuple(notes), code, start, insists)


def _config(
    parent: Run, lineage: Sequence[Run], settings: Sequence[str], code: CodeChoice
) -> _Config:
    """Return the DeepSpeed configuration: the one the run had, or the project's as it is now.

    A file that is named by hand stands as it is. One that was not edited since one of the runs
    read it is what that chain has made of it. One that was edited is written, like the job file,
    for the ranks of the first run that had it, and grows from there.

    Raises:
        InputError: the same code is asked for with another configuration or trainer.
    """
    wanted = apply_settings(parent.spec, settings)
    named = any(setting.startswith(("deepspeed.", "deepspeed=")) for setting in settings)
    if code == "same":
        if named:
            raise InputError(
                f"The code of {parent.id} goes again as it was, and so does its DeepSpeed "
                "configuration.",
                "Add `--code current`, or leave `deepspeed` as it is.",
            )
        if wanted.trainer not in (None, parent.spec.trainer):
            raise InputError(
                f"The code of {parent.id} goes again as it was, without the trainer "
                f"{wanted.trainer}.",
                "Add `--code current`.",
            )
        return _Config(parent.deepspeed_config, parent.layout.world_size)
    text = source.deepspeed_config(wanted, Path(parent.project))
    if named or parent.deepspeed_config is None:
        return _Config(text, "new")
    known = {run.id: run for run in lineage}
    first = parent
    unedited = _has_read(parent, text)
    while (older := known.get(first.parent or "")) and _reads_same(older, parent):
        first = older
        unedited = unedited or _has_read(first, text)
    if unedited and wanted.strategy == parent.spec.strategy:
        return _Config(parent.deepspeed_config, parent.layout.world_size)
    return _Config(text, first.layout.world_size)


def _has_read(run: Run, text: str | None) -> bool:
    """Return whether a file that says `text` gave `run` its configuration."""
    try:
        config, _ = deepspeed_of(run.spec, run.layout, text)
    except InputError:
        return False  # it could not be split over its ranks
    sent = read_config(run.deepspeed_config or "{}", "the DeepSpeed configuration")
    return config == sent


def _reads_same(run: Run, other: Run) -> bool:
    """Return whether both runs had their DeepSpeed configuration from the same file."""
    return run.deepspeed_config is not None and (run.spec.deepspeed, run.spec.trainer) == (
        other.spec.deepspeed,
        other.spec.trainer,
    )


def _start(parent: Run, launch: Launch, start: Start | None, notes: list[str]) -> Start:
    """Return where the run begins; `notes` gets why, where that was not said by hand.

    Raises:
        InputError: a checkpoint is asked for that it could not continue from.
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
            "Use `--from scratch`, or keep what it was made with.",
        )
    failed = parent.state in (
        State.FAILED, State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED, State.OUT_OF_MEMORY
    )  # fmt: skip
    if start is None:
        start = "scratch"
        if failed and launch.can_resume and parent.started:
            if unfit:
                notes.append(f"It starts from scratch: {unfit}.")
            else:
                start = "checkpoint"
                words = f"{parent.id} {parent.state}: it continues from its last checkpoint."
                notes.append(words)
    ranks, wanted = parent.layout.world_size, launch.layout.world_size
    own_zero = launch.spec.trainer is None and has_deepspeed(launch.spec)
    if start == "checkpoint" and own_zero and ranks != wanted:
        notes.append(
            f"The checkpoint is of {ranks} ranks: DeepSpeed loads ZeRO's on {wanted} only as "
            "a universal one."
        )
    return start


def _unfit(parent: Run, launch: Launch) -> str:
    """Return why the checkpoint of `parent` is no start for `launch`, in words; empty: it fits.

    Known of the bundled trainers alone; what a person's own script can load is its own affair.
    """
    old, new = parent.spec, launch.spec
    if new.trainer is None:
        return ""
    if new.trainer != old.trainer:
        return f"it was made by {old.trainer or old.script}, not by {new.trainer}"
    if TRAINERS[new.trainer].resumes_at_other_size:
        return ""
    ranks = parent.layout.world_size
    if launch.layout.world_size != ranks:
        return (
            "ZeRO splits the optimizer's state among the ranks, "
            f"{ranks} then and {launch.layout.world_size} now"
        )
    stages = [STRATEGIES[spec.strategy].zero_stage for spec in (old, new)]
    return f"it is of ZeRO stage {stages[0]}, not {stages[1]}" if stages[0] != stages[1] else ""


def _launch_of(run: Run) -> Launch:
    """Return the launch a recorded run was, as far as scaling needs it."""
    files = (LaunchFile(CONFIG_FILE, run.deepspeed_config),) if run.deepspeed_config else ()
    return Launch(run.spec, run.script, run.layout, run.price, files, run.global_batch)
