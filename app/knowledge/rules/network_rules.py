"""Rules about rendezvous, NCCL and RCCL, and nodes without internet access."""

import re
from collections.abc import Iterator, Sequence

from lumitui.app.knowledge.program.program_facts import Call
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import one_of, setting
from lumitui.app.knowledge.script_job import ScriptJob, Variable
from lumitui.app.knowledge.site_facts.allocation import (
    generations_of,
    has_unknown_sources,
    site_says,
)
from lumitui.app.knowledge.site_facts.expansions import names_in
from lumitui.app.knowledge.site_facts.process_counts import nodes_of, steps_with, tasks_of
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site

_NCCL = "NCCL documentation, environment variables"
_PROFILE = "the site's profile, environment"
_ON = ("1", "true", "TRUE", "yes")
_TCP = ("tcp", "sockets", "udp", "tcp;ofi_rxm")


@rule(
    "container-variable",
    "error",
    "a variable that breaks the job's image on several nodes",
    why="In newer images, ranks hang in the first collective.",
    source="the site's profile, forbidden_environment",
)
def _container_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for image, name, container in generations_of(job, site):
        forbidden = container.forbidden_environment
        for variant in container.variants:
            if re.search(variant.matches, image):
                if variant.forbidden_environment is not None:
                    forbidden = variant.forbidden_environment
                break
        for variable in job.settings(*forbidden):
            yield Hit(
                f"{variable.name} breaks images of the generation {name} on several nodes.",
                f"Remove {variable.name}.",
                variable.at,
                severity=None if job.nodes > 1 else "warning",
                cure=Cure(variable.name, None),
            )
        return


@rule(
    "foreign-interface",
    "error",
    "network interfaces that the site's nodes do not have",
    why="Ranks look up the interfaces by name, and fail with `no socket interface found`.",
    source=f"{_NCCL}, NCCL_SOCKET_IFNAME; {_PROFILE}",
)
def _foreign_interface(job: ScriptJob, site: Site) -> Iterator[Hit]:
    known = site.environment.get("NCCL_SOCKET_IFNAME", "")
    kinds = {re.sub(r"\d.*", "", name) for name in known.split(",") if name}
    for variable in job.settings("NCCL_SOCKET_IFNAME"):
        value = variable.value.strip("=")
        if not kinds or not value or "$" in value or value.startswith("^"):
            continue
        named = {re.sub(r"\d.*", "", name) for name in value.split(",")}
        wrong = [kind for kind in named if not any(item.startswith(kind) for item in kinds)]
        if wrong:
            yield Hit(
                f"NCCL_SOCKET_IFNAME is {variable.value}, but nodes of {site.name} reach each "
                f"other through {known}.",
                f"Write NCCL_SOCKET_IFNAME={known}.",
                variable.at,
                setting(variable, known, f"use {known}"),
                severity=None if job.nodes > 1 else "warning",
            )


@rule(
    "network-off",
    "warning",
    "a setting that disables a fast path between GPUs",
    why="Ranks then exchange gradients over TCP or through the host's memory, much more slowly.",
    source=f"{_NCCL}, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_IB_DISABLE, NCCL_NET",
)
def _network_off(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"):
        between = variable.name == "NCCL_IB_DISABLE"
        if variable.value not in _ON or (between and (job.nodes < 2 or _slingshot(site))):
            continue
        if site_says(site, variable.name):
            continue
        yield Hit(
            f"{variable.name}={variable.value} makes {'nodes' if between else 'GPUs of a node'} "
            "exchange gradients "
            f"{'over TCP instead of InfiniBand' if between else 'over a slower path'}.",
            f"Remove {variable.name}.",
            variable.at,
        )
    slow = {"NCCL_NET": ("socket",), "FI_PROVIDER": _TCP if _slingshot(site) else ()}
    for variable in job.settings(*slow):
        if variable.value.lower() in slow[variable.name] and job.nodes > 1:
            yield Hit(
                f"{variable.name}={variable.value} makes nodes exchange gradients over TCP.",
                f"Remove {variable.name}.",
                variable.at,
            )


def _slingshot(site: Site) -> bool:
    """Return whether nodes communicate over Slingshot, so NCCL uses libfabric, not InfiniBand."""
    return any(name.startswith(("FI_", "MPICH_")) or "hsn" in value
               for name, value in site.environment.items())  # fmt: skip


@rule(
    "debug-left-on",
    "warning",
    "a debugging setting that slows every step",
    why="The program trains at a fraction of its speed.",
    source="PyTorch documentation, CUDA environment variables; torch.distributed, debug mode",
)
def _debug_left_on(job: ScriptJob, site: Site) -> Iterator[Hit]:
    slow = {
        "CUDA_LAUNCH_BLOCKING": _ON,
        "HIP_LAUNCH_BLOCKING": _ON,
        "AMD_SERIALIZE_KERNEL": ("1", "2", "3"),
        "NCCL_DEBUG": ("TRACE", "trace"),
        "TORCH_DISTRIBUTED_DEBUG": ("DETAIL",),
        "NCCL_BLOCKING_WAIT": _ON,
        "TORCH_NCCL_BLOCKING_WAIT": _ON,
    }
    for variable in job.settings(*slow):
        if variable.value in slow[variable.name] and not site_says(site, variable.name):
            yield Hit(
                f"{variable.name}={variable.value} is for debugging, and slows every step.",
                f"Remove {variable.name} from training jobs.",
                variable.at,
            )


@rule(
    "offline",
    "warning",
    "a program set to use the internet on nodes without it",
    why=("It waits for a server that it cannot reach, and fails after minutes of retries."),
    source="the site's profile, internet_on_compute_nodes",
)
def _offline(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.internet_on_compute_nodes:
        return
    for name, wrong, right in (
        ("WANDB_MODE", ("online", "shared"), "offline"),
        ("HF_HUB_OFFLINE", ("0",), "1"),
        ("TRANSFORMERS_OFFLINE", ("0",), "1"),
        ("HF_DATASETS_OFFLINE", ("0",), "1"),
    ):
        for variable in job.settings(name):
            if variable.value in wrong and not site_says(site, name):
                yield Hit(
                    f"{name} is {variable.value}, but the nodes of {site.name} have no internet "
                    "access.",
                    f"Write {name}={right}.",
                    variable.at,
                    setting(variable, right),
                )


@rule(
    "download-in-job",
    "error",
    "a command that downloads where nodes have no internet",
    why="It waits for an answer that never comes.",
    source="the site's profile, internet_on_compute_nodes",
)
def _download_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.internet_on_compute_nodes:
        return
    for command in job.commands:
        words = [word.known for word in command.words]
        first = words[0] if words else ""
        remote = any(re.match(r"(https?|ftp|git|s3)://|git@", word) for word in words)
        downloads = (
            (command.program in ("wget", "curl", "aria2c") and remote)
            or (command.program == "git" and first in ("clone", "pull", "fetch") and
                (remote or first != "clone"))
            or (command.program in ("huggingface-cli", "hf") and first == "download")
        )  # fmt: skip
        if downloads and not any("localhost" in word or "127.0.0.1" in word for word in words):
            yield Hit(
                f"`{command.program} {first}` needs the internet, which the nodes of {site.name} "
                "cannot reach.",
                "Run it on a login node or on your machine before the job.",
                command.at,
            )


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
    "a rendezvous address that differs on each node",
    why="Under srun, `hostname` prints each node's own name, so the ranks wait at different "
    "addresses.",
    source=_ADDRESS,
)
def _address_of_each_node(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in _addresses(job):
        inside = variable.shell in ("task", "container")
        if inside and re.search(r"\bhostname\b|\$HOSTNAME|SLURMD_NODENAME", variable.value):
            if "hostnames" in variable.value or not _spans(job):
                continue
            yield Hit(
                f"Each of the {job.nodes} nodes uses its own name as {variable.name}.",
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
                f"Each of the {nodes_of(job, step)} nodes uses its own name as --{option.name}.",
                f"Set MASTER_ADDR={_FIRST_HOST} before srun, and use it here.",
                option.at if option.at.line else step.at,
            )


_OWN_NAME = re.compile(r"\$\(hostname|`hostname|\$\{?HOSTNAME|SLURMD_NODENAME")


def _holds_own_name(job: ScriptJob, name: str) -> bool:
    """Return whether each task sets a variable to its node's name; other rules check addresses."""
    variable = job.variable(name)
    inside = variable is not None and variable.shell in ("task", "container")
    if variable is None or not inside or variable.conditional or variable in _addresses(job):
        return False
    return _OWN_NAME.search(variable.value) is not None and "hostnames" not in variable.value


@rule(
    "scontrol-in-container",
    "error",
    "scontrol inside a container",
    why=("Images have no Slurm commands, so MASTER_ADDR is empty."),
    source="laifs-container-tests 7600dfc; LUMI-AI-Guide, 05-multi-gpu-and-node",
)
def _scontrol_in_container(job: ScriptJob, site: Site) -> Iterator[Hit]:
    places = [item.at for item in job.variables
              if item.shell == "container" and "scontrol" in item.value]  # fmt: skip
    if not places:
        places = [item.at for item in job.commands
                  if item.shell == "container" and item.program == "scontrol"]  # fmt: skip
    for at in places[:1]:
        yield Hit(
            "The script calls scontrol inside the container, where it does not exist.",
            f"Set the variable before srun: MASTER_ADDR={_FIRST_HOST}.",
            at,
        )


@rule(
    "local-address",
    "error",
    "localhost as the rendezvous address of several nodes",
    why="On each node, localhost means that node, so the other ranks wait until they time out.",
    source=_ADDRESS,
)
def _local_address(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
                f"{value} is a different machine on each of the {job.nodes} nodes.",
                f"Use the first node: MASTER_ADDR={_FIRST_HOST}.",
                at,
            )


@rule(
    "missing-rendezvous",
    "error",
    "ranks without the variables by which PyTorch finds them",
    why="Without MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, PyTorch fails with "
    "`environment variable … expected, but not set`.",
    source="pytorch, torch/distributed/rendezvous.py",
)
def _missing_rendezvous(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if has_unknown_sources(job):
        return
    needed = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
    if job.variable("RANK") is None or all(map(job.variable, needed)):
        yield from _without_rank(job)
        return
    missing = [name for name in needed if job.variable(name) is None]
    for step in job.training:
        tasks = tasks_of(job, step)
        if step.launcher in ("srun", "plain") and missing and tasks and tasks > 1:
            yield Hit(
                f"The {tasks} ranks get RANK, but {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} never set.",
                f"Export {missing[0]} before srun.",
                step.at,
            )


_RANKS = {"RANK": "$SLURM_PROCID", "LOCAL_RANK": "$SLURM_LOCALID", "WORLD_SIZE": "$SLURM_NTASKS"}
"""Slurm's names for the rank variables."""
_OTHER_WAYS = ("SLURM_", "OMPI_", "PMI", "MV2_", "FLUX_")
_MAKES_ENVIRONMENT = ("lightning", "pytorch_lightning", "accelerate", "deepspeed", "mpi4py", "ray",
                      "horovod", "idr_torch", "hostlist", "submitit")  # fmt: skip
"""Packages that determine the rank themselves, or may set the variables."""


def _without_rank(job: ScriptJob) -> Iterator[Hit]:
    """Find `srun python train.py` of a program that reads the variables of torchrun."""
    for run in runs(job):
        step, tasks = run.step, tasks_of(job, run.step)
        if step.srun is None or not tasks or tasks < 2:
            continue
        if missing := missing_variables(job, run):
            yield Hit(
                f"srun starts {tasks} ranks of {run.program.file}, which need "
                f"{one_of(missing, 'and')}, but nothing sets "
                f"{'it' if len(missing) == 1 else 'them'}.",
                how_to_set(missing),
                step.at,
            )
            return


def missing_variables(job: ScriptJob, run: StepProgram) -> list[str]:
    """Return torchrun's variables that a program reads, but nothing sets; none if not sure."""
    needed = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    step = run.step
    if step.launcher not in ("srun", "plain") or step.mpirun or not run.closed:
        return []
    if step.srun and step.srun.has("task-prolog", "export"):
        return []
    if "python-distributed" in job.text:  # in LUMI's images; sets all of them
        return []
    if run.uses(*_MAKES_ENVIRONMENT) or run.has("spawn") or run.has("setdefault", "putenv"):
        return []
    texts = {name for one in run.files for name in one.reads | one.asks}
    own = any(name.startswith(_OTHER_WAYS) for name in texts)
    if own or any(True for _ in run.environment(*needed, "LOCAL_RANK")):
        return []
    groups = [call for _program, call in run.calls("init_process_group")]
    if all(one.open or not _by_environment(one) for one in groups):
        return []
    read = [name for name in ("LOCAL_RANK",) if any(name in one.reads for one in run.files)]
    return [name for name in (*needed, *read) if job.variable(name) is None]


def how_to_set(missing: Sequence[str]) -> str:
    """Return the sentence on how a script sets torchrun's variables for each rank."""
    exports = " ".join(f"{name}={_RANKS[name]}" for name in _RANKS if name in missing)
    inside = f"Start it with srun bash -c 'export {exports}; exec python …'" if exports else ""
    masters = [name for name in missing if name.startswith("MASTER")]
    outside = f"export {one_of(masters, 'and')} before srun" if masters else ""
    first, *rest = [part for part in (inside, outside) if part]
    words = ", and ".join((first[0].upper() + first[1:], *rest))
    return f"{words}; or start torchrun once on each node."


def _by_environment(call: Call) -> bool:
    """Return whether a process group takes its ranks from the environment."""
    method = call.get("init_method", 1)
    if any(call.get(name) for name in ("rank", "world_size", "store")):
        return False
    return method is None or method.value == "env://"


@rule(
    "rendezvous-missing",
    "error",
    "torchrun on several nodes without a rendezvous address",
    why="By default, each torchrun waits on its own node, so the nodes do not find each other.",
    source="pytorch, torch/distributed/run.py --rdzv-endpoint, --master-addr; "
    "github.com/mlc-ai/pith-train/pull/91",
)
def _rendezvous_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    names = ("rdzv-endpoint", "master-addr", "standalone")
    if job.variable("PET_RDZV_ENDPOINT") or job.variable("PET_MASTER_ADDR"):
        return
    for step in job.training:
        if step.launcher != "torchrun" or not step.srun or nodes_of(job, step) < 2:
            continue
        if step.launcher_options.has("nnodes") and not step.launcher_options.has(*names):
            yield Hit(
                f"torchrun gets no rendezvous address for its {nodes_of(job, step)} nodes.",
                "Write --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d "
                "--rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT.",
                step.at,
            )


@rule(
    "world-size",
    "error",
    "a WORLD_SIZE that is not the number of ranks",
    why="Extra ranks are refused; with too few, all wait for the missing ones.",
    source="pytorch, torch.distributed.init_process_group; github.com/pytorch/pytorch/issues/52848",
)
def _world_size(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for variable in job.settings("WORLD_SIZE"):
        if not re.fullmatch(r"\d{1,9}", variable.value):
            continue
        for step in steps_with(job, variable):
            tasks = tasks_of(job, step) if step.srun else None
            plain = step.launcher in ("srun", "plain")
            if plain and tasks and tasks > 1 and int(variable.value) != tasks:
                yield Hit(
                    f"WORLD_SIZE is {variable.value}, but srun starts {tasks} ranks.",
                    "Write WORLD_SIZE=$SLURM_NTASKS.",
                    variable.at,
                )
