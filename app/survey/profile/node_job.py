"""The job that measures a whole node for five minutes, and its folder."""

import os
from pathlib import Path

from lumitui.app.history.run import NODE_PROBE
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

REPORT = "node.txt"
"""The file in the run's folder that `node.sh` writes."""
MINUTES = 5
_SCRIPT = Path(__file__).resolve().parents[3] / "templates" / "node.sh"


def node_job(site: Site, partition: str = "", account: str = "") -> JobSpec:
    """Return the job for a site: a whole node, one rank per GPU, no container.

    The default partition has the shortest time limit of those that fit a whole node.

    Raises:
        InputError: the site lacks the partition or Slurm, or needs an account.
    """
    if site.scheduler != "slurm":
        raise InputError(f"{site.name} has no Slurm and no nodes to measure.", "Omit --probe.")
    name = partition or _soonest(site)
    if name not in site.partitions:
        raise InputError(
            f"{site.name} has no partition {name!r}.", f"Use one of {', '.join(site.partitions)}."
        )
    account = account or site.account.default
    if objection := site.account.objection(account):
        raise InputError(f"The job for {site.name} {objection}.", "Add --account NAME.")
    return JobSpec.model_validate(
        {
            "name": NODE_PROBE,
            "site": site.name,
            "account": account if site.account.required else "none",
            "partition": name,
            "gpus_per_node": site.node.gpus,
            "exclusive": site.partitions[name].allocation == "shared",
            "time": f"00:{MINUTES:02d}:00",
            "launcher": "srun",
            "strategy": "ddp",
            "script": _SCRIPT.name,
            "args": [one.image for one in site.containers.values() if one.image.startswith("/")],
            "container": {"none": True},
            "binding": "none",
            "proof": "off",
            "preflight": "off",
        }
    )


def _soonest(site: Site) -> str:
    """Return the partition with the shortest time limit of those that fit a whole node."""

    def fits(item: Partition) -> bool:
        least, most = item.min_gpus or 1, item.max_gpus or site.node.gpus
        return least <= site.node.gpus <= most

    names = [name for name, item in site.partitions.items() if fits(item)] or list(site.partitions)
    if not names:
        raise InputError(f"{site.name} has no partitions.", "Correct its profile first.")
    return min(names, key=lambda name: walltime.seconds_of(site.partitions[name].max_time))


def folder_of(data: Path) -> Path:
    """Write the folder that the job sends, which has only the script, and return it."""
    folder = data / "probe" / NODE_PROBE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder.parent / f".{_SCRIPT.name}.{os.getpid()}"
        part.write_bytes(_SCRIPT.read_bytes())
        part.chmod(0o700)
        os.replace(part, folder / _SCRIPT.name)
    except OSError as error:
        raise LumiError(
            f"Cannot write {folder}: {error.strerror}.", "Check the folder's permissions."
        ) from error
    return folder
