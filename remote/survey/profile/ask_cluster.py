"""Queries a cluster without a profile, in one request, and types Slurm's answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lumitui.remote.site.answer_fields import count, last_words, lines
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Hosts, Site
from lumitui.remote.survey import slurm_records as slurm
from lumitui.remote.survey.profile import image_survey
from lumitui.remote.survey.profile.image_survey import SurveyedImages
from lumitui.remote.survey.slurm_records import Association, Gpus, PartitionRecord, Qos, gpus_of
from lumitui.remote.transport import questions
from lumitui.remote.transport.questions import Question
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport


@dataclass(frozen=True)
class Group:
    """Nodes of one partition that are alike (a line of sinfo)."""

    partition: str
    nodes: int
    cores: int
    threads: int
    memory_mib: int
    gpus: tuple[Gpus, ...]
    names: str
    """Slurm's list of their names."""


@dataclass(frozen=True)
class WritableFolder:
    """A folder in which the user may write."""

    source: str
    """`$SCRATCH`, `found` or `home`."""
    path: str
    free_gib: int | None
    real: str = ""
    """Where its links lead; "": unknown."""


@dataclass(frozen=True)
class Cluster:
    """The result of the single request. Unanswered parts are empty."""

    user: str
    host: str
    arch: str
    home: str
    unix_groups: frozenset[str]
    version: str
    config: Mapping[str, str]
    partitions: tuple[PartitionRecord, ...]
    groups: tuple[Group, ...]
    nodes: Sequence[Mapping[str, str]]
    """One node of each kind that has GPUs, as scontrol shows it."""
    associations: tuple[Association, ...]
    default: str
    """The default account."""
    qos: tuple[Qos, ...]
    commands: frozenset[str]
    places: tuple[WritableFolder, ...]
    images: SurveyedImages
    modules: tuple[str, ...] = ()
    """The default versions of the modules with PyTorch, such as `pytorch/2.9`."""

    @property
    def name(self) -> str:
        """The cluster's own name, or ""."""
        name = self.config.get("ClusterName", "")
        return name if slurm.is_name(name) else ""

    @property
    def own(self) -> list[Association]:
        """The associations of this cluster, without those of a federation's others."""
        here = ("", self.config.get("ClusterName", "").lower())
        return [one for one in self.associations if not here[1] or one.cluster.lower() in here]

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts that the user may use, the default one first."""
        names = [one.account for one in self.own]
        first = [self.default] if self.default in names else []
        return tuple(dict.fromkeys([*first, *names]))

    @property
    def own_places(self) -> list[WritableFolder]:
        """The places without folders that are named after a group that is not an account.

        A Unix group may be another project's, or a course's.
        """
        own = {self.user, *self.accounts}
        return [
            one
            for one in self.places
            if one.source != "found" or not self.accounts or one.path.rpartition("/")[2] in own
        ]


def login(text: str) -> tuple[str, str, str, str, frozenset[str]]:
    """Return the user's name there, the host, its architecture, the home, and the groups."""
    words = [line.strip() if line.isprintable() else "" for line in lines(text, most=100)]
    user, host, arch, home, groups, *_ = [*words, *[""] * 5]
    return user, host, arch, home if home.startswith("/") else "", frozenset(groups.split())


def version(text: str) -> str:
    """Return Slurm's version printed by sbatch, or ""."""
    words = text.split()
    last = words[-1] if words and words[-1][:1].isdigit() else ""
    return last if slurm.is_name(last) else ""


def groups(text: str) -> tuple[Group, ...]:
    """Return the lines of sinfo, except others like an error message."""
    return tuple(filter(None, map(_group, lines(text))))


def places(text: str) -> tuple[WritableFolder, ...]:
    """Return the folders that were found."""
    return tuple(filter(None, map(_place, lines(text))))


def _group(line: str) -> Group | None:
    fields = line.split("|")
    if len(fields) != 9 or not slurm.is_name(fields[0]):
        return None
    # `96+` stands for nodes with 96 and more
    nodes, cpus, sockets, each, threads, memory = (
        count(text.strip().rstrip("+")) or 0 for text in fields[1:7]
    )
    if not nodes or not cpus:
        return None
    cores, threads = _cores(cpus, sockets * each, max(1, threads))
    return Group(
        fields[0].rstrip("*"), nodes, cores, threads, memory, gpus_of(fields[7]), fields[8]
    )


def _cores(cpus: int, cores: int, threads: int) -> tuple[int, int]:
    """Return a node's cores, and the threads per core that Slurm counts.

    A site that switches the second threads off in Slurm alone has as many CPUs as cores; one that
    describes its nodes by their CPUs alone has one core in one socket.
    """
    if cores * threads == cpus:
        return cores, threads
    return (cores, 1) if cores == cpus else (cpus, 1)


def _place(line: str) -> WritableFolder | None:
    fields = line.split("|")
    real = fields.pop() if len(fields) == 4 and fields[3].startswith("/") else ""
    if len(fields) != 3 or not fields[1].startswith("/") or not slurm.is_name(fields[1]):
        return None
    kib = count(fields[2].strip())
    return WritableFolder(
        fields[0], fields[1].rstrip("/") or "/", None if kib is None else kib >> 20, real
    )


MOST_GROUPS = 4_000
"""Maximum number of lines of sinfo: a site has a few hundred kinds of nodes by partition."""
SAMPLES = 8
"""Maximum number of nodes to query for facts that sinfo lacks: the reserved cores of each kind."""
CONTAINERS = ("singularity", "apptainer", "enroot", "podman-hpc", "podman", "sarus", "shifter")
"""Commands with which sites run containers."""
NO_PYTHON = "no-python3"
"""A command of a login node that lacks python3."""
_VARIABLES = "SCRATCH PSCRATCH WORK WORKDIR WORKSPACE PROJECT PROJECTDIR FLASH STORE"
"""Variables with which sites name the folder for large files."""
_FOLDERS = "/scratch /work /gpfs/scratch /lustre/scratch /p/scratch /flash /project /projects"
"""Folders below which sites have a folder for each project or user."""
_ASSOCIATIONS = "cluster,account,partition,qos,defaultqos"

_LARGE = rf'''show() {{ [ -d "$2" ] && [ -w "$2" ] && printf "%s|%s|%s|%s\n" "$1" "$2" "$(
  df -Pk "$2" 2>/dev/null | awk 'END {{print $4}}')" "$(readlink -f "$2")"; }}
for name in {_VARIABLES}; do
  value=$(bash -lc 'printf %s "${{!1-}}"' - "$name" 2>/dev/null | tail -n 1)
  case $value in /*) show "\$$name" "$value" ;; esac; done
mine=$(id -un)
accounts=$($t sacctmgr -n -P show assoc user="$mine" format=account 2>/dev/null |
  sort -u | head -n 50)
for folder in {_FOLDERS}; do for name in $accounts $(id -Gn) $mine; do
  case $name in */* | .*) ;; *) show found "$folder/$name" ;; esac; done; done
show home "$HOME"'''
"""Prints folders for large files. A command's environment lacks a login shell's variables."""
_KINDS = rf'''groups=$($t sinfo -h -e --local -o '%R|%D|%c|%X|%Y|%Z|%m|%G|%N' 2>&1 |
  head -n {MOST_GROUPS})
printf "%s\n" "$groups"'''
_OF_EACH = rf"""printf '%s\n' "$groups" |
  awk -F'|' '$8 ~ /gpu/ && !seen[$8,$3,$7]++ {{print $9}}' |
  head -n {SAMPLES} | while IFS= read -r list; do
    one=$($t scontrol show hostnames "$list" 2>/dev/null | head -n 1)
    [ -z "$one" ] || $t scontrol show node -o "$one" 2>&1; done"""
"""Prints the first node of each kind, after the groups."""
_TOOLS = rf"""for one in module {" ".join(CONTAINERS)}; do
  [ "$one" = module ] || ! command -v "$one" >/dev/null 2>&1 || echo "$one"; done
bash -lc 'type module' >/dev/null 2>&1 && echo module
bash -lc 'command -v python3' >/dev/null 2>&1 || echo {NO_PYTHON}"""
_MODULES = """$t bash -lc 'module -t --default avail' 2>&1 </dev/null |
  grep -iE '^pytorch(/[[:alnum:]._+-]+)?$' | head -n 9"""
_OWN = f'$t sacctmgr -n -P show assoc user="$(id -un)" format={_ASSOCIATIONS} 2>/dev/null'
_DEFAULT = '$t sacctmgr -n -P show user "$(id -un)" format=defaultaccount 2>/dev/null'

QUESTIONS: tuple[Question[Any], ...] = (
    Question("login", 'id -un; uname -n; uname -m; printf "%s\\n" "$HOME"; id -Gn', login),
    Question("version", "$t sbatch --version 2>&1", version),
    Question("config", "$t scontrol show config 2>&1 | head -n 1000", slurm.settings),
    Question("partitions", "$t scontrol show partition -o 2>&1", slurm.partitions),
    Question("groups", _KINDS, groups),
    Question("nodes", _OF_EACH, partial(slurm.named, key="NodeName")),
    Question("associations", _OWN, partial(slurm.associations, _ASSOCIATIONS)),
    Question("default", _DEFAULT, lambda text: text.strip().partition("\n")[0]),
    Question("qos", slurm.QOS_LIMITS, partial(slurm.qualities, slurm.QOS)),
    Question("commands", _TOOLS, lambda text: frozenset(text.split())),
    Question("places", _LARGE, places),
    Question("images", image_survey.images_sh(), image_survey.images),
    Question("modules", _MODULES, lambda text: tuple(text.split())),
)
"""Each, except `login`, has the name of a field of `Cluster`."""


@dataclass(frozen=True)
class HostAddress:
    """The user's way to the cluster, as given."""

    login: str
    user: str | None = None
    port: int | None = None
    ssh_config: str | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """The key of the login; see `Connection.host_keys`."""


def unprofiled(name: str, host: HostAddress) -> Site:
    """Return a placeholder for the future profile, with only the way to the host."""
    node = NodeShape(cores=1, memory_gib=1, gpus=1, gpu="unknown", gpu_memory_gib=1)
    hosts = Hosts(login=host.login, user=host.user, port=host.port, ssh_config=host.ssh_config)
    return Site(name=name, title=name, hosts=hosts, work_root="/tmp", node=node, partitions={},
                cores_per_gpu=1)  # fmt: skip


@purpose("survey")
def ask(transport: Transport) -> Cluster:
    """Return Slurm's description of the cluster.

    Raises:
        LinkError: the cluster cannot be reached, or its answer is unusable.
        LumiError: the host has no Slurm, or answers no question.
    """
    head = "LC_ALL=C; export LC_ALL; unset SLURM_CLUSTERS"
    answers = questions.ask(transport, head, QUESTIONS, timeout=300.0, each=20)
    if "login" not in answers.texts:
        raise LumiError(
            f"The host did not answer the survey: {answers.words}.", "Log in manually and check."
        )
    fields = {one.name: answers.of(one) for one in QUESTIONS}
    cluster = Cluster(*fields.pop("login"), **fields)
    if not cluster.version and not cluster.partitions:
        words = last_words(answers.texts.get("version", ""), default="no answer")
        raise LumiError(
            f"{cluster.host or 'The host'} does not have Slurm; sbatch prints {words!r}.",
            "Give a login node of the cluster where sbatch works without `module load`.",
        )
    return cluster
