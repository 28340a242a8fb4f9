"""The contents of one send: the new run's record, its launch, code, secrets and checkpoints."""

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lumitui.app.history.rows.run_record import record_text
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.launch.program_call import link_target
from lumitui.app.launch.send.code import project_files
from lumitui.app.launch.send.code.project_files import Code
from lumitui.app.launch.send.code.provenance import provenance
from lumitui.app.launch.send.preview import Preview
from lumitui.app.launch.send.staging_plan import Staging, staging_of
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import (
    CODE,
    DEEPSPEED_CONFIG,
    JOB_SCRIPT,
    MACHINERY,
    PROBE_SCRIPT,
    RECORD,
    RECORD_FROM_SCRATCH,
    SECRETS,
)
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transfer.snapshots.once_mark import Once
from lumitui.remote.transfer.snapshots.prepare import PlacedFile, Plan


@dataclass(frozen=True)
class Inheritance:
    """What a resubmission inherits from its parent run."""

    parent: Run
    same_code: bool
    """Whether it uses the parent's code, which the site already has."""
    continues: bool
    """Whether it continues from the parent's last checkpoint."""
    checkpoint_needed: bool
    """Whether to refuse the send if the checkpoint is missing; else the run starts from scratch."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints to copy to a new run."""

    folder: str
    """The folder on the site of the run that wrote them."""
    needed: bool
    """Whether to refuse the send if they are missing."""


@dataclass(frozen=True)
class Shipment:
    """Everything that one send uploads."""

    run: Run
    launch: Launch
    code: Code | str
    """The code to send, or the id of a snapshot that the site already has."""
    secret_values: Mapping[str, str] = field(repr=False)
    checkpoints: Checkpoints | None = None
    login_build_seconds: float | None = None
    """The time limit for building the environment of `venv:` on the login host before the job is
    submitted; None: there is no environment, or the job builds it."""
    staging: Staging | str | None = None
    """The items to stage, or the folder of a run that has staged them; None: nothing."""
    code_from: str = ""
    """The folder of the parent run, if this run has its code."""
    once: Once | None = None
    """The mark that lets only one laptop send this run."""

    @property
    def snapshot(self) -> str:
        """The id of the code's snapshot on the site."""
        return self.code if isinstance(self.code, str) else self.code.manifest.id


def shipment_of(
    preview: Preview, connection: Connection, hashes: Path, inheritance: Inheritance | None = None
) -> Shipment:
    """Return the shipment of `preview`; `hashes` is the folder with the hashes of known files.

    Raises:
        InputError: a file cannot be sent, or a secret is not set.
    """
    spec = preview.launch.spec
    code: Code | str
    parent_folder = ""
    if inheritance and inheritance.same_code:
        code, parent_folder = inheritance.parent.snapshot or "", inheritance.parent.folder
    else:
        code = project_files.collect(spec, preview.project, hashes)
        _refuse_unseen(preview, code)
    values = project_files.secret_values(spec)
    run = _new_run(preview, connection, inheritance)
    checkpoints = None
    if inheritance and inheritance.continues:
        checkpoints = Checkpoints(inheritance.parent.folder, inheritance.checkpoint_needed)
    recipe = preview.site.venv
    login = spec.venv is not None and recipe.build == "login"
    seconds = recipe.minutes * 60.0 if login else None
    staging = _staging(preview, connection, hashes, inheritance)
    return Shipment(run, preview.launch, code, values, checkpoints, seconds, staging, parent_folder)


def _staging(
    preview: Preview, connection: Connection, hashes: Path, inheritance: Inheritance | None
) -> Staging | str | None:
    spec = preview.launch.spec
    if not spec.stage:
        return None
    if inheritance and inheritance.same_code and inheritance.parent.spec.stage == spec.stage:
        return inheritance.parent.folder
    return staging_of(spec, preview.project, preview.site, connection, hashes)


def _refuse_unseen(preview: Preview, code: Code) -> None:
    """Raise InputError if a file is now excluded that the preview did not list."""
    seen = {item.path for item in preview.files.kept_back}
    for item in code.kept_back:
        if item.path not in seen:
            raise InputError(
                f"{item.path} has changed since the preview. lumitui does not send it, because "
                f"it now looks like {item.what}.",
                "Check the preview again, then send.",
            )


def new_id(name: str) -> str:
    """Return a new, unique run id: the job's name as a slug, and six random digits."""
    return f"{slug(name)}-{secrets.token_hex(3)}"


def slug(name: str) -> str:
    """Return a job's name as at most 32 lowercase letters, digits (0.001, too) and hyphens."""
    apart = re.sub(r"(?:[^a-z0-9.]|(?<!\d)\.|\.(?!\d))+", "-", name.lower())
    return apart.strip("-")[:32].strip("-.") or "run"


def _new_run(preview: Preview, connection: Connection, inheritance: Inheritance | None) -> Run:
    launch, parent = preview.launch, inheritance.parent if inheritance else None
    spec, run_id = launch.spec, new_id(launch.spec.name)
    root = connection.root(preview.site, spec.account, project_files.project_name(preview.project))
    private = [item.path for item in preview.files.kept_back]
    same_code = parent if inheritance and inheritance.same_code else None
    return Run(
        id=run_id,
        name=spec.name,
        site=preview.site.name,
        created=time.time(),
        parent=parent.id if parent else None,
        resumed_from=parent.id if inheritance and parent and inheritance.continues else None,
        spec=spec,
        script=launch.script,
        machinery=launch.texts.get(MACHINERY),
        probe=launch.texts.get(PROBE_SCRIPT),
        command=preview.command,
        layout=launch.layout,
        price=launch.price,
        global_batch=launch.global_batch,
        deepspeed_config=launch.texts.get(DEEPSPEED_CONFIG),
        project=str(preview.project),
        job_file=str(preview.job_file) if preview.job_file else None,
        folder=f"{root}/runs/{run_id}",
        root=same_code.root if same_code else root,
        token=secrets.token_hex(8),
        provenance=same_code.provenance if same_code else provenance(preview.project, private),
        state=State.SENDING,
        note=preview.note,
    )


def folder_plan(shipment: Shipment, staged: Mapping[str, str]) -> Plan:
    """Return the plan of the run's folder; `staged` has the paths of its staged items."""
    stage = shipment.launch.spec.stage
    links = {one.link: link_target(one.link, name) for name, one in stage.items() if one.link}
    run, launch, checkpoints = shipment.run, shipment.launch, shipment.checkpoints
    return Plan(
        folder=run.folder,
        files=tuple(_files(shipment)),
        snapshot=f"{run.root}/{CODE}/{shipment.snapshot}",
        links=launch.spec.links | links,
        checkpoints_from=checkpoints.folder if checkpoints else None,
        needs_checkpoints=checkpoints is not None and checkpoints.needed,
        staged=staged,
        staged_from=shipment.staging if isinstance(shipment.staging, str) else None,
        code_from=shipment.code_from,
        once=shipment.once,
    )


def _files(shipment: Shipment) -> Iterator[PlacedFile]:
    run, launch = shipment.run, shipment.launch
    yield PlacedFile(JOB_SCRIPT, launch.script, 0o700)
    # app/follow/recover.py rebuilds a lost history from it.
    yield PlacedFile(RECORD, record_text(run))
    for file in launch.files:
        yield PlacedFile(file.name, file.content, file.mode)
    if launch.spec.secret_names:
        values = shipment.secret_values
        lines = [f"{name}={quote(values[name])}\n" for name in launch.spec.secret_names]
        yield PlacedFile(SECRETS, "".join(lines))
    if shipment.checkpoints:
        yield PlacedFile(RECORD_FROM_SCRATCH, record_text(replace(run, resumed_from=None)))
