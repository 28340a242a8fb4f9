"""Rules about the settings of NCCL and RCCL, and about nodes that reach no internet."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import setting
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import generations_of, site_says
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site

_NCCL = "NCCL documentation, environment variables"
_PROFILE = "the site's profile, environment"
_ON = ("1", "true", "TRUE", "yes")
_TCP = ("tcp", "sockets", "udp", "tcp;ofi_rxm")


@rule(
    "container-variable",
    "error",
    "a variable that breaks this generation of images on several nodes",
    why="What older images needed stops newer ones: their ranks hang in the first collective.",
    source="the site's profile, forbidden_environment",
)
def container_variable(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find a variable that the image's generation forbids."""
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
    why="Ranks look for the interfaces by name, and end with `no socket interface found`.",
    source=f"{_NCCL}, NCCL_SOCKET_IFNAME; {_PROFILE}",
)
def foreign_interface(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `NCCL_SOCKET_IFNAME=ib0` where interfaces are called hsn0 to hsn3."""
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
                f"NCCL_SOCKET_IFNAME is {variable.value}, and nodes of {site.name} reach each "
                f"other by {known}.",
                f"Write NCCL_SOCKET_IFNAME={known}.",
                variable.at,
                setting(variable, known, f"use {known}"),
                severity=None if job.nodes > 1 else "warning",
            )


@rule(
    "network-off",
    "warning",
    "a setting that turns off a fast path between GPUs",
    why="It is meant for debugging. Ranks then exchange gradients over TCP or through the host's "
    "memory, several times slower.",
    source=f"{_NCCL}, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_IB_DISABLE, NCCL_NET",
)
def network_off(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `NCCL_P2P_DISABLE=1`."""
    for variable in job.settings("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"):
        between = variable.name == "NCCL_IB_DISABLE"
        if variable.value not in _ON or (between and (job.nodes < 2 or _slingshot(site))):
            continue
        if site_says(site, variable.name):
            continue
        yield Hit(
            f"{variable.name}={variable.value} makes "
            f"{'nodes' if between else 'GPUs of a node'} exchange gradients "
            f"{'over TCP, and not over InfiniBand' if between else 'the slow way'}.",
            f"Remove {variable.name}.",
            variable.at,
        )
    for variable in job.settings("NCCL_NET"):
        if variable.value.lower() == "socket" and job.nodes > 1:
            yield Hit(
                "NCCL_NET=Socket makes nodes exchange gradients over TCP.",
                "Remove NCCL_NET.",
                variable.at,
            )
    for variable in job.settings("FI_PROVIDER"):
        if variable.value.lower() in _TCP and job.nodes > 1 and _slingshot(site):
            yield Hit(
                f"FI_PROVIDER={variable.value} makes nodes exchange gradients over TCP, and not "
                "over Slingshot (cxi).",
                "Remove FI_PROVIDER.",
                variable.at,
            )


def _slingshot(site: Site) -> bool:
    """Whether nodes reach each other by Slingshot, where NCCL asks libfabric and not InfiniBand."""
    return any(name.startswith(("FI_", "MPICH_")) or "hsn" in value
               for name, value in site.environment.items())  # fmt: skip


@rule(
    "debug-left-on",
    "warning",
    "a setting for finding errors that makes every step slow",
    why="The program waits for each kernel or collective, or checks it. Training runs at a "
    "fraction of its speed.",
    source="PyTorch documentation, CUDA environment variables; torch.distributed, debug mode",
)
def debug_left_on(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `CUDA_LAUNCH_BLOCKING=1`."""
    slow = {
        "CUDA_LAUNCH_BLOCKING": _ON,
        "HIP_LAUNCH_BLOCKING": _ON,
        "AMD_SERIALIZE_KERNEL": ("1", "2", "3"),
        "TORCH_DISTRIBUTED_DEBUG": ("DETAIL",),
        "NCCL_BLOCKING_WAIT": _ON,
        "TORCH_NCCL_BLOCKING_WAIT": _ON,
    }
    for variable in job.settings(*slow):
        if variable.value in slow[variable.name] and not site_says(site, variable.name):
            yield Hit(
                f"{variable.name}={variable.value} is for finding errors, and slows every step.",
                f"Remove {variable.name} from jobs that train.",
                variable.at,
            )
    for variable in job.settings("NCCL_DEBUG"):
        if variable.value.upper() == "TRACE":
            yield Hit(
                "NCCL_DEBUG=TRACE writes a line for every call of every rank.",
                "Write NCCL_DEBUG=INFO, or WARN.",
                variable.at,
            )


@rule(
    "offline",
    "warning",
    "a program told to use the internet on nodes without it",
    why="The program waits for a server that it cannot reach, and ends after minutes of retries.",
    source="the site's profile, internet_on_compute_nodes",
)
def offline(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `WANDB_MODE=online` at a site whose nodes reach no internet."""
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
                    f"{name} is {variable.value}, and the nodes of {site.name} reach no internet.",
                    f"Write {name}={right}.",
                    variable.at,
                    setting(variable, right),
                )


@rule(
    "download-in-job",
    "error",
    "a command that downloads where nodes have no internet",
    why="It waits for an answer that does not come, and the job ends without its data.",
    source="the site's profile, internet_on_compute_nodes",
)
def download_in_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `wget` or `git clone` at a site whose nodes reach no internet."""
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
                "do not reach.",
                "Do it on a login node or on your machine before the job.",
                command.at,
            )
