"""What is about to be sent: previews, resubmissions and the record of a new run. No network."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lumitui.app import project, sending
from lumitui.app.advise import Finding, findings
from lumitui.app.connections import Connection
from lumitui.app.job import Launch, LaunchFile
from lumitui.app.provenance import provenance
from lumitui.app.records import Provenance, Run
from lumitui.app.scaling import Change, rescale
from lumitui.remote.errors import InputError
from lumitui.remote.scheduler import State
from lumitui.remote.site import Site

Start = Literal["scratch", "checkpoint"]
CodeChoice = Literal["same", "current"]


@dataclass(frozen=True)
class Preview:
    """A launch as it would be sent, with what the adviser says of it."""

    launch: Launch
    site: Site
    command: str
    """The submit command line, byte for byte."""
    findings: tuple[Finding, ...]
    project: Path
    deepspeed_config: str | None = None
    job_file: Path | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that keep it from being sent."""
        return tuple(item for item in self.findings if item.severity == "error")


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


def plan(
    parent: Run,
    site: Site,
    command: str,
    *,
    nodes: int | None,
    settings: Sequence[str],
    code: CodeChoice,
    start: Start | None,
) -> Resubmission:
    """Return `parent` made ready again; see `Runs.plan_resubmission`."""
    if code == "same" and parent.snapshot is None:
        raise InputError(f"{parent.id} never had its code on the site.", "Use `--code current`.")
    if code == "current":
        parent = replace(parent, spec=project.with_way(parent.spec, Path(parent.project)))
    earlier = _launch_of(parent)
    scaled = rescale(
        earlier,
        site,
        nodes=nodes,
        settings=settings,
        deepspeed_config=parent.deepspeed_config,
    )
    launch = scaled.launch
    notes = list(scaled.notes)
    if start == "checkpoint" and not launch.can_resume:
        raise InputError(
            "The job file does not say how the script continues.",
            "Add `resume: [--resume]` with its arguments, or use `--from scratch`.",
        )
    failed = parent.state in (
        State.FAILED, State.TIMEOUT, State.NODE_FAILED, State.PREEMPTED, State.OUT_OF_MEMORY
    )  # fmt: skip
    insists = start == "checkpoint"
    if start is None:
        start = "checkpoint" if failed and launch.can_resume and parent.started else "scratch"
        if start == "checkpoint":
            notes.append(f"{parent.id} {parent.state}: it continues from its last checkpoint.")
    preview = Preview(
        launch,
        site,
        command,
        tuple(findings(launch, site)),
        Path(parent.project),
        scaled.deepspeed_config,
        Path(parent.job_file) if parent.job_file else None,
    )
    return Resubmission(parent, preview, scaled.changes, tuple(notes), code, start, insists)


def new_run(
    preview: Preview, connection: Connection, parent: Run | None, *, same_code: bool
) -> Run:
    """Return the record of a run that is about to be sent."""
    spec, launch = preview.launch.spec, preview.launch
    run_id = sending.new_id(spec.name)
    name = project.project_name(preview.project)
    root = connection.root(preview.site, spec.account, name)
    now = time.time()
    origin: Provenance = parent.provenance if parent and same_code else provenance(preview.project)
    return Run(
        id=run_id,
        name=spec.name,
        site=preview.site.name,
        created=now,
        parent=parent.id if parent else None,
        spec=spec,
        script=launch.script,
        command=preview.command,
        layout=launch.layout,
        price=launch.price,
        global_batch=launch.global_batch,
        deepspeed_config=_sent_config(launch),
        project=str(preview.project),
        job_file=str(preview.job_file) if preview.job_file else None,
        folder=f"{root}/runs/{run_id}",
        root=parent.root if parent and same_code else root,
        token=secrets.token_hex(8),
        provenance=origin,
        state=State.SENDING,
    )


def _launch_of(run: Run) -> Launch:
    """Return the launch a recorded run was, as far as scaling needs it."""
    files = (LaunchFile("ds_config.json", run.deepspeed_config),) if run.deepspeed_config else ()
    return Launch(run.spec, run.script, run.layout, run.price, files, run.global_batch)


def _sent_config(launch: Launch) -> str | None:
    return next((file.content for file in launch.files if file.name == "ds_config.json"), None)
