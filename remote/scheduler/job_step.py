"""A command inside a running job: one step on one node, in the environment of one of its ranks.

The step begins with the variables of a rank's process (/proc/PID/environ), so that it sees what the
program sees: modules, caches, secrets, `RANK`. They are read on the node; nothing of them is
written to a file or to a command line.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport


@dataclass(frozen=True)
class StepCall:
    """What runs inside a job, and where."""

    folder: str
    """The run's folder."""
    job_id: str
    command: Sequence[str] = ()
    """Empty: a shell."""
    node: str = ""
    """Name of the node; empty: the one with number `node_index`."""
    node_index: int = 0
    rank: int | None = None
    """The rank whose environment is taken; None: the first one that is found on the node."""
    container: str = ""
    """sh words before the program; empty: no container."""
    image: str = ""
    """The sh word for the container's image, which `container` calls `$SIF`."""
    activate: str = ""
    """sh that a container runs before the program."""
    terminal: bool = True
    """Whether it has a terminal of its own."""


def inside_script(call: StepCall) -> str:
    """Return bash that takes a rank's environment and becomes the command."""
    words = call.command or ("bash",)
    ready = f"{call.activate}; " if call.activate else ""
    inner = f'{ready}[ -z "${{VENV:-}}" ] || PATH=$VENV/bin:$PATH; exec "$@"'
    start = f"{call.container} bash -c {quote(inner)} lumitui" if call.container else ""
    return fill(
        _INSIDE,
        folder=quote(call.folder),
        of_run=quote(f"RUN_DIR={call.folder}"),
        rank=quote("RANK=" if call.rank is None else f"RANK={call.rank}"),
        match="-qsz" if call.rank is None else "-qszxF",
        path="PATH|LD_LIBRARY_PATH|LD_PRELOAD" if call.container else "''",
        image=f"SIF={call.image}" if call.image else ":",
        words=" ".join(map(quote, words)),
        start=start,
    )


# In a container the rank's PATH is the container's. What names the container would be taken for one
# around this shell. SLURM_* are the step's own.
_INSIDE = r"""
cd {folder} || exit
chosen=
for file in $(grep -lszxF -- {of_run} /proc/[0-9]*/environ); do
  if grep {match} -- {rank} "$file"; then chosen=$file; break; fi
  [[ {rank} == RANK=?* ]] || chosen=${chosen:-$file}
done
if [[ ! $chosen ]]; then
  echo "lumitui: found no process of the run on ${SLURMD_NODENAME:-this machine};" \
    "its variables are missing." >&2
else
  while IFS= read -r -d '' pair; do
    case ${pair%%=*} in
    '' | [0-9]* | *[!A-Za-z0-9_]* | SLURM_* | BASH*) ;;
    PWD | OLDPWD | SHLVL | TERM | COLUMNS | LINES) ;;
    APPTAINER_NAME | APPTAINER_CONTAINER | APPTAINER_ENVIRONMENT | APPTAINER_COMMAND) ;;
    SINGULARITY_NAME | SINGULARITY_CONTAINER | SINGULARITY_ENVIRONMENT | SINGULARITY_COMMAND) ;;
    {path}) ;;
    *) export "$pair" ;;
    esac
  done <"$chosen"
fi
{image}
set -- {words}
exec {start} "$@"
"""


def _slurm_step(call: StepCall, clean: str) -> str:
    """Return sh for the login node that starts the step on `$node`.

    `clean` unsets a user's own variables. One node and one task: on Slingshot a step over several
    nodes beside a running one is refused.
    """
    words = ["srun", f"--jobid={call.job_id}", "--overlap", "--immediate=30", "--nodes=1"]
    words += ["--ntasks=1", "--cpu-bind=none", "--quiet", *(["--pty"] if call.terminal else [])]
    program = f"bash -c {quote(inside_script(call))}"
    return f'{clean}\nexec {" ".join(map(quote, words))} --nodelist="$node" {program}'


@purpose("shell")
def place_step(transport: Transport, call: StepCall, clean: str) -> str:
    """Write the step's script into the run's folder; return its path. One request.

    Without Slurm `clean` is empty, and the command runs on the machine itself.

    Raises:
        RefusedError: the job is not running, or has no such node.
        LinkError: the site could not be asked.
    """
    marker = new_marker()
    step = _slurm_step(call, clean) if clean else f"exec bash -c {quote(inside_script(call))}"
    script = fill(
        _PLACE,
        records=record_functions(marker),
        nodes=_nodes_script(call, clean),
        folder=quote(call.folder),
    )
    # The shell has read all of it before the file goes.
    text = f'{{\nrm -f -- "$0"\n{step}\n}}\n'
    result = transport.run(script, stdin=text.encode())
    for words, content in parse_records(result.out, marker):
        if words == ["nodes"] and clean:
            _chosen(list(lines(content)), call)
        if words == ["step"] and (path := next(iter(lines(content)), "")):
            return path
    raise RefusedError(
        f"Nothing can be written into the run's folder: {last_words(result.err)}.",
        "Check the quota and the folder on the site.",
    )


@purpose("forward")
def node_of(transport: Transport, call: StepCall, clean: str) -> str:
    """Return the name of the job's node that `call` means. One request.

    Raises:
        RefusedError: the job is not running, or has no such node.
        LinkError: the site could not be asked.
    """
    marker = new_marker()
    script = f"{record_functions(marker)}\n{_nodes_script(call, clean)}\nexit 0"
    for words, content in parse_records(transport.run(script).out, marker):
        if words == ["nodes"]:
            return _chosen(list(lines(content)), call)
    raise AnswerUnusable("The site's answer ends before the nodes.", "Try again in a minute.")


def _nodes_script(call: StepCall, clean: str) -> str:
    choice = f"grep -xF -- {quote(call.node)}" if call.node else f"sed -n {call.node_index + 1}p"
    job = quote(f"--jobs={call.job_id}")
    return fill(_NODES, clean=clean, job=job, choice=choice) if clean else "node="


def _chosen(names: list[str], call: StepCall) -> str:
    """Return the node of `names` that `call` means."""
    if not names:
        raise RefusedError(
            f"Slurm has no running job {call.job_id}.", "Run `lumitui status` to see how it ended."
        )
    if call.node and call.node not in names:
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise RefusedError(f"The job has no node {call.node!r}.", f"Its nodes are {some}.")
    if call.node_index >= len(names):
        words = f"The job has {len(names)} nodes, so that rank is not in it."
        raise RefusedError(words, "Name a smaller rank.")
    return call.node or names[call.node_index]


# In a subshell: the variables that `clean` sets are not for the rest.
_NODES = r"""
names=$({clean}
list=$(squeue -h {job} -t R -o %N 2>/dev/null)
[ -z "$list" ] || scontrol show hostnames "$list")
begin nodes; [ -z "$names" ] || printf '%s\n' "$names"; finish
node=$(printf '%s\n' "$names" | {choice})
[ -n "$node" ] || exit 0
"""

_PLACE = r"""
{records}
{nodes}
umask 077
file=$(mktemp {folder}/.step-XXXXXX) || exit
{ printf 'node=%s\n' "$node"; cat; } >"$file" || exit
begin step; printf '%s\n' "$file"; finish
exit 0
"""
