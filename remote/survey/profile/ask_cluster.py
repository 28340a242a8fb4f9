"""Queries a cluster that has no profile, in one request over one connection."""

from functools import partial
from typing import Any

from lumitui.remote.site.answer_fields import last_words
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Hosts, Site
from lumitui.remote.survey import slurm_records as slurm
from lumitui.remote.survey.profile import cluster_records as read
from lumitui.remote.survey.profile.cluster_records import Cluster
from lumitui.remote.survey.profile.proposal import HostAddress
from lumitui.remote.transport import questions
from lumitui.remote.transport.questions import Question
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MOST_GROUPS = 4_000
"""Most lines of sinfo to read: a site has a few hundred kinds of nodes by partition."""
SAMPLES = 8
"""Most nodes to query for what sinfo does not show: the reserved cores of each kind."""
CONTAINERS = ("singularity", "apptainer", "enroot", "podman-hpc", "podman", "sarus", "shifter")
"""Commands with which sites run containers."""
_VARIABLES = "SCRATCH PSCRATCH WORK WORKDIR WORKSPACE PROJECT PROJECTDIR FLASH STORE"
"""Variables in which sites name the folder for large files."""
_FOLDERS = "/scratch /work /gpfs/scratch /lustre/scratch /p/scratch /flash /project /projects"
"""Folders below which sites keep a folder for each project or person."""
_ASSOCIATIONS = "cluster,account,partition,qos,defaultqos"
_QOS = "name,maxwall,maxtres,maxjobspu,mintres"

_LARGE = rf'''show() {{ [ -d "$2" ] && [ -w "$2" ] && printf "%s|%s|%s\n" "$1" "$2" "$(
  df -Pk "$2" 2>/dev/null | awk 'END {{print $4}}')"; }}
for name in {_VARIABLES}; do
  value=$(bash -lc 'printf %s "${{!1-}}"' - "$name" 2>/dev/null | tail -n 1)
  case $value in /*) show "\$$name" "$value" ;; esac; done
mine=$(id -un)
accounts=$($t sacctmgr -n -P show assoc user="$mine" format=account 2>/dev/null |
  sort -u | head -n 50)
for folder in {_FOLDERS}; do for name in $accounts $(id -Gn) $mine; do
  case $name in */* | .*) ;; *) show found "$folder/$name" ;; esac; done; done
show home "$HOME"'''
"""Prints folders for large files. A command's environment lacks what a login shell sets."""
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
bash -lc 'type module' >/dev/null 2>&1 && echo module"""
_OWN = f'$t sacctmgr -n -P show assoc user="$(id -un)" format={_ASSOCIATIONS} 2>/dev/null'
_DEFAULT = '$t sacctmgr -n -P show user "$(id -un)" format=defaultaccount 2>/dev/null'
_LIMITS = f"$t sacctmgr -n -P show qos format={_QOS} 2>/dev/null"

QUESTIONS: tuple[Question[Any], ...] = (
    Question("login", 'id -un; uname -n; uname -m; printf "%s\\n" "$HOME"; id -Gn', read.login),
    Question("version", "$t sbatch --version 2>&1", read.version),
    Question("config", "$t scontrol show config 2>&1 | head -n 1000", slurm.settings),
    Question("partitions", "$t scontrol show partition -o 2>&1", slurm.partitions),
    Question("groups", _KINDS, read.groups),
    Question("nodes", _OF_EACH, partial(slurm.named, key="NodeName")),
    Question("associations", _OWN, partial(slurm.associations, _ASSOCIATIONS)),
    Question("default", _DEFAULT, lambda text: text.strip().partition("\n")[0]),
    Question("qos", _LIMITS, partial(slurm.qualities, _QOS)),
    Question("commands", _TOOLS, lambda text: frozenset(text.split())),
    Question("places", _LARGE, read.places),
)
"""Each, except for `login`, has the name of a field of `Cluster`."""


def unprofiled(name: str, host: HostAddress) -> Site:
    """Return a placeholder for the profile to come, with only the way to the host."""
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
            f"{cluster.host or 'The host'} has no Slurm; sbatch prints {words!r}.",
            "Give a login node of the cluster where sbatch works without `module load`.",
        )
    return cluster
