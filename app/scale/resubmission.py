"""A run made ready to be submitted again, on other nodes or with other settings. No network."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch, LaunchFile
from lumitui.app.job.stop_lead import longer_signal
from lumitui.app.launch.deepspeed_batch import (
    deepspeed_of,
    read_config,
)
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.code.requirement_files import with_requirements
from lumitui.app.launch.send.preview import Preview, preview_of
from lumitui.app.launch.send.shipment import Inheritance
from lumitui.app.scale.changes import Change
from lumitui.app.scale.rescale import apply_settings, rescale
from lumitui.app.scale.start_point import Start, choose_start
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import DEEPSPEED_CONFIG

CodeChoice = Literal["same", "current"]
"""The code that the parent ran, which is on the site, or the project as it is now."""


@dataclass(frozen=True)
class ResubmissionRequest:
    """What a person asks for when a run is submitted again."""

    nodes: int | None = None
    """None: as many as before."""
    settings: tuple[str, ...] = ()
    """`key=value`, see `apply_settings`."""
    code: CodeChoice = "same"
    start: Start | None = None
    """None: from the last checkpoint when it failed and can continue, else from scratch."""
    slowest_save: float | None = None
    """Seconds, as the parent or a run before it has measured; nobody asks for it."""


@dataclass(frozen=True)
class Resubmission:
    """A run made ready to be submitted again, with what changes."""

    parent: Run
    preview: Preview
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    code: CodeChoice
    start: Start
    request: ResubmissionRequest = ResubmissionRequest()
    """What was asked for."""
    insists: bool = False
    """Whether the person asked for the checkpoint: without one the send is refused."""

    @property
    def inheritance(self) -> Inheritance:
        """What the new run takes over from its parent."""
        continues = self.start == "checkpoint"
        return Inheritance(self.parent, self.code == "same", continues, self.insists)

    def forced(self, forced: bool) -> "Resubmission":
        """Return it as it is sent with the adviser's errors, if `forced`: the person saw them."""
        return replace(self, preview=replace(self.preview, forced=forced))


@dataclass(frozen=True)
class _Config:
    """The DeepSpeed configuration that a resubmission starts from."""

    text: str | None
    ranks: int | Literal["new"]
    """The number of ranks that its batch and rates are written for; see `rescale`."""


def plan(
    parent: Run,
    lineage: Sequence[Run],
    site: Site,
    command: str,
    request: ResubmissionRequest,
    hashes: Path | None = None,
) -> Resubmission:
    """Return `parent` made ready again as `request` asks; `command` submits it at `site`.

    `lineage` has the runs that it comes from: one of them read the DeepSpeed configuration.
    `hashes` keeps the hashes of the project's files.

    Raises:
        InputError: a wrong setting, a batch that cannot be split, or code that is not there.
    """
    if request.code == "same" and parent.snapshot is None:
        raise InputError(
            f"{parent.id} never had its code on the site.",
            "Send the current code (`--code current`).",
        )
    project = Path(parent.project)
    if request.code == "current":
        spec = project_files.with_ship_mode(parent.spec, project)
        parent, read = _with_requirements(replace(parent, spec=spec), request.settings)
        request = replace(request, settings=(*request.settings, *read))
    config = _config(parent, lineage, request)
    scaled = rescale(
        launch_of(parent),
        site,
        nodes=request.nodes,
        settings=(*request.settings, *_stop_signal(parent, request)),
        deepspeed_config=config.text,
        config_ranks=config.ranks,
    )
    notes = list(scaled.notes)
    start = choose_start(parent, scaled.launch, request.start, notes)
    ships_code = request.code == "current"
    files = project_files.look(scaled.launch.spec, project, hashes, ships_code=ships_code)
    job_file = Path(parent.job_file) if parent.job_file else None
    return Resubmission(
        parent,
        preview_of(scaled.launch, site, command, files, job_file),
        scaled.changes,
        tuple(notes),
        request.code,
        start,
        request,
        insists=request.start == "checkpoint",
    )


def _with_requirements(parent: Run, settings: Sequence[str]) -> tuple[Run, tuple[str, ...]]:
    """Return `parent` with what the files of its `venv` say now.

    Another `venv` of the settings is read in its place: what its files say is one more setting.
    """
    project = Path(parent.project)
    if not any(re.match(r"venv[.=]", setting) for setting in settings):
        return replace(parent, spec=with_requirements(parent.spec, project)), ()
    wanted = with_requirements(apply_settings(parent.spec, settings), project)
    return parent, (f"venv={wanted.venv.model_dump_json()}",) if wanted.venv else ()


def _stop_signal(parent: Run, request: ResubmissionRequest) -> tuple[str, ...]:
    """Return the setting of a stop signal that leaves time for the saves; () where it does."""
    if any(setting.startswith("signal=") for setting in request.settings):
        return ()
    wanted = apply_settings(parent.spec, request.settings)
    signal = longer_signal(wanted, request.slowest_save)
    return (f"signal={signal}",) if signal else ()


def _config(parent: Run, lineage: Sequence[Run], request: ResubmissionRequest) -> _Config:
    """Return the DeepSpeed configuration: the one the run had, or the project's as it is now.

    A file that the settings name is taken as it is. When the file was not edited since one of the
    runs in the lineage read it, the parent's configuration counts, which that chain of runs made
    of it. An edited file is written, like the job file, for the ranks of the first run that had
    it, and is rescaled from there.

    Raises:
        InputError: the same code is asked for with another configuration or trainer.
    """
    wanted = apply_settings(parent.spec, request.settings)
    named = any(setting.startswith(("deepspeed.", "deepspeed=")) for setting in request.settings)
    if request.code == "same":
        if named:
            raise InputError(
                f"The code of {parent.id} runs again unchanged, and so does its DeepSpeed "
                "configuration.",
                "Add `--code current`, or leave `deepspeed` as it is.",
            )
        if wanted.trainer not in (None, parent.spec.trainer):
            raise InputError(
                f"The code of {parent.id} runs again unchanged, without the trainer "
                f"{wanted.trainer}.",
                "Add `--code current`.",
            )
        return _Config(parent.deepspeed_config, parent.layout.world_size)
    text = project_files.deepspeed_config(wanted, Path(parent.project))
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
    """Return whether `run` got its configuration from a file with this `text`."""
    try:
        config, _ = deepspeed_of(run.spec, run.layout, text)
    except InputError:
        return False  # its batch could not be split over the ranks
    sent = read_config(run.deepspeed_config or "{}", "the DeepSpeed configuration")
    return config == sent


def _reads_same(run: Run, other: Run) -> bool:
    """Return whether both runs had their DeepSpeed configuration from the same file."""
    return run.deepspeed_config is not None and (run.spec.deepspeed, run.spec.trainer) == (
        other.spec.deepspeed,
        other.spec.trainer,
    )


def launch_of(run: Run) -> Launch:
    """Return the launch of a recorded run, as far as rescaling needs it."""
    files = (LaunchFile(DEEPSPEED_CONFIG, run.deepspeed_config),) if run.deepspeed_config else ()
    return Launch(run.spec, run.script, run.layout, run.price, files, run.global_batch)
