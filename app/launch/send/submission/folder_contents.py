"""What a run's folder on the site holds: its script, its record, its files, its secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lumitui.app.history.rows.run_record import record_text
from lumitui.app.launch.script.staged import link_target
from lumitui.app.launch.send.shipment import Shipment
from lumitui.remote.site.run_folder import CODE, JOB_SCRIPT, RECORD, RECORD_FROM_SCRATCH, SECRETS
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transfer.snapshots.prepare import PlacedFile, Plan


def folder_plan(shipment: Shipment, staged: Mapping[str, str]) -> Plan:
    """Return what the folder of the shipment's run is made of.

    `staged` has the paths on the site of what was staged for it.
    """
    stage = shipment.launch.spec.stage
    links = {one.link: link_target(one.link, name) for name, one in stage.items() if one.link}
    run, launch, checkpoints = shipment.run, shipment.launch, shipment.checkpoints
    return Plan(
        folder=run.folder,
        files=tuple(_files(shipment)),
        snapshot=f"{run.root}/{CODE}/{run.snapshot}",
        archive=launch.spec.ship == "archive",
        links=launch.spec.links | links,
        checkpoints_from=checkpoints.folder if checkpoints else None,
        needs_checkpoints=checkpoints is not None and checkpoints.needed,
        staged=staged,
        staged_from=shipment.staging if isinstance(shipment.staging, str) else None,
        once=shipment.once,
    )


def _files(shipment: Shipment) -> Iterator[PlacedFile]:
    run, launch = shipment.run, shipment.launch
    yield PlacedFile(JOB_SCRIPT, launch.script, 0o700)
    # A lost history is rebuilt from it, see app/follow/recover.py.
    yield PlacedFile(RECORD, record_text(run))
    for file in launch.files:
        yield PlacedFile(file.name, file.content, file.mode)
    if launch.spec.secrets:
        values = shipment.secret_values
        lines = [f"{name}={quote(values[name])}\n" for name in launch.spec.secrets]
        yield PlacedFile(SECRETS, "".join(lines))
    if shipment.checkpoints:
        yield PlacedFile(RECORD_FROM_SCRATCH, record_text(replace(run, resumed_from=None)))
