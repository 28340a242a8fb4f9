"""Rules about signals near the time limit, requeues, and what `exec` leaves out."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import Command, ScriptJob
from lumitui.remote.site.profile import Site

_ENDING = {"EXIT", "ERR", "DEBUG", "RETURN", "TERM", "INT", "KILL"}
"""Not sent by `--signal` alone: bash's own, and those that Slurm sends at the end of any job."""
_BOUNDED = re.compile(
    r"RESTART_COUNT|attempt|tries|retr(y|ies)|max_|-(lt|le|gt|ge)\s+\"?[$1-9]|-eq\s+[1-9]|"
    r"==\s*[\"']?[1-9]|\(\(.*[<>]|\bcase\b", re.IGNORECASE
)  # fmt: skip
_RUNS = r"(?:srun|torchrun|python3?|mpirun|deepspeed|accelerate|singularity|apptainer|wait)\b"
_CODE = r"[\"']?\$(?:\?|\{?\w*(?:rc|ret|stat|exit|code|err)\w*\}?)[\"']?"
_FAILED = re.compile(
    rf"\bif\s+!\s+{_RUNS}|{_CODE}\s*(?:-ne|!=)\s*[\"']?0|"
    r"\(\(\s*\$?(?:rc|ret|status|code)\s*(?:!= 0\s*)?\)\)|"
    rf"{_RUNS}[^\n]*\|\|\s*\{{?\s*(?:scontrol|sbatch)|\bif\s+{_RUNS}[\s\S]*\belse\b"
)
"""Conditions that hold after any failure of the program, and not while there is more to do."""
_AGAIN = re.compile(r"\b(scontrol\s+requeue(hold)?\b|sbatch\s+[\"']?\$\{?0\b)")
_HARMLESS = {"exit", "echo", "true", ":", "printf", "date", "wait", "exec"}


def _plain(signal: str) -> str:
    """Return `USR1` for `SIGUSR1`, `usr1` and `10`."""
    name = signal.upper().removeprefix("SIG")
    return {"10": "USR1", "12": "USR2", "1": "HUP"}.get(name, name)


def _traps(job: ScriptJob, signal: str) -> Iterator[Command]:
    """Yield the traps of the batch script that do something on a signal."""
    for command in job.commands:
        words = [word.text for word in command.words]
        acts = command.program == "trap" and words[:1] not in ([""], ["-"])
        if acts and command.shell == "batch" and signal in {_plain(word) for word in words[1:]}:
            yield command


def _signal(job: ScriptJob) -> tuple[str, bool]:
    """Return the signal that `--signal` sends, and whether it goes to the batch shell."""
    kinds, _, rest = (job.options.value("signal") or "").rpartition(":")
    return _plain(rest.partition("@")[0]), "B" in kinds.upper()


@rule(
    "trap-behind-launch",
    "warning",
    "a trap that runs only when the launch has ended",
    why="bash waits for a program in the foreground before it runs a trap. Near the time limit the "
    "signal comes, the trap waits for srun, and Slurm ends both: nothing is saved or sent again.",
    source="bash(1), SIGNALS; sbatch(1) --signal",
)
def trap_behind_launch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `trap save USR1` with `--signal=B:USR1@300` and `srun …` in the foreground."""
    signal, to_batch = _signal(job)
    if not to_batch or signal in _ENDING or not list(_traps(job, signal)):
        return
    for step in job.training:
        if not step.background and not step.at.file:
            yield Hit(
                f"The trap on {signal} waits until this launch has ended, so it comes too late.",
                "Write `&` behind the launch, and `wait $!` below it.",
                step.at,
            )
            return


@rule(
    "signal-to-steps",
    "warning",
    "a trap for a signal that only the steps get",
    why="Without `B:` Slurm sends the signal to the steps and not to the batch shell: the trap "
    "never runs, and a program that does not handle the signal ends.",
    source="sbatch(1) --signal",
)
def signal_to_steps(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--signal=USR1@180` beside `trap … USR1`."""
    option, (signal, to_batch) = job.options.get("signal"), _signal(job)
    if option is None or to_batch or signal in _ENDING:
        return
    for command in list(_traps(job, signal))[:1]:
        yield Hit(
            f"The batch shell never gets {signal}, so that the trap of line {command.at.line} "
            "does not run.",
            f"Write --signal=B:{option.value}.",
            option.at,
        )


@rule(
    "endless-requeue",
    "warning",
    "a job that sends itself again after any failure",
    why="A mistake that ends the program at once comes again each time: the job runs, and is "
    "billed, until somebody sees it.",
    source="sbatch(1), SLURM_RESTART_COUNT; scontrol(1) requeue",
)
def endless_requeue(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `if ! srun …; then scontrol requeue $SLURM_JOB_ID; fi`."""
    if "SLURM_RESTART_COUNT" in job.text:
        return
    lines = job.text.split("\n")
    for command in job.commands:
        number, words = command.at.line, " ".join(word.text for word in command.words)
        if command.shell != "batch" or command.at.file or not 0 < number <= len(lines):
            continue
        if not _AGAIN.search(f"{command.program} {words}"):
            continue
        around = _condition(lines[max(0, number - 12) : number])
        if _FAILED.search(around) and not _BOUNDED.search(around):
            yield Hit(
                "The job sends itself again after any failure, without an end.",
                "Ask first for [ ${SLURM_RESTART_COUNT:-0} -lt 3 ], or for one exit code.",
                command.at,
            )
            return


def _condition(lines: list[str]) -> str:
    """Return the last line with the condition that it stands under; "": it has none."""
    opens = re.compile(r"\s*(if|elif)\b|.*(\|\||&&)")
    start = next((n for n in reversed(range(len(lines))) if opens.match(lines[n])), None)
    if start is None:
        return ""
    while start and lines[start - 1].endswith("\\"):
        start -= 1
    return "\n".join(lines[start:]).replace("\\\n", " ")


@rule(
    "lost-behind-exec",
    "error",
    "commands behind an exec",
    why="`exec` replaces the shell with the program: when the program ends, the script ends, and "
    "nothing below runs.",
    source="bash(1), exec",
)
def lost_behind_exec(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `exec srun …` above the `rsync` of the results."""
    line = job.text.split("\n")[job.end.line - 1] if job.end.line else ""
    if not re.match(r"\s*exec\s", line):
        return
    last = max([job.end.end_line, *(step.at.end_line for step in job.steps
                                    if step.at.line == job.end.line)])  # fmt: skip
    below = [command for command in job.commands
             if command.step is None and command.shell == "batch" and not command.at.file
             and command.at.line > last and command.program not in _HARMLESS]  # fmt: skip
    launched = any(step.trains and step.at.line <= last for step in job.steps)
    if below and launched:
        yield Hit(
            f"`exec` ends the script here, so `{below[0].program}` of line {below[0].at.line} "
            "never runs.",
            "Remove `exec`.",
            job.end,
        )
