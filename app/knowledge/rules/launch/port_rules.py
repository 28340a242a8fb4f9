"""Rules about the port at which ranks meet."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.source_position import Position
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.site_facts.allocation import fills_nodes, whole_nodes
from lumitui.remote.site.profile import Site

_PORT_FROM_JOB = "$((10000 + SLURM_JOB_ID % 10000))"
_WIDEST_PORT = 65_535
_FIRST_FREE_PORT = 1024


def _ports(job: Job) -> Iterator[tuple[str, Position]]:
    """Yield the ports that ranks meet at, as they are written, with their places."""
    for variable in job.settings("MASTER_PORT", "PET_MASTER_PORT"):
        yield variable.value, variable.at
    for step in job.training:
        for name in ("master-port", "main-process-port", "rdzv-endpoint"):
            option = step.launcher_options.get(name)
            if option is None or not option.value:
                continue
            port = option.value.rpartition(":")[2] if name == "rdzv-endpoint" else option.value
            if ":" in option.value or name != "rdzv-endpoint":
                yield port, option.at if option.at.line else step.at


@rule(
    "fixed-port",
    "warning",
    "a fixed port on shared nodes",
    why="Another job on the node, or another task of the array, may have the port already: the "
    "ranks end with `Address already in use`, or join the other job.",
    source="csc-user-guide, ml-multi.md; LUMI-AI-Guide, 05-multi-gpu-and-node",
)
def fixed_port(job: Job, site: Site) -> Iterator[Hit]:
    """Find `MASTER_PORT=29500` where another job may be on the node."""
    if whole_nodes(job, site) is not False or fills_nodes(job, site):
        return
    said = set[str]()
    for port, at in _ports(job):
        array = bool(job.resources.array) and "SLURM_ARRAY_JOB_ID" in port
        if (not re.fullmatch(r"\d+", port) and not array) or port in said:
            continue
        said.add(port)
        what = "The same port for every task of the array" if array else f"Port {port}"
        yield Hit(
            f"{what} may be taken: other jobs can be on the node.",
            f"Derive it from the job: MASTER_PORT={_PORT_FROM_JOB}.",
            at,
        )


@rule(
    "bad-port",
    "error",
    "a port that no job may open",
    why="Ports below 1024 belong to the system, and there are none above 65535.",
    source="ip(7), net.ipv4.ip_unprivileged_port_start",
)
def bad_port(job: Job, site: Site) -> Iterator[Hit]:
    """Find `MASTER_PORT=80`."""
    for port, at in _ports(job):
        number = int(port) if re.fullmatch(r"\d{1,9}", port) else None
        if number is not None and not (_FIRST_FREE_PORT <= number <= _WIDEST_PORT or number == 0):
            yield Hit(
                f"A job cannot open port {number}.",
                f"Take one from 1024 to 65535: MASTER_PORT={_PORT_FROM_JOB}.",
                at,
            )


@rule(
    "port-of-other-cluster",
    "error",
    "a port from a command that the site does not have",
    why="`get_free_port` is a command of a few clusters. Elsewhere the port is empty, and the "
    "ranks end with `MASTER_PORT expected, but not set`.",
    source="PrincetonUniversity/multi_gpu_training 2e975ad",
)
def port_of_other_cluster(job: Job, site: Site) -> Iterator[Hit]:
    """Find `MASTER_PORT=$(get_free_port)`."""
    for variable in job.settings("MASTER_PORT"):
        if "get_free_port" in variable.value and "get_free_port()" not in job.text:
            yield Hit(
                f"{site.name} has no command get_free_port, so that MASTER_PORT is empty.",
                f"Write MASTER_PORT={_PORT_FROM_JOB}.",
                variable.at,
            )


RULES: tuple[Rule, ...] = (
    fixed_port,
    bad_port,
    port_of_other_cluster,
)
