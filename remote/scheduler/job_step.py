"""Steps inside a running job: a user's command, and reading the GPU use of all nodes.

The step starts with the variables of a rank's process (/proc/PID/environ), so that it has the
program's environment: modules, caches, secrets, `RANK`. They are read on the node and never written
to a file or a command line.

The step that reads GPUs has one task per node. With `--overlap`, it shares the nodes with the job's
own step (srun(1)); it starts immediately or not at all, and ends after half a minute. On Slingshot,
a step on several nodes beside a running one gets no network (lumi-userguide, pull request 223), so
nodes are queried one by one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumitui.remote.site.answer_fields import json_of, last_words, lines
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.site.shell_text import fill, quote
from lumitui.remote.transport.records import new_marker, parse_records, record_functions
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

if TYPE_CHECKING:
    from lumitui.remote.site.meters import GpuReadings


@dataclass(frozen=True)
class StepCall:
    """A command inside a job, and its place."""

    folder: str
    job_id: str
    command: Sequence[str] = ()
    """Empty: a shell."""
    node: str = ""
    """Name of the node; empty: the node with number `node_index`."""
    node_index: int = 0
    rank: int | None = None
    """The rank whose environment to use; None: the first rank found on the node."""
    container: str = ""
    """sh words before the program; empty: no container."""
    image: str = ""
    """The sh word for the container's image, `$SIF` in `container`."""
    activate: str = ""
    """sh to run in the container before the program."""
    terminal: bool = True
    """Whether it has its own terminal."""


def inside_script(call: StepCall) -> str:
    """Return bash that adopts a rank's environment and executes the command."""
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


# In a container, the rank's PATH is the container's. Variables that name a container would suggest
# one around this shell. SLURM_* are the step's own.
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
mark=${1-}
set -- {words}
[[ $mark ]] || exec {start} "$@"
{start} "$@"
rc=$?
rm -f -- "$mark"
exit "$rc"
"""

# srun also exits with 0 if Slurm killed a step that ignored SIGTERM, so the command itself removes
# the mark. A file system may show that late, so it counts only once the job has left the queue.
_STEP = r"""
{clean}
: >"$0.on"
{step}
rc=$?
if [ "$rc" = 0 ] && [ -e "$0.on" ] && [ -z "$(squeue -h {job} -t R -o %i 2>/dev/null)" ]; then
  echo "lumitui: the job ended before the command did." >&2
  rc=143
fi
rm -f -- "$0.on"
exit "$rc"
"""


def _slurm_step(call: StepCall, clean: str) -> str:
    """Return sh for the login node that starts the step on `$node`.

    `clean` unsets a user's own variables. One node and one task, because Slingshot refuses a step
    over several nodes beside a running one.
    """
    words = ["srun", f"--jobid={call.job_id}", "--overlap", "--immediate=30", "--nodes=1"]
    # By this name, a job with `debug:` sees that a user is working in it.
    words += ["--job-name=lumitui-shell"]
    words += ["--ntasks=1", "--cpu-bind=none", "--quiet", *(["--pty"] if call.terminal else [])]
    program = f"bash -c {quote(inside_script(call))}"
    step = f'{" ".join(map(quote, words))} --nodelist="$node" {program} lumitui "$0.on"'
    return fill(_STEP, clean=clean, step=step, job=quote(f"--jobs={call.job_id}"))


@purpose("shell")
def place_step(transport: Transport, call: StepCall, clean: str) -> str:
    """Write the step's script into the run's folder and return its path; one request.

    Without Slurm, `clean` is empty, and the command runs on the machine itself.

    Raises:
        RefusedError: the job is not running, or has no such node.
    """
    marker = new_marker()
    step = _slurm_step(call, clean) if clean else f"exec bash -c {quote(inside_script(call))}"
    script = fill(
        _PLACE,
        records=record_functions(marker),
        nodes=_nodes_script(call, clean),
        folder=quote(call.folder),
    )
    # The shell has read the whole file before it is removed.
    text = f'{{\nrm -f -- "$0"\n{step}\n}}\n'
    result = transport.run(script, stdin=text.encode())
    for words, content in parse_records(result.out, marker):
        if words == ["nodes"] and clean:
            _chosen(list(lines(content)), call)
        if words == ["step"] and (path := next(iter(lines(content)), "")):
            return path
    raise RefusedError(
        f"The run's folder is not writable: {last_words(result.err)}.",
        "Check the quota and the folder on the site.",
    )


@purpose("forward")
def node_of(transport: Transport, call: StepCall, clean: str) -> str:
    """Return the name of the job's node for `call`; one request.

    Raises:
        RefusedError: the job is not running, or has no such node.
    """
    marker = new_marker()
    script = f"{record_functions(marker)}\n{_nodes_script(call, clean)}\nexit 0"
    for words, content in parse_records(transport.run(script).out, marker):
        if words == ["nodes"]:
            return _chosen(list(lines(content)), call)
    raise AnswerUnusable(
        "The site's answer is incomplete: the nodes are missing.", "Try again in a minute."
    )


def _nodes_script(call: StepCall, clean: str) -> str:
    choice = f"grep -xF -- {quote(call.node)}" if call.node else f"sed -n {call.node_index + 1}p"
    job = quote(f"--jobs={call.job_id}")
    return fill(_NODES, clean=clean, job=job, choice=choice) if clean else "node="


def _chosen(names: list[str], call: StepCall) -> str:
    """Return the node of `names` for `call`."""
    if not names:
        raise RefusedError(
            f"Slurm has no running job {call.job_id}.", "Run `lumitui status` to see how it ended."
        )
    if call.node and call.node not in names:
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise RefusedError(f"The job has no node {call.node!r}.", f"Its nodes are {some}.")
    if call.node_index >= len(names):
        words = f"The job has {len(names)} nodes, which do not include that rank."
        raise RefusedError(words, "Choose a smaller rank.")
    return call.node or names[call.node_index]


# In a subshell, so that the variables set by `clean` do not affect the rest.
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


MOST_ANSWER = 8 << 20
"""Maximum bytes to read: 1,000 nodes print about 3 MB."""
MOST_GPUS = 64
"""Most GPUs of one node."""
SECONDS = 75.0
"""Time limit of the request in seconds; the step has 40 s."""
_LONGEST = 100
# The message of dash, bash, busybox and env(1), after a label and the shell's path.
_MISSING = re.compile(
    r"(?m)^(?:.*[ :])?['\u2018]?([\w.+/-]{1,60})['\u2019]?: "
    r"(?:command not found|not found|No such file or directory)$"
)

# ROCm 5 and 6 have different names for the same sensor (rocm_smi.py, showPower). Of the two dies of
# an MI250X, only the first reports a value, for both; the other reports "N/A (Secondary die)".
_POWER = ("Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)")
_USE = "GPU use (%)"
_USED, _TOTAL = "VRAM Total Used Memory (B)", "VRAM Total Memory (B)"


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one time; None for values that the command does not report."""

    node: str
    index: int
    watts: float | None
    used: float | None
    """Used memory in bytes."""
    total: float | None
    """Bytes of its memory."""
    use: float | None
    """Percentage of time in which a kernel ran."""


@purpose("GPUs")
def read_gpus(
    transport: Transport, clean: str, job_id: str, nodes: int, readings: "GpuReadings"
) -> tuple[GpuReading, ...]:
    """Return the GPUs of a job's nodes, in node order; one request.

    `clean` is sh that unsets variables that would change Slurm's answers.

    Raises:
        RefusedError: the step could not start, or the command failed on all nodes.
    """
    marker = new_marker()
    script = gpus_script(marker, clean, job_id, nodes, readings)
    result = transport.run(script, timeout=SECONDS)
    for words, content in parse_records(result.out, marker):
        if words != ["gpus"]:
            continue
        gpus = tuple(parse_gpus(content[:MOST_ANSWER], readings))
        if gpus:
            return gpus
        raise _unread(content[:MOST_ANSWER].decode("utf-8", "replace").strip())
    raise AnswerUnusable(
        "The site's answer is incomplete: the GPUs are missing.", "Try again in a minute."
    )


def _unread(text: str) -> RefusedError:
    """Return why no GPU was readable, from the step's output and status."""
    first, _, status = text.rpartition("\n")
    if missing := _MISSING.search(first):
        return RefusedError(
            f"lumitui cannot query the job's GPUs: its nodes have no `{missing[1]}`.",
            "Set the command that reads them under `gpu_readings:` in the site's profile.",
        )
    reason = re.sub(r"^ *\d{1,6}: ", "", last_words(first, status))  # srun's label
    return RefusedError(
        f"lumitui cannot query the job's GPUs: {reason}.",
        "The command is `gpu_readings:` in the site's profile; `lumitui site show NAME` prints it.",
    )


def gpus_script(marker: str, clean: str, job_id: str, nodes: int, readings: "GpuReadings") -> str:
    """Return the one request: a step with a task on each node and labelled lines."""
    task = f'echo "node ${{SLURMD_NODENAME:-$(uname -n)}}"; {readings.command}'
    return fill(
        _SCRIPT,
        clean=clean,
        records=record_functions(marker),
        job=quote(f"--jobid={job_id}"),
        listed=quote(f"--jobs={job_id}"),
        nodes=str(int(nodes)),
        task=quote(task),
        most=MOST_ANSWER,
    )


_SCRIPT = r"""
{clean}
{records}
t=; if command -v timeout >/dev/null 2>&1; then t='timeout 40'; fi
step() {
  $t srun {job} --overlap --immediate=15 --ntasks-per-node=1 --label --quiet "$@" \
    sh -c {task} 2>&1 </dev/null
  echo "srun ended with status $?"
}
one_by_one() {
  began=$(date +%s) number=0
  for node in $(scontrol show hostnames "$(squeue -h {listed} -o %N)"); do
    [ "$(($(date +%s) - began))" -lt 25 ] || break
    step --nodes=1 --ntasks=1 --nodelist="$node" | sed "s/^ *0: /$number: /"
    number=$((number + 1))
  done
}
said=$(step --nodes={nodes} --ntasks={nodes} | head -c {most})
case $said in *'configuring interconnect'*) said=$(one_by_one | head -c {most}) ;; esac
begin gpus; printf '%s\n' "$said"; finish
exit 0
"""


def parse_gpus(output: bytes, readings: "GpuReadings") -> Iterator[GpuReading]:
    """Yield the GPUs in labelled lines (`3: …`); raises an error only for too many lines."""
    by_task: dict[int, list[str]] = {}
    for line in lines(output):
        if label := re.match(r" *(\d{1,6}): (.*)", line, re.DOTALL):
            by_task.setdefault(int(label[1]), []).append(label[2])
    read = _rocm if readings.prints == "rocm-smi" else _nvidia
    for _, rows in sorted(by_task.items()):
        node = next((row[5:].strip()[:_LONGEST] for row in rows if row.startswith("node ")), "?")
        yield from read(node, rows)


def _rocm(node: str, rows: list[str]) -> Iterator[GpuReading]:
    # Warnings, such as for a low-power state, may precede the line of JSON.
    data = next((json_of(row) for row in rows if row.startswith("{")), None)
    if not isinstance(data, dict):
        return
    for name, card in list(data.items())[: MOST_GPUS + 8]:
        index = re.fullmatch(r"card(\d{1,3})", name)
        if index is None or not isinstance(card, dict):
            continue
        powers = (_number(card.get(key)) for key in _POWER)
        watts = next((power for power in powers if power is not None), None)
        used, total, use = (_number(card.get(key)) for key in (_USED, _TOTAL, _USE))
        yield GpuReading(node, int(index[1]), watts, used, total, use)


def _nvidia(node: str, rows: list[str]) -> Iterator[GpuReading]:
    kept = [row.split(",") for row in rows if re.match(r"\d{1,3},", row)]
    for row in kept[:MOST_GPUS]:
        if len(row) != 5:
            continue
        watts, used, total, use = (_number(word) for word in row[1:])
        # nvidia-smi(1): memory is in MiB.
        yield GpuReading(node, int(row[0]), watts, _mib(used), _mib(total), use)


def _mib(value: float | None) -> float | None:
    return None if value is None else value * (1 << 20)


def _number(value: object) -> float | None:
    """Return the number in a text; None for `N/A` or similar."""
    text = str(value).strip()[:40] if isinstance(value, str | int | float) else ""
    return float(text) if re.fullmatch(r"\d{1,18}(\.\d{1,9})?", text) else None
