"""The one request of an inquiry, as sh: each question is a part that fails on its own."""

from dataclasses import dataclass

from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.request_parts import part_functions

SECONDS = 90.0
"""The time limit of the whole request."""
MOST_PATHS = 40
"""Most paths of a job that are looked at; a job with more names its data one by one."""

# What a path is, whether it can be read and written, the nearest folder above it that is there,
# whether that can be written, and how full its file system is: 1 kB blocks, then inodes.
_LOOK = r"""case $1 in "~"/*) set -- "$HOME/${1#"~/"}" ;; esac
k=none; [ -L "$1" ] && k=link; [ -e "$1" ] && k=other
[ -f "$1" ] && k=file; [ -d "$1" ] && k=folder
r=-; [ -r "$1" ] && r=r; w=-; [ -w "$1" ] && w=w
at=$1; while [ ! -d "$at" ] && [ "$at" != / ] && [ "$at" != . ]; do at=$(dirname "$at"); done
a=-; [ -w "$at" ] && [ -x "$at" ] && a=w
printf '%s|%s|%s|%s|%s\n' "$k" "$r" "$w" "$a" "$at"
df -Pk "$at" 2>/dev/null | tail -n 1; df -Pi "$at" 2>/dev/null | tail -n 1; exit 0"""

_OWN_JOBS = "squeue --me -a -h -t pending,running,suspended -o '%T|%P|%q|%a'"
_ASSOCIATIONS = (
    "sacctmgr -n -P show assoc user=\"$(id -un)\" "
    "format=account,partition,qos,maxjobs,maxsubmit"
)  # fmt: skip
_QOS = "sacctmgr -n -P show qos format=name,maxjobspu,maxsubmitpu"


@dataclass(frozen=True)
class Asked:
    """What one request asks. Two equal ones have the same answer, as long as it is fresh."""

    paths: tuple[str, ...] = ()
    """Whole paths, or from `~/`."""
    slurm: bool = True
    """Whether the site has a Slurm to ask."""
    partition: str = ""
    """Slurm's name of it."""
    quota: str = ""
    """The site's command for quotas; "": none is known."""
    balance: str = ""
    """Its command for budgets."""
    script: str = ""
    """What sbatch would get, for `--test-only`; "": it is not tried."""


def path_part(number: int) -> str:
    """Return the kind of the record about path `number`."""
    return f"path-{number}"


def commands_of(asked: Asked) -> dict[str, str]:
    """Return the command of each part, as a person knows it."""
    found = {path_part(number): "ls" for number in range(len(asked.paths[:MOST_PATHS]))}
    if asked.slurm:
        found |= {"jobs": "squeue", "associations": "sacctmgr", "qos": "sacctmgr"}
        if asked.partition:
            found["partition"] = "scontrol show partition"
        if asked.script:
            found["trial"] = "sbatch --test-only"
    if asked.quota:
        found["quota"] = asked.quota
    if asked.balance:
        found["balance"] = asked.balance
    return found


def inquiry_script(marker: str, clean: str, asked: Asked) -> str:
    """Return the request: POSIX sh, a record for each part.

    `clean` is sh that unsets what would change Slurm's answers.
    """
    lines = [clean, part_functions(marker), f"look={quote(_LOOK)}"]
    for number, path in enumerate(asked.paths[:MOST_PATHS]):
        lines.append(f'part {path_part(number)} sh -c "$look" - {quote(path)}')
    if asked.slurm:
        lines += [
            f"part jobs sh -c {quote(_OWN_JOBS)}",
            f"part associations sh -c {quote(_ASSOCIATIONS)}",
            f"part qos sh -c {quote(_QOS)}",
        ]
        if asked.partition:
            lines.append(f"part partition scontrol show partition -o {quote(asked.partition)}")
        if asked.script:
            trial = 'sbatch --test-only; echo "status=$?"'  # it may refuse: that is an answer
            lines.append(f"printf %s {quote(asked.script)} | fed trial sh -c {quote(trial)}")
    if asked.quota:
        lines.append(f"part quota sh -c {quote(asked.quota)}")
    if asked.balance:
        lines.append(f"part balance sh -c {quote(asked.balance)}")
    return "\n".join([*lines, "exit 0"])
