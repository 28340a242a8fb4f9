"""The plan of a resubmission: parent to spec to launch, each derived once. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lumitui.app.explain import words
from lumitui.app.history.run import NODE_PROBE, Run, saved
from lumitui.app.job.fields.mapping_fields import When
from lumitui.app.job.launch import Launch, LaunchFile
from lumitui.app.job.setting import argument_value, batch_argument, is_batch_global
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.job.stop_lead import longer_signal
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.launch.deepspeed_batch import deepspeed_of, has_deepspeed, read_config
from lumitui.app.launch.option_keys import without_dependency
from lumitui.app.launch.rank_memory import memory_of
from lumitui.app.scale.changes import PlanChange, changes_between
from lumitui.app.scale.rescale import Written, apply_settings, rescale
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG

CodeChoice = Literal["same", "current"]
"""The parent's code (on the site), or the project's current code."""
StartPoint = Literal["scratch", "checkpoint"]


@dataclass(frozen=True)
class Follows:
    """The run that a resubmission waits for, as its parent did."""

    run: Run
    when: When
    instead: str = ""
    """That run's folder, which the parent's job file may use."""
    lane: Sequence[Run] = ()
    """Further runs to wait for, whatever their end state."""


@dataclass(frozen=True)
class ResubmissionRequest:
    """A user's request for a resubmission."""

    nodes: int | None = None
    """None: same as the parent."""
    settings: tuple[str, ...] = ()
    """`key=value`, see `apply_settings`."""
    code: CodeChoice = "same"
    start: StartPoint | None = None
    """None: from the last checkpoint if the parent failed and can resume, else from scratch."""
    follows: Follows | None = None
    slowest_save: float | None = None
    """Seconds, measured by the parent or an earlier run; not set by the user."""
    trained_batch: int | None = None
    """The global batch that the parent reported in its metrics; not set by the user."""

    def sets(self, *keys: str) -> bool:
        """Return whether a setting is for one of `keys` or a key nested in it."""
        settings = (setting.partition("=")[0] for setting in self.settings)
        return any(name == key or name.startswith(f"{key}.") for name in settings for key in keys)


@dataclass(frozen=True)
class Basis:
    """The basis of a plan: with settings applied and local files read."""

    parent: Run
    """With the current code, its spec includes the project's current files."""
    spec: JobSpec
    """The parent's job with the new settings, before rescaling."""
    config: str | None = None
    """The project's DeepSpeed configuration, if the current code is sent."""
    dependency: tuple[str, ...] = ()
    """sbatch options for the run that it waits for."""


@dataclass(frozen=True)
class RunPlan:
    """A planned resubmission, and its changes."""

    parent: Run
    launch: Launch
    changes: tuple[PlanChange, ...]
    notes: tuple[str, ...]
    start: StartPoint
    request: ResubmissionRequest


def no_resubmission(run: Run) -> InputError | None:
    """Return the error for a run that trains nothing, because it measures a node."""
    again = f"Choose another run, or measure a node with `lumitui site check {run.site} --probe`."
    return InputError(f"{run.id} only measures a node.", again) if run.name == NODE_PROBE else None


def wanted_spec(parent: Run, request: ResubmissionRequest) -> JobSpec:
    """Return the spec of `parent` with the settings of `request`.

    Raises:
        InputError: an invalid setting, or the parent's code was requested but does not fit or
            exist.
    """
    if refusal := no_resubmission(parent):
        raise refusal
    if request.sets("after", "then"):
        raise InputError(
            "A resubmission cannot set a new `after:` or `then:`.",
            "Write them into the job file, and submit that.",
        )
    # Slurm has forgotten the jobs of an old dependency, or would wait for them again.
    options = without_dependency(parent.spec.sbatch)
    own = parent.spec.model_copy(update={"after": None, "sbatch": options})
    spec = apply_settings(own, request.settings)
    if request.nodes not in (None, spec.nodes) and request.sets("nodes"):
        raise InputError(
            f"{request.nodes} nodes are requested, but a setting has `nodes={spec.nodes}`.",
            "Omit one of them.",
        )
    if request.code == "current":
        return spec
    if parent.snapshot is None:
        raise InputError(
            f"{parent.id} never had its code on the site.",
            "Send the current code (`--code current`).",
        )
    if request.sets("deepspeed"):
        raise InputError(
            f"The resubmission uses the code of {parent.id} unchanged, including its DeepSpeed "
            "configuration.",
            "Add `--code current`, or do not change `deepspeed`.",
        )
    if spec.trainer not in (None, parent.spec.trainer):
        raise InputError(
            f"The resubmission uses the code of {parent.id} unchanged, which lacks the trainer "
            f"{spec.trainer}.",
            "Add `--code current`.",
        )
    return spec


def plan(basis: Basis, lineage: Sequence[Run], site: Site, request: ResubmissionRequest) -> RunPlan:
    """Return the plan for resubmitting the parent of `basis` according to `request`.

    `lineage` has its ancestors, one of which read the DeepSpeed configuration.

    Raises:
        InputError: a batch cannot be split, or the run cannot start from the requested point.
    """
    parent, spec, notes = basis.parent, basis.spec, list[str]()
    if not request.sets("signal") and (signal := longer_signal(spec, request.slowest_save)):
        spec = changed(spec, {"signal": signal}, "signal")
    earlier = launch_of(parent)
    if parent.site == site.name:
        earlier = replace(earlier, memory=memory_of(parent.spec, site, parent.layout))
    if note := _contradiction(parent, spec, request.trained_batch):
        notes.append(note)
    launch = rescale(
        earlier,
        spec,
        site,
        notes,
        nodes=request.nodes,
        settings=request.settings,
        written=_config(basis, lineage, request),
        dependency=basis.dependency,
    )
    start = choose_start(parent, launch, request, notes)
    changes = changes_between(earlier, launch)
    return RunPlan(parent, launch, changes, tuple(notes), start, request)


def _contradiction(parent: Run, spec: JobSpec, trained: int | None) -> str:
    """Return a warning if the parent trained on another global batch than its arguments give."""
    name = batch_argument(spec)
    if not name or not trained or parent.global_batch in (None, trained):
        return ""
    value = argument_value(parent.spec.args, name)
    text = (
        f"The metrics of {parent.id} report a global batch of {trained}, but {name} {value} on "
        f"{words.count(parent.layout.world_size, 'rank')} gives {parent.global_batch}"
    )
    if value == str(trained) and not is_batch_global(spec):
        return f"{text}: if {name} is the global batch, set `scale.batch.arg_is: global`."
    return f"{text}: the batch below may be wrong."


def launch_of(run: Run) -> Launch:
    """Return the launch of a recorded run, with what rescaling needs."""
    files = (LaunchFile(DEEPSPEED_CONFIG, run.deepspeed_config),) if run.deepspeed_config else ()
    return Launch(run.spec, run.script, run.layout, run.price, files, run.global_batch)


def sent_config(run: Run) -> Written | None:
    """Return the DeepSpeed configuration of a run, or None."""
    text = run.deepspeed_config
    return Written(text, run.layout.world_size) if text is not None else None


def _config(basis: Basis, lineage: Sequence[Run], request: ResubmissionRequest) -> Written | None:
    """Return the DeepSpeed configuration: the run's, or the project's current one.

    A file named in the settings is used unchanged. If the file has not been edited since a run of
    the lineage read it, the parent's configuration counts, which results from it. An edited file,
    like the job file, is for the ranks of the first run that had it, and is rescaled from there.
    """
    parent, text = basis.parent, basis.config
    if request.code == "same":
        return sent_config(parent)
    if text is None:
        return None
    if request.sets("deepspeed") or parent.deepspeed_config is None:
        return Written(text, None)
    runs = {run.id: run for run in lineage}
    first = parent
    unedited = _has_read(parent, text)
    while (older := runs.get(first.parent or "")) and _reads_same(older, parent):
        first = older
        unedited = unedited or _has_read(first, text)
    if unedited and basis.spec.strategy == parent.spec.strategy:
        return sent_config(parent)
    return Written(text, first.layout.world_size)


def _has_read(run: Run, text: str) -> bool:
    """Return whether the configuration of `run` came from a file with this `text`."""
    try:
        config, _ = deepspeed_of(run.spec, run.layout, text)
    except InputError:
        return False  # its batch cannot be split over the ranks
    sent = read_config(run.deepspeed_config or "{}", "the DeepSpeed configuration")
    return config == sent


def _reads_same(run: Run, other: Run) -> bool:
    """Return whether both runs used the same DeepSpeed configuration file."""
    own, theirs = ((one.spec.deepspeed, one.spec.trainer) for one in (run, other))
    return run.deepspeed_config is not None and own == theirs


def choose_start(
    parent: Run, launch: Launch, request: ResubmissionRequest, notes: list[str]
) -> StartPoint:
    """Return the requested starting point, or the default for the end state of `parent`.

    Adds the reason for the default to `notes`.

    Raises:
        InputError: the run cannot resume from the requested checkpoint.
    """
    start = request.start
    if start == "checkpoint" and not launch.can_resume:
        raise InputError(
            "The job file does not define how the script resumes.",
            "Set `resume:` to its arguments, like `resume: [--resume]`, or start from scratch "
            "(`--from scratch`).",
        )
    unfit = _unfit(parent, launch)
    if start == "checkpoint" and unfit:
        raise InputError(
            f"The job cannot resume from the checkpoint of {parent.id}: {unfit}.",
            "Start from scratch (`--from scratch`), or keep the settings of that run.",
        )
    failed = parent.state in (
        State.FAILED, State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED, State.OUT_OF_MEMORY
    )  # fmt: skip
    # Who cancels a chain that has saved its steps need not train them again.
    failed = failed or (parent.state is State.CANCELLED and saved(parent.attempts))
    if start is None:
        start = "scratch"
        if failed and launch.can_resume and (parent.started or parent.attempts):
            kept = _has_checkpoint(parent, request)
            if why := unfit or ("" if kept is not False else f"{parent.id} saved no checkpoint"):
                notes.append(f"It starts from scratch: {why}.")
            else:
                start = "checkpoint"
                was = "was " if parent.state is State.CANCELLED else ""
                words = f"{parent.id} {was}{parent.state}: it resumes from its last checkpoint"
                notes.append(f"{words}{'' if kept else ', if it saved one'}.")
    ranks, after = parent.layout.world_size, launch.layout.world_size
    own_zero = launch.spec.trainer is None and has_deepspeed(launch.spec)
    if start == "checkpoint" and own_zero and ranks != after:
        notes.append(
            f"{ranks} ranks wrote the checkpoint: DeepSpeed loads it on {after} only as a "
            "universal checkpoint."
        )
    return start


def _has_checkpoint(parent: Run, request: ResubmissionRequest) -> bool | None:
    """Return whether `parent` has a checkpoint, which bundled trainers report; None if unknown."""
    if request.slowest_save is not None or saved(parent.attempts):
        return True
    reports = parent.spec.trainer and (request.trained_batch is not None or parent.rc == 2)
    return False if reports and parent.parent is None else None


def _unfit(parent: Run, launch: Launch) -> str:
    """Return why `launch` cannot resume from the checkpoint of `parent`; '' if it can.

    Judges only bundled trainers: what a user's script can load is unknown.
    """
    old, new = parent.spec, launch.spec
    if new.trainer is None:
        return ""
    if new.trainer != old.trainer:
        return f"{old.trainer or old.script} wrote it, not {new.trainer}"
    stages = [STRATEGIES[spec.strategy].zero_stage for spec in (old, new)]
    if stages[0] != stages[1]:
        return f"its ZeRO stage is {stages[0]}, not {stages[1]}"
    divides, ranks = TRAINERS[new.trainer].divides, parent.layout.world_size
    optimizer = _optimizer(parent)
    if divides and optimizer.lower() not in divides and launch.layout.world_size != ranks:
        return (
            f"DeepSpeed repartitions only Adam's state, not that of {optimizer}; {ranks} ranks "
            f"wrote it, and {launch.layout.world_size} would read it"
        )
    return ""


def _optimizer(run: Run) -> str:
    """Return the optimizer in a run's DeepSpeed configuration."""
    config = read_config(run.deepspeed_config or "{}", "the DeepSpeed configuration")
    optimizer = config.get("optimizer")
    return str(optimizer.get("type", "none")) if isinstance(optimizer, dict) else "none"
