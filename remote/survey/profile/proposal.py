"""A profile from Slurm's answers: every value with its source, or marked as a guess. Pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.remote.site import walltime
from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.survey import slurm_records as slurm
from lumitui.remote.survey.profile.ask_cluster import (
    CONTAINERS,
    NO_PYTHON,
    Cluster,
    HostAddress,
    WritableFolder,
)
from lumitui.remote.survey.profile.image_survey import RUNTIMES
from lumitui.remote.survey.profile.node_facts import gpu_type
from lumitui.remote.survey.profile.shape_choice import ProfilePartition, ShapeChoice
from lumitui.remote.survey.slurm_records import Qos

Value = str | int | float | bool | tuple[str, ...]
"""The value of a profile's line."""


@dataclass(frozen=True)
class ProfileLine:
    """One line of a profile."""

    place: tuple[str, ...]
    value: Value
    why: str = ""
    """Its source, or the reason for the guess."""
    guess: bool = False


@dataclass(frozen=True)
class MissingFact:
    """A missing key."""

    place: tuple[str, ...]
    what: str
    """Its use, and its possible source."""


@dataclass(frozen=True)
class Proposal:
    """A profile that is proposed, in the order of its lines."""

    name: str
    lines: tuple[ProfileLine | MissingFact, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def guessed(self) -> tuple[str, ...]:
        """The keys without a source, like `work_root`."""
        return tuple(
            ".".join(one.place) for one in self.lines if isinstance(one, ProfileLine) and one.guess
        )


_NO_WEIGHTS = "Slurm has no TRESBillingWeights"
_LEAST, _MOST = 0.001, 1e6
"""The limits of a share in a profile."""


def weights_of(queue: ProfilePartition, choice: ShapeChoice) -> tuple[float, float, float]:
    """Return the weights of a core, a GiB and a GPU; 0: none."""
    weights = dict(queue.record.weights)
    core = _number(weights.get("cpu", "")) * choice.threads
    memory = weights.get("mem", "")
    gib = _number(memory.rstrip("KMGTkmgt")) * _per_gib(memory)
    typed = weights.get(f"gres/gpu:{choice.gpus.kind}".lower(), "")
    gpu = _number(typed or weights.get("gres/gpu", ""))
    return core, gib, gpu


def weighed(choice: ShapeChoice) -> bool:
    """Return whether any partition has weights, so that bills are in Slurm's billing units."""
    return any(queue.record.weights for queue in choice.queues)


def billing_of(
    at: tuple[str, ...],
    queue: ProfilePartition,
    cluster: Cluster,
    choice: ShapeChoice,
    whole: tuple[int, int],
) -> Iterator[ProfileLine]:
    """Yield the lines of a partition's billing.

    `whole` is what a job of a whole node gets, and Slurm counts: cores without those that
    CPUSpecList keeps, and memory in GiB.
    """
    here = (*at, "billing")
    core, gib, gpu = weights_of(queue, choice)
    if not core + gib + gpu and weighed(choice):
        yield ProfileLine(
            (*here, "kind"), "sum", "slurm.conf(5): without weights each CPU counts 1"
        )
        yield ProfileLine((*here, "per_core_hour"), choice.threads)
        return
    if not core + gib + gpu:
        yield ProfileLine((*here, "kind"), "sum")
        yield ProfileLine(
            (*here, "per_gpu_hour"), 1, f"{_NO_WEIGHTS}; set the site's price", guess=True
        )
        return
    source = "TRESBillingWeights"
    largest = "MAX_TRES" in cluster.config.get("PriorityFlags", "").upper()
    if queue.record.exclusive:
        parts = (whole[0] * core, whole[1] * gib, choice.gpus.number * gpu)
        yield ProfileLine((*here, "kind"), "node")
        each = max(parts) if largest else sum(parts)
        yield ProfileLine((*here, "per_node_hour"), _rate(each), f"{source} of a whole node")
    elif largest:
        yield ProfileLine((*here, "kind"), "slice", "PriorityFlags: MAX_TRES, the largest counts")
        for key, weight in (("cores", core), ("memory_gib", gib), ("gpus", gpu)):
            yield ProfileLine((*here, key), _share(weight), source)
        yield ProfileLine((*here, "per_slice_hour"), 1)
    else:
        yield ProfileLine((*here, "kind"), "sum", source)
        for key, weight in (("core", core), ("gib", gib), ("gpu", gpu)):
            if weight:
                yield ProfileLine((*here, f"per_{key}_hour"), _rate(weight))


def _number(text: str) -> float:
    match = re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text)
    return float(text) if match else 0.0


def _per_gib(memory: str) -> float:
    """Return a weight per M (Slurm's unit without a letter), G or T as one per GiB."""
    unit = memory[-1:].upper()
    return {"K": 1048576.0, "G": 1.0, "T": 1 / 1024}.get(unit, 1024.0)


def _share(weight: float) -> float:
    share = 1 / weight if weight else math.inf
    return round(min(_MOST, max(_LEAST, share)), 6)


def _rate(value: float) -> float:
    return round(min(_MOST, value), 6)


UNMEASURED = (
    "the cores nearest to each GPU are unverified; `lumitui site check {} --probe` measures them"
)
_ENDLESS = 365 * 86_400
"""The value for no time limit."""


def propose(name: str, host: HostAddress, cluster: Cluster, choice: ShapeChoice) -> Proposal:
    """Return the profile `name` of a cluster, for the chosen nodes."""
    lines = (
        *_head(name, host, cluster),
        *_work(cluster),
        *_folders(cluster),
        *_node(name, cluster, choice),
        *_partitions(cluster, choice),
        *_requests(cluster, choice),
        *_rest(name, cluster, choice),
    )
    return Proposal(name, lines, choice.left_out, _notes(cluster))


def _head(name: str, host: HostAddress, cluster: Cluster) -> Iterator[ProfileLine | MissingFact]:
    yield ProfileLine(("name",), name)
    own = cluster.name.casefold() in ("", name.casefold())
    title = (cluster.name or name) if own else f"{name} ({cluster.name})"
    yield ProfileLine(("title",), title, "scontrol show config: ClusterName")
    if cluster.version:
        yield ProfileLine(("slurm_version",), cluster.version, "sbatch --version")
    yield ProfileLine(("hosts", "login"), host.login, "you")
    if host.user:
        yield ProfileLine(("hosts", "user"), host.user, "you")
    if host.port:
        yield ProfileLine(("hosts", "port"), host.port, "you")
    if host.ssh_config:
        yield ProfileLine(("hosts", "ssh_config"), host.ssh_config, "you")
    for kind, text in host.fingerprints.items():
        why = "the key of this login; compare it with the site's pages, then trim `unverified`"
        yield ProfileLine(("hosts", "fingerprints", kind), text, why, guess=True)
    if not host.fingerprints:
        what = "the site's published host keys, which lumitui verifies on the first login: "
        yield MissingFact(("hosts", "fingerprints"), what + "{ed25519: SHA256:...}")
    if accounts := cluster.accounts:
        listed = ", ".join(accounts[:20]) + (", ..." if len(accounts) > 20 else "")
        yield ProfileLine(("account", "required"), True, f"sacctmgr show assoc: {listed}")
        only = len(accounts) == 1 or cluster.default in accounts
        why = "sacctmgr show user: the default account, or the only one"
        why = why if only else "the first of your accounts"
        yield ProfileLine(("account", "default"), accounts[0], why, guess=not only)
    else:
        yield ProfileLine(
            ("account", "required"), False, "sacctmgr lists no account of yours", guess=True
        )


def _work(cluster: Cluster) -> Iterator[ProfileLine]:
    place = _best_place(cluster)
    path = place.path if place else (cluster.home or f"/home/{cluster.user or 'USER'}")
    parts = _template(path, cluster).split("/")
    if "{user}" not in parts:
        parts.append("{user}")
    free = f", {place.free_gib:,} GiB free" if place and place.free_gib is not None else ""
    source = "your home" if place is None or place.source == "home" else f"{place.path}{free}"
    if place and place.source.startswith("$"):
        source = f"{place.source} is {source}"
    yield ProfileLine(
        ("work_root",),
        "/".join([*parts, "lumitui"]),
        f"{source}; you can write to it. It stores runs and code, so choose a large file system",
        guess=True,
    )


def _template(path: str, cluster: Cluster) -> str:
    """Return a path with `{user}` and `{account}` for the user's name and default account."""
    owners = {cluster.user: "{user}"} | {one: "{account}" for one in cluster.accounts[:1]}
    parts = (part.replace("{", "").replace("}", "") for part in path.split("/"))
    return "/".join(owners.get(part, part) if part else part for part in parts)


def _folders(cluster: Cluster) -> Iterator[ProfileLine]:
    """Yield the values of `$HOME`, `$SCRATCH` and the like in a job file.

    What a variable of a login shell names was found; a folder without one gets a guessed name.
    """
    named = {"USER"}
    places = [WritableFolder("$HOME", cluster.home, None), *cluster.own_places]
    for place in sorted(places, key=lambda one: not one.source.startswith("$")):
        guess = place.source == "found"
        name = place.path.split("/")[-2].upper() if guess else place.source.removeprefix("$")
        known = name in named or not re.fullmatch("[A-Z]{1,40}", name)
        if known or not place.path.startswith("/") or place.path in named:
            continue
        named |= {name, place.path}
        why = f"{place.source} of a login shell is {place.path}"
        if guess:
            why = f"you can write to {place.path}, but no variable contains its path"
        yield ProfileLine(("folders", name), _template(place.path, cluster), why, guess=guess)


def _best_place(cluster: Cluster) -> WritableFolder | None:
    """Return the folder where runs should go: the account's before the user's, home last.

    A file system with less than a GiB free comes after all others.
    """
    account = cluster.accounts[0] if cluster.accounts else ""

    def rank(place: WritableFolder) -> tuple[bool, ...]:
        parts = place.path.split("/")
        named = place.source.startswith("$") and cluster.user in parts
        return (place.free_gib == 0, place.source == "home", not (account and account in parts),
                not named, cluster.user not in parts)  # fmt: skip

    return min(cluster.own_places, key=rank, default=None)


def _node(name: str, cluster: Cluster, choice: ShapeChoice) -> Iterator[ProfileLine | MissingFact]:
    gpus, kind = choice.gpus, gpu_type(choice.gpus.kind)
    sinfo = "sinfo"
    yield ProfileLine(("node", "cores"), choice.cores, sinfo)
    yield ProfileLine(("node", "threads_per_core"), choice.threads, sinfo)
    if cluster.arch == "aarch64":
        yield ProfileLine(
            ("node", "architecture"), "aarch64", "uname -m on the login node", guess=True
        )
    sample = sample_of(cluster, choice)
    if kept := _reserved(cluster, choice):
        why = f"scontrol show node {sample.get('NodeName', '')}: CPUSpecList"
        yield ProfileLine(("node", "reserved_cores"), format_cores(kept), why)
    yield ProfileLine(("node", "memory_gib"), _memory_gib(cluster, choice), f"{sinfo}: RealMemory")
    shown = any(group.gpus for queue in choice.queues for group in queue.groups)
    given = f"{sinfo}: Gres" if shown else "given by you"
    yield ProfileLine(("node", "gpus"), gpus.number, given)
    yield ProfileLine(("node", "gpu"), gpus.kind or "GPU", f"{sinfo}: Gres", guess=not gpus.kind)
    groups = (group for queue in choice.queues for group in queue.groups)
    kinds = {one.kind for group in groups for one in group.gpus if one.kind}
    if gpus.kind or (shown and not kinds):
        yield ProfileLine(("node", "gres_types"), tuple(sorted(kinds)), f"{sinfo}: Gres")
    if kind:
        sizes = kind.memories
        why = f"{kind.name} exists with {' or '.join(map(str, sizes))} GiB; this is the smallest"
        yield ProfileLine(("node", "gpu_memory_gib"), sizes[0], why, guess=len(sizes) > 1)
    else:
        why = "not a fact: Slurm does not report it; correct it, or measure it with --probe"
        yield ProfileLine(("node", "gpu_memory_gib"), 16, why, guess=True)
    yield ProfileLine(("node", "no_gpu_cores"), UNMEASURED.format(name))
    yield MissingFact(("node", "gpu_cores"), f"`lumitui site check {name} --probe` measures them")


def sample_of(cluster: Cluster, choice: ShapeChoice) -> dict[str, str]:
    """Return the node that represents the chosen ones, from scontrol, or {}."""
    threads = str(choice.cores * choice.threads)
    for node in cluster.nodes:
        named = f"gpu:{choice.gpus.kind}" if choice.gpus.kind else "gpu"
        if node.get("CPUTot") == threads and named in node.get("Gres", ""):
            return dict(node)
    return {}


def _reserved(cluster: Cluster, choice: ShapeChoice) -> frozenset[int]:
    listed = sample_of(cluster, choice).get("CPUSpecList", "")
    kept = slurm.reserved(listed, choice.cores, choice.threads)
    return kept if len(kept) < choice.cores else frozenset()


def _memory_gib(cluster: Cluster, choice: ShapeChoice) -> int:
    kept = slurm.whole(sample_of(cluster, choice).get("MemSpecLimit", ""))
    return max(1, min(100_000, (choice.memory_mib - kept) // 1024))


def _partitions(cluster: Cluster, choice: ShapeChoice) -> Iterator[ProfileLine | MissingFact]:
    def order(queue: ProfilePartition) -> tuple[bool, bool, bool]:
        # An example begins with the first one. Masks are right, and proved, on whole nodes alone.
        return queue.record.preempts, not queue.record.exclusive, not queue.record.is_default

    for queue in sorted(choice.queues, key=order):
        yield from _partition(queue, cluster, choice)


def _partition(
    queue: ProfilePartition, cluster: Cluster, choice: ShapeChoice
) -> Iterator[ProfileLine | MissingFact]:
    at, record = ("partitions", queue.name), queue.record
    command = f"scontrol show partition {record.name}"
    qos = _qos(queue, cluster)
    if queue.name != record.name:
        yield ProfileLine((*at, "slurm_partition"), record.name, "sacctmgr: your QOS")
    if seconds := _least(record.seconds, *(one.seconds for one in qos)):
        yield ProfileLine((*at, "max_time"), walltime.text_of(seconds), command)
    else:
        yield ProfileLine((*at, "max_time"), walltime.text_of(_ENDLESS), f"{command}: no limit")
    nodes = _most_nodes(queue, cluster)
    why = command if nodes == record.nodes else "sinfo: its nodes, or a QOS, allow no more"
    yield ProfileLine((*at, "max_nodes"), min(nodes, 100_000), why)
    yield ProfileLine((*at, "max_gpus_per_node"), choice.gpus.number)
    source = "sacctmgr show qos"
    if least := max((one.least_gpus or 0 for one in qos), default=0):
        yield ProfileLine((*at, "min_gpus"), least, f"{source}: MinTRES")
    if most := _least(*(one.gpus for one in qos)):
        yield ProfileLine((*at, "max_gpus"), most, f"{source}: MaxTRES")
    if jobs := _least(*(one.max_jobs for one in qos)):
        yield ProfileLine((*at, "max_jobs"), jobs, f"{source}: MaxJobsPU")
    allocation = "node" if record.exclusive else "shared"
    yield ProfileLine((*at, "allocation"), allocation, f"{command}: OverSubscribe, Exclusive")
    by_core = "CORE" in cluster.config.get("SelectTypeParameters", "").upper()
    if by_core and not record.exclusive and not record.forced:
        why = "SelectTypeParameters: no two jobs share a core, so all of them are a whole node"
        yield ProfileLine((*at, "whole_when_full"), True, why)
    usable = choice.cores - len(_reserved(cluster, choice))
    yield from billing_of(at, queue, cluster, choice, (usable, _memory_gib(cluster, choice)))
    if record.preempts:
        yield ProfileLine((*at, "preempts"), True, f"{command}: PreemptMode, PriorityTier")
    if (larger := _larger(queue, cluster, choice)) is not None:
        yield ProfileLine((*at, "grows_to"), larger.name, "the next larger partition", guess=True)
    if queue.qos:
        yield ProfileLine(
            (*at, "arguments"), (f"--qos={queue.qos}",), "sacctmgr: a QOS must be named"
        )


def _qos(queue: ProfilePartition, cluster: Cluster) -> list[Qos]:
    """Return the QOS with limits: the one that a job names, and the partition's own."""
    by_name = {one.name: one for one in cluster.qos}
    names = dict.fromkeys((queue.qos, queue.record.own_qos))
    return [by_name[name] for name in names if name in by_name]


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit), default=None)


def _most_nodes(queue: ProfilePartition, cluster: Cluster) -> int:
    """Return the most nodes of a job there."""
    limits = (one.nodes for one in _qos(queue, cluster))
    return _least(queue.record.nodes, queue.nodes, *limits) or 1


def _larger(
    queue: ProfilePartition, cluster: Cluster, choice: ShapeChoice
) -> ProfilePartition | None:
    own = _most_nodes(queue, cluster)
    larger = [
        one for one in choice.queues if _most_nodes(one, cluster) > own and not one.record.preempts
    ]
    # Of those with as many nodes, one of the same kind: whole nodes or shared ones.
    return min(
        larger,
        key=lambda one: (_most_nodes(one, cluster), one.record.name != queue.record.name),
        default=None,
    )


def _requests(cluster: Cluster, choice: ShapeChoice) -> Iterator[ProfileLine]:
    gpus = choice.gpus
    described = {queue.record.name for queue in choice.queues}
    others = tuple(one.name for one in cluster.partitions if one.name not in described)
    with_gpus = {group.partition for group in cluster.groups if group.gpus}
    if with_gpus and not with_gpus.intersection(others):
        why = "scontrol show partition: the rest have no GPUs" if others else "there are no others"
        yield ProfileLine(("other_partitions",), others, why)
    if cluster.partitions and not any(one.is_default for one in cluster.partitions):
        why = "scontrol show partition: none is the default"
        yield ProfileLine(("partition_required",), True, why)
    form, why = "--gpus-per-node={gpus}", "supported by every Slurm since 19.05"
    if not any(re.match(r"gpu|.*gpu:", node.get("Gres", "")) for node in cluster.nodes):
        form, why = "", "Slurm reports no GPUs here: a job gets whole nodes"
    elif choice.typed:
        form = f"--gpus-per-node={gpus.kind}:{{gpus}}"
        why = "the partitions also have other GPUs"
    yield ProfileLine(("gpu_request",), form, why, guess=bool(form) and choice.typed)
    usable = choice.cores - len(_reserved(cluster, choice))
    share, cpus = max(1, usable // gpus.number), _of_each_gpu("defcpupergpu", cluster, choice)
    if choice.threads == 1 and share <= 2 * cpus and cpus <= share:
        yield ProfileLine(("cores_per_gpu",), cpus, f"JobDefaults: DefCpuPerGPU={cpus}")
        yield ProfileLine(("cores_with_gpus",), True)
    else:
        yield ProfileLine(("cores_per_gpu",), share, "usable cores / GPUs")
    if choice.threads > 1:
        why = (
            f"Slurm counts {choice.threads} threads per core as CPUs; with this, it allocates cores"
        )
        yield ProfileLine(("sbatch_arguments",), ("--hint=nomultithread",), why)
    if "MEMORY" in cluster.config.get("SelectTypeParameters", "").upper():
        memory, why = _memory_gib(cluster, choice), "Slurm allocates memory; an even share"
        given = _of_each_gpu("defmempergpu", cluster, choice)
        if given * gpus.number * 2 >= memory * 1024:  # less is a small default: jobs must ask
            why = f"JobDefaults: DefMemPerGPU={given}, so a job gets it without a request"
            yield ProfileLine(("memory_per_gpu",), "", why)
            return
        yield ProfileLine(("memory_per_gpu",), f"{max(1, memory // gpus.number)}G", why, guess=True)
        yield ProfileLine(("memory_per_node",), f"{memory}G", why, guess=True)


def _of_each_gpu(default: str, cluster: Cluster, choice: ShapeChoice) -> int:
    """Return what every partition gives with a GPU, without a request; 0 if one gives nothing."""
    of_all = slurm.tres(cluster.config.get("JobDefaults", ""))
    rows = ({**of_all, **dict(queue.record.defaults)} for queue in choice.queues)
    return min(slurm.whole(row.get(default, "")) for row in rows)


def _rest(name: str, cluster: Cluster, choice: ShapeChoice) -> Iterator[ProfileLine | MissingFact]:
    kind = gpu_type(choice.gpus.kind)
    amd = bool(kind and kind.maker == "amd")
    if amd:
        yield ProfileLine(("visible_gpus",), "ROCR_VISIBLE_DEVICES", "AMD's runtime")
    yield ProfileLine(("node_folder",), "/tmp", "`site check --probe` checks the nodes", guess=True)
    gres = sample_of(cluster, choice).get("Gres", "")
    if disk := re.search(r"\b(\w*(?:nvme|ssd|disk|tmp)\w*):(\d+)", gres):
        line = f"{{request: '{disk[1]}:{{gib}}', max_gib: {disk[2]}, variable: NAME}}"
        words = f"the nodes have the gres {disk[0]}; if a job requests it, write here (not"
        words += f" below `node`, where `local_disk` is only a description) `local_disk: {line}`"
        yield MissingFact(("local_disk",), words)
    yield ProfileLine(("launchers",), ("srun", "torchrun", "plain"), "they need nothing but Slurm")
    if (requeue := cluster.config.get("JobRequeue")) in ("0", "1"):
        yield ProfileLine(("requeue",), requeue == "1", "scontrol show config: JobRequeue")
    yield ProfileLine(
        ("internet_on_compute_nodes",), False, "unknown; `site check --probe` tests it", guess=True
    )
    unit = "billing units" if weighed(choice) else "GPU-hours"
    why = "TRESBillingWeights" if weighed(choice) else _NO_WEIGHTS
    yield ProfileLine(("billing_unit",), unit, why, guess=not weighed(choice))
    if NO_PYTHON in cluster.commands:
        why = "the login node has no python3; `site check --probe` checks a node"
        yield ProfileLine(("python_on_compute_nodes",), False, why, guess=True)
    yield from _containers(name, cluster, nvidia=bool(kind and kind.maker == "nvidia"))
    if not cluster.images.working:
        yield MissingFact(("containers",), _no_image(cluster))
    if cluster.modules:
        words = f"module load {cluster.modules[0]}"
        why = f"`module avail` lists {', '.join(cluster.modules)}"
        yield ProfileLine(("modules",), (words,), why, guess=True)
        if cluster.images.working:
            why = "the site's own module; nodes may lack the image seen on the login node"
            yield ProfileLine(("default_container",), "none", why, guess=True)
    elif "module" in cluster.commands:
        yield MissingFact(("modules",), "what a job without a container loads: [module load ...]")


def _containers(name: str, cluster: Cluster, *, nvidia: bool) -> Iterator[ProfileLine]:
    """Yield a container for each way to start an image with PyTorch; the first is the default."""
    place = _best_place(cluster)
    paths = [place.path, place.real] if place and place.source != "home" else []
    roots = sorted({f"/{path.split('/')[1]}" for path in paths if path.count("/") > 1})
    options = (*(["--nv"] if nvidia else []), *(["-B", ",".join(roots)] if roots else []))
    for number, image in enumerate(cluster.images.working):
        at = ("containers", f"{image.runtime}-{image.verb}" if number else image.runtime)
        why = (
            f"on the login node it has torch {image.torch} and Python {image.version}; `lumitui "
            f"site images {name}` lists all"
        )
        yield ProfileLine((*at, "image"), image.path, why, guess=True)
        why = "`exec` works" if image.verb == "exec" else "`run` finds PyTorch, `exec` does not"
        if roots:
            why += "; -B binds the runs' folder: add your data folders"
        yield ProfileLine((*at, "call"), (image.runtime, image.verb, *options), why, guess=True)
        yield ProfileLine((*at, "python"), image.python, "the Python in the image")
        patterns = cluster.images.patterns(image)
        yield ProfileLine((*at, "listing", "paths"), patterns, "images that start in the same way")


def _no_image(cluster: Cluster) -> str:
    """Return what a user must look up, with the lines to add if images were found."""
    runtimes = sorted(cluster.commands & set(CONTAINERS))
    has = f"; the login node has {', '.join(runtimes)}" if runtimes else ""
    if not (paths := cluster.images.paths):
        return f"the site's images, and the command that starts them{has}"
    runtime = next((one for one in runtimes if one in RUNTIMES), "apptainer")
    line = f"{{{runtime}: {{image: {paths[0]}, call: [{runtime}, exec]}}}}"
    return (
        f"how to start the site's images{has}. lumitui did not find PyTorch in them; found: "
        f"{', '.join(paths[:10])}. For the first, write `containers: {line}`"
    )


def _notes(cluster: Cluster) -> tuple[str, ...]:
    notes = []
    if len(cluster.accounts) > 1:
        notes.append(f"Your accounts: {', '.join(cluster.accounts[:20])}.")
    if "qos" in cluster.config.get("AccountingStorageEnforce", "").lower() and cluster.qos:
        own = sorted({name for one in cluster.own for name in one.qos})
        notes.append(f"QOS that you may use: {', '.join(own[:20]) or 'none'}.")
    return tuple(notes)
