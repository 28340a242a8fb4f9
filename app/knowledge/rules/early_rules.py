"""Rules about what is expanded, or drawn, in the wrong shell, and about ports of one node."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.expansions import names_in
from lumitui.app.knowledge.site_facts.process_counts import loses_ranks, nodes_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import Position

_HEREDOC = re.compile(r"(?<!<)<<(-?)\s*(['\"\\]?)([A-Za-z_]\w*)")
_RANK = re.compile(r"(?<!\\)\$\{?(SLURM_PROCID|SLURM_LOCALID|SLURM_NODEID)\b")
_MEETING = ("master-port", "rdzv-endpoint", "rdzv-id", "main-process-port")


@rule(
    "rank-in-heredoc",
    "error",
    "a rank in a text that the batch script expands when it writes it",
    why="Without quotes around its end word, bash expands the variables of a heredoc when it "
    "writes the file: it contains the batch script's own rank, 0, for all tasks.",
    source="bash(1), Here Documents; srun(1), output environment variables",
)
def rank_in_heredoc(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `cat > run.sh <<EOF` with `$SLURM_PROCID` in the text."""
    end, word = "", ""
    for number, line in enumerate(job.text.split("\n"), 1):
        if end:
            found = _RANK.search(line) if word else None
            if found and loses_ranks(job, found[1]):
                yield Hit(
                    f"The batch script puts 0 in the place of ${found[1]} when it writes this.",
                    f"Put the end word in quotes: <<'{end}', or write \\${found[1]}.",
                    Position(number, found.start() + 1, number, found.end() + 1),
                )
            end = "" if line.strip() == end else end
        elif not line.lstrip().startswith("#") and (start := _HEREDOC.search(line)):
            end, word = start[3], "" if start[2] or not _is_written(line) else start[3]


def _is_written(line: str) -> bool:
    """Whether a heredoc becomes a file, or what the tasks read."""
    return re.search(r"\bcat\b.*>|\btee\b|\bsrun\b|>\s*\S+.*\bcat\b", line) is not None


@rule(
    "random-in-each-task",
    "error",
    "a random port or name that each node draws for itself",
    why="$RANDOM is another number in each shell: the nodes wait for each other at different "
    "ports until they give up.",
    source="bash(1), RANDOM; pytorch, torch/distributed/run.py --rdzv-endpoint",
)
def random_in_each_task(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun bash -c 'PORT=$((20000 + RANDOM % 100)); torchrun …:$PORT'` on two nodes."""
    for step in job.training:
        if step.srun is None or nodes_of(job, step) < 2:
            continue
        for name in _MEETING:
            option = step.launcher_options.get(name)
            value = (option.value or "") if option else ""
            held = map(job.variable, names_in(value))
            drawn = next(
                (
                    item
                    for item in held
                    if item and item.shell != "batch" and "RANDOM" in item.value
                ),
                None,
            )
            inside = "RANDOM" in value and bool(step.shells) and step.program_shell != "batch"
            if option and (drawn or inside):
                yield Hit(
                    f"Each of the {nodes_of(job, step)} nodes draws another --{name}.",
                    "Draw it once, before srun, and export it.",
                    drawn.at if drawn else option.at if option.at.line else step.at,
                )
                break


@rule(
    "same-port-twice",
    "error",
    "several launches at the same time that take one port of a node",
    why="The first takes the port, and the others end with `Address already in use`. Without "
    "--standalone or --master_port torchrun takes 29500.",
    source="pytorch, torch/distributed/run.py --master-port, --standalone",
)
def same_port_twice(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find a loop over `torchrun --master_port=29500 … &`."""
    if job.nodes > 1:
        return
    taken = set[str]()
    for step in job.training:
        port = _port(job, step) if step.background and step.launcher == "torchrun" else ""
        if port and (step.repeated or port in taken):
            yield Hit(
                f"Launches that run at the same time meet at port {port} of one node.",
                "Give each --standalone, or a --master_port of its own.",
                step.at,
            )
            return
        taken.add(port)


def _port(job: ScriptJob, step: JobStep) -> str:
    """Return the port of torchrun as far as it is the same each time; "": it is not known."""
    options = step.launcher_options
    if (
        options.has("standalone")
        or job.variable("PET_MASTER_PORT")
        or job.variable("PET_RDZV_ENDPOINT")
    ):
        return ""
    if options.has("rdzv-endpoint", "rdzv-backend"):
        port = (options.value("rdzv-endpoint") or "").rpartition(":")[2]
    else:
        port = (options.value("master-port") or "29500").strip()
    return port if port.isdecimal() and port != "0" else ""
