"""Rules about how ranks find each other: addresses, and what each rank is told of itself."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import has_unknown_sources
from lumitui.app.knowledge.site_facts.expansions import names_in
from lumitui.app.knowledge.site_facts.process_counts import nodes_of, tasks_of
from lumitui.remote.site.profile import Site

_ADDRESS = "csc-user-guide, ml-multi.md; github.com/pytorch/pytorch/issues/73656"
_LOCAL = re.compile(r"^(localhost|127\.0\.0\.1|::1|0\.0\.0\.0)?$")
_FIRST_HOST = "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"


def _spans(job: ScriptJob) -> bool:
    return any(nodes_of(job, step) > 1 for step in job.training)


def _addresses(job: ScriptJob) -> Iterator[Variable]:
    return job.settings("MASTER_ADDR", "PET_MASTER_ADDR", "MAIN_PROCESS_IP", "MASTER_IP")


@rule(
    "address-of-each-node",
    "error",
    "a rendezvous address that each node takes from itself",
    why="Run by srun, `hostname` prints the name of its own node: every node then waits for "
    "ranks that meet elsewhere.",
    source=_ADDRESS,
)
def address_of_each_node(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun bash -c 'export MASTER_ADDR=$(hostname); …'`."""
    for variable in _addresses(job):
        inside = variable.shell in ("task", "container")
        if inside and re.search(r"\bhostname\b|\$HOSTNAME|SLURMD_NODENAME", variable.value):
            if "hostnames" in variable.value or not _spans(job):
                continue
            yield Hit(
                f"Each of the {job.nodes} nodes takes its own name for {variable.name}.",
                f"Set it before srun: {variable.name}={_FIRST_HOST}.",
                variable.at,
            )
    for step in job.training:
        option = step.launcher_options.get("rdzv-endpoint", "master-addr", "main-process-ip")
        value = (option.value or "") if option else ""
        in_task = step.program_shell in ("task", "container") and bool(step.shells)
        own = _OWN_NAME.search(value) or any(_holds_own_name(job, n) for n in names_in(value))
        if option and own and in_task and nodes_of(job, step) > 1:
            yield Hit(
                f"Each of the {nodes_of(job, step)} nodes takes its own name for --{option.name}.",
                f"Set MASTER_ADDR={_FIRST_HOST} before srun, and name it here.",
                option.at if option.at.line else step.at,
            )


_OWN_NAME = re.compile(r"\$\(hostname|`hostname|\$\{?HOSTNAME|SLURMD_NODENAME")


def _holds_own_name(job: ScriptJob, name: str) -> bool:
    """Whether each task sets a variable to the name of its node; addresses are judged above."""
    variable = job.variable(name)
    inside = variable is not None and variable.shell in ("task", "container")
    if variable is None or not inside or variable.conditional or variable in _addresses(job):
        return False
    return _OWN_NAME.search(variable.value) is not None and "hostnames" not in variable.value


@rule(
    "scontrol-in-container",
    "error",
    "scontrol inside a container",
    why="Images have no Slurm commands, so the address is empty and ranks do not find each other.",
    source="laifs-container-tests 7600dfc; LUMI-AI-Guide, 05-multi-gpu-and-node",
)
def scontrol_in_container(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity run … bash -c 'MASTER_ADDR=$(scontrol …); …'`."""
    places = [item.at for item in job.variables
              if item.shell == "container" and "scontrol" in item.value]  # fmt: skip
    if not places:
        places = [item.at for item in job.commands
                  if item.shell == "container" and item.program == "scontrol"]  # fmt: skip
    for at in places[:1]:
        yield Hit(
            "scontrol is called inside the container, where it does not exist.",
            f"Set the variable before srun: MASTER_ADDR={_FIRST_HOST}.",
            at,
        )


@rule(
    "local-address",
    "error",
    "localhost as the rendezvous address of several nodes",
    why="localhost means a different machine on each node: the ranks of the others wait until they "
    "give up.",
    source=_ADDRESS,
)
def local_address(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `MASTER_ADDR=localhost` on two nodes."""
    if not _spans(job):
        return
    last = {item.name: item for item in _addresses(job)}
    places = [(item.value, item.at) for item in last.values() if not item.conditional]
    said = {value for value, _ in places}
    for step in job.training:
        option = step.launcher_options.get("rdzv-endpoint", "master-addr", "main-process-ip")
        if option and option.value and (host := option.value.partition(":")[0]) not in said:
            places.append((host, option.at))
    for value, at in places:
        if value and _LOCAL.match(value):
            yield Hit(
                f"{value} means a different machine on each of the {job.nodes} nodes.",
                f"Take the first node: MASTER_ADDR={_FIRST_HOST}.",
                at,
            )


@rule(
    "missing-rendezvous",
    "error",
    "ranks that get their number, but no rendezvous address",
    why="PyTorch's env:// needs MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, and ends with "
    "`environment variable … expected, but not set`.",
    source="pytorch, torch/distributed/rendezvous.py",
)
def missing_rendezvous(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find an `srun` that exports RANK, where MASTER_PORT is set nowhere."""
    if job.variable("RANK") is None or has_unknown_sources(job):
        return
    needed = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
    missing = [name for name in needed if job.variable(name) is None]
    for step in job.training[:1]:
        tasks = tasks_of(job, step)
        if step.launcher in ("srun", "plain") and missing and tasks and tasks > 1:
            yield Hit(
                f"The {tasks} ranks get RANK, but {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} set nowhere.",
                f"Export {missing[0]} before srun.",
                step.at,
            )


@rule(
    "rendezvous-missing",
    "error",
    "torchrun on several nodes without a rendezvous address",
    why="Its default is the node itself, port 29400 or 29500, which the other nodes do not reach.",
    source="pytorch, torch/distributed/run.py --rdzv-endpoint, --master-addr; "
    "github.com/mlc-ai/pith-train/pull/91",
)
def rendezvous_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun torchrun --nnodes=2` with neither --rdzv_endpoint nor --master_addr."""
    names = ("rdzv-endpoint", "master-addr", "standalone")
    if job.variable("PET_RDZV_ENDPOINT") or job.variable("PET_MASTER_ADDR"):
        return
    for step in job.training:
        if step.launcher != "torchrun" or not step.srun or nodes_of(job, step) < 2:
            continue
        if step.launcher_options.has("nnodes") and not step.launcher_options.has(*names):
            yield Hit(
                f"torchrun is not told where its {nodes_of(job, step)} nodes meet.",
                "Write --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d "
                "--rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT.",
                step.at,
            )


@rule(
    "world-size",
    "error",
    "a WORLD_SIZE that is not the number of ranks",
    why="Ranks beyond it are refused; with too few ranks all wait for the missing ones.",
    source="pytorch, torch.distributed.init_process_group; github.com/pytorch/pytorch/issues/52848",
)
def world_size(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `WORLD_SIZE=8` in a job of sixteen tasks."""
    variable = job.variable("WORLD_SIZE")
    plain = [step for step in job.training if step.launcher in ("srun", "plain") and step.srun]
    if variable is None or len(plain) != 1 or not re.fullmatch(r"\d{1,9}", variable.value):
        return
    tasks = tasks_of(job, plain[0])
    if tasks and tasks > 1 and int(variable.value) != tasks:
        yield Hit(
            f"WORLD_SIZE is {variable.value}, and srun starts {tasks} ranks.",
            "Write WORLD_SIZE=$SLURM_NTASKS.",
            variable.at,
        )
