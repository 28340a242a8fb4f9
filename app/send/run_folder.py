"""What a run's folder on the site holds: its script, its record, its files, its secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lumitui.app.history.run import Run
from lumitui.app.history.run_record import record_text
from lumitui.app.job.launch import Launch
from lumitui.remote.run_folder import CODE, JOB_SCRIPT, RECORD, RECORD_FROM_SCRATCH, SECRETS
from lumitui.remote.snapshots.prepare import PlacedFile, Plan
from lumitui.remote.transport.shell import quote


def folder_plan(
    run: Run,
    launch: Launch,
    secret_values: Mapping[str, str],
    checkpoints_from: str | None,
    *,
    needs_checkpoints: bool,
) -> Plan:
    """Return what the folder of `run` is made of.

    `checkpoints_from` is the folder of the run that it continues; `needs_checkpoints` makes it an
    error that there are none.
    """
    return Plan(
        folder=run.folder,
        files=tuple(_files(run, launch, secret_values, continues=checkpoints_from is not None)),
        snapshot=f"{run.root}/{CODE}/{run.snapshot}",
        archive=launch.spec.ship == "archive",
        links=launch.spec.links,
        checkpoints_from=checkpoints_from,
        needs_checkpoints=needs_checkpoints,
    )


def _files(
    run: Run, launch: Launch, secret_values: Mapping[str, str], *, continues: bool
) -> Iterator[PlacedFile]:
    yield PlacedFile(JOB_SCRIPT, launch.script, 0o700)
    # A lost history is rebuilt from it, see watch/recover.py.
    yield PlacedFile(RECORD, record_text(run))
    for file in launch.files:
        yield PlacedFile(file.name, file.content, file.mode)
    if launch.spec.secrets:
        lines = [f"{name}={quote(secret_values[name])}\n" for name in launch.spec.secrets]
        yield PlacedFile(SECRETS, "".join(lines))
    if continues:
        yield PlacedFile(RECORD_FROM_SCRATCH, record_text(replace(run, resumed_from=None)))
